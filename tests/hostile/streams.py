"""The table of byte streams that no client library would send, each with the statuses that answer it."""

from __future__ import annotations

from support.wire import LAST, NORMAL, TEXT

GET = b"GET /health HTTP/1.1\r\nhost: t\r\n"
HEALTH = GET + b"\r\n"
POST = b"POST /embed HTTP/1.1\r\nhost: t\r\ncontent-type: application/json\r\n"
CODING = b"transfer-encoding: chunked\r\n"
CHUNKED = POST + CODING + b"\r\n"
BODY = b"%x\r\n%b\r\n0\r\n\r\n" % (len(TEXT), TEXT)
HIDDEN = b"GET /ready HTTP/1.1\r\nhost: t\r\nx-request-id: smuggled\r\n\r\n"
LENGTH = b"content-length: %d\r\n" % len(TEXT)
UPGRADE = b"connection: Upgrade, HTTP2-Settings\r\nupgrade: h2c\r\nhttp2-settings: AAMAAABkAARAAAAA\r\n"
DIGITS = 20 * b"9"


def with_length(value: bytes) -> bytes:
    return POST + b"content-length: " + value + b"\r\n\r\n" + TEXT


# Statuses in the order of the answers; after "closed" the server has closed, without it the connection is in step.
# With "|" either: it depends on whether the first was answered before the rest arrived.
STREAMS: dict[str, tuple[bytes, str]] = {
    "a normal request": (NORMAL, "200"),
    "empty lines before it": (b"\r\n\r\n" + NORMAL, "200"),
    "bytes at random": (b"\x00\xff\xfe garbage \x80\r\n\r\n", "400 closed"),
    "a TLS handshake": (bytes.fromhex("16030100c8010000c40303") + b"x" * 200, "400 closed"),
    "HTTP/2": (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "400 closed"),
    "another version": (b"GET /health HTTP/3.7\r\nhost: t\r\n\r\n", "400 closed"),
    "HTTP/1.0": (b"GET /health HTTP/1.0\r\n\r\n", "200 closed"),
    "HTTP/1.0 with a body": (b"POST /embed HTTP/1.0\r\ncontent-type: application/json\r\n" + LENGTH + b"\r\n" + TEXT,
                             "200 closed"),
    "NUL in the target": (b"GET /he\0alth HTTP/1.1\r\nhost: t\r\n\r\n", "400 closed"),
    "NUL in a header": (GET + b"x: a\0b\r\n\r\n", "400 closed"),
    "NUL in the body": (POST + b"content-length: 3\r\n\r\n\0\0\0", "400"),
    "NUL escaped in the target": (b"GET /health%00 HTTP/1.1\r\nhost: t\r\n\r\n", "404"),
    "a target in Latin-1": (b"GET /h\xe9 HTTP/1.1\r\nhost: t\r\n\r\n", "400 closed"),
    "an escaped target that is not UTF-8": (b"GET /%ff%fe HTTP/1.1\r\nhost: t\r\n\r\n", "404"),
    "half an escape": (b"GET /%z HTTP/1.1\r\nhost: t\r\n\r\n", "404"),
    "up and away": (b"GET /../../etc/passwd HTTP/1.1\r\nhost: t\r\n\r\n", "404"),
    "up and away, escaped": (b"GET /%2e%2e/%2e%2e/etc/passwd HTTP/1.1\r\nhost: t\r\n\r\n", "404"),
    "an absolute target": (b"GET http://t/health HTTP/1.1\r\nhost: t\r\n\r\n", "200"),
    "a target for a proxy": (b"CONNECT t:443 HTTP/1.1\r\nhost: t\r\n\r\n", "400 closed"),
    "a tunnel to a path": (b"CONNECT /embed HTTP/1.1\r\nhost: t\r\n\r\n", "400 closed"),
    "no host": (b"GET /health HTTP/1.1\r\n\r\n", "400 closed"),
    "two hosts": (GET + b"host: u\r\n\r\n", "400 closed"),
    "two hosts in HTTP/1.0": (b"GET /health HTTP/1.0\r\nhost: t\r\nhost: t\r\n\r\n", "400 closed"),
    "two keys": (GET + b"authorization: Bearer a\r\nauthorization: Bearer b\r\n\r\n", "400 closed"),
    "a target of the server itself": (b"OPTIONS * HTTP/1.1\r\nhost: t\r\n\r\n", "204"),
    "a target without its slash": (b"GET health HTTP/1.1\r\nhost: t\r\n\r\n", "400 closed"),
    "a method of its own": (b"BREW /health HTTP/1.1\r\nhost: t\r\n\r\n", "400 closed"),
    "line feeds alone": (b"GET /health HTTP/1.1\nhost: t\n\n", "400 closed"),
    "carriage returns alone": (b"GET /health HTTP/1.1\rhost: t\r\r", "400 closed"),
    "a folded header": (GET + b"x: a\r\n b\r\n\r\n", "400 closed"),
    "a space before the colon": (GET + b"x : a\r\n\r\n", "400 closed"),
    "a target of 1 MB": (b"GET /" + b"a" * 1_000_000 + b" HTTP/1.1\r\nhost: t\r\n\r\n", "431 closed"),
    "a header of 10 MB": (GET + b"x: " + b"a" * 10_000_000 + b"\r\n\r\n", "431 closed"),
    "a header of 100 KB": (GET + b"x: " + b"a" * 100_000 + b"\r\n\r\n", "431 closed"),
    "a header of 60 KB": (GET + b"x: " + b"a" * 60_000 + b"\r\n\r\n", "200"),
    "100 headers": (GET + b"x: a\r\n" * 99 + b"\r\n", "200"),
    "101 headers": (GET + b"x: a\r\n" * 100 + b"\r\n", "431 closed"),
    "20,000 headers": (GET + b"".join(b"x%d: a\r\n" % i for i in range(20_000)) + b"\r\n", "431 closed"),
    "a header of 1 MB behind a good request": (NORMAL + GET + b"x: " + b"a" * 1_000_000, "200 closed|200 431 closed"),
    "an offer of HTTP/2": (POST + UPGRADE + LENGTH + b"\r\n" + TEXT, "200"),
    "an offer of HTTP/2, chunked": (POST + UPGRADE + b"transfer-encoding: chunked\r\n\r\n" + BODY, "200"),
    "an offer of HTTP/2 and more": ((POST + UPGRADE + LENGTH + b"\r\n" + TEXT) * 2 + HEALTH, "200 200 200"),
    "an offer of a web socket": (GET + b"connection: upgrade\r\nupgrade: websocket\r\n\r\n", "200"),
    "600 offers": ((GET + b"connection: upgrade\r\nupgrade: websocket\r\n\r\n") * 600, " ".join(["200"] * 600)),
    "a length below zero": (with_length(b"-1"), "400 closed"),
    "a length with a sign": (with_length(b"+24"), "400 closed"),
    "a length in hexadecimal": (with_length(b"0x18"), "400 closed"),
    "a length beyond 64 bits": (with_length(DIGITS), "400 closed"),
    "a length of 4,301 digits": (with_length(b"0" * 4_300 + b"1"), "400 closed"),
    "two lengths": (POST + b"content-length: 3\r\n" + LENGTH + b"\r\n" + TEXT, "400 closed"),
    "the same length twice": (POST + LENGTH + LENGTH + b"\r\n" + TEXT, "400 closed"),
    "a list of lengths": (with_length(b"24, 24"), "400 closed"),
    "a length of 64 bits": (with_length(b"18446744073709551615"), "413 closed"),
    "a length too small": (with_length(b"10"), "400 400 closed"),
    "no length": (POST + b"\r\n", "400"),
    "a body where none belongs": (GET + b"content-length: 3\r\n\r\nabc" + NORMAL, "200 200"),
    "chunks": (CHUNKED + BODY, "200"),
    "chunks of a byte": (CHUNKED + b"".join(b"1\r\n%c\r\n" % one for one in TEXT) + b"0\r\n\r\n", "200"),
    "chunks with an extension and a trailer": (
        CHUNKED + b"18;a=b\r\n" + TEXT + b"\r\n0\r\nx-checksum: 1\r\n\r\n", "200"),
    "extensions of 20 KB": (CHUNKED + b"18;a=" + b"b" * 20_000 + b"\r\n" + TEXT + b"\r\n0\r\n\r\n", "431 closed"),
    "extensions that do not end": (CHUNKED + b"1;a=" + b"b" * 1_000_000, "431 closed"),
    "a trailer of 20 KB": (CHUNKED + BODY[:-2] + b"a:\r\n" * 5_000 + b"\r\n", "431 closed"),
    "a trailer that does not end": (CHUNKED + BODY[:-2] + b"a: " + b"b" * 1_000_000, "431 closed"),
    "a chunk's size in no digits": (CHUNKED + b"zz\r\n" + BODY, "400 closed"),
    "a chunk's size below zero": (CHUNKED + b"-1\r\n" + BODY, "400 closed"),
    "a chunk's size beyond 64 bits": (CHUNKED + b"fffffffffffffffff\r\n" + TEXT, "400 closed"),
    "a chunk longer than it says": (CHUNKED + b"3\r\n" + TEXT + b"\r\n0\r\n\r\n", "400 closed"),
    "a chunk without its end": (CHUNKED + b"18\r\n" + TEXT + b"0\r\n\r\n", "400 closed"),
    "a bad chunk behind good requests": (NORMAL * 2 + CHUNKED + b"zz\r\n", "200 200 400 closed"),
    "100-continue": (POST + b"expect: 100-continue\r\n" + LENGTH + b"\r\n" + TEXT, "200"),
    "small chunks, many": (CHUNKED + b"1\r\n \r\n" * 1_000, "431 closed"),
    "small chunks, many, that nobody reads": (
        CHUNKED.replace(b"/embed", b"/nowhere") + b"1\r\n \r\n" * 10_000, "404 closed|431 closed"),
    "small chunks, a few": (CHUNKED + b"1\r\n \r\n" * 256 + BODY, "200"),
    "a trailer of 100 lines": (CHUNKED + BODY[:-2] + b"a:\r\n" * 100 + b"\r\n", "200"),
    "a trailer of 101 lines": (CHUNKED + BODY[:-2] + b"a:\r\n" * 101 + b"\r\n", "200 closed|431 closed"),
    "a path of 1,000 escapes": (b"GET /" + b"%41" * 1_000 + b" HTTP/1.1\r\nhost: t\r\n\r\n", "404"),
    "a path of 1,001 escapes": (b"GET /" + b"%41" * 1_001 + b" HTTP/1.1\r\nhost: t\r\n\r\n", "414 closed"),
    "two keys of Azure's": (GET + b"api-key: a\r\napi-key: b\r\n\r\n", "400 closed"),
    "pipelining": (NORMAL + HEALTH + NORMAL + HEALTH, "200 200 200 200"),
    "a body that nobody reads": (
        POST.replace(b"/embed", b"/nowhere") + b"content-length: 200000\r\n\r\n" + b"x" * 200_000, "404"),
    "a body that nobody reads, too long": (
        POST.replace(b"/embed", b"/nowhere") + b"content-length: 8000000\r\n\r\n" + b"x" * 2_000_000, "404 closed"),
    "pipelining behind an error": (POST + b"content-length: 1\r\n\r\n{" + HEALTH, "400 200"),
    "100 pipelined": (HEALTH * 100, " ".join(["200"] * 100)),
    "garbage behind a good request": (NORMAL + b"\x00\xff garbage\r\n\r\n", "200 closed|200 400 closed"),
    "garbage behind three": (NORMAL + HEALTH * 2 + b"garbage\r\n\r\n", "200 200 200 closed|200 200 200 400 closed"),
    "more after the last": (LAST + HEALTH, "200 closed"),
    # Two readings of where a request ends: whoever takes the other one must not get HIDDEN answered.
    "length and chunks": (POST + b"content-length: 5\r\n" + CODING + b"\r\n" + BODY + HIDDEN, "400 closed"),
    "chunks and length": (POST + CODING + b"content-length: 5\r\n\r\n" + BODY + HIDDEN, "400 closed"),
    "chunks twice": (POST + CODING + CODING + b"\r\n" + BODY + HIDDEN, "400 closed"),
    "chunks, then as it is": (POST + b"transfer-encoding: chunked, identity\r\n\r\n" + BODY + HIDDEN, "400 closed"),
    "compressed chunks": (POST + b"transfer-encoding: gzip, chunked\r\n\r\n" + BODY + HIDDEN, "400 closed"),
    "a coding nobody knows": (POST + b"transfer-encoding: xchunked\r\n\r\n" + BODY + HIDDEN, "400 closed"),
    "a coding behind a vertical tab": (POST + b"transfer-encoding: \x0bchunked\r\n\r\n" + BODY + HIDDEN, "400 closed"),
    "a coding before a space": (POST + b"transfer-encoding : chunked\r\n\r\n" + BODY + HIDDEN, "400 closed"),
    "chunks in HTTP/1.0": (CHUNKED.replace(b"/1.1", b"/1.0") + BODY + HIDDEN, "200 closed"),
    "a length that hides a request": (
        POST + b"content-length: %d\r\n\r\n" % len(TEXT + HIDDEN) + TEXT + HIDDEN, "400"),
}  # fmt: skip
