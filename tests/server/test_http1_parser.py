"""Heads and bodies as they are read, in whatever pieces they come: by themselves, and beside httptools."""

from __future__ import annotations

from typing import Any

import httptools
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gramvec.server.http1.connection import LONGEST_HEAD, MOST_HEADS, Connections
from gramvec.server.http1.parser import CHUNKED, Chunked, Counted, HeadReader, Refused, RequestHead
from gramvec.server.settings import Settings

LINE = b"POST /embed?a=1 HTTP/1.1\r\n"
HOST = b"host: t\r\n"
LIMITS = Settings()
cuts = st.lists(st.integers(1, 60), max_size=12)


def pieces(data: bytes, sizes: list[int]) -> list[bytes]:
    found = []
    for size in sizes:
        found.append(data[:size])
        data = data[size:]
    return [one for one in [*found, data] if one]


def read_head(parts: list[bytes]) -> Any:
    """What a head says and how long it is, or why it is refused; None if it does not end."""
    reader = HeadReader(LIMITS)
    before = 0
    for part in parts:
        try:
            found = reader.feed(part)
        except Refused as refusal:
            return refusal.status, str(refusal)
        if found:
            head, size = found
            return before + size, vars(head)
        before += len(part)
    return None


def head_of(*lines: bytes, first: bytes = LINE, host: bytes = HOST) -> RequestHead:
    data = first + host + b"".join(line + b"\r\n" for line in lines) + b"\r\n"
    found = HeadReader(LIMITS).feed(data + b"what follows")
    assert found is not None
    assert found[1] == len(data)
    return found[0]


def refused(*lines: bytes, first: bytes = LINE, host: bytes = HOST) -> tuple[int, str]:
    with pytest.raises(Refused) as refusal:
        head_of(*lines, first=first, host=host)
    return refusal.value.status, str(refusal.value)


def test_what_a_head_says() -> None:
    head = head_of(b"Content-Length:  7", b"X: \xe9", b"expect: 100-Continue")
    assert (head.length, head.keep_alive, head.waits, head.url) == (7, True, True, b"/embed?a=1")
    target = {"path": "/embed", "raw_path": b"/embed", "query_string": b"a=1"}
    assert head.scope == {"method": "POST", "http_version": "1.1", **target}
    assert head.headers == [(b"host", b"t"), (b"content-length", b"7"), (b"x", b"\xe9"), (b"expect", b"100-Continue")]
    assert head_of(b"transfer-encoding: Chunked").length == CHUNKED
    assert head_of(first=b"GET http://t/a%20b?c HTTP/1.0\r\n", host=b"").scope["path"] == "/a b"


@pytest.mark.parametrize(
    ("lines", "version", "keep_alive"),
    [
        ([], b"1.1", True),
        ([b"connection: keep-alive"], b"1.1", True),
        ([b"connection: close"], b"1.1", False),
        ([b"Connection: TE, CLOSE "], b"1.1", False),
        ([b"connection: close", b"connection: te"], b"1.1", False),
        ([b"connection: closed"], b"1.1", True),
        ([b"connection: upgrade, http2-settings", b"upgrade: h2c"], b"1.1", True),
        ([b"connection: keep-alive"], b"1.0", False),
        ([], b"1.0", False),
    ],
)
def test_what_ends_a_connection(lines: list[bytes], version: bytes, keep_alive: bool) -> None:
    assert head_of(*lines, first=b"GET / HTTP/%b\r\n" % version).keep_alive is keep_alive


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ([b"host: u"], "more than one header named host"),
        ([b"authorization: a", b"x: y", b"Authorization: a"], "more than one header named authorization"),
        ([b"transfer-encoding: gzip, chunked"], "not chunked alone"),
        ([b"transfer-encoding: identity"], "not HTTP/1.1"),
    ],
)
def test_what_has_two_readings_is_refused(lines: list[bytes], words: str) -> None:
    status, sentence = refused(*lines)
    assert status == 400
    assert words in sentence


def test_a_head_needs_a_host_and_no_tunnel() -> None:
    assert "no Host header" in refused(host=b"")[1]
    for target in (b"/embed", b"t:443"):
        assert refused(first=b"CONNECT %b HTTP/1.1\r\n" % target)[1].startswith("CONNECT asks for a tunnel")
    assert refused(first=b"GET / HTTP/2.0\r\n")[0] == 400


def test_the_limits_of_a_head_are_exact() -> None:
    assert len(head_of(*[b"x: y"] * (LIMITS.max_header_lines - 1)).headers) == LIMITS.max_header_lines
    assert refused(*[b"x: y"] * LIMITS.max_header_lines)[0] == 431
    rest = LIMITS.max_header_bytes - len(LINE + HOST + b"x: \r\n\r\n")
    head_of(b"x: " + b"y" * rest)
    assert "larger than the limit of 65536 bytes" in refused(b"x: " + b"y" * (rest + 1))[1]


def test_the_limits_of_a_head_are_settings() -> None:
    few = Settings(max_header_lines=10, max_header_bytes=1024)
    for lines, words in (
        (b"a:\r\n" * 12 + b"\r\n", "more than 10 header lines"),
        (b"a: " + b"b" * 1024, "limit of 1024 bytes"),
    ):
        with pytest.raises(Refused, match=words):
            HeadReader(few).feed(LINE + lines)


@pytest.mark.parametrize(
    ("target", "expected"), [(b"http://t", ("/", b"/", b"")), (b"http://t?a=1", ("/", b"/", b"a=1"))]
)
def test_an_absolute_target_without_a_path_is_the_root(target: bytes, expected: tuple[str, bytes, bytes]) -> None:
    """RFC 9112, 3.2.1."""
    scope = head_of(first=b"GET %b HTTP/1.1\r\n" % target).scope
    assert (scope["path"], scope["raw_path"], scope["query_string"]) == expected


def test_a_head_without_end_is_refused_at_the_limit_and_not_before() -> None:
    reader = HeadReader(LIMITS)
    reader.feed(LINE)
    assert reader.feed(b"x: " + b"y" * (LIMITS.max_header_bytes - reader.size - 3)) is None
    with pytest.raises(Refused):
        reader.feed(b"y")


lines = st.lists(
    st.sampled_from(
        [
            b"x: y",
            b"host: t",
            b"host: u",
            b"content-length: 3",
            b"content-length: 4",
            b"transfer-encoding: chunked",
            b"transfer-encoding: gzip, chunked",
            b"connection: close",
            b"upgrade: h2c",
            b"connection: upgrade",
            b"no colon",
            b" folded",
            b"x : y",
            b"x: a\0b",
            b"x: " + b"long" * 9_000,
            b"a: b\r\n" * 60 + b"c: d",
            b"",
        ]
    ),
    max_size=5,
)


@pytest.mark.parametrize("sent", [b"\x16\x03\x01\x00\xc8", b"GET / HTTP/1.1\n", b"GET / HTTP/1.1\rhost", b" GET /"])
def test_what_cannot_become_a_head_is_refused_before_it_ends(sent: bytes) -> None:
    with pytest.raises(Refused, match="not HTTP/1.1"):
        HeadReader(LIMITS).feed(sent)


def test_a_head_that_has_not_ended_has_a_target() -> None:
    reader = HeadReader(LIMITS)
    for part, url in ((b"POST /v1", b"/v1"), (b"/embeddings?a=b HTTP/1.1\r\nx:", b"/v1/embeddings?a=b")):
        reader.feed(part)
        assert reader.url == url


firsts = st.sampled_from(
    [LINE, b"GET / HTTP/1.0\r\n", b"CONNECT / HTTP/1.1\r\n", b"GET * HTTP/1.1\r\n", b"GET /\xe9 HTTP/1.1\r\n", b"G\r\n"]
)


@given(firsts, lines, st.lists(st.integers(1, 40_000), max_size=8), cuts)
def test_a_head_is_read_alike_however_it_is_cut(
    first: bytes, lines: list[bytes], coarse: list[int], fine: list[int]
) -> None:
    data = first + b"".join(line + b"\r\n" for line in lines) + b"\r\nand what follows"
    whole = read_head([data])
    assert read_head(pieces(data, coarse)) == whole
    assert read_head(pieces(data, fine)) == whole


# Bodies


def read_body(body: Chunked | Counted, parts: list[bytes]) -> Any:
    """The content, and what lies behind it, None for a body that does not end; or why it is refused."""
    content = b""
    try:
        for number, part in enumerate(parts):
            more, rest, ended = body.feed(part)
            content += more
            while rest and not ended:
                more, rest, ended = body.feed(rest)
                content += more
            if ended:
                return content, rest + b"".join(parts[number + 1 :])
    except Refused as refusal:
        return refusal.status, str(refusal)
    return content, None


@given(st.binary(max_size=40), st.integers(0, 50), cuts)
def test_a_body_of_a_known_length(data: bytes, length: int, sizes: list[int]) -> None:
    found = read_body(Counted(length), pieces(data, sizes) or [b""])
    assert found == ((data[:length], data[length:]) if len(data) >= length else (data, None))


def by_httptools(data: bytes) -> tuple[bytes, bool]:
    """What httptools makes of a body in chunks: its content, and whether it ends. Raises its errors."""
    content: list[bytes] = []
    ended: list[int] = []

    class Reader:
        def on_body(self, body: bytes) -> None:
            content.append(body)

        def on_message_complete(self) -> None:
            ended.append(1)

    parser = httptools.HttpRequestParser(Reader())
    parser.feed_data(LINE + HOST + b"transfer-encoding: chunked\r\n\r\n")
    parser.feed_data(data)
    return b"".join(content), bool(ended)


def in_chunks(extensions: list[bytes]) -> st.SearchStrategy[list[bytes]]:
    def chunk(content: bytes, extension: bytes, digits: int) -> bytes:
        return (b"%x" % len(content)).zfill(digits) + extension + b"\r\n" + content + b"\r\n"

    return st.lists(
        st.builds(chunk, st.binary(min_size=1, max_size=30), st.sampled_from(extensions), st.integers(0, 3)),
        max_size=6,
    )


RIGHT = [b"", b"", b";a=b", b';a="b \\"c"', b";a;b=c"]
WRONG = [b" ;a", b";", b";a=", b";\xe9", b";a=b c"]
trailers = st.sampled_from(
    [b"", b"", b"x-sum: 1\r\n", b"a: \xe9\r\nb:\r\n", b"no colon\r\n", b"a : b\r\n", b"a: \0\r\n"]
)
noise = st.sampled_from([b"\r\n", b"\n", b"\r", b"0", b"1", b"zz", b";", b" ", b"\0", b"0\r\n\r\n", b'"', b"f" * 17])


@st.composite
def bodies_in_chunks(draw: st.DrawFn) -> bytes:
    """Right ones, and such with a piece put in, left out or changed."""
    data = b"".join(draw(in_chunks(RIGHT * 3 + WRONG))) + b"0\r\n" + draw(trailers) + b"\r\n"
    for _ in range(draw(st.integers(0, 2))):
        at = draw(st.integers(0, len(data)))
        data = data[:at] + draw(noise) + data[at + draw(st.integers(0, 3)) :]
    return data


@given(bodies_in_chunks(), cuts)
def test_a_body_in_chunks_is_read_alike_however_it_is_cut(data: bytes, sizes: list[int]) -> None:
    assert read_body(Chunked(LIMITS), pieces(data, sizes)) == read_body(Chunked(LIMITS), [data])


@given(bodies_in_chunks())
def test_what_is_taken_for_chunks_httptools_takes_for_the_same(data: bytes) -> None:
    """Never more than it takes, so that nobody who reads as it does can be led astray."""
    content, rest = read_body(Chunked(LIMITS), [data])
    if isinstance(content, int):
        return
    taken = data if rest is None else data[: len(data) - len(rest)]
    try:
        expected = by_httptools(taken)
    except httptools.HttpParserError:
        assert rest is None  # the line that has not ended is none: it is refused with its last byte
        return
    assert (content, rest is not None) == expected


@given(in_chunks(RIGHT), trailers)
def test_what_is_right_is_taken(parts: list[bytes], trailer: bytes) -> None:
    data = b"".join(parts) + b"0\r\n" + trailer + b"\r\n"
    try:
        content, ended = by_httptools(data)
    except httptools.HttpParserError:
        assert read_body(Chunked(LIMITS), [data])[0] == 400
        return
    assert ended
    assert read_body(Chunked(LIMITS), [data + b"next"]) == (content, b"next")


def in_pieces_of(size: int, data: bytes) -> list[bytes]:
    return [data[at : at + size] for at in range(0, len(data), size)]


@pytest.mark.parametrize("size", [1 << 20, 1_000, 7])
def test_the_limits_of_extensions_and_trailers_are_exact(size: int) -> None:
    def body(extensions: int, trailer: int) -> Any:
        first, second = (
            b"1" + b";a=b".ljust(half, b"c")[:half] + b"\r\n%b\r\n" % content
            for half, content in ((extensions // 2, b"x"), (extensions - extensions // 2, b"y"))
        )
        data = first + second + b"0\r\n" + b"a:" + b"b" * (trailer - 4) + b"\r\n\r\n"
        return read_body(Chunked(LIMITS), in_pieces_of(size, data))

    assert body(LIMITS.max_extension_bytes, LIMITS.max_trailer_bytes) == (b"xy", b"")
    assert body(LIMITS.max_extension_bytes + 1, 4)[0] == 431
    assert body(0, LIMITS.max_trailer_bytes + 1)[0] == 431


def test_many_small_chunks_are_read_in_turns() -> None:
    body, count, content, rest = Chunked(LIMITS), 0, b"", b"1\r\nx\r\n" * 20_000 + b"0\r\n\r\n"
    while rest:
        count += 1
        more, rest, ended = body.feed(rest)
        content += more
    assert (content, ended) == (b"x" * 20_000, True)
    assert count > 4


def test_known_heads_have_a_bounded_number_and_size() -> None:
    heads = Connections(None, print, LIMITS)  # type: ignore[arg-type]
    many = [LINE + HOST + b"x-request-id: %d\r\n\r\n" % number for number in range(3 * MOST_HEADS)]
    for one in many:
        heads.keep_head(one, RequestHead.parse(one, LIMITS))
    known = [heads.known_head(one + b"body\r\n\r\n") for one in many]
    assert known[-1] is not None
    assert known[-1][1] == len(many[-1])
    assert 0 < sum(one is not None for one in known) <= MOST_HEADS
    for other in (b"", many[-1][:-1], b"\r\n" + many[-1], many[-1].upper()):
        assert heads.known_head(other) is None
    long = LINE + HOST + b"x: " + b"y" * LONGEST_HEAD + b"\r\n\r\n"
    heads.keep_head(long, RequestHead.parse(long, LIMITS))
    assert heads.known_head(long) is None
