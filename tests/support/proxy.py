"""A real nginx, run by another user where root starts it, and a real HAProxy in front of services."""

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

from support.http import PATIENCE, kept_port, until

needs_nginx = pytest.mark.skipif(shutil.which("nginx") is None, reason="nginx is not installed")
needs_haproxy = pytest.mark.skipif(shutil.which("haproxy") is None, reason="haproxy is not installed")

NGINX = """
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
HAPROXY = """
defaults
  mode http
  timeout connect 5s
  timeout check 10s
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
def nginx(servers: Sequence[str], prefix: str = "/") -> Iterator[int]:
    """nginx before these servers, with keep-alive and its default retries, below a prefix: its port."""
    lines = " ".join(f"server {server};" for server in servers)
    user = "user www-data;" if os.getuid() == 0 else ""
    with _run_proxy(["nginx", "-c"], NGINX, user=user, servers=lines, prefix=prefix) as port:
        yield port


@contextmanager
def haproxy(servers: Sequence[str], check: str = "option httpchk HEAD /health") -> Iterator[int]:
    """HAProxy before these servers, which it checks ten times a second: its port."""
    lines = "\n".join(
        f"  server s{place} {server} check inter 100ms fall 3 rise 1" for place, server in enumerate(servers)
    )
    with _run_proxy(["haproxy", "-db", "-f"], HAPROXY, servers=lines, check=check) as port:
        yield port


@contextmanager
def _run_proxy(command: Sequence[str], template: str, **values: str) -> Iterator[int]:
    with kept_port() as port, tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "configuration"
        file.write_text(template.format(folder=folder, port=port, **values))
        Path(folder).chmod(0o755)
        with subprocess.Popen([*command, str(file)], stderr=subprocess.DEVNULL) as process:
            try:
                until(lambda: _listens(port))
                yield port
            finally:
                process.terminate()
                process.wait(PATIENCE)


def _listens(port: int) -> bool:
    with socket.socket() as trial:
        return trial.connect_ex(("127.0.0.1", port)) == 0
