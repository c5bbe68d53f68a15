"""Exceptions that gramvec raises on purpose; any other exception is a bug.

GramvecError
 +-- InputError     a text or an argument is not usable as it is
 +-- BundleError    a model's files are missing, damaged or of another version
 +-- DeviceError    the requested device or onnxruntime is unavailable
 +-- Overloaded     the service has more work waiting than it accepts
 +-- BackendError   the runtime failed while computing
 +-- ServiceError   a service over HTTP is unreachable or refuses the request
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, Literal

MAX_QUOTED, MAX_OF_ERROR = 100, 400

OverloadReason = Literal["memory", "queue_texts", "queue_characters", "deadline", "shutting_down"]


class GramvecError(Exception):
    """Base of all the exceptions that gramvec raises on purpose."""


class InputError(GramvecError):
    """A text or an argument is not usable; the message gives a remedy.

    `field` names the argument and `index` the position of the text in its sequence, if there is one.
    """

    def __init__(self, message: str, *, field: str | None = None, index: int | None = None) -> None:
        super().__init__(message)
        self.field = field
        self.index = index


class BundleError(GramvecError):
    """A bundle's file is missing, damaged, or of a version that this gramvec does not read."""


class DeviceError(GramvecError):
    """The requested device or onnxruntime is unavailable."""


class Overloaded(GramvecError):
    """The queue is full, or a request would miss its deadline; retry after `retry_after` seconds.

    `reason` names the limit: "memory", "queue_texts", "queue_characters", "deadline" or "shutting_down".
    """

    def __init__(self, message: str, *, retry_after: float, reason: OverloadReason) -> None:
        super().__init__(message)
        self.retry_after = retry_after
        self.reason: OverloadReason = reason


class BackendError(GramvecError):
    """The runtime failed while computing these texts."""


class ServiceError(GramvecError):
    """A service that gramvec.client calls is unreachable or refuses the request.

    The message contains the service's own sentence. `status` is the HTTP status, or None without a response;
    `retry_after` is the value of its Retry-After header in seconds, or None.
    """

    def __init__(self, message: str, *, status: int | None = None, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.retry_after = retry_after


def import_extra(module: str, extra: str | None, purpose: str) -> Any:
    """Return an imported module of a library that an extra of gramvec installs; None for one that has no extra.

    Raises:
        InputError: it is not installed, or does not load; the message names what needs it, and how to install it.
    """
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        install = f"'gramvec[{extra}]'" if extra else error.name
        raise InputError(f"{purpose} needs {error.name}; install it with: pip install {install}") from error
    except ImportError as error:  # installed, and its libraries do not load
        raise InputError(f"{purpose} needs {module}, which does not load: {quote(error)}") from error


def printable(text: str, kept: str = "") -> str:
    """Return text with every unprintable character but those of `kept` escaped, so that it cannot move a cursor."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() or char in kept else repr(char)[1:-1] for char in text)


def quote(value: object) -> str:
    """Return untrusted text for a message: one line of at most 100 characters in printable ASCII.

    An exception gives its message, at most 400 characters; any other object gives the name of its type.
    """
    limit = MAX_OF_ERROR if isinstance(value, Exception) else MAX_QUOTED
    if not isinstance(value, str | int | float | Exception):
        return type(value).__name__
    text = str(value)[: limit + 1].encode("unicode-escape").decode("ascii")
    return text if len(text) <= limit else text[:limit] + "..."
