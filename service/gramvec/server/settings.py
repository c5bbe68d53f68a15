"""Settings of the service, with defaults and validation. They are read once at the start and never change.

pydantic-settings (2.16) is not taken. Flags, variables and the TOML file of `gramvec serve` are click's, which says of
each value where it was set. For an embedding application there is the loop of `settings_from_environment`; it would be
a source of its own, since variables with several values have spaces between and no JSON, and a second class, since
`Settings()` reads no environment. It would bring two packages (python-dotenv is one) and 0.13 CPU seconds of imports.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, Literal, get_origin

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    SecretStr,
    ValidationError,
    field_validator,
    model_validator,
)

from gramvec.bundle.bundle import DEFAULT_MODEL
from gramvec.errors import InputError
from gramvec.server.batching.batcher import QUEUE_CHARACTERS

log = logging.getLogger("gramvec.server")

ENVIRONMENT_PREFIX = "GRAMVEC_"
ANY_ORIGIN = "*"
# Pages of extensions and applications have schemes of their own; sandboxed ones and files send null.
NO_ORIGIN = "null"
ORIGIN = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::(?:[0-9]{1,5}|\*))?")
MAX_ALIAS_CHARACTERS = 200
# Variables of the command line and of the loops, which are no settings.
OTHER_VARIABLES = {"GRAMVEC_CONFIG", "GRAMVEC_DATA", "GRAMVEC_REBUILD", "GRAMVEC_MODELS", "GRAMVEC_NATIVE"}
SERVICE_LINK = re.compile(r"GRAMVEC_(?:SERVICE_(?:HOST|PORT(?:_\w+)?)|PORT_\d+_(?:TCP|UDP)(?:_\w+)?)")
# The key of the file of token ids that holds for all other names.
OTHERS = ""
NO_WORKERS_ON_CUDA = (
    "CUDA and several workers: each would hold the model in the device's memory; set workers to 1 or device to cpu"
)


def aliases_of(given: Sequence[str]) -> dict[str, str]:
    """Return the model of each alias, in the given order.

    Raises:
        ValueError: one is not NAME=MODEL, names itself, or is given twice.
    """
    found: dict[str, str] = {}
    for text in given:
        alias, _, model = text.partition("=")
        if not (alias and model) or not text.isprintable() or " " in text:
            raise ValueError(f"{text!r}: is not an alias; write NAME=MODEL, as in text-embedding-3-small=gramvec-en")
        if len(alias) > MAX_ALIAS_CHARACTERS:
            raise ValueError(f"an alias has {len(alias)} characters, the limit is {MAX_ALIAS_CHARACTERS}; shorten it")
        if alias == model:
            raise ValueError(f"{alias!r}: is an alias of itself; a model has its own name anyway, so leave it out")
        if alias in found:
            raise ValueError(f"the alias {alias!r} is given twice; leave one out")
        found[alias] = model
    return found


def parse_named_files(given: Sequence[str]) -> dict[str, Path]:
    """Return the file of each name, in order. Raises ValueError for what is not NAME=FILE, or a name given twice."""
    found: dict[str, Path] = {}
    for text in given:
        name, _, path = text.partition("=")
        if not name or not path:
            raise ValueError("must be NAME=FILE: a name for requests, and the file, as in tickets=/data/tickets")
        if name in found:
            raise ValueError(f"gives two files the name {name!r}; choose another for one of them")
        found[name] = Path(path)
    return found


def token_files(given: Sequence[str]) -> dict[str, Path]:
    """Return the file of each model's name, or of OTHERS, in the given order. Raises ValueError."""
    found: dict[str, Path] = {}
    for text in given:
        name, path = text.split("=", 1) if "=" in text else (OTHERS, text)
        if not path or text.startswith("="):
            raise ValueError("must be FILE or NAME=FILE, as in cl100k_base.tiktoken")
        if name in found:
            raise ValueError(
                "gives two files to " + (f"the name {name!r}" if name else "all names") + "; leave one out"
            )
        found[name] = Path(path)
    return found


def check_hosts(hosts: Sequence[str]) -> None:
    """Raise ValueError for an address that is empty or comes twice."""
    if not all(hosts):
        raise ValueError("must be an address of this host, as in 127.0.0.1, not empty")
    if len(set(hosts)) < len(hosts):
        raise ValueError("names an address twice; leave one out")


def check_origins(origins: Sequence[str]) -> None:
    """Raise ValueError for an origin that no browser would send (RFC 6454)."""
    for origin in origins:
        if origin not in (ANY_ORIGIN, NO_ORIGIN) and not ORIGIN.fullmatch(origin):
            raise ValueError(
                f"{origin!r}: is not an origin; give one as in https://example.org:8443, http://localhost:*, null, or *"
            )
        if origin != origin.lower():
            raise ValueError(f"{origin!r}: never matches, browsers send it as {origin.lower()!r}; write it so")


def _passes(check: Callable[[tuple[str, ...]], object]) -> AfterValidator:
    """Return a validator of a field's value, which `check` raises ValueError for."""

    def validate(given: tuple[str, ...]) -> tuple[str, ...]:
        check(given)
        return given

    return AfterValidator(validate)


class Settings(BaseModel):
    """The service's settings. The command line derives its options and environment variables from these fields.

    Build it with `settings_from`, which turns a bad value into one sentence.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    model: tuple[str, ...] = Field(
        (DEFAULT_MODEL,),
        min_length=1,
        description="Name or folder of a model to serve; may be repeated (in the variable: with spaces between),"
        " the first is the default.",
    )
    index: Annotated[tuple[str, ...], _passes(parse_named_files)] = Field(
        (),
        description="NAME=FOLDER of an index for /search, made by one of the models; may be repeated (in the variable:"
        " with spaces between).",
    )
    head: Annotated[tuple[str, ...], _passes(parse_named_files)] = Field(
        (),
        description="NAME=FILE of a head for /predict, learned on one of the models; may be repeated (in the variable:"
        " with spaces between).",
    )
    alias: Annotated[tuple[str, ...], _passes(aliases_of)] = Field(
        (),
        description="Another name for a served model, as in text-embedding-3-small=gramvec-en; may be repeated.",
    )
    token_ids: Annotated[tuple[str, ...], _passes(token_files)] = Field(
        (),
        description="FILE of tiktoken's by which token ids in /v1/embeddings are decoded, or NAME=FILE for one model's"
        " name or alias; may be repeated (in the variable: with spaces between).",
    )
    host: Annotated[tuple[str, ...], _passes(check_hosts)] = Field(
        ("127.0.0.1",),
        min_length=1,
        description="Address to listen on; may be repeated (in the variable: with spaces between). :: is all of this"
        " host's, 0.0.0.0 those of IPv4.",
    )
    port: int = Field(8000, ge=0, le=65535, description="Port to listen on; 0 lets the system choose a free one.")
    unix_socket: Path | None = Field(
        None,
        description="Path of a socket of this host to listen on, instead of host and port; users who may enter its"
        " folder can connect.",
    )
    tls_certificate: Path | None = Field(
        None, description="PEM file of a certificate, and of those that lead to its root: HTTPS instead of HTTP."
    )
    tls_key: Path | None = Field(
        None, description="PEM file of the certificate's private key, where that is not in the same file."
    )
    tls_key_password_file: Path | None = Field(
        None, description="File whose first line is the password of that key, where it has one."
    )
    tls_client_ca: Path | None = Field(
        None, description="PEM file of the authorities of clients' certificates; clients without one are turned away."
    )
    device: Literal["auto", "cpu", "cuda"] = Field(
        "auto", description="Where the model runs; auto takes CUDA when it works."
    )
    runtime: Literal["auto", "onnx", "native"] = Field("auto", description="What computes the vectors.")
    space: Literal["semantic", "lexical", "both"] = Field(
        "semantic", description="Columns for what a text means (semantic), for the n-grams in it (lexical), or both."
    )
    workers: int = Field(
        1, ge=1, le=256, description="Processes that serve the port and share one copy of the model; CPU only."
    )
    api_key: tuple[SecretStr, ...] = Field(
        (),
        description="Key for 'Authorization: Bearer KEY'; may be repeated (in the variable: with spaces between).",
    )
    api_key_file: Path | None = Field(
        None,
        description="File with more such keys, one a line; keeps them out of the process list, and is read again at a"
        " reload.",
    )
    write_key: tuple[SecretStr, ...] = Field(
        (),
        description="Key for requests that add rows to a served index or remove some, in the place of an API key;"
        " without one they are refused. May be repeated (in the variable: with spaces between).",
    )
    write_key_file: Path | None = Field(
        None, description="File with more such keys, one a line, which is read again at a reload."
    )
    cors_origins: Annotated[tuple[str, ...], _passes(check_origins)] = Field(
        (),
        description="Origin of pages that may ask from a browser, as in https://example.org, or *; may be repeated.",
    )
    metrics: Literal["open", "key", "off"] = Field(
        "open", description="Who may read /metrics: all clients, clients with a key, or no client."
    )
    access_log: Literal["off", "on"] = Field(
        "off", description="A log line for every request; failed ones have theirs in any case."
    )
    tracing: Literal["off", "on"] = Field(
        "off", description="An OpenTelemetry span for every request, exported as the OTEL_ variables say."
    )
    any_model: Literal["off", "on"] = Field(
        "off", description="Whether a request for a model that is not served gets the default one instead of 404."
    )
    dimensions: int | None = Field(
        None, ge=1, description="Components of a vector where a request does not say, for clients that cannot ask."
    )
    empty_texts: Literal["zero", "refuse", "unit"] = Field(
        "zero",
        description="What a text gets of which the model knows nothing: a vector of zeros, 422, or a fixed vector of"
        " length 1, for stores that refuse zeros. The header x-empty-inputs names such texts.",
    )
    max_texts: int = Field(2048, ge=1, description="Most texts in one request.")
    max_characters: int = Field(65_536, ge=1, description="Most characters in one text, unless it is truncated.")
    truncate: Literal["off", "on"] = Field(
        "off", description="Whether longer texts are cut where a request does not say; else they are refused."
    )
    max_body_bytes: int = Field(8 * 2**20, ge=1024, description="Most bytes in one request's body.")
    max_bytes_in_flight: int = Field(
        128 * 2**20,
        ge=1024,
        description="Most bytes of bodies and answers that all requests of a process hold; more are answered 429.",
    )
    queue_texts: int = Field(16_384, ge=1, description="Most texts waiting for the model; more are answered 429.")
    queue_characters: int = Field(
        QUEUE_CHARACTERS, ge=1, description="Most characters in the texts waiting; more are answered 429."
    )
    request_deadline_seconds: float = Field(
        30.0,
        gt=0,
        le=3600,
        description="Seconds that a request may wait for the model; one that would or does wait longer gets 429.",
    )
    header_timeout_seconds: float = Field(
        20.0,
        gt=0,
        le=3600,
        description="Seconds in which a request's headers have to arrive once they have begun, and in which a handshake"
        " of TLS has to end.",
    )
    body_timeout_seconds: float = Field(
        30.0,
        gt=0,
        le=3600,
        description="Longest pause in a request's body, and the time after which it has to come at 500 bytes a second.",
    )
    send_timeout_seconds: float = Field(
        60.0,
        gt=0,
        le=3600,
        description="Longest time in which a client takes nothing of its answer; afterwards it has to take"
        " 500 bytes a second.",
    )
    keep_alive_seconds: float = Field(
        75.0,
        gt=0,
        le=86_400,
        description="Seconds after which an idle connection is closed; longer than a load balancer keeps it.",
    )
    worker_timeout_seconds: float = Field(
        30.0, ge=2, le=3600, description="Longest time in which one of several workers does not answer its parent."
    )
    max_connections: int = Field(
        4096,
        ge=1,
        description="Most connections at once to one process; one more is answered 503 and closed, but for a probe.",
    )
    max_header_lines: int = Field(
        100, ge=10, description="Most header lines of a request; one with more is answered 431."
    )
    max_header_bytes: int = Field(
        64 * 2**10,
        ge=1024,
        description="Most bytes of a request line and its headers; one with more is answered 431.",
    )
    max_unread_bytes: int = Field(
        16 * 2**20,
        ge=1024,
        description="Most bytes of unfinished heads and of requests sent ahead that all connections of a process hold;"
        " one that has more is answered 503 and closed.",
    )
    graceful_shutdown_seconds: float = Field(
        10.0, ge=0, le=3600, description="Seconds that requests in flight get to finish after SIGTERM."
    )
    reload_timeout_seconds: float = Field(
        120.0,
        gt=0,
        le=86_400,
        description="Seconds after which a reload is given up, and the models stay as they are.",
    )
    log_format: Literal["text", "json"] = Field("text", description="How log lines on standard error look.")

    @field_validator("model", "host", mode="before")
    @classmethod
    def _one_or_several(cls, given: Any) -> Any:
        return (given,) if isinstance(given, str) else given

    @field_validator("model")
    @classmethod
    def _models_are_named(cls, model: tuple[str, ...]) -> tuple[str, ...]:
        if not all(model):
            raise ValueError("must be a model's name or folder, not empty")
        if len(set(model)) < len(model):
            raise ValueError("names a model twice; leave one out")
        return model

    @field_validator("api_key", "write_key")
    @classmethod
    def _keys_are_usable(cls, keys: tuple[SecretStr, ...]) -> tuple[SecretStr, ...]:
        for key in keys:
            if not is_usable_key(key.get_secret_value()):
                raise ValueError("must be printable ASCII without spaces, and not empty")
        return keys

    @model_validator(mode="after")
    def _key_files_are_usable(self) -> Settings:
        try:
            self.read_keys()
            self.read_write_keys()
        except InputError as error:
            raise ValueError(str(error)) from None
        return self

    @property
    def needs_key(self) -> bool:
        """Whether requests need a key."""
        return bool(self.api_key or self.api_key_file is not None)

    @property
    def takes_rows(self) -> bool:
        """Whether rows of indexes may be added and removed over HTTP, by who has the key for it."""
        return bool(self.write_key or self.write_key_file is not None)

    def read_keys(self) -> list[str]:
        """Return all API keys, those of the file as it is now. Raises InputError for a file that cannot be used."""
        return _all_keys(self.api_key, "api_key_file", self.api_key_file)

    def read_write_keys(self) -> list[str]:
        """Return all keys to change indexes, as `read_keys` does."""
        return _all_keys(self.write_key, "write_key_file", self.write_key_file)

    @model_validator(mode="after")
    def _queue_takes_a_request(self) -> Settings:
        if self.queue_texts < self.max_texts:
            raise ValueError(
                f"queue_texts ({self.queue_texts}) must be at least max_texts ({self.max_texts}),"
                " or the largest request could never be served"
            )
        if self.queue_characters < self.max_characters:
            raise ValueError(
                f"queue_characters ({self.queue_characters}) must be at least max_characters ({self.max_characters}),"
                " or the longest text could never wait"
            )
        return self

    @model_validator(mode="after")
    def _tls_is_whole(self) -> Settings:
        for name in ("tls_key", "tls_key_password_file", "tls_client_ca"):
            if getattr(self, name) is not None and self.tls_certificate is None:
                raise ValueError(f"{name}: HTTPS needs a certificate, too; set tls_certificate")
        return self

    @model_validator(mode="after")
    def _workers_can_be_forked(self) -> Settings:
        if self.device == "cuda" and self.workers > 1:
            raise ValueError(NO_WORKERS_ON_CUDA)
        return self


def _all_keys(given: Sequence[SecretStr], name: str, path: Path | None) -> list[str]:
    keys = [key.get_secret_value() for key in given]
    if path is None:
        return keys
    try:
        return [*keys, *read_keys(path)]
    except ValueError as error:
        raise InputError(f"{name}: {error}") from None


def read_keys(path: Path) -> list[str]:
    """Return the keys of a file, one a line; empty lines and those that begin with # are skipped.

    Raises:
        ValueError: the file cannot be read, or holds no key.
    """
    try:
        lines = path.read_text(encoding="ascii").split("\n")
    except OSError as error:
        raise ValueError(f"{path}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError:
        # Not chained: its text has the bytes that were read.
        raise ValueError(f"{path}: is not ASCII; a key is printable ASCII without spaces") from None
    stripped = [line.strip() for line in lines]
    keys = [line for line in stripped if line and not line.startswith("#")]
    if not keys:
        raise ValueError(f"{path}: holds no key; write one a line")
    if not all(map(is_usable_key, keys)):
        raise ValueError(f"{path}: a key must be printable ASCII without spaces")
    return keys


def is_usable_key(text: str) -> bool:
    """Return True for what an Authorization header can hold."""
    return bool(text) and text.isascii() and text.isprintable() and " " not in text


def settings_from(values: dict[str, Any]) -> Settings:
    """Return the settings of names and values.

    Raises:
        InputError: one sentence that names the first bad value and where to set it.
    """
    try:
        return Settings(**values)
    except ValidationError as error:
        # No cause is chained: pydantic's text repeats the value, which may be a key.
        raise InputError(_sentence(error)) from None


def settings_from_environment() -> Settings:
    """Return the settings that the environment variables give, and defaults for the rest.

    Raises:
        InputError: one sentence that names the first bad value and where to set it.
    """
    warn_of_unknown_variables(os.environ)
    values: dict[str, Any] = {}
    for name, field in Settings.model_fields.items():
        if value := os.environ.get(environment_variable(name)):
            check_service_link(environment_variable(name), value)
            values[name] = value.split() if get_origin(field.annotation) is tuple else value
    return settings_from(values)


def warn_of_unknown_variables(environment: Mapping[str, str]) -> None:
    """Warn of variables that begin as ours do and name no setting, with the nearest that does."""
    known = {environment_variable(name) for name in Settings.model_fields} | OTHER_VARIABLES
    for name in sorted(environment):
        # Kubernetes sets variables of this form for a Service that is called gramvec.
        is_link = SERVICE_LINK.fullmatch(name) is not None
        if name.startswith(ENVIRONMENT_PREFIX) and name not in known and not is_link:
            nearest = get_close_matches(name, known, 1)
            hint = f"did you mean {nearest[0]}?" if nearest else "`gramvec serve --help` lists those that are"
            log.warning("%s is the variable of no setting; %s", name[:200], hint)


def check_service_link(variable: str, value: str) -> None:
    """Raise InputError for a value that Kubernetes has set because a Service is called gramvec."""
    if value.startswith("tcp://"):
        raise InputError(
            f"{variable}: {value[:200]!r} is set by Kubernetes, because a Service is called gramvec; set"
            " enableServiceLinks: false in the pod, or name the Service otherwise"
        )


def environment_variable(name: str) -> str:
    """Return the environment variable of a setting."""
    return ENVIRONMENT_PREFIX + name.upper()


def option(name: str) -> str:
    """Return the command-line option of a setting."""
    return "--" + name.replace("_", "-")


def _sentence(error: ValidationError) -> str:
    first = error.errors(include_url=False)[0]
    message = first["msg"].removeprefix("Value error, ")
    if not first["loc"]:
        return message
    name = str(first["loc"][0])
    if name not in Settings.model_fields:
        return f"there is no setting named {name!r}; `gramvec serve --help` lists them"
    value = "" if name in ("api_key", "write_key") else f" {_show(first['input'])}:"
    message = message[0].lower() + message[1:]
    return f"{name}:{value} {message} (set with {option(name)} or {environment_variable(name)})"


def _show(value: Any) -> str:
    shown = " ".join(map(str, value)) if isinstance(value, tuple) else ""
    return shown if shown and shown.isprintable() else repr(value)
