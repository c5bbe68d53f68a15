"""TLS by uvicorn: its options from the settings, checked before anything listens."""

from __future__ import annotations

import ssl
import stat
from pathlib import Path
from typing import Any

from uvicorn.config import create_ssl_context

from gramvec.errors import InputError
from gramvec.server.settings import Settings, option

# The longest password that OpenSSL takes for a key.
MAX_PASSWORD_BYTES = 1024
CIPHERS = "DEFAULT"  # uvicorn's own "TLSv1" leaves only the oldest ones for TLS 1.2
# Without any password OpenSSL would ask for one at the terminal.
NO_PASSWORD = "-"  # noqa: S105


def tls_options(settings: Settings) -> dict[str, Any]:
    """Return the options of `uvicorn.Config`; none where the settings name no certificate.

    Raises:
        InputError: a file cannot be used.
    """
    if settings.tls_certificate is None:
        return {}
    for name in ("tls_certificate", "tls_key", "tls_key_password_file", "tls_client_ca"):
        _check_file(name, getattr(settings, name))
    options: dict[str, Any] = {
        "ssl_certfile": settings.tls_certificate,
        "ssl_keyfile": settings.tls_key,
        "ssl_keyfile_password": _password(settings.tls_key_password_file),
        "ssl_ca_certs": settings.tls_client_ca,
        "ssl_cert_reqs": ssl.CERT_NONE if settings.tls_client_ca is None else ssl.CERT_REQUIRED,
        "ssl_ciphers": CIPHERS,
    }
    try:
        create_ssl_context(
            settings.tls_certificate,
            settings.tls_key,
            options["ssl_keyfile_password"],
            ssl.PROTOCOL_TLS_SERVER,
            options["ssl_cert_reqs"],
            None,
            CIPHERS,
        )
    except (OSError, ValueError) as error:
        raise InputError(_explain(settings, error)) from None
    if settings.tls_client_ca is not None:
        try:
            ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_verify_locations(settings.tls_client_ca)
        except (OSError, ValueError):
            raise InputError(
                f"{option('tls_client_ca')}: {settings.tls_client_ca} has no certificate in PEM that can be read"
            ) from None
    return options


def new_context(settings: Settings) -> ssl.SSLContext:
    """Return the context of the files as they are now.

    Raises:
        InputError: a file cannot be used.
    """
    options = tls_options(settings)
    return create_ssl_context(
        options["ssl_certfile"],
        options["ssl_keyfile"],
        options["ssl_keyfile_password"],
        ssl.PROTOCOL_TLS_SERVER,
        options["ssl_cert_reqs"],
        options["ssl_ca_certs"],
        options["ssl_ciphers"],
    )


def state_of_files(settings: Settings) -> tuple[tuple[int, int, int] | None, ...]:
    """Return the inode, size and time of each file of the certificate; None for one that cannot be read."""
    paths = (settings.tls_certificate, settings.tls_key, settings.tls_key_password_file, settings.tls_client_ca)
    return tuple(map(_state_of, [path for path in paths if path is not None]))


def _state_of(path: Path) -> tuple[int, int, int] | None:
    try:
        state = path.stat()
    except OSError:
        return None
    return state.st_ino, state.st_size, state.st_mtime_ns


def _check_file(name: str, path: Path | None) -> None:
    """Raise InputError unless this is a readable regular file: opening a FIFO would block forever."""
    if path is None:
        return
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise InputError(f"{option(name)}: {path} is not a regular file")
        with path.open("rb") as file:
            file.read(1)
    except OSError as error:
        raise InputError(f"{option(name)}: {path} cannot be read: {error.strerror}") from None


def _password(path: Path | None) -> str:
    if path is None:
        return NO_PASSWORD
    with path.open("rb") as file:
        line = file.readline(MAX_PASSWORD_BYTES + 2).rstrip(b"\r\n")
    if not 0 < len(line) <= MAX_PASSWORD_BYTES:
        raise InputError(
            f"{option('tls_key_password_file')}: the first line of {path} must be the password, of 1 to "
            f"{MAX_PASSWORD_BYTES} bytes"
        )
    return line.decode("utf-8", "surrogateescape")


def _explain(settings: Settings, error: Exception) -> str:
    certificate, key, password = settings.tls_certificate, settings.tls_key, settings.tls_key_password_file
    assert certificate is not None
    reason = getattr(error, "reason", None) or ""
    where = certificate if key is None else key
    if "MISMATCH" in reason:
        return f"{where}: this is not the key of the certificate in {certificate}"
    if "-----BEGIN CERTIFICATE-----" not in _read_beginning(certificate):
        return f"{option('tls_certificate')}: {certificate} has no certificate in PEM"
    if "PRIVATE KEY-----" not in _read_beginning(where):
        return f"{where} has no private key in PEM; name the file of the key with {option('tls_key')}"
    if "ENCRYPTED" in _read_beginning(where):
        if password is None:
            return f"{where} is encrypted; name a file with its password with {option('tls_key_password_file')}"
        return f"{where}: the first line of {password} is not its password"
    return f"{certificate}: the certificate or its key cannot be used ({reason or type(error).__name__})"


def _read_beginning(path: Path) -> str:
    with path.open("rb") as file:
        return file.read(2**20).decode("latin-1")
