"""The fuzzer of raw sockets for a while; `make fuzz` runs it as long as one likes."""

from __future__ import annotations

import pytest

from fuzz.sockets import Wrong, answers, run

pytestmark = pytest.mark.slow

GOOD = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n[]"


def test_nothing_wrong_in_twenty_seconds() -> None:
    print(run(20, seed=1))  # noqa: T201


@pytest.mark.parametrize(
    "data",
    [
        b"HTTP/1.1 2000 OK\r\n\r\n",
        b"\r\n" + GOOD,
        GOOD + b"[]",
        GOOD.replace(b"content-length: 2", b"x: y"),
        GOOD.replace(b"content-length: 2", b"content-length: 2\r\nno colon"),
        GOOD.replace(b"content-length: 2", b"content-length: 2\r\ncontent-length: 2"),
        b"garbage",
    ],
)
def test_an_answer_that_is_not_well_formed_would_be_seen(data: bytes) -> None:
    with pytest.raises(Wrong):
        answers(data)


def test_what_is_torn_is_no_answer() -> None:
    for size in range(len(GOOD)):
        assert len(answers(GOOD + GOOD[:size])) == 1
