"""What is asked of a service, in which order, and what its answers mean; of no library for HTTP.

A talk is a generator: it yields what is to be asked, or a pause, is sent the answer, and returns what was wanted. The
clients carry talks out, with or without an event loop.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from time import monotonic
from typing import Any, NamedTuple, TypeVar

import numpy as np
import orjson
from pydantic import BaseModel, Field, ValidationError

from gramvec.embed.inputs import TruncationDirection, prepared
from gramvec.embed.vectors import Vectors, check_dimensions
from gramvec.errors import BackendError, InputError, ServiceError, quoted
from gramvec.text.inputs import listed

T = TypeVar("T")

FIRST_PAUSE, MOST_PAUSE = 0.1, 2.0
# A client waits up to so much longer than it is told, so that not all come back at once.
SPREAD = 0.2
MOST_SAID = 1024 * 1024
# Of a request's body, for what is not texts.
OTHER_FIELDS = 512
# Of a score in JSON.
SCORE_BYTES = 32
TRY_AGAIN = (429, 503)


class Ask(NamedTuple):
    """A request; an answer longer than `most` bytes is not read. ours: it has to be of the model that was met first."""

    method: str
    path: str
    body: bytes = b""
    most: int = MOST_SAID
    ours: bool = True


class Pause(NamedTuple):
    """Nothing for so long."""

    seconds: float


class Answer(NamedTuple):
    """The names of headers are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class Lost(NamedTuple):
    """No answer came, and why; `again` where the same request may find one."""

    said: str
    again: bool


Talk = Generator[Ask | Pause, Answer | Lost | None, T]


class Model(BaseModel):
    """What of GET /info is needed, of a model."""

    name: str
    digest: str = Field(pattern="^[0-9a-f]{64}$")
    dimension: int = Field(ge=1, le=2**16)
    max_characters: int = Field(ge=1)

    @property
    def label(self) -> str:
        """As in the header `x-model`."""
        return f"{self.name}@{self.digest[:12]}"


class Limits(BaseModel):
    """What of GET /info bounds a request."""

    max_texts: int = Field(ge=1)
    max_body_bytes: int = Field(ge=1024)
    queue_texts: int = Field(ge=1)
    queue_characters: int = Field(ge=1)


class Info(BaseModel):
    """GET /info."""

    models: list[Model]
    default_model: str
    aliases: dict[str, str] = Field(default_factory=dict)
    limits: Limits


class _TooLarge(ServiceError):
    """413, as after a restart with other limits."""


class Talks:
    """All that one client asks of one service. The model is the one that it met first: another is an error."""

    def __init__(self, url: str, model: str | None, patience: float) -> None:
        self.url, self.wanted, self.patience = url, model, patience
        self._limits: Limits | None = None
        self._model: Model | None = None

    def meet(self) -> Talk[tuple[Model, Limits]]:
        """The model and the limits, asked for once."""
        if self._model is None or self._limits is None:
            answer = yield from self._asked(Ask("GET", "/info"))
            try:
                info = Info.model_validate_json(answer.body)
            except ValidationError as error:
                raise ServiceError(f"{self.url} is no gramvec service: its /info is another's") from error
            found = {one.name: one for one in info.models}
            name = self.wanted or info.default_model
            name = info.aliases.get(name, name)
            if name not in found:
                said = f"{self.url} serves no model {quoted(name)}; it has {quoted(', '.join(sorted(found)))}"
                raise ServiceError(said, status=404)
            self._same(found[name].label)
            self._model, self._limits = found[name], info.limits
        return self._model, self._limits

    def embed(
        self,
        texts: Iterable[str],
        *,
        normalize: bool,
        dimensions: int | None,
        truncate: bool,
        truncation_direction: TruncationDirection,
    ) -> Talk[Vectors]:
        """See Embedder.embed."""
        model, _ = yield from self.meet()
        found = prepared(texts, model.max_characters, truncate=truncate, truncation_direction=truncation_direction)
        check_dimensions(dimensions, model.dimension)
        width = dimensions or model.dimension
        others = {"model": model.name, "normalize": normalize, "dimensions": dimensions}
        encoded = [orjson.dumps(text) for text in found]

        def asked() -> Talk[Vectors]:
            _, limits = yield from self.meet()
            vectors = np.empty((len(encoded), width), np.float32)
            for start, batch in batches(encoded, limits, 1):
                body = body_of(b"[%b]" % b",".join(batch), others)
                answer = yield from self._asked(Ask("POST", "/embed", body, len(batch) * width * 4 + MOST_SAID), start)
                if len(answer.body) != len(batch) * width * 4 or answer.headers.get("x-dtype") != "float32":
                    raise ServiceError(f"{self.url} answered other vectors than were asked for")
                vectors[start : start + len(batch)] = np.frombuffer(answer.body, "<f4").reshape(-1, width)
            return vectors

        return (yield from self._with_its_limits(asked))

    def similarity(self, left: Iterable[str], right: Iterable[str]) -> Talk[Vectors]:
        """See Embedder.similarity."""
        rows, columns = (yield from self._encoded(left)), (yield from self._encoded(right))

        def asked() -> Talk[Vectors]:
            model, limits = yield from self.meet()
            scores = np.empty((len(rows), len(columns)), np.float32)
            blocks = list(batches(columns, limits, 2))
            for top, above in batches(rows, limits, 2):
                for side, beside in blocks:
                    inputs = b'{"left":[%b],"right":[%b]}' % (b",".join(above), b",".join(beside))
                    shape = len(above), len(beside)
                    found = yield from self._scores(inputs, model, shape)
                    scores[top : top + shape[0], side : side + shape[1]] = found
            return scores

        return (yield from self._with_its_limits(asked))

    def pair_similarity(self, left: Iterable[str], right: Iterable[str]) -> Talk[Vectors]:
        """See Embedder.pair_similarity."""
        one, other = (yield from self._encoded(left)), (yield from self._encoded(right))
        if len(one) != len(other):
            raise InputError(f"{len(one)} left texts and {len(other)} right ones; give as many of each")
        pairs = [b"[%b,%b]" % pair for pair in zip(one, other, strict=True)]

        def asked() -> Talk[Vectors]:
            model, limits = yield from self.meet()
            scores = np.empty(len(pairs), np.float32)
            for start, batch in batches(pairs, limits, 2):
                inputs = b'{"pairs":[%b]}' % b",".join(batch)
                scores[start : start + len(batch)] = yield from self._scores(inputs, model, (len(batch),))
            return scores

        return (yield from self._with_its_limits(asked))

    def _encoded(self, texts: Iterable[str]) -> Talk[list[bytes]]:
        model, _ = yield from self.meet()
        if isinstance(texts, np.ndarray) and texts.dtype.kind == "f":
            raise InputError("a service compares texts; give texts, or compare vectors with numpy", field="texts")
        return [orjson.dumps(text) for text in prepared(listed(texts), model.max_characters)]

    def _scores(self, inputs: bytes, model: Model, shape: tuple[int, ...]) -> Talk[Vectors]:
        most = int(np.prod(shape)) * SCORE_BYTES + MOST_SAID
        answer = yield from self._asked(Ask("POST", "/similarity", body_of(inputs, {"model": model.name}), most))
        try:
            found = np.array(orjson.loads(answer.body), np.float64)
        except (ValueError, TypeError) as error:
            raise ServiceError(f"{self.url} answered no scores") from error
        if found.shape != shape or not (np.abs(found) <= 1).all():
            raise ServiceError(f"{self.url} answered other scores than were asked for")
        return found.astype(np.float32)

    def _with_its_limits(self, asked: Callable[[], Talk[T]]) -> Talk[T]:
        try:
            return (yield from asked())
        except _TooLarge:
            self._limits = None
            return (yield from asked())

    def _asked(self, ask: Ask, first: int = 0) -> Talk[Answer]:
        """The answer to a request, which is repeated while the service is overloaded or away, `patience` at most.

        All that is asked may be asked twice: it changes nothing there.
        """
        pause, gives_up = FIRST_PAUSE, None
        while True:
            said = yield ask
            if isinstance(said, Answer) and said.status not in TRY_AGAIN:
                return self._good(said, ask, first)
            assert said is not None
            now = monotonic()
            gives_up = gives_up or now + self.patience
            wait, pause = max(_retry_after(said) or pause, FIRST_PAUSE), min(2 * pause, MOST_PAUSE)
            if now + wait > gives_up or (isinstance(said, Lost) and not said.again):
                raise self._failure(said)
            yield Pause(min(wait * random.uniform(1, 1 + SPREAD), max(gives_up - now, FIRST_PAUSE)))

    def _good(self, answer: Answer, ask: Ask, first: int) -> Answer:
        if answer.status == 200:
            if ask.method == "POST" and ask.ours:
                self._same(answer.headers.get("x-model", "an unnamed model"))
            return answer
        said = f"{self.url}: {_sentence(answer)}"
        match answer.status:
            case 413:
                raise _TooLarge(said, status=413)
            case 400 | 415 | 422:
                raise InputError(said if not first else f"of the texts from number {first} on (the first is 0), {said}")
            case 424:
                raise BackendError(said)
        raise ServiceError(said, status=answer.status)

    def _same(self, label: str) -> None:
        if self._model is not None and label != self._model.label:
            raise ServiceError(
                f"{self.url} serves {quoted(label)} now, and served {quoted(self._model.label)} before: vectors of the "
                "two cannot be compared; make a new client, and embed again"
            )

    def _failure(self, said: Answer | Lost) -> ServiceError:
        if isinstance(said, Lost):
            return ServiceError(f"{self.url} gave no answer: {quoted(ValueError(said.said))}")
        text = f"{self.url}: {_sentence(said)}"
        return ServiceError(text, status=said.status, retry_after=_retry_after(said))


def batches(
    encoded: Sequence[bytes], limits: Limits, share: int, most_texts: int | None = None
) -> Iterator[tuple[int, list[bytes]]]:
    """Cut what is encoded so that `share` batches fit into a request, each with the place of its first.

    A text in JSON has at least as many bytes as characters. Raises InputError for one that fits into no request.
    """
    most = min(limits.max_texts, limits.queue_texts, most_texts or limits.max_texts) // share
    if not most:
        raise ServiceError("the service takes one text a request, so it cannot compare two")
    room = (limits.max_body_bytes - OTHER_FIELDS) // share
    usual = min(room, limits.queue_characters // share)
    start, size, batch = 0, 0, list[bytes]()
    for index, one in enumerate(encoded):
        if len(one) + 1 > room:
            said = f"text {index} has {len(one)} bytes as JSON, more than the service takes; shorten it"
            raise InputError(said, index=index)
        if batch and (len(batch) == most or size + len(one) + 1 > usual):
            yield start, batch
            start, size, batch = index, 0, []
        batch.append(one)
        size += len(one) + 1
    if batch:
        yield start, batch


def body_of(inputs: bytes, others: dict[str, Any], name: str = "inputs") -> bytes:
    """A request's body: encoded texts under a name, and other fields."""
    return b'{"%b":%b,%b' % (name.encode(), inputs, orjson.dumps(others)[1:])


def _retry_after(said: Answer | Lost) -> float | None:
    """The seconds of a Retry-After, if it has some; the other form, a date, is passed over."""
    given = said.headers.get("retry-after", "") if isinstance(said, Answer) else ""
    return float(given) if given.isascii() and given.isdigit() and len(given) < 10 else None


def _sentence(answer: Answer) -> str:
    """What the service says is wrong, in its own words."""
    try:
        said = orjson.loads(answer.body)["error"]
    except (ValueError, TypeError, KeyError, IndexError):
        said = None
    return quoted(ValueError(said)) if isinstance(said, str) and said else f"it answered {answer.status}"
