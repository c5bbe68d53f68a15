"""Log lines on standard error, as text or as JSON. No line holds a user's text, a path or a key."""

from __future__ import annotations

import logging
import os
import re
import select
import sys
import time
import traceback
from collections.abc import Iterator, Mapping
from typing import Literal, TextIO

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


class NonBlockingHandler(logging.StreamHandler[TextIO]):
    """Handler that drops and counts lines which nobody takes: a pipe that is not read must not stop the service.

    Args:
        stream: with a descriptor, as standard error has one.
    """

    def __init__(self, stream: TextIO) -> None:
        super().__init__(stream)
        self._dropped = 0
        self._poll = select.poll()
        self._poll.register(stream.fileno(), select.POLLOUT)

    def emit(self, record: logging.LogRecord) -> None:
        """Write a line, or count it as dropped. A pipe that can be written to takes PIPE_BUF bytes at once."""
        try:
            line = self.format(record)
            if self._dropped:
                line = f"{self._dropped} lines of the log were dropped, because nobody reads it\n{line}"
            data = f"{line}\n".encode("utf-8", "backslashreplace")
            for start in range(0, len(data), select.PIPE_BUF):
                if not self._poll.poll(0):
                    self._dropped += 1
                    return
                os.write(self.stream.fileno(), data[start : start + select.PIPE_BUF])
            self._dropped = 0
        except Exception:  # a full disk, for example, which logging reports as it does for its own handlers
            self.handleError(record)


def open_missing_streams() -> None:
    """Open standard input, output and error where the process was started without one of them.

    Else the first file or socket takes its number, and what is written to standard error goes there.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            opened = os.open(os.devnull, os.O_RDWR)
            if opened != number:
                os.dup2(opened, number)
                os.close(opened)
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(number, "w" if number else "r", closefd=False))


def configure(log_format: Literal["text", "json"]) -> None:
    """Send gramvec's lines from INFO on, and other libraries' from WARNING on, to standard error."""
    handler = _handler()
    handler.setFormatter(JsonFormatter() if log_format == "json" else TextFormatter())
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
    logging.getLogger("gramvec").setLevel(logging.INFO)


def _handler() -> logging.Handler:
    try:
        return NonBlockingHandler(sys.stderr)
    except (OSError, ValueError):  # no descriptor, as in a notebook
        return logging.StreamHandler(sys.stderr)


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
