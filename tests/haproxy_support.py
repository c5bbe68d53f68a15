"""A real HAProxy in front of services."""

from __future__ import annotations

import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from http_support import PATIENCE, until
from nginx_support import listens

needs_haproxy = pytest.mark.skipif(shutil.which("haproxy") is None, reason="haproxy is not installed")

CONFIGURATION = """
defaults
  mode http
  timeout connect 5s
  timeout client 60s
  timeout server 60s
frontend users
  bind 127.0.0.1:{port}
  default_backend services
backend services
  {check}
  option redispatch
  retries 3
  http-reuse always
{servers}
"""


@contextmanager
def haproxy(servers: Sequence[str], check: str = "option httpchk HEAD /health") -> Iterator[int]:
    """HAProxy before these servers, which it checks ten times a second: its port."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    lines = "\n".join(
        f"  server s{place} {server} check inter 100ms fall 1 rise 1" for place, server in enumerate(servers)
    )
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "haproxy.cfg"
        file.write_text(CONFIGURATION.format(port=port, check=check, servers=lines))
        with subprocess.Popen(["haproxy", "-db", "-f", str(file)], stderr=subprocess.DEVNULL) as process:
            try:
                until(lambda: listens(port))
                yield port
            finally:
                process.terminate()
                process.wait(PATIENCE)
