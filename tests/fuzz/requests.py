"""Requests of every kind as they go over the wire: right ones, odd ones, broken ones."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from random import Random
from typing import NamedTuple, TypeVar

T = TypeVar("T")

# How often a part of an odd request is a bad one.
BAD = 0.06

TEXTS = ["a fast car", "", "ripe bananas \N{GRINNING FACE}", "e\u0301" * 40, "\u0323\u0301" * 300, "x" * 3_000, "\0"]
HIDDEN = b"GET /ready HTTP/1.1\r\nhost: t\r\nx-request-id: smuggled\r\n\r\n"
PIECES = [
    b"\r\n", b"\r\n\r\n", b"\n", b"\r", b"\0", b": ", b"0\r\n\r\n", b"content-length: 7\r\n", b"host: u\r\n", b"\xff",
    b"transfer-encoding: chunked\r\n", b"connection: close\r\n", b"expect: 100-continue\r\n", b";a=b", b"HTTP/1.1",
    b"connection: upgrade\r\nupgrade: h2c\r\n", HIDDEN, b"fffffffffffffffff\r\n", b"a:\r\n" * 200, b"x" * 20_000,
]  # fmt: skip

METHODS = [b"GET", b"HEAD", b"OPTIONS", b"PUT", b"DELETE", b"CONNECT", b"PRI", b"BREW", b"", b"get", b"\xff"]
VERSIONS = [b"HTTP/1.0", b"HTTP/1.0", b"HTTP/2.0", b"HTTP/9.9", b"http/1.1", b""]
TARGETS = [
    b"/embed", b"/embed", b"/similarity", b"/v1/embeddings", b"/", b"/explain", b"/match", b"/embed_sparse", b"/rerank",
    b"/v1/rerank", b"/search", b"/predict",
]  # fmt: skip
ODD_TARGETS = [
    b"/health", b"/metrics", b"/nowhere", b"*", b"http://t/embed", b"//t/health", b"/%00", b"/%ff", b"/a b", b"",
    b"/docs?x#y", b"/\xe9", b"t:443", b"/v1/models/x", b"/admin/reload", b"/" + b"a" * 60_000, b"/" + b"a" * 70_000,
]  # fmt: skip
FIELDS = [b"accept: application/x-npy", b"accept: */*;q=0.1", b"x: \xe9", b"x:", b"cookie: a=b", b"te: trailers"]
HEADERS = [*FIELDS, *[b"content-type: application/json"] * 3, b"connection: keep-alive", b"x: " + b"y" * 3_000]
BAD_HEADERS = [
    b"host: u", b"x : y", b" folded", b"no colon", b"x: a\0b", b"connection: close", b"connection: upgrade",
    b"upgrade: h2c", b"expect: 100-continue", b"authorization: Bearer x", b"content-encoding: gzip",
    b"content-length: -1", b"content-length: 99999999999999999999", b"origin: https://example.org",
    b"x-request-id: a b", b"x: " + b"y" * 60_000,
]  # fmt: skip
CODINGS = [b"transfer-encoding: chunked"]
BAD_CODINGS = [b"transfer-encoding: gzip, chunked", b"transfer-encoding: chunked, chunked", b"te: chunked"]
EXTENSIONS = [b"", b"", b"", b";a=b", b';a="b;c"']
BAD_EXTENSIONS = [b" ;a", b";", b";a=", b";" + b"a" * 9_000, b";" + b"a" * 20_000, b";\0"]
TRAILERS = [b"", b"", b"x-sum: 1\r\n"]
BAD_TRAILERS = [b"no colon\r\n", b"a:\r\n" * 5_000, b"content-length: 5\r\n", b"a: \0\r\n"]


class Right(NamedTuple):
    """A request that has to be answered 200, and its id."""

    data: bytes
    number: bytes


class Requests:
    """Makes requests."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self._count = 0

    def right(self, *, last: bool = False) -> Right:
        """One that nothing is wrong with; `last` closes the connection."""
        self._count += 1
        number = b"right-%d" % self._count
        path, body = self.random.choice([self._embed, self._compare, self._embed_as_openai, self._ask])()
        headers = [b"x-request-id: " + number, b"host: t", *self.random.sample(FIELDS, self.random.randrange(3))]
        if last:
            headers.append(b"connection: close")
        if body is None:
            return Right(_head(b"GET", path, headers), number)
        headers.append(b"content-type: application/json")
        if self.random.random() < 0.2:
            headers.append(b"expect: 100-continue")
        if self.random.random() < 0.4:
            return Right(_head(b"POST", path, [*headers, *CODINGS]) + self._in_chunks(body, bad=0), number)
        return Right(_head(b"POST", path, [*headers, b"content-length: %d" % len(body)]) + body, number)

    def odd(self) -> bytes:
        """One that may be wrong in any part, made from the grammar; mostly in none or one."""
        body = self._embed()[1]
        lines = [self._some(HEADERS, BAD_HEADERS) for _ in range(self.random.choice([0, 0, 1, 2, 4, 8, 120]))]
        if self.random.random() > BAD:
            lines.append(b"host: t")
        chunked = self.random.random() < 0.4
        if chunked:
            lines.append(self._some(CODINGS, BAD_CODINGS))
        if not chunked or self.random.random() < BAD:
            lines.append(b"content-length: %d" % (len(body) + self._some([0], [-1, 1, 1_000_000])))
        self.random.shuffle(lines)
        target = self._some(TARGETS, ODD_TARGETS)
        blanks = [self._some([b" "], [b"  ", b"\t", b""]) for _ in range(2)]
        lines.insert(0, self._some([b"POST"], METHODS) + blanks[0] + target + blanks[1])
        lines[0] += self._some([b"HTTP/1.1"], VERSIONS)
        end = self._some([b"\r\n"], [b"\n", b"\r", b"\r\n "])
        return end.join([*lines, b"", b""]) + (self._in_chunks(body, bad=BAD) if chunked else body)

    def mutated(self) -> bytes:
        """Some of these, with pieces lost, doubled and changed."""
        kinds: list[Callable[[], bytes]] = [lambda: self.right().data, self.odd]
        data = bytearray(b"".join(self.random.choice(kinds)() for _ in range(self.random.randint(1, 4))))
        for _ in range(self.random.randint(1, 8)):
            at = self.random.randrange(len(data) + 1)
            end = min(len(data), at + self.random.choice([0, 1, 1, 2, 8, 60, 1_000]))
            change = self.random.randrange(4)
            new = [b"", self.random.randbytes(end - at), self.random.choice(PIECES), bytes(data[at:end]) * 2][change]
            data[at:end] = new
        return bytes(data)

    def garbage(self) -> bytes:
        """Anything."""
        return self.random.randbytes(self.random.choice([1, 20, 500, 70_000]))

    def hiding(self) -> bytes:
        """One whose body looks like another, of which nobody must be told."""
        body = json.dumps({"inputs": "a"}).encode() + HIDDEN
        head = [b"host: t", b"content-type: application/json", b"content-length: %d" % len(body)]
        return _head(b"POST", b"/embed", head) + body

    def _some(self, good: Sequence[T], bad: Sequence[T], share: float = BAD) -> T:
        return self.random.choice(bad if self.random.random() < share else good)

    def _embed(self) -> tuple[bytes, bytes]:
        texts = self.random.choices(TEXTS, k=self.random.choice([1, 2, 5, 60]))
        return b"/embed", json.dumps({"inputs": self.random.choice([texts, texts[0]])}).encode()

    def _embed_as_openai(self) -> tuple[bytes, bytes]:
        body = {"input": self.random.choices(TEXTS, k=3), "encoding_format": self.random.choice(["float", "base64"])}
        return b"/v1/embeddings", json.dumps(body).encode()

    def _compare(self) -> tuple[bytes, bytes]:
        left, right = (self.random.choices(TEXTS, k=self.random.randint(1, 9)) for _ in range(2))
        return b"/similarity", json.dumps({"inputs": {"left": left, "right": right}, "top_k": 3}).encode()

    def _ask(self) -> tuple[bytes, None]:
        return self.random.choice([b"/health", b"/info", b"/v1/models", b"/openapi.json", b"/"]), None

    def _in_chunks(self, body: bytes, *, bad: float) -> bytes:
        parts = []
        while body:
            size = self.random.choice([1, 2, 7, 100, len(body)])
            spelt = (b"%x" % min(size, len(body))).zfill(self.random.choice([0, 0, 3]))
            extension = self._some(EXTENSIONS, BAD_EXTENSIONS, bad / 10)
            parts.append(spelt + extension + b"\r\n" + body[:size] + b"\r\n")
            body = body[size:]
        if parts and self.random.random() < bad:
            parts.insert(self.random.randrange(len(parts)), self.random.choice(PIECES))
        return b"".join([*parts, b"0\r\n", self._some(TRAILERS, BAD_TRAILERS, bad), b"\r\n"])


def _head(method: bytes, path: bytes, headers: list[bytes]) -> bytes:
    return b"\r\n".join([b"%b %b HTTP/1.1" % (method, path), *headers, b"", b""])
