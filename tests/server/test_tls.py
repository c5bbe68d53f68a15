"""HTTPS on real servers: workers, clients' certificates, files that cannot be used, clients that stall."""

from __future__ import annotations

import datetime
import os
import signal
import socket
import ssl
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import numpy as np
import pytest
import trustme
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_pem_private_key,
)

from conftest import MODELS, ROOT
from gramvec import Embedder
from gramvec.client import Client
from gramvec.server.app import create_app
from gramvec.server.settings import settings_from
from support.errors import assert_names
from support.http import (
    COMMAND,
    PATIENCE,
    RunningServer,
    announced_port,
    post_bytes,
    read_all,
    reloaded,
    running_app,
    until,
)

pytestmark = pytest.mark.slow

SERVE = [*COMMAND, "--model", str(MODELS / "sif"), "--port", "0"]


class Files:
    """An authority, and what it has made for 127.0.0.1."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.authority = trustme.CA()
        self.ca = folder / "ca.pem"
        self.authority.cert_pem.write_to_path(self.ca)
        self.certificate, self.key = folder / "certificate.pem", folder / "key.pem"
        self.issue()

    def issue(self) -> None:
        made = self.authority.issue_cert("127.0.0.1")
        self.certificate.write_bytes(b"".join(one.bytes() for one in made.cert_chain_pems))
        made.private_key_pem.write_to_path(self.key)

    def client(self, *, known: bool = False) -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=self.ca)
        if known:
            self.authority.issue_cert("client@example.org").configure_cert(context)
        return context

    @property
    def options(self) -> list[str]:
        return ["--tls-certificate", str(self.certificate), "--tls-key", str(self.key)]


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path)


@contextmanager
def served(*options: str) -> Iterator[tuple[subprocess.Popen[str], int]]:
    with subprocess.Popen([*SERVE, *options], stderr=subprocess.PIPE, text=True) as process:
        try:
            yield process, announced_port(process)
        finally:
            process.kill()


def asks(port: int, context: ssl.SSLContext) -> httpx.Client:
    key = {"authorization": "Bearer secret"}
    return httpx.Client(base_url=f"https://127.0.0.1:{port}", verify=context, timeout=PATIENCE, headers=key)


def ready(port: int, context: ssl.SSLContext) -> bool:
    try:
        with asks(port, context) as client:
            return client.get("/ready").status_code == 200
    except httpx.TransportError:
        return False


@contextmanager
def running(files: Files, embedder: Embedder, **values: object) -> Iterator[RunningServer]:
    """From a thread of this process."""
    settings = settings_from({"tls_certificate": files.certificate, "tls_key": files.key, **values})
    with running_app(create_app(settings, embedder)) as server:
        yield server


def secured(server: RunningServer, files: Files) -> ssl.SSLSocket:
    return files.client().wrap_socket(server.connect(), server_hostname="127.0.0.1")


@pytest.mark.parametrize("workers", ["1", "2"])
def test_it_is_served_alone_and_by_workers(files: Files, workers: str) -> None:
    with served(*files.options, "--workers", workers) as (process, port):
        until(lambda: ready(port, files.client()))
        with asks(port, files.client()) as client:
            for _ in range(3):
                answer = client.post("/embed", json={"inputs": ["a", "b"]})
                assert (answer.status_code, len(answer.json()), answer.http_version) == (200, 2, "HTTP/1.1")
            assert client.get("/openapi.json").status_code == 200
            with pytest.raises(httpx.ConnectError, match="CERTIFICATE_VERIFY_FAILED"):
                httpx.get(f"https://127.0.0.1:{port}/health", verify=ssl.create_default_context(), timeout=PATIENCE)
            with pytest.raises(httpx.TransportError):
                httpx.get(f"http://127.0.0.1:{port}/health", timeout=PATIENCE)
            process.send_signal(signal.SIGTERM)
            assert process.wait(PATIENCE) == 0


@pytest.mark.parametrize("tls", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_answers_have_the_bytes_of_the_library(files: Files, embedder: Embedder, tls: ssl.TLSVersion) -> None:
    context = files.client()
    context.minimum_version = context.maximum_version = tls
    texts = [f"text number {number} {'x' * 2_000}" for number in range(2_000)]
    with running(files, embedder) as server, asks(server.port, context) as client:
        answer = client.post("/embed", json={"inputs": texts}, headers={"accept": "application/octet-stream"})
        assert answer.content == embedder.embed(texts).tobytes()
        small = client.post("/embed", json={"inputs": "a"}).json()
        assert np.array(small, np.float32).tobytes() == embedder.embed(["a"]).tobytes()


def test_no_handshake_is_lost(files: Files, embedder: Embedder) -> None:
    context = files.client()
    with running(files, embedder) as server:
        for _ in range(100):
            with context.wrap_socket(server.connect(), server_hostname="127.0.0.1") as connection:
                assert connection.version() == "TLSv1.3"
        # Its first bytes one by one, as a slow line brings them.
        hello, sent = ssl.MemoryBIO(), ssl.MemoryBIO()
        client = context.wrap_bio(sent, hello, server_hostname="127.0.0.1")
        with pytest.raises(ssl.SSLWantReadError):
            client.do_handshake()
        with server.connect() as bare:
            for byte in hello.read():
                bare.sendall(bytes([byte]))
            sent.write(bare.recv(1 << 16))
            client.do_handshake()


@pytest.mark.parametrize("renewed", [False, True])
def test_what_is_no_handshake_is_left(
    files: Files, embedder: Embedder, caplog: pytest.LogCaptureFixture, renewed: bool
) -> None:
    """One that is not finished is left when the headers of a request would be."""
    with running(files, embedder, header_timeout_seconds=0.5, api_key=["secret"]) as server:
        if renewed:
            with asks(server.port, files.client()) as client:
                assert reloaded(client).status_code == 200
        for first in (post_bytes(b'{"inputs":"a"}'), b"\x16\x03\x01\x00\x02\x01\x00", b"\x16", b""):
            with server.connect() as bare:
                bare.settimeout(PATIENCE / 2)  # asyncio's own limit is 60 s
                bare.sendall(first)
                assert b"HTTP" not in read_all(bare)
        until(lambda: server.connections == 0)
        with asks(server.port, files.client()) as client:
            assert client.get("/health").status_code == 200
    assert not [record for record in caplog.records if record.levelname in ("WARNING", "ERROR")]


@pytest.mark.parametrize("workers", ["1", "2"])
def test_other_authorities_of_clients_are_taken_by_a_reload(files: Files, workers: str) -> None:
    other, clients = trustme.CA(), files.folder / "clients.pem"
    files.authority.cert_pem.write_to_path(clients)
    contexts = {name: files.client() for name in ("none", "known", "expired", "other")}
    files.authority.issue_cert("client@example.org").configure_cert(contexts["known"])
    past = datetime.datetime.now(datetime.UTC) - datetime.timedelta(days=1)
    files.authority.issue_cert("client@example.org", not_after=past).configure_cert(contexts["expired"])
    other.issue_cert("client@example.org").configure_cert(contexts["other"])
    options = (*files.options, "--tls-client-ca", str(clients), "--workers", workers, "--api-key", "secret")
    with served(*options) as (process, port):
        assert process.stderr is not None
        until(lambda: ready(port, contexts["known"]))

        def welcome() -> set[str]:
            return {name for name, context in contexts.items() for _ in range(4) if ready(port, context)}

        assert welcome() == {"known"}
        other.cert_pem.write_to_path(clients)
        process.send_signal(signal.SIGHUP)
        until(lambda: welcome() == {"other"})


def test_a_key_may_have_a_password(files: Files, embedder: Embedder) -> None:
    encrypt(files, b"correct horse")
    password = files.folder / "password"
    password.write_text("correct horse\n")
    with (
        running(files, embedder, tls_key_password_file=password) as server,
        asks(server.port, files.client()) as client,
    ):
        assert client.get("/health").status_code == 200


def encrypt(files: Files, password: bytes) -> None:
    key = load_pem_private_key(files.key.read_bytes(), None)
    kind = PrivateFormat.PKCS8
    files.key.write_bytes(key.private_bytes(Encoding.PEM, kind, BestAvailableEncryption(password)))


def refusal(*options: str) -> str:
    done = subprocess.run(
        [*SERVE, *options], capture_output=True, text=True, check=False, timeout=PATIENCE, stdin=subprocess.DEVNULL
    )
    assert done.returncode in (1, 2)
    assert "listening" not in done.stderr
    return done.stderr.splitlines()[-1]


def test_what_cannot_be_used_is_one_sentence_before_anything_listens(files: Files, tmp_path: Path) -> None:
    key = str(files.key)
    alone = ["--tls-certificate", str(files.certificate)]
    nowhere, text, other = tmp_path / "nowhere", tmp_path / "text", tmp_path / "other.pem"
    text.write_text("plain words\n")
    files.authority.issue_cert("127.0.0.1").private_key_pem.write_to_path(other)
    assert_names(refusal("--tls-certificate", str(nowhere)), str(nowhere), "No such file")
    assert_names(refusal(*alone, "--tls-key", str(nowhere)), "--tls-key", str(nowhere))
    assert_names(refusal("--tls-certificate", str(text), "--tls-key", key), str(text), "certificate")
    assert "--tls-key" in refusal(*alone)
    assert_names(refusal(*alone, "--tls-key", str(text)), str(text), "private key")
    assert "not the key" in refusal(*alone, "--tls-key", str(other))
    assert_names(refusal("--tls-key", key), "tls_key", "tls_certificate")
    ca = ["--tls-client-ca", str(text)]
    assert_names(refusal(*files.options, *ca), str(text), "certificate")
    encrypt(files, b"correct horse")
    assert "--tls-key-password-file" in refusal(*files.options)
    assert_names(refusal(*files.options, "--tls-key-password-file", str(text)), str(text), "not its password")
    text.write_text("\n")
    assert "must be the password" in refusal(*files.options, "--tls-key-password-file", str(text))


def test_a_file_that_is_not_a_regular_one_is_refused_before_it_is_opened(files: Files) -> None:
    fifo = files.folder / "fifo"
    os.mkfifo(fifo)
    for option in ("--tls-certificate", "--tls-key", "--tls-client-ca", "--tls-key-password-file"):
        assert_names(refusal(*files.options, option, str(fifo)), option, str(fifo), "regular file")


def test_the_ciphers_of_tls_1_2_are_todays(files: Files, embedder: Embedder) -> None:
    context = files.client()
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    with (
        running(files, embedder) as server,
        context.wrap_socket(server.connect(), server_hostname="127.0.0.1") as connection,
    ):
        cipher = connection.cipher()
    assert cipher is not None
    assert "GCM" in cipher[0] or "CHACHA20" in cipher[0]


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_hang_up_takes_the_new_certificate_and_a_bad_one_changes_nothing(files: Files, workers: str) -> None:
    options = (*files.options, "--workers", workers, "--api-key", "secret")
    with served(*options) as (process, port):
        assert process.stderr is not None
        until(lambda: ready(port, files.client()))

        def shown() -> str:
            return ssl.get_server_certificate(("127.0.0.1", port), timeout=PATIENCE)

        before = shown()
        files.issue()
        process.send_signal(signal.SIGHUP)
        last = "reloaded: every worker" if workers == "2" else "reloaded"
        while last not in (line := process.stderr.readline()):
            assert line
        now = shown()
        assert before not in {now, *(shown() for _ in range(8))}
        key = files.key.read_bytes()
        files.key.unlink()
        os.mkfifo(files.key)
        process.send_signal(signal.SIGHUP)
        while "regular file" not in (line := process.stderr.readline()):
            assert line
        with asks(port, files.client()) as client:
            answer = reloaded(client)
        assert answer.status_code == 422
        assert "regular file" in answer.json()["error"]
        assert {shown() for _ in range(8)} == {now}
        files.key.unlink()
        files.key.write_bytes(key)


@pytest.mark.parametrize("workers", ["1", "2"])
def test_certificates_are_taken_again_and_again(files: Files, workers: str) -> None:
    with served(*files.options, "--workers", workers, "--api-key", "secret") as (process, port):
        until(lambda: ready(port, files.client()))
        for _ in range(3):
            before = ssl.get_server_certificate(("127.0.0.1", port), timeout=PATIENCE)
            files.issue()
            with asks(port, files.client()) as client:
                answer = reloaded(client)
            assert answer.status_code == 200, answer.text
            until(lambda: before not in {ssl.get_server_certificate(("127.0.0.1", port)) for _ in range(6)})  # noqa: B023
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE) == 0


def test_a_renewed_certificate_is_taken_without_a_signal(
    files: Files, embedder: Embedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gramvec.server.edge.server.TRIM_TICKS", 1)
    with running(files, embedder) as server:

        def shown() -> str:
            return ssl.get_server_certificate(("127.0.0.1", server.port), timeout=PATIENCE)

        before = shown()
        files.certificate.write_bytes(b"half of a")  # a moment later the file is whole
        assert shown() == before
        files.issue()
        until(lambda: shown() != before)
        with asks(server.port, files.client()) as client:
            assert client.get("/ready").status_code == 200


# Clients that stall


def test_one_connection_too_many_is_told(files: Files, embedder: Embedder) -> None:
    with (
        running(files, embedder, max_connections=2) as server,
        secured(server, files) as first,
        secured(server, files) as second,
    ):
        until(lambda: server.connections == 2)
        with secured(server, files) as third:
            assert b"503 Service Unavailable" in read_all(third)
        for connection in (first, second):
            connection.sendall(b"GET /health HTTP/1.1\r\nhost: test\r\n\r\n")
            assert connection.recv(1 << 16).startswith(b"HTTP/1.1 200")


def test_a_refusal_reaches_a_client_that_still_sends(files: Files, embedder: Embedder) -> None:
    with running(files, embedder) as server, secured(server, files) as connection:
        connection.sendall(post_bytes(b"x" * 100_000, length=10**9))
        assert read_all(connection).startswith(b"HTTP/1.1 413")


def test_a_client_that_closes_its_side_has_gone(files: Files, embedder: Embedder) -> None:
    with running(files, embedder) as server:
        connection = secured(server, files)
        connection.sendall(post_bytes(b'{"inputs":"a"}', length=1_000))
        connection.unwrap().close()
        until(lambda: server.connections == 0)


@pytest.mark.parametrize("texts", [300, 2_000])
def test_an_answer_that_is_not_taken_is_left(files: Files, embedder: Embedder, texts: int) -> None:
    """Of the fewer texts the answer is one part, which the layer of TLS encrypts, and hands on, as a whole."""
    body = b'{"inputs":[%b]}' % b",".join(b'"%d"' % number for number in range(texts))
    with running(files, embedder, send_timeout_seconds=1.0) as server:
        assert server.server is not None
        bare = socket.socket()
        bare.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        bare.connect(("127.0.0.1", server.port))
        with files.client().wrap_socket(bare, server_hostname="127.0.0.1") as connection:
            edge = server.server
            until(lambda: len(edge.connections) == 1)  # a client of TLS 1.3 is ready before its server is
            (accepted,) = edge.connections
            # Over loopback the system would take megabytes.
            accepted.transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4_096)
            connection.sendall(post_bytes(body))
            until(lambda: server.service.process.unsent_bytes() > 2**19)
            until(lambda: server.connections == 0)


def test_no_client_writes_into_the_log(files: Files) -> None:
    hello = b"\x16\x03\x01\x00\x05\x01\x00\x00\x01\x00"
    with served(*files.options) as (process, port):
        until(lambda: ready(port, files.client()))
        for first in (b"GET / HTTP/1.1\r\n\r\n", hello):
            with socket.create_connection(("127.0.0.1", port)) as bare:
                bare.sendall(first)
                bare.settimeout(PATIENCE)
                assert b"HTTP" not in read_all(bare)
        for first in (b"GET / HTTP/1.1\r\n\r\n", b"\x16\x03\x01\x02", b"", hello):
            with socket.create_connection(("127.0.0.1", port)) as bare:
                bare.sendall(first)
        stranger = ssl.create_default_context()
        with socket.create_connection(("127.0.0.1", port)) as bare, pytest.raises(ssl.SSLCertVerificationError):
            stranger.wrap_socket(bare, server_hostname="127.0.0.1")
        assert ready(port, files.client())
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE) == 0
        assert process.stderr is not None
        assert [line for line in process.stderr.read().splitlines() if " INFO " not in line] == []


def test_our_own_client_and_the_containers_check_ask_by_https(
    files: Files, embedder: Embedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    with running(files, embedder) as server:
        monkeypatch.setenv("SSL_CERT_FILE", str(files.ca))
        with Client(f"https://127.0.0.1:{server.port}") as client:
            assert client.embed(["a"]).tobytes() == embedder.embed(["a"]).tobytes()
        check = [sys.executable, "-IS", str(ROOT / "docker" / "healthy.py")]
        port = {"GRAMVEC_PORT": str(server.port)}
        assert subprocess.run(check, env=port, stderr=subprocess.DEVNULL, check=False, timeout=PATIENCE).returncode == 1
        subprocess.run(check, env={**port, "GRAMVEC_TLS_CERTIFICATE": "any"}, check=True, timeout=PATIENCE)


def test_the_containers_check_where_clients_need_a_certificate(
    files: Files, tmp_path_factory: pytest.TempPathFactory
) -> None:
    check = [sys.executable, "-IS", str(ROOT / "docker" / "healthy.py")]
    others = Files(tmp_path_factory.mktemp("others"))
    for authority in (files, others):  # the service's own certificate is one of its clients', and is not
        with served(*files.options, "--tls-client-ca", str(authority.ca)) as (_, port):
            environment = {
                "GRAMVEC_PORT": str(port), "GRAMVEC_TLS_CERTIFICATE": str(files.certificate),
                "GRAMVEC_TLS_KEY": str(files.key), "GRAMVEC_TLS_CLIENT_CA": str(authority.ca),
            }  # fmt: skip

            def healthy(environment: dict[str, str] = environment) -> bool:
                return subprocess.run(check, env=environment, capture_output=True, timeout=PATIENCE).returncode == 0

            until(healthy)
        assert not healthy()


def test_the_end_does_not_wait_for_a_client_that_says_nothing(files: Files) -> None:
    with served(*files.options) as (process, port):
        until(lambda: ready(port, files.client()))
        with (
            socket.create_connection(("127.0.0.1", port)) as bare,
            files.client().wrap_socket(bare, server_hostname="127.0.0.1") as connection,
        ):
            connection.sendall(b"GET /health HTTP/1.1\r\nhost: test\r\n\r\n")
            assert connection.recv(1 << 16).startswith(b"HTTP/1.1 200")
            process.send_signal(signal.SIGTERM)
            assert process.wait(PATIENCE) == 0
