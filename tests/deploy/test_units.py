"""deploy/systemd, deploy/nginx and deploy/caddy, run: a systemd that is the first process of namespaces, and proxies.

A test is skipped, with the reason, where its program is not installed, or this user may not make namespaces.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import ssl
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

import gramvec
from conftest import MODELS, ROOT
from support.http import COMMAND, PATIENCE, serves_at, until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

UNIT = ROOT / "deploy" / "systemd" / "gramvec.service"
SETTINGS = ROOT / "deploy" / "systemd" / "gramvec.toml"
NGINX, CADDY = ROOT / "deploy" / "nginx" / "gramvec.conf", ROOT / "deploy" / "caddy" / "Caddyfile"
MODEL = "paragram-phrase"
SYSTEMD = Path("/lib/systemd/systemd")
TARGETS = ("sysinit", "basic", "shutdown", "umount", "final", "network", "multi-user")
NAMESPACES = ("--mount", "--uts", "--ipc", "--pid", "--cgroup", "--fork", "--kill-child")
# What systemd finds when it is started: an empty /run, a hierarchy of control groups of its own, and no unit of the
# machine but what the test has put there. The user, the program and the settings lie over what the machine has.
BOOT = """
set -eu
mount --make-rprivate /
mount -t proc proc /proc
mount -t tmpfs -o mode=755 tmpfs /run
mount -t tmpfs -o mode=755 tmpfs /sys/fs/cgroup
mkdir /sys/fs/cgroup/systemd
mount -t cgroup -o none,name=systemd cgroup /sys/fs/cgroup/systemd
mount --bind "$1/units" /lib/systemd/system
mount --bind "$1/etc" /etc
mount --bind "$1/state" /var/lib
mount -t tmpfs -o mode=755 tmpfs /opt
mkdir /opt/python /opt/packages /opt/sources /opt/models
mount --bind "$2" /opt/python
mount --bind "$3" /opt/packages
mount --bind "$4" /opt/sources
mount --bind "$5" /opt/models
cp -r "$1/gramvec" /opt/gramvec
exec env -i container=unshare PATH=/usr/sbin:/usr/bin:/sbin:/bin "$0" --system --unit=basic.target \
    --log-target=console --show-status=no
"""
PROGRAM = """#!/bin/sh
export PYTHONPATH=/opt/sources:/opt/packages LD_LIBRARY_PATH=/opt/python/lib
exec /opt/python/bin/python3 -m gramvec.cli "$@"
"""
UID = 64_321
OF_ETC = ("nsswitch.conf", "ld.so.cache", "hosts", "passwd", "group")


def needs(*programs: str) -> None:
    for program in programs:
        if shutil.which(program, path=os.environ["PATH"] + ":/usr/sbin:/sbin") is None:
            pytest.skip(f"{program} is not installed")


def test_the_unit_is_one() -> None:
    needs("systemd-analyze")
    done = subprocess.run(["systemd-analyze", "verify", str(UNIT)], capture_output=True, text=True)
    said = [line for line in done.stderr.splitlines() if "/opt/gramvec/bin/gramvec is not executable" not in line]
    assert said == []
    done = subprocess.run(
        ["systemd-analyze", "security", "--offline=true", "--threshold=20", str(UNIT)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout.splitlines()[-1]  # an exposure of at most 2.0 of 10


class Systemd:
    """A systemd that is the first process of namespaces of its own."""

    def __init__(self, process: subprocess.Popen[bytes], log: Path) -> None:
        self._process, self._log = process, log
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
        until(lambda: children.read_text().strip() or process.poll() is not None)
        if process.poll() is not None:
            pytest.skip(f"no systemd in namespaces here: {log.read_text()[-300:]}")
        self.pid = int(children.read_text())
        self.root = Path(f"/proc/{self.pid}/root")

    def ctl(self, *words: str, check: bool = True) -> str:
        """Run systemctl inside, and return what it prints."""
        entered = ["nsenter", "-t", str(self.pid), "-m", "-p", "-u", "-i", "systemctl", *words]
        done = subprocess.run(entered, capture_output=True, text=True, timeout=PATIENCE)
        assert not check or done.returncode == 0, (words, done.stdout, done.stderr, self.log)
        return done.stdout

    def show(self, name: str) -> str:
        return self.ctl("show", "--value", "-p", name, "gramvec").strip()

    def client(self, key: str = "") -> httpx.Client:
        transport = httpx.HTTPTransport(uds=str(self.root / "run" / "gramvec" / "gramvec.sock"))
        headers = {"authorization": f"Bearer {key}"} if key else {}
        return httpx.Client(transport=transport, base_url="http://gramvec", headers=headers, timeout=PATIENCE)

    @property
    def log(self) -> str:
        """What systemd and the service have said."""
        own = self.root / "var" / "lib" / "gramvec.log"
        return self._log.read_text()[-3000:] + (own.read_text()[-3000:] if own.exists() else "")

    def is_ready(self) -> bool:
        if not (self.root / "run" / "gramvec" / "gramvec.sock").exists():
            return False
        try:
            with self.client() as client:
                return client.get("/ready").status_code == 200
        except httpx.TransportError:
            return False


@pytest.fixture
def systemd(tmp_path: Path, small: gramvec.Embedder) -> Iterator[Systemd]:
    needs("unshare", "nsenter", "systemctl")
    if not SYSTEMD.exists() or os.geteuid():
        pytest.skip("systemd is not installed, or this user may not make namespaces")
    stage = tmp_path / "stage"
    etc, state, units = stage / "etc", stage / "state", stage / "units"
    for folder in (etc / "gramvec", state / "gramvec", units, stage / "gramvec" / "bin"):
        folder.mkdir(parents=True)
    for name in OF_ETC:
        if Path("/etc", name).exists():
            shutil.copy(Path("/etc", name), etc / name)
    # There is no journal.
    own = etc / "systemd" / "system" / f"{UNIT.name}.d"
    own.mkdir(parents=True)
    (own / "log.conf").write_text("[Service]\nStandardError=append:/var/lib/gramvec.log\n")
    (etc / "machine-id").write_text("0" * 31 + "1\n")
    for name, line in (("passwd", f"gramvec:x:{UID}:{UID}::/:/usr/sbin/nologin\n"), ("group", f"gramvec:x:{UID}:\n")):
        with (etc / name).open("a") as file:
            file.write(line)
    for name in TARGETS:
        (units / f"{name}.target").write_text(f"[Unit]\nDescription={name}\nDefaultDependencies=no\n")
    shutil.copy(UNIT, units / UNIT.name)
    program = stage / "gramvec" / "bin" / "gramvec"
    program.write_text(PROGRAM)
    program.chmod(0o755)
    # The file that is shipped, with its comments taken off, and a model that is here.
    settings = SETTINGS.read_text().replace('"gramvec-en"', f'"/opt/models/{MODEL}"')
    settings = re.sub(r"^# (index|write_key_file)", r"\1", settings, flags=re.MULTILINE)
    (etc / "gramvec" / "gramvec.toml").write_text(settings)
    for name in ("api", "write"):
        keys = etc / "gramvec" / f"{name}.keys"
        keys.write_text(f"{name}-key\n")
        os.chown(keys, 0, UID)
        keys.chmod(0o640)
    gramvec.Index.build(state / "gramvec" / "tickets.index", [{"id": "1", "text": "lost parcel"}], model=small, id="id")
    packages = Path(httpx.__file__).parents[1]
    given = [str(part) for part in (stage, sys.base_prefix, packages, ROOT / "service", MODELS)]
    log = tmp_path / "log"
    with log.open("wb") as written:
        process = subprocess.Popen(
            ["unshare", *NAMESPACES, "sh", "-c", BOOT, str(SYSTEMD), *given], stdout=written, stderr=written
        )
        try:
            started = Systemd(process, log)
            until(lambda: started.ctl("is-active", "basic.target", check=False).strip() == "active")
            yield started
        finally:
            process.kill()
            process.wait(PATIENCE)


def test_systemd_starts_reloads_restarts_and_stops_it(systemd: Systemd) -> None:
    systemd.ctl("start", "gramvec")
    until(lambda: systemd.is_ready() or systemd.show("ActiveState") not in ("active", "activating"))
    assert systemd.is_ready(), systemd.log
    with systemd.client() as stranger, systemd.client("api-key") as client, systemd.client("write-key") as writer:
        assert client.get("/ready").json()["workers"] == 2
        assert stranger.post("/embed", json={"inputs": "a"}).status_code == 401
        assert client.post("/embed", json={"inputs": "a"}).status_code == 200
        added = writer.post("/rows/add", json={"rows": [{"id": "2", "text": "violin lessons"}]})
        assert added.json() == {"index": "tickets", "total": 2}
        assert (systemd.root / "run" / "gramvec" / "gramvec.sock").stat().st_uid == UID
        # Keys are read again by a reload.
        (systemd.root / "etc" / "gramvec" / "api.keys").write_text("other-key\n")
        systemd.ctl("reload", "gramvec")
        until(lambda: {stranger.get("/info", headers=bearer("api-key")).status_code for _ in range(4)} == {401})
        assert systemd.show("NRestarts") == "0"
    systemd.ctl("kill", "--signal=KILL", "--kill-whom=main", "gramvec")
    until(lambda: systemd.show("NRestarts") == "1" and systemd.is_ready())
    with systemd.client("other-key") as client:
        found = client.post("/search", json={"queries": "violin", "k": 1}).json()
        assert found["results"][0][0]["id"] == "2"
    systemd.ctl("stop", "gramvec")
    assert (systemd.show("ActiveState"), systemd.show("Result"), systemd.show("ExecMainStatus")) == (
        "inactive", "success", "0",
    )  # fmt: skip
    assert not (systemd.root / "run" / "gramvec").exists()


def bearer(key: str) -> dict[str, str]:
    return {"authorization": f"Bearer {key}"}


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Path]:
    """A service on a socket, where the proxies' files are changed to look for it."""
    path = tmp_path / "gramvec.sock"
    command = [*COMMAND, "--model", str(MODELS / MODEL), "--unix-socket", str(path), "--api-key", "a-key"]
    process = subprocess.Popen([*command, "--access-log", "on"], stderr=subprocess.DEVNULL)
    try:
        until(lambda: serves_at(path))
        yield path
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE) == 0


def is_listening(port: int) -> bool:
    with socket.socket() as asking:
        return asking.connect_ex(("127.0.0.1", port)) == 0


@contextmanager
def proxy(command: list[str], port: int, folder: Path) -> Iterator[None]:
    """Run a proxy in the foreground, until it is stopped."""
    log = folder / "proxy.log"
    environment = {**os.environ, "HOME": str(folder), "XDG_DATA_HOME": str(folder), "XDG_CONFIG_HOME": str(folder)}
    with log.open("wb") as written:
        process = subprocess.Popen(command, stdout=written, stderr=written, env=environment)
        try:
            until(lambda: is_listening(port) or process.poll() is not None)
            assert process.poll() is None, log.read_text()
            yield
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(PATIENCE)


def check_proxy(url: str, verify: ssl.SSLContext | bool, host: str, *, limits_rate: bool) -> None:
    """Ask through a proxy what clients do, and what they should not."""
    headers = {"host": host, **bearer("a-key")}
    with httpx.Client(base_url=url, verify=verify, headers=headers, timeout=PATIENCE, trust_env=False) as client:
        answer = client.post("/embed", json={"inputs": ["a"] * 1000})
        assert (answer.status_code, len(answer.json())) == (200, 1000)
        assert answer.headers["x-request-id"]
        assert client.get("/health").status_code == 200
        assert client.post("/embed", json={"inputs": "a"}, headers=bearer("wrong")).status_code == 401
        for path in ("/metrics", "/admin/reload"):
            assert client.post(path).status_code == client.get(path).status_code == 404
        # A body over the limit is refused by the proxy, or by the service behind it.
        assert client.post("/embed", content=b"x" * (9 << 20)).status_code == 413
        streamed = client.post("/embed", content=(part for part in [b'{"inputs":', b'"a"}']), headers={
            "content-type": "application/json"
        })  # fmt: skip
        assert streamed.status_code == 200
        if limits_rate:
            # It takes 50 a second, which a busy machine may not ask one after the other.
            with ThreadPoolExecutor(16) as pool:
                until(lambda: 429 in pool.map(lambda _: client.get("/health").status_code, range(400)))


def test_nginx_is_in_front_of_it(served: Path, tmp_path: Path, port: int) -> None:
    needs("nginx")
    trustme = pytest.importorskip("trustme", reason="trustme is not installed")
    authority = trustme.CA()
    issued = authority.issue_cert("embeddings.example.org", "127.0.0.1")
    issued.private_key_pem.write_to_path(tmp_path / "key.pem")
    for part in issued.cert_chain_pems:
        part.write_to_path(tmp_path / "fullchain.pem", append=True)
    changes = {
        "/run/gramvec/gramvec.sock": str(served), "listen 443 ssl": f"listen 127.0.0.1:{port} ssl",
        "/etc/nginx/tls": str(tmp_path),
    }  # fmt: skip
    text = NGINX.read_text()
    for old, new in changes.items():
        assert old in text
        text = text.replace(old, new)
    (tmp_path / "gramvec.conf").write_text(text)
    temporary = "".join(
        f"{name}_temp_path {tmp_path}/{name};\n" for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    main = tmp_path / "nginx.conf"
    # As the user of the tests: the worker may not reach a folder of pytest's otherwise.
    user = "user root;\n" if os.geteuid() == 0 else ""
    main.write_text(
        f"{user}daemon off;\npid {tmp_path}/pid;\nerror_log stderr;\nworker_processes 1;\nevents {{}}\n"
        f"http {{\naccess_log off;\n{temporary}include {tmp_path}/gramvec.conf;\n}}\n"
    )
    program = shutil.which("nginx", path=os.environ["PATH"] + ":/usr/sbin") or ""
    checked = subprocess.run([program, "-t", "-c", str(main)], capture_output=True, text=True)
    assert checked.returncode == 0 and "warn" not in checked.stderr, checked.stderr
    context = ssl.create_default_context()
    authority.configure_trust(context)
    with proxy([program, "-c", str(main)], port, tmp_path):
        check_proxy(f"https://127.0.0.1:{port}", context, "embeddings.example.org", limits_rate=True)


def test_caddy_is_in_front_of_it(served: Path, tmp_path: Path, port: int) -> None:
    needs("caddy")
    text = CADDY.read_text()
    assert "/run/gramvec/gramvec.sock" in text
    text = text.replace("/run/gramvec/gramvec.sock", str(served))
    text = re.sub(r"^embeddings\.example\.org", f"http://127.0.0.1:{port}", text, flags=re.MULTILINE)
    # Neither its certificates, which a name of a real host has, nor its port for orders.
    (tmp_path / "Caddyfile").write_text("{\n\tadmin off\n}\n" + text)
    checked = subprocess.run(["caddy", "fmt", "--diff", str(CADDY)], capture_output=True, text=True)
    assert checked.returncode == 0 and not re.search(r"^[+-]", checked.stdout, re.MULTILINE), checked.stdout
    adapted = subprocess.run(
        ["caddy", "adapt", "--config", str(CADDY), "--adapter", "caddyfile"], capture_output=True, text=True
    )
    assert adapted.returncode == 0, adapted.stderr
    assert "embeddings.example.org" in json.dumps(json.loads(adapted.stdout))
    command = ["caddy", "run", "--config", str(tmp_path / "Caddyfile"), "--adapter", "caddyfile"]
    with proxy(command, port, tmp_path):
        check_proxy(f"http://127.0.0.1:{port}", False, f"127.0.0.1:{port}", limits_rate=False)
