"""Each row of the tables of requests: byte streams, bodies that are full, bodies at the limits of JSON."""

from __future__ import annotations

import json

import httpx
import pytest

from hostile.bodies import AT_LIMITS, GOOD, LARGE, LIMIT
from hostile.bounds import bounded, check_answer, is_ours
from hostile.streams import STREAMS
from support.http import post_bytes
from support.wire import LAST, Served, Watched, ask, closing, once_of_three

# A body is held in the pieces that it came in, whole, and without what is in strings.
BODY_ROOM = 4 * LIMIT


@pytest.mark.core
@pytest.mark.slow
@pytest.mark.usefixtures("nothing_is_left")
@pytest.mark.parametrize("case", STREAMS)
def test_bytes_on_the_wire(held: Watched, case: str) -> None:
    sent, expected = STREAMS[case]
    closes = expected.endswith("closed")
    if not closes:
        # What follows is answered as what it is: both sides agree on where the request ended.
        expected += " 200 closed"
        sent += LAST.replace(b"host: test", b"host: test\r\nx-request-id: in-step")
    found = ask(held.server, sent)
    assert " ".join([*(str(answer.status) for answer in found), "closed"]) in expected.split("|")
    ids = [answer.headers.get("x-request-id") for answer in found]
    assert "smuggled" not in ids
    assert (ids[-1] == "in-step") == (not closes)
    for answer in found:
        assert is_ours(answer)


@pytest.mark.slow
@once_of_three
@pytest.mark.parametrize("case", LARGE)
def test_a_body_that_is_full_of_what_is_wrong(server: Served, case: str) -> None:
    path, body, status, words = LARGE[case]
    sent = closing(post_bytes(body(), path=path))
    with bounded(server, BODY_ROOM):
        (answer,) = ask(server.at, sent)
    assert answer.status == status
    error = json.loads(answer.body)["error"]
    assert words in (error if isinstance(error, str) else error["message"])


@pytest.mark.parametrize("path", GOOD)
@pytest.mark.parametrize("case", AT_LIMITS)
def test_json_at_its_limits(client: httpx.Client, path: str, case: str) -> None:
    check_answer(path, client.post(path, content=AT_LIMITS[case], headers={"content-type": "application/json"}))
