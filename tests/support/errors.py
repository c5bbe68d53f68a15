"""Errors by their kind and the names in them: whole sentences stand in docs/errors.md and docs/api.md alone.

A name is what a better sentence keeps: an option, a file, a column, a number with its noun ("line 2"), or the word that
tells two causes apart. It stands in the message as it is, not as a part of a longer word or number.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest


def assert_names(message: str, *names: str) -> None:
    """Assert that each of these names stands in a message."""
    absent = [name for name in names if not re.search(_whole(name), message)]
    assert not absent, f"{absent} not in: {message}"


def _whole(name: str) -> str:
    begin = r"(?<!\w)" if name[:1].isalnum() else ""
    return begin + re.escape(name) + (r"(?!\w)" if name[-1:].isalnum() else "")


@contextmanager
def refused(
    kind: type[BaseException], *names: str, field: object = ..., index: object = ...
) -> Iterator[pytest.ExceptionInfo[Any]]:
    """Assert that the block raises an error of a kind whose message has these names, with this field and index."""
    with pytest.raises(kind) as caught:
        yield caught
    assert_names(str(caught.value), *names)
    for name, wanted in (("field", field), ("index", index)):
        assert wanted is ... or getattr(caught.value, name) == wanted, f"{name}: {getattr(caught.value, name)}"


def assert_failed(done: Any, *names: str, code: int = 1) -> None:
    """Assert that a command ended with this code, and printed nothing but an error that has these names.

    `done` is what subprocess.run or click's runner returns.
    """
    status = done.returncode if hasattr(done, "returncode") else done.exit_code
    stdout, stderr = (text.decode() if isinstance(text, bytes) else text for text in (done.stdout, done.stderr))
    assert status == code, (status, stderr)
    assert stdout == ""
    assert "Error: " in stderr and "Traceback" not in stderr, stderr
    assert_names(stderr, *names)
