"""The limits on the service's HTTP connections: with them, and uvicorn's protocol as it is, in one run."""

from __future__ import annotations

import sys
from contextlib import ExitStack

from benchmarks.http import Case, interleaved
from benchmarks.measure import Setting, rates
from benchmarks.results import Part
from benchmarks.servers import Command, Server

# Run before the command line, in the same process.
WITHOUT_LIMITS = """
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from gramvec.server.edge import server
server.limit_protocol = lambda guard: HttpToolsProtocol
"""
VARIANTS = {
    "gramvec serve": "",
    "uvicorn's own protocol": WITHOUT_LIMITS,
}
CASES = (Case(1, 1), Case(1, 16), Case(1, 64), Case(32, 16))


def run(setting: Setting) -> Part:
    part = Part()
    with ExitStack() as stack:
        servers = [stack.enter_context(Server(_served(name, code, setting.model))) for name, code in VARIANTS.items()]
        for case in CASES:
            title = f"limits on connections: {case.unit}, {case.connections} connections"
            timings = interleaved(servers, case, setting)
            part.add(f"protocol_{case.name}", rates(title, case.unit, timings, servers[0].name))
    return part


def _served(name: str, code: str, model: str) -> Command:
    script = f"{code}\nfrom gramvec.cli import main\nmain()"
    start = [sys.executable, "-c", script, "serve", "--model", model, "--device", "cpu", "--port"]
    return Command(name, lambda port: [*start, str(port)], "/ready")
