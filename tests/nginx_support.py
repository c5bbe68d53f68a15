"""A real nginx in front of services, run by another user where root starts it."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from http_support import PATIENCE, until

needs_nginx = pytest.mark.skipif(shutil.which("nginx") is None, reason="nginx is not installed")

CONFIGURATION = """
{user}
daemon off;
worker_processes 1;
pid {folder}/pid;
error_log {folder}/log;
events {{ }}
http {{
  access_log off;
  client_body_temp_path {folder}/1; proxy_temp_path {folder}/2; fastcgi_temp_path {folder}/3;
  uwsgi_temp_path {folder}/4; scgi_temp_path {folder}/5;
  upstream services {{ {servers} keepalive 64; }}
  server {{
    listen 127.0.0.1:{port};
    location {prefix} {{ proxy_pass http://services/; proxy_http_version 1.1; proxy_set_header Connection ""; }}
  }}
}}
"""


@contextmanager
def nginx(servers: Sequence[str], prefix: str = "/") -> Iterator[int]:
    """nginx before these servers, with keep-alive and its default retries, below a prefix: its port."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with tempfile.TemporaryDirectory() as folder:
        user = "user www-data;" if os.getuid() == 0 else ""
        lines = " ".join(f"server {server};" for server in servers)
        file = Path(folder) / "nginx.conf"
        file.write_text(CONFIGURATION.format(user=user, folder=folder, servers=lines, port=port, prefix=prefix))
        Path(folder).chmod(0o755)
        with subprocess.Popen(["nginx", "-c", str(file)], stderr=subprocess.DEVNULL) as process:
            try:
                until(lambda: listens(port))
                yield port
            finally:
                process.terminate()
                process.wait(PATIENCE)


def listens(port: int) -> bool:
    with socket.socket() as trial:
        return trial.connect_ex(("127.0.0.1", port)) == 0
