"""HTTP transport of the client: requests with retries, checks of answers, and batches within the service's limits."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import orjson
from pydantic import BaseModel, Field, TypeAdapter, ValidationError

from gramvec.errors import BackendError, InputError, ServiceError, quote
from gramvec.threads import RenewedAfterFork

if TYPE_CHECKING:
    import httpx

T = TypeVar("T")

FIRST_PAUSE, LONGEST_PAUSE = 0.1, 2.0
# A pause is lengthened at random by up to this share, so that waiting clients do not all return at once.
SPREAD = 0.2
# Bytes of an answer beside its vectors, records or scores.
SMALL_ANSWER = 1024 * 1024
# Bytes of a request's fields beside its texts.
OTHER_FIELDS = 512
# A change of an index may be repeated too, where another process writes it (409): the same rows have the same ids.
RETRIED = (409, 429, 503)


class ModelInfo(BaseModel):
    """The fields of a model in GET /info that the client needs."""

    name: str
    digest: str = Field(pattern="^[0-9a-f]{64}$")
    dimension: int = Field(ge=1, le=2**16)
    max_characters: int = Field(ge=1)

    @property
    def label(self) -> str:
        """The model as the header `x-model` names it."""
        return f"{self.name}@{self.digest[:12]}"


class ServiceLimits(BaseModel):
    """The limits in GET /info that bound a request."""

    max_texts: int = Field(ge=1)
    max_body_bytes: int = Field(ge=1024)
    queue_texts: int = Field(ge=1)
    queue_characters: int = Field(ge=1)


class _Info(BaseModel):
    models: list[ModelInfo]
    default_model: str
    aliases: dict[str, str] = Field(default_factory=dict)
    limits: ServiceLimits


class ServiceResponse(NamedTuple):
    """An HTTP response. Header names are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class _NoAnswer(NamedTuple):
    """A request without a response, and whether it may be repeated."""

    reason: str
    retry: bool


class _TooLarge(ServiceError):
    """Status 413, as after a restart of the service with smaller limits."""


class Transport:
    """Connections to one service and one of its models. It may be used from several threads."""

    def __init__(self, url: str, *, model: str | None, api_key: str | None, timeout: float, patience: float) -> None:
        if not isinstance(url, str) or not url.startswith(("http://", "https://")) or "@" in url:
            raise InputError("url: must be as in http://127.0.0.1:8000, with no name or key in it", field="url")
        try:
            self._library: Any = import_module("httpx")
        except ImportError as error:
            raise ServiceError("gramvec.client needs httpx; install it with: pip install httpx") from error
        self.url = url.rstrip("/")
        self._patience = patience
        self._open = partial(self._library.Client, base_url=self.url, headers=_headers(api_key), timeout=timeout)
        self._http: httpx.Client = self._open()
        self._renewed = RenewedAfterFork(self._connect_anew)
        self._model: ModelInfo | None = None
        try:
            self._model, self._limits = self._info(model)
        except BaseException:
            self.close()
            raise

    @property
    def model(self) -> ModelInfo:
        """The model that the service had when the client was made."""
        assert self._model is not None
        return self._model

    def _connect_anew(self) -> None:
        # In a child of a fork: on its parent's connections each would read the other's answers.
        self._http = self._open()

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def post(
        self,
        path: str,
        body: bytes,
        *,
        first: int = 0,
        max_bytes: int = SMALL_ANSWER,
        same_model: bool = True,
        api_key: str | None = None,
    ) -> ServiceResponse:
        """Send a request and return its answer, which has status 200.

        Args:
            path: The route.
            body: JSON.
            first: Number of the request's first text among the texts of the call, for messages.
            max_bytes: Largest answer in bytes.
            same_model: Whether the answer must come from `model`; indexes and heads may have another one.
            api_key: Another key than that of all requests.

        Raises:
            InputError: The service refuses the texts or options.
            BackendError: The model failed on them.
            ServiceError: There is no answer, or it is not the service's.
        """
        reply = self._send("POST", path, body, max_bytes, api_key)
        if reply.status == 200:
            if same_model:
                self._check_model(reply.headers.get("x-model", "an unnamed model"))
            return reply
        sentence = f"{self.url}: {_sentence(reply)}"
        match reply.status:
            case 413:
                raise _TooLarge(sentence, status=413)
            case 400 | 415 | 422:
                raise InputError(
                    sentence if not first else f"of the texts from number {first} on (the first is 0), {sentence}"
                )
            case 424:
                raise BackendError(sentence)
        raise ServiceError(sentence, status=reply.status)

    def post_json(
        self,
        path: str,
        body: bytes,
        kind: TypeAdapter[T],
        *,
        first: int = 0,
        max_bytes: int,
        same_model: bool = False,
        api_key: str | None = None,
    ) -> T:
        """Send a request and return its answer, checked against a type."""
        reply = self.post(path, body, first=first, max_bytes=max_bytes, same_model=same_model, api_key=api_key)
        try:
            return kind.validate_json(reply.body)
        except ValidationError as error:
            raise ServiceError(f"{self.url}: answered something else than {path} does") from error

    def in_batches(
        self,
        encoded: Sequence[bytes],
        send: Callable[[int, list[bytes]], list[T]],
        *,
        max_texts: int | None = None,
        texts_beside: int = 0,
        bytes_beside: int = 0,
        max_characters: int | None = None,
    ) -> list[T]:
        """Return what `send` gives for all texts, in requests within the service's limits.

        Args:
            encoded: Texts as JSON.
            send: Takes the number of a batch's first text and the batch.
            max_texts: Most texts in a request, if fewer than the service takes.
            texts_beside: Texts that each request has beside the batch.
            bytes_beside: Bytes that each request has beside the batch.
            max_characters: Most characters in a request, if fewer than the service takes.
        """

        def send_all() -> list[T]:
            batches = self.batches(
                encoded,
                max_texts=max_texts,
                texts_beside=texts_beside,
                bytes_beside=bytes_beside,
                max_characters=max_characters,
            )
            return [answer for start, batch in batches for answer in send(start, batch)]

        return self.call_with_current_limits(send_all)

    def batches(
        self,
        encoded: Sequence[bytes],
        share: int = 1,
        *,
        max_texts: int | None = None,
        texts_beside: int = 0,
        bytes_beside: int = 0,
        max_characters: int | None = None,
    ) -> Iterator[tuple[int, list[bytes]]]:
        """Cut encoded texts so that `share` batches fit into a request; yield each with the number of its first text.

        The other arguments are those of `in_batches`. A text in JSON has at least as many bytes as characters, so bytes
        bound characters.

        Raises:
            InputError: A text fits into no request.
        """
        limits = self._limits
        limit = max(1, min(limits.max_texts, limits.queue_texts) - texts_beside)
        limit = min(limit, max_texts or limit) // share
        if not limit:
            raise ServiceError("the service takes one text a request, so it cannot compare two")
        room = (max(1024, limits.max_body_bytes - bytes_beside) - OTHER_FIELDS) // share
        characters = min(limits.queue_characters - bytes_beside, max_characters or limits.queue_characters)
        usual = min(room, max(1, characters) // share)
        start, size, batch = 0, 0, list[bytes]()
        for index, text in enumerate(encoded):
            if len(text) + 1 > room:
                sentence = f"text {index} has {len(text)} bytes as JSON, more than the service takes; shorten it"
                raise InputError(sentence, index=index)
            if batch and (len(batch) == limit or size + len(text) + 1 > usual):
                yield start, batch
                start, size, batch = index, 0, []
            batch.append(text)
            size += len(text) + 1
        if batch:
            yield start, batch

    @property
    def max_texts(self) -> int:
        """The most texts of a request, as the service said last."""
        return self._limits.max_texts

    def call_with_current_limits(self, call: Callable[[], T]) -> T:
        """Return what `call` gives; read the limits again and repeat it once if a request was too large."""
        try:
            return call()
        except _TooLarge:
            self._limits = self._info(self.model.name)[1]
            return call()

    def _info(self, wanted: str | None) -> tuple[ModelInfo, ServiceLimits]:
        reply = self._send("GET", "/info", b"", SMALL_ANSWER)
        if reply.status != 200:
            raise ServiceError(f"{self.url}: {_sentence(reply)}", status=reply.status)
        try:
            info = _Info.model_validate_json(reply.body)
        except ValidationError as error:
            raise ServiceError(f"{self.url}: is not a gramvec service: its /info has other fields") from error
        models = {model.name: model for model in info.models}
        name = wanted or info.default_model
        name = info.aliases.get(name, name)
        if name not in models:
            sentence = f"{self.url}: serves no model {quote(name)}; it has {quote(', '.join(sorted(models)))}"
            raise ServiceError(sentence, status=404)
        self._check_model(models[name].label)
        return models[name], info.limits

    def _send(self, method: str, path: str, body: bytes, max_bytes: int, api_key: str | None = None) -> ServiceResponse:
        """Send a request; repeat it for `patience` seconds while the service is overloaded, not ready or away.

        Every request may be repeated: those that change an index leave the same rows the second time.
        """
        pause, gives_up = FIRST_PAUSE, None
        while True:
            response = self._send_once(method, path, body, max_bytes, api_key)
            if isinstance(response, ServiceResponse) and response.status not in RETRIED:
                return response
            now = time.monotonic()
            gives_up = gives_up or now + self._patience
            wait, pause = max(_retry_after(response) or pause, FIRST_PAUSE), min(2 * pause, LONGEST_PAUSE)
            if now + wait > gives_up or (isinstance(response, _NoAnswer) and not response.retry):
                raise self._failure(response)
            time.sleep(min(wait * random.uniform(1, 1 + SPREAD), max(gives_up - now, FIRST_PAUSE)))

    def _send_once(
        self, method: str, path: str, body: bytes, max_bytes: int, api_key: str | None
    ) -> ServiceResponse | _NoAnswer:
        headers = None if api_key is None else {"authorization": f"Bearer {api_key}"}
        try:
            with self._http.stream(method, path, content=body, headers=headers) as response:
                received = bytearray()
                for part in response.iter_raw():
                    if len(received) + len(part) > max_bytes:
                        raise ServiceError(
                            f"the service answered more than the {max_bytes} bytes that its answer can have"
                        )
                    received += part
                return ServiceResponse(response.status_code, response.headers, bytes(received))
        except self._library.TransportError as error:
            final = (self._library.ReadTimeout, self._library.WriteTimeout, self._library.UnsupportedProtocol)
            return _NoAnswer(f"{type(error).__name__} {error}".strip(), retry=not isinstance(error, final))

    def _check_model(self, label: str) -> None:
        if self._model is not None and label != self._model.label:
            raise ServiceError(
                f"{self.url}: serves {quote(label)} now, and served {quote(self._model.label)} before: vectors of "
                "two models cannot be compared; make a new client, and embed again"
            )

    def _failure(self, response: ServiceResponse | _NoAnswer) -> ServiceError:
        if isinstance(response, _NoAnswer):
            return ServiceError(f"{self.url} gave no answer: {quote(ValueError(response.reason))}")
        sentence = f"{self.url}: {_sentence(response)}"
        return ServiceError(sentence, status=response.status, retry_after=_retry_after(response))


def dump_fields(fields: Mapping[str, Any]) -> bytes:
    """Return the other fields of a request as JSON; numbers may be numpy's."""
    return orjson.dumps(dict(fields), option=orjson.OPT_SERIALIZE_NUMPY)


def make_body(inputs: bytes, fields: Mapping[str, Any], name: str = "inputs") -> bytes:
    """Return a request's body: encoded texts under `name`, and other fields."""
    return b'{"%b":%b,%b' % (name.encode(), inputs, dump_fields(fields)[1:])


def join_array(batch: Sequence[bytes]) -> bytes:
    """Return a JSON array of encoded texts."""
    return b"[%b]" % b",".join(batch)


def _headers(api_key: str | None) -> dict[str, str]:
    headers = {
        "accept": "application/octet-stream, application/json;q=0.5",
        "accept-encoding": "identity",
        "content-type": "application/json",
    }
    return headers if api_key is None else {**headers, "authorization": f"Bearer {api_key}"}


def _retry_after(response: ServiceResponse | _NoAnswer) -> float | None:
    """Return the seconds of Retry-After; its other form, a date, is ignored."""
    seconds = response.headers.get("retry-after", "") if isinstance(response, ServiceResponse) else ""
    return float(seconds) if seconds.isascii() and seconds.isdigit() and len(seconds) < 10 else None


def _sentence(reply: ServiceResponse) -> str:
    """Return the service's own error message."""
    try:
        message = orjson.loads(reply.body)["error"]
    except (ValueError, TypeError, KeyError, IndexError):
        message = None
    return quote(ValueError(message)) if isinstance(message, str) and message else f"it answered {reply.status}"
