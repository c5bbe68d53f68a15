"""Log lines on standard error, as text or as JSON. No line holds a user's text, a path or a key."""

from __future__ import annotations

import logging
import re
import sys
import time
import traceback
from collections.abc import Iterator, Mapping
from typing import Literal

import orjson

WORDS = re.compile(r"[\w .,'-]*")
# Where a record keeps the fields of a request.
FIELDS = "gramvec_fields"
# `extra` of a line that is logged when there are no users yet: its exception is shown with its message.
NO_USER_TEXT: Mapping[str, object] = {"gramvec_no_user_text": True}


class TextFormatter(logging.Formatter):
    """Time (UTC), level, message, the fields as name=value; one line, but for a traceback below it."""

    converter = staticmethod(time.gmtime)

    def format(self, record: logging.LogRecord) -> str:
        """Return the line without its end."""
        line = f"{self.formatTime(record, '%Y-%m-%dT%H:%M:%S')}Z {record.levelname} {_message(record)}"
        for name, value in getattr(record, FIELDS, {}).items():
            line += f" {name}={value}"
        return "\n".join([line, *_traceback(record)])


class JsonFormatter(logging.Formatter):
    """Formatter of a JSON object a line: time (UTC, RFC 3339), level, logger, message, the fields, any traceback."""

    converter = staticmethod(time.gmtime)

    def format(self, record: logging.LogRecord) -> str:
        """Return the line without its end."""
        line = {
            "time": f"{self.formatTime(record, '%Y-%m-%dT%H:%M:%S')}.{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": _message(record),
            **getattr(record, FIELDS, {}),
        }
        if lines := list(_traceback(record)):
            line["exception"] = "\n".join(lines)
        return orjson.dumps(line, default=str).decode()


def configure(log_format: Literal["text", "json"]) -> None:
    """Send gramvec's lines from INFO on, and everybody else's from WARNING on, to standard error."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter() if log_format == "json" else TextFormatter())
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
    logging.getLogger("gramvec").setLevel(logging.INFO)


def _traceback(record: logging.LogRecord) -> Iterator[str]:
    """Yield the traceback lines of each exception of the chain, and its type.

    An exception may quote the value that it failed on, so its message is shown only if it cannot hold a user's text.
    """
    error = record.exc_info[1] if record.exc_info else None
    shown = NO_USER_TEXT.keys() <= record.__dict__.keys()
    chain: list[BaseException] = []
    while error is not None and error not in chain:
        chain.append(error)
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    for cause in reversed(chain):
        yield "Traceback (most recent call last):"
        yield from (line.rstrip("\n") for line in traceback.format_tb(cause.__traceback__))
        yield f"{type(cause).__module__}.{type(cause).__qualname__}" + (
            f": {_in_one_line(str(cause))}" if shown else ""
        )


def _message(record: logging.LogRecord) -> str:
    message = record.getMessage()
    if record.name == "asyncio":
        # What follows are tasks, callbacks and their arguments, each with what it holds.
        message = WORDS.match(message)[0].rstrip()  # type: ignore[index]
    return _in_one_line(message)


def _in_one_line(message: str) -> str:
    return message if message.isprintable() else "".join(c if c.isprintable() else ascii(c)[1:-1] for c in message)
