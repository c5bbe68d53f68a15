"""Requests of every kind and size with their expected answers, made by the library in this process."""

from __future__ import annotations

import base64
import io
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import orjson

from benchmarks.measure import ROOT
from gramvec import Embedder
from gramvec.embed.vectors import quantize
from gramvec.explain.contributions import explain

Expected = Callable[[Embedder], bytes]

JSON = "application/json"
RAW = "application/octet-stream"
NPY = "application/x-npy"
BASE64 = "application/json; encoding=base64"
ODD = [
    "",
    " ",
    "\n",
    "🙂",
    "日本語",
    "a\u0301",
    "\u0130",
    "\ufdfa",
    "\U0001f468\u200d\U0001f469",
    "\x00",
    "ﬃ",
    "\u2028",
]


@dataclass(frozen=True)
class Request:
    """Request with its expected answer.

    `expected` returns the body of a 200 for the model that `x-model` names. It is None for any other status, whose body
    must be an error of the type `error_type`.
    """

    kind: str
    path: str
    body: bytes
    headers: dict[str, str] = field(default_factory=dict)
    method: str = "POST"
    status: int = 200
    error_type: str = ""
    expected: Expected | None = None

    def wire(self, key: str = "") -> bytes:
        """Return head and body."""
        headers = {"host": "soak", "content-type": JSON, "content-length": str(len(self.body)), **self.headers}
        if key:
            headers["authorization"] = f"Bearer {key}"
        lines = [f"{self.method} {self.path} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items())]
        return "\r\n".join([*lines, "", ""]).encode() + self.body


def dumps(value: Any) -> bytes:
    """Return JSON as the service writes it."""
    return orjson.dumps(value, option=orjson.OPT_SERIALIZE_NUMPY)


class Mixture:
    """Endless requests, determined by a seed. `limit` is the server's max_texts."""

    def __init__(self, seed: int, *, limit: int = 2048) -> None:
        self._random = random.Random(seed)
        self._limit = limit
        files = [ROOT / "LICENSE", *sorted((ROOT / "docs").glob("*.md"))]
        self._words = " ".join(file.read_text(encoding="utf-8") for file in files).split()
        self._kinds: list[tuple[Callable[[], Request], int]] = [
            (self._one_text, 40),
            (self._embed, 60),
            (self._similarity, 30),
            (self._matrix, 15),
            (self._openai, 30),
            (self._explain, 4),
            (self._bulk, 1),
            (self._long_text, 2),
            (self._error, 18),
            (self._probe, 4),
        ]

    def take(self, count: int) -> Iterator[Request]:
        """Yield `count` requests."""
        makers, weights = zip(*self._kinds, strict=True)
        for maker in self._random.choices(makers, weights, k=count):
            yield maker()

    def text(self, most: int = 40) -> str:
        """Return some English words, sometimes misspelt, sometimes an odd text."""
        if self._random.random() < 0.05:
            return self._random.choice(ODD)
        start = self._random.randrange(len(self._words))
        text = " ".join(self._words[start : start + self._random.randint(1, most)])
        if self._random.random() < 0.3:
            at = self._random.randrange(len(text) + 1)
            text = text[:at] + self._random.choice("aeiou xz" + "".join(ODD)) + text[at + 1 :]
        return text

    def texts(self, least: int, most: int, words: int = 40) -> list[str]:
        """Return texts, a few of them equal."""
        found = [self.text(words) for _ in range(self._random.randint(least, most))]
        return [self._random.choice(found) if self._random.random() < 0.1 else text for text in found]

    def _one_text(self) -> Request:
        text = self.text(12)
        return Request("one text", "/embed", dumps({"inputs": text}), expected=lambda one: dumps(one.embed([text])))

    def _bulk(self) -> Request:
        texts = self.texts(self._limit // 2, self._limit, 10)
        return Request(
            "bulk", "/embed", dumps({"inputs": texts}), {"accept": RAW}, expected=lambda one: raw(one.embed(texts))
        )

    def _long_text(self) -> Request:
        text = " ".join(self.texts(200, 1_500))[:65_536]
        return Request("long text", "/embed", dumps({"inputs": text}), expected=lambda one: dumps(one.embed([text])))

    def _embed(self) -> Request:
        texts = self.texts(1, 24)
        options: dict[str, Any] = {}
        if self._random.random() < 0.3:
            options["normalize"] = self._random.choice([True, False, None])
        if self._random.random() < 0.3:
            options["dimensions"] = self._random.choice([1, 7, 64, 300, None])
        body = {"inputs": texts, **options}
        finished = {"normalize": options.get("normalize") is not False, "dimensions": options.get("dimensions")}
        accept = self._random.choice([JSON, JSON, RAW, NPY, BASE64])
        precision = "float32"
        if finished["normalize"] and self._random.random() < 0.2:
            precision = body["precision"] = self._random.choice(["int8", "uint8", "binary", "ubinary"])

        def expected(one: Embedder) -> bytes:
            return ENCODERS[accept](quantize(one.embed(texts, **finished), precision))

        path = self._random.choice(["/embed", "/embed", "/embed", "/"])
        return Request(f"embed, {precision}, {accept}", path, dumps(body), {"accept": accept}, expected=expected)

    def _similarity(self) -> Request:
        texts = self.texts(2, 30)
        if self._random.random() < 0.5:
            inputs: dict[str, Any] = {"source_sentence": texts[0], "sentences": texts[1:]}
            return Request(
                "similarity, one and many",
                "/similarity",
                dumps({"inputs": inputs}),
                expected=lambda one: dumps(one.similarity(texts[:1], texts[1:])[0]),
            )
        left, right = texts[: len(texts) // 2], texts[len(texts) // 2 :][: len(texts) // 2]
        return Request(
            "similarity, pairs",
            "/similarity",
            dumps({"inputs": {"pairs": list(zip(left, right, strict=True))}}),
            expected=lambda one: dumps(one.pair_similarity(left, right)),
        )

    def _matrix(self) -> Request:
        left, right = self.texts(1, 12), self.texts(1, 12)
        body: dict[str, Any] = {"inputs": {"left": left, "right": right}}
        if self._random.random() < 0.5:
            return Request(
                "matrix", "/similarity", dumps(body), expected=lambda one: dumps(one.similarity(left, right))
            )
        body["top_k"] = k = self._random.randint(1, 15)
        return Request(
            "matrix, best", "/similarity", dumps(body), expected=lambda one: dumps(best(one.similarity(left, right), k))
        )

    def _openai(self) -> Request:
        texts = self.texts(1, 16)
        as_text = self._random.random() < 0.5
        body = {"input": texts, "model": None, "encoding_format": "float" if as_text else "base64", "user": None}

        def expected(one: Embedder) -> bytes:
            rows = one.embed(texts)
            words = sum(len(text.split()) for text in texts)
            return dumps(
                {
                    "object": "list",
                    "data": [
                        {"object": "embedding", "index": at, "embedding": row if as_text else in_base64(row)}
                        for at, row in enumerate(rows)
                    ],
                    "model": one.name,
                    "usage": {"prompt_tokens": words, "total_tokens": words},
                }
            )

        return Request(f"openai, {body['encoding_format']}", "/v1/embeddings", dumps(body), expected=expected)

    def _explain(self) -> Request:
        source, target = self.text(12), self.text(12)
        body = {"inputs": {"source_sentence": source, "target_sentence": target}, "top_k": 5}
        return Request(
            "explain",
            "/explain",
            dumps(body),
            expected=lambda one: dumps(explain(one, source, target, top_k=5).to_dict()),
        )

    def _probe(self) -> Request:
        if self._random.random() < 0.5:
            return Request("probe", "/health", b"", method="GET", expected=lambda _: b'{"status":"alive"}')

        def expected(one: Embedder) -> bytes:
            model = {"id": one.name, "object": "model", "created": 0, "owned_by": "gramvec"}
            return dumps({"object": "list", "data": [model]})

        return Request("models", "/v1/models", b"", method="GET", expected=expected)

    def _error(self) -> Request:
        return self._random.choice(
            [
                _failing(b"{", 400, "validation"),
                _failing(b'{"inputs": "\xff"}', 400, "validation"),
                _failing(dumps({"inputs": 5}), 422, "validation"),
                _failing(dumps({"inputs": []}), 422, "empty"),
                _failing(b'{"inputs": ["a", "\\ud800"]}', 422, "validation"),
                _failing(dumps({"input": "a"}), 422, "validation"),
                _failing(dumps({"inputs": "a", "dimensions": 100_000}), 422, "validation"),
                _failing(dumps({"input": "a", "model": "other"}), 404, "not_found", path="/api/embed"),
                _failing(dumps({"inputs": ["a"] * (self._limit + 1)}), 413, "too_large"),
                _failing(dumps({"inputs": "x" * 65_537}), 422, "validation"),
                _failing(dumps({"inputs": {"pairs": [["a"]]}}), 422, "validation", path="/similarity"),
                _failing(dumps({"input": [[1, 2]], "model": "x"}), 400, "", path="/v1/embeddings"),
                _failing(b"", 415, "validation", headers={"content-type": "text/plain"}),
                _failing(b"", 404, "not_found", path="/nowhere"),
                _failing(b"", 405, "not_found", method="PUT"),
            ]
        )


def _failing(body: bytes, status: int, error_type: str, *, path: str = "/embed", **rest: Any) -> Request:
    return Request(f"error {status}", path, body, status=status, error_type=error_type, **rest)


def raw(rows: Any) -> bytes:
    """Return little-endian rows."""
    return bytes(rows.astype(rows.dtype.newbyteorder("<"), copy=False).tobytes())


def npy(rows: Any) -> bytes:
    """Return a .npy file."""
    file = io.BytesIO()
    np.save(file, rows)
    return file.getvalue()


def in_base64(row: Any) -> str:
    """Return a row of little-endian numbers in base64."""
    return base64.b64encode(raw(row)).decode()


ENCODERS: dict[str, Callable[[Any], bytes]] = {
    JSON: dumps,
    RAW: raw,
    NPY: npy,
    BASE64: lambda rows: dumps([in_base64(row) for row in rows]),
}


def best(matrix: Any, k: int) -> list[list[dict[str, Any]]]:
    """Return the best k of each row, ties by index."""
    rows: Sequence[Sequence[float]] = matrix.tolist()
    ordered = [sorted(range(len(row)), key=lambda at, row=row: (-row[at], at))[:k] for row in rows]
    return [[{"index": at, "score": matrix[number, at]} for at in order] for number, order in enumerate(ordered)]
