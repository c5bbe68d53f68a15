"""The service's own HTTP connections: with and without known heads, and uvicorn's own protocol, in one run."""

from __future__ import annotations

import sys
from contextlib import ExitStack

from benchmarks.http import Case, interleaved
from benchmarks.measure import Setting, rates
from benchmarks.results import Part
from benchmarks.servers import Command, Server

# Each is run before the command line, in the same process.
WITHOUT_HEADS = """
from gramvec.server.http1.connection import Connections
Connections.known_head = lambda self, data: None
Connections.keep_head = lambda self, raw, head: None
"""
UVICORN = """
import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from gramvec.server.processes import server
Config = uvicorn.Config
def config(own, **named):
    application = own.__self__._app
    async def both(scope, receive, send):
        await (own if scope["type"] == "lifespan" else application)(scope, receive, send)
    return Config(both, **{**named, "http": HttpToolsProtocol})
server.uvicorn.Config = config
"""
VARIANTS = {
    "gramvec serve": "",
    "without known heads": WITHOUT_HEADS,
    "uvicorn's own protocol": UVICORN,
}
CASES = (Case(1, 1), Case(1, 16), Case(1, 64), Case(32, 16))


def run(setting: Setting) -> Part:
    part = Part()
    with ExitStack() as stack:
        servers = [stack.enter_context(Server(_served(name, code, setting.model))) for name, code in VARIANTS.items()]
        for case in CASES:
            title = f"the service's own connections: {case.unit}, {case.connections} connections"
            timings = interleaved(servers, case, setting)
            part.add(f"protocol_{case.name}", rates(title, case.unit, timings, servers[0].name))
    return part


def _served(name: str, code: str, model: str) -> Command:
    script = f"{code}\nfrom gramvec.cli import main\nmain()"
    start = [sys.executable, "-c", script, "serve", "--model", model, "--device", "cpu", "--port"]
    return Command(name, lambda port: [*start, str(port)], "/ready")
