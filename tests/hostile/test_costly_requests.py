"""Requests that cost more than they look like. While each is answered, /health is, and memory stays bounded."""

from __future__ import annotations

import json
import random
import socket
import threading
import time

import pytest

from hostile.bounds import MB, bounded
from support.http import post_bytes
from support.wire import (
    LAST,
    Served,
    Wire,
    answers,
    ask,
    closing,
    is_normal,
    once_of_three,
    received,
    send_as_far_as_taken,
)

pytestmark = pytest.mark.slow

MARKS = "\u0301" * 32_000 + "\u0323" * 32_000


@once_of_three
@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/embed", {"inputs": MARKS}),
        ("/embed", {"inputs": ["a" + MARKS[-2_000 - n : -n] + MARKS[:2_000] for n in range(1, 100)]}),
        ("/similarity", {"inputs": {"left": [MARKS], "right": ["\u0f73" * 60_000]}}),
        ("/v1/embeddings", {"input": [MARKS]}),
        ("/embed_sparse", {"inputs": [MARKS] * 10}),
        ("/rerank", {"query": "a" + MARKS, "texts": [MARKS] * 5}),
        ("/match", {"left": [MARKS, "a"], "right": [MARKS] * 3}),
        ("/explain", {"inputs": {"source_sentence": MARKS[-2_000:] + MARKS[:2_000], "target_sentence": MARKS[:4_000]}}),
    ],
    ids=["one", "many", "tibetan", "openai", "sparse", "rerank", "match", "explain"],
)
def test_texts_of_combining_marks(server: Served, path: str, body: object) -> None:
    sent = closing(post_bytes(json.dumps(body, ensure_ascii=False).encode(), path=path))
    with bounded(server, 250 * MB if path == "/match" else 64 * MB):
        (answer,) = ask(server.at, sent)
    assert answer.status == 200


@once_of_three
@pytest.mark.parametrize("letters", ["ab", "abcdefghijkl"])
def test_the_largest_match_of_texts_that_share_all(server: Served, letters: str) -> None:
    pytest.importorskip("sparse_dot_topn", reason="SciPy is not installed: pip install '.[match]'")
    made = random.Random(letters)
    texts = ["".join(made.choices(letters, k=245)) for _ in range(2_000)]
    body = {"left": texts[:1_000], "right": texts[1_000:], "top": 100, "threshold": 0}
    sent = closing(post_bytes(json.dumps(body).encode(), path="/match"))
    ask(server.at, sent)  # SciPy is read the first time
    with bounded(server, 250 * MB):
        (answer,) = ask(server.at, sent)
    # The ten nearest of each left text by two weightings, and the three nearest of each right one.
    assert 10_000 <= len(json.loads(answer.body)["matches"]) <= 26_000


HEAD = b"POST /embed HTTP/1.1\r\nhost: t\r\ncontent-type: application/json\r\n"
CHUNKED = HEAD + b"transfer-encoding: chunked\r\n\r\n"


def flood(server: Served, begin: bytes, piece: bytes, size: int) -> list[Wire]:
    """What comes back to so many bytes, sent as far as they are taken."""
    with server.at.connect() as connection:
        send_as_far_as_taken(connection, begin)
        for _ in range(size // len(piece)):
            send_as_far_as_taken(connection, piece)
        return answers(received(connection))


@once_of_three
@pytest.mark.parametrize(
    ("begin", "piece"),
    [
        (CHUNKED + b"0\r\n", b"a:\r\n" * 16_384),
        (CHUNKED + b"1;a=", b"x" * 65_536),
        (CHUNKED.replace(b"POST /embed", b"POST /nowhere") + b"0\r\n", b"a:\r\n" * 16_384),
        (HEAD, b"a:\r\n" * 16_384),
        (HEAD + b"x: ", b"x" * 65_536),
    ],
    ids=["trailer", "extension", "trailer behind an answer", "lines", "a line"],
)
def test_what_does_not_end(server: Served, begin: bytes, piece: bytes) -> None:
    with bounded(server, 16 * MB):
        found = flood(server, begin, piece, 60 * MB)
    assert [answer.status for answer in found] in ([431], [404])


@once_of_three
@pytest.mark.parametrize("line", [b"a:\r\n" * 90, b"x: " + b"y" * 60_000], ids=["lines", "a line"])
def test_a_thousand_heads_that_do_not_end(server: Served, line: bytes) -> None:
    with bounded(server, 64 * MB):
        connections = [server.at.connect() for _ in range(1_000)]
        for connection in connections:
            send_as_far_as_taken(connection, b"GET / HTTP/1.1\r\nhost: t\r\n" + line)
        time.sleep(0.5)
        for connection in connections:
            connection.close()


@once_of_three
def test_heads_that_do_not_end_leave_room_for_short_ones(server: Served) -> None:
    """Those that hold much are sent away once all of them hold too much; who holds little is never counted."""
    connections = [server.at.connect() for _ in range(400)]
    try:
        for connection in connections:
            send_as_far_as_taken(connection, b"GET / HTTP/1.1\r\nhost: t\r\nx: " + b"y" * 60_000)
        late = connections[-1]
        (refused,) = answers(received(late))
        assert (refused.status, refused.error_type) == (503, "unhealthy")
        assert int(refused.headers["retry-after"]) >= 1
        with server.at.connect() as slow:
            slow.sendall(LAST[:60])
            time.sleep(0.2)
            slow.sendall(LAST[60:])
            assert is_normal(answers(received(slow))[0])
    finally:
        for connection in connections:
            connection.close()


@once_of_three
def test_chunks_of_a_byte(server: Served) -> None:
    body = b'{"inputs": "' + b"x" * 500_000 + b'", "truncate": true}'
    sent = closing(CHUNKED.replace(b"host: t", b"host: test")) + b"".join(b"1\r\n%c\r\n" % one for one in body)
    with bounded(server, 16 * MB):
        (answer,) = ask(server.at, sent + b"0\r\n\r\n")
    assert answer.status == 431 and b"send larger ones" in answer.body


@once_of_three
def test_requests_sent_ahead(server: Served) -> None:
    """Ten thousand in one piece take a turn each, and no more memory than their bytes."""
    short = b"GET /health HTTP/1.1\r\nhost:\r\n\r\n"
    with bounded(server, 16 * MB), server.at.connect() as connection:
        reader = threading.Thread(target=connection.sendall, args=(short * 10_000 + LAST,))
        reader.start()
        data = received(connection)
        reader.join()
    assert data.count(b"HTTP/1.1 200 OK\r\n") == 10_001


def best_of_all(texts: int) -> bytes:
    left, right = [f"left {number}" for number in range(texts)], [f"right {number}" for number in range(texts)]
    body = json.dumps({"inputs": {"left": left, "right": right}, "top_k": texts}).encode()
    return closing(post_bytes(body, path="/similarity"))


@once_of_three
def test_the_best_of_a_million_scores_take_what_they_reserve(server: Served) -> None:
    sent = best_of_all(1_024)
    ask(server.at, sent)  # what the C library keeps of it, it keeps the first time
    with bounded(server, 96 * MB):
        (answer,) = ask(server.at, sent)
    best = json.loads(answer.body)
    assert (len(best), {len(row) for row in best}) == (1_024, {1_024})


@once_of_three
def test_a_million_sparse_entries_take_what_they_reserve(server: Served) -> None:
    numbers = random.Random(0)
    texts = ["".join(map(chr, numbers.choices(range(0x4E00, 0x9000), k=50_000))) for _ in range(10)]
    sent = closing(post_bytes(json.dumps({"inputs": texts}).encode(), path="/embed_sparse"))
    ask(server.at, sent)
    with bounded(server, 92 * MB):
        (answer,) = ask(server.at, sent)
    assert len(answer.body) > 30 * MB


@once_of_three
def test_six_at_once_are_refused_before_they_take_more_than_all_may(server: Served) -> None:
    sent = best_of_all(1_024)
    found: list[Wire] = []
    with bounded(server, 256 * MB):
        threads = [threading.Thread(target=lambda: found.extend(ask(server.at, sent))) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    statuses = sorted(answer.status for answer in found)
    assert statuses[0] == 200
    assert set(statuses) <= {200, 429}


def test_a_body_that_half_closes_its_connection_leaves_the_service_as_it_was(server: Served) -> None:
    """uvicorn takes the end of what a client sends for the end of the connection: it answers nothing."""
    body = json.dumps({"inputs": ["some text of a length " * 20] * 2_000}).encode()
    with server.at.connect() as connection:
        connection.sendall(post_bytes(body))
        connection.shutdown(socket.SHUT_WR)
        received(connection)
    (answer,) = ask(server.at, closing(post_bytes(b'{"inputs": "a"}')))
    assert answer.status == 200
