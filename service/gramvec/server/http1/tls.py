"""TLS: the context of a certificate and its key, made anew when the files are replaced, and a client's handshake."""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Coroutine
from contextlib import suppress
from pathlib import Path
from typing import Any

from gramvec.errors import InputError
from gramvec.server.batching.task_free import TaskFree
from gramvec.server.http1.connection import Connection
from gramvec.server.http1.registry import Connections
from gramvec.server.settings import Settings, option

log = logging.getLogger("gramvec.server")

# The longest password that OpenSSL takes for a key.
MOST_PASSWORD_BYTES = 1024


class Tls:
    """What connections are encrypted with. `context` is for those to come; it is replaced, never changed."""

    def __init__(self, settings: Settings) -> None:
        """Raises InputError, a sentence, where a file cannot be used."""
        assert settings.tls_certificate is not None
        self._certificate = settings.tls_certificate
        self._key = settings.tls_key
        self._password_file = settings.tls_key_password_file
        self._client_ca = settings.tls_client_ca
        self._seen = self._state()
        self.context = self._made()

    @classmethod
    def of(cls, settings: Settings) -> Tls | None:
        """None where the settings name no certificate. Raises InputError."""
        return None if settings.tls_certificate is None else cls(settings)

    def renew(self) -> None:
        """Take what was put in the files' place since the last time; what cannot be used is told, and not taken."""
        state = self._state()
        if state == self._seen:
            return
        self._seen = state
        try:
            self.context = self._made()
        except InputError as error:
            log.error("the certificate was not renewed, the old one goes on: %s", error)
        else:
            log.info("the certificate was renewed")

    def _files(self) -> list[Path]:
        return [one for one in (self._certificate, self._key, self._password_file, self._client_ca) if one is not None]

    def _state(self) -> list[tuple[int, int, int] | None]:
        found: list[tuple[int, int, int] | None] = []
        for path in self._files():
            try:
                state = path.stat()
                found.append((state.st_ino, state.st_mtime_ns, state.st_size))
            except OSError:
                found.append(None)
        return found

    def _made(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.set_alpn_protocols(["http/1.1"])
        for name in ("tls_certificate", "tls_key", "tls_client_ca"):
            _check_pem(name, getattr(self, f"_{name.removeprefix('tls_')}"))
        password = _password(self._password_file)
        try:
            # Without a function OpenSSL would ask for a password at the terminal.
            context.load_cert_chain(self._certificate, self._key, lambda: password)
        except (OSError, ValueError) as error:
            raise InputError(_why_not(self._certificate, self._key, self._password_file, error)) from None
        if self._client_ca is not None:
            try:
                context.load_verify_locations(self._client_ca)
            except (OSError, ValueError):
                raise InputError(
                    f"{option('tls_client_ca')}: {self._client_ca} holds no certificate in PEM that can be read"
                ) from None
            context.verify_mode = ssl.CERT_REQUIRED
        return context


def _check_pem(name: str, path: Path | None) -> None:
    if path is None:
        return
    try:
        with path.open("rb") as file:
            file.read(1)
    except OSError as error:
        raise InputError(f"{option(name)}: {path} cannot be read: {error.strerror}") from None


def _password(path: Path | None) -> bytes:
    if path is None:
        return b""
    name = option("tls_key_password_file")
    try:
        with path.open("rb") as file:
            line = file.readline(MOST_PASSWORD_BYTES + 2).rstrip(b"\r\n")
    except OSError as error:
        raise InputError(f"{name}: {path} cannot be read: {error.strerror}") from None
    if not 0 < len(line) <= MOST_PASSWORD_BYTES:
        raise InputError(f"{name}: the first line of {path} is to be the password, of 1 to {MOST_PASSWORD_BYTES} bytes")
    return line


def _why_not(certificate: Path, key: Path | None, password_file: Path | None, error: Exception) -> str:
    reason = getattr(error, "reason", None) or ""
    where = certificate if key is None else key
    if "MISMATCH" in reason:
        return f"{where}: this is not the key of the certificate in {certificate}"
    if "-----BEGIN CERTIFICATE-----" not in _beginning(certificate):
        return f"{option('tls_certificate')}: {certificate} holds no certificate in PEM"
    if "PRIVATE KEY-----" not in _beginning(where):
        return f"{where} holds no private key in PEM; name the file of the key with {option('tls_key')}"
    if "ENCRYPTED" in _beginning(where):
        if password_file is None:
            return f"{where} is encrypted; name a file with its password with {option('tls_key_password_file')}"
        return f"{where}: the first line of {password_file} is not its password"
    return f"{certificate}: the certificate or its key cannot be used ({reason or type(error).__name__})"


def _beginning(path: Path) -> str:
    with suppress(OSError), path.open("rb") as file:
        return file.read(2**20).decode("latin-1")
    return ""


class Handshake(asyncio.Protocol):
    """A client that has yet to prove who it is: counted as a connection, and waited for as long as for a head.

    A connection takes its place; what the client sends with the end of its handshake is kept for it.
    """

    under_way = False
    unsent = 0

    def __init__(self, connections: Connections, tls: Tls) -> None:
        self._connections = connections
        self._context = tls.context
        self._transport: asyncio.Transport | None = None
        self._task: asyncio.Task[None] | None = None
        self.is_new = True

    def connection_made(self, transport: Any) -> None:
        """Begin, unless there are far too many."""
        self._transport = transport
        if len(self._connections) >= 2 * self._connections.limits.connections:
            transport.abort()
            return
        self._connections.add(self)
        # Its first step at once: in the loop's next turn the first bytes would have been read past it, and lost.
        TaskFree(self._shake(transport), self._keep)()

    def connection_lost(self, exc: Exception | None) -> None:
        """It was gone before it began."""
        self._connections.discard(self)

    def sweep(self, now: float) -> None:
        """The loop itself ends a handshake that takes too long."""

    def shut_down(self) -> None:
        """Leave the client."""
        if self._transport is not None:
            self._transport.abort()

    def _keep(self, rest: Coroutine[Any, Any, None]) -> None:
        self._task = asyncio.get_running_loop().create_task(rest)

    async def _shake(self, transport: asyncio.Transport) -> None:
        limits, early = self._connections.limits, _Early()
        try:
            secured = await asyncio.get_running_loop().start_tls(
                transport,
                early,
                self._context,
                server_side=True,
                ssl_handshake_timeout=limits.head,
                # The last answer of a connection is among what this bounds.
                ssl_shutdown_timeout=limits.send,
            )
        except OSError:  # of the client's making, all of them: ssl.SSLError is one
            return
        finally:
            self._connections.discard(self)
        if secured is None or early.lost:
            return
        connection = Connection(self._connections, transport)
        secured.set_protocol(connection)
        connection.connection_made(secured)
        if early.data:
            connection.data_received(bytes(early.data))
        if early.ended:
            connection.eof_received()
            secured.close()


class _Early(asyncio.Protocol):
    """Takes what comes between the end of a handshake and the turn of the loop in which we hear of it."""

    def __init__(self) -> None:
        self.data = bytearray()
        self.ended = self.lost = False

    def data_received(self, data: bytes) -> None:
        self.data += data

    def eof_received(self) -> None:
        self.ended = True

    def connection_lost(self, exc: Exception | None) -> None:
        self.lost = True


def protocol_of(connections: Connections, tls: Tls | None = None) -> type[asyncio.Protocol]:
    """A class of connections that are among these, as `uvicorn.Config` takes one."""
    return _plain(connections) if tls is None else _secured(connections, tls)


def _plain(connections: Connections) -> type[asyncio.Protocol]:
    class Bound(Connection):
        __slots__ = ()

        def __init__(self, *_: Any, **__: Any) -> None:  # what uvicorn gives its own is nothing to us
            super().__init__(connections)

    return Bound


def _secured(connections: Connections, tls: Tls) -> type[asyncio.Protocol]:
    class Bound(Handshake):
        def __init__(self, *_: Any, **__: Any) -> None:
            super().__init__(connections, tls)

    return Bound
