"""The exceptions that gramvec raises on purpose; anything else is a bug.

GramvecError
 +-- InputError     a text or an argument is not usable as it is
 +-- BundleError    a model's files are missing, damaged or of another version
 +-- DeviceError    the requested device or onnxruntime itself cannot be had
 +-- Overloaded     the service has more work waiting than it accepts
 +-- BackendError   the runtime failed while computing
 +-- ServiceError   a service over HTTP cannot be had, or will not answer
"""

from __future__ import annotations

from typing import Literal

MOST_QUOTED, MOST_OF_ERROR = 100, 400

OverloadReason = Literal["memory", "queue_texts", "queue_characters", "deadline", "shutting_down"]


class GramvecError(Exception):
    """Base of all the exceptions that gramvec raises on purpose."""


class InputError(GramvecError):
    """A text or an argument is not usable; the message says what to do.

    `field` names the argument and `index` the text in a sequence, where there is one.
    """

    def __init__(self, message: str, *, field: str | None = None, index: int | None = None) -> None:
        super().__init__(message)
        self.field = field
        self.index = index


class BundleError(GramvecError):
    """A bundle's file is missing, damaged, or of a version that this gramvec does not read."""


class DeviceError(GramvecError):
    """The requested device, or onnxruntime itself, cannot be had."""


class Overloaded(GramvecError):
    """More work is waiting than is accepted, or for longer; try again after `retry_after` seconds.

    `reason` names the limit: "queue_texts", "queue_characters", "deadline" or "shutting_down".
    """

    def __init__(self, message: str, *, retry_after: float, reason: OverloadReason) -> None:
        super().__init__(message)
        self.retry_after = retry_after
        self.reason: OverloadReason = reason


class BackendError(GramvecError):
    """The runtime failed while computing these texts."""


class ServiceError(GramvecError):
    """A service that gramvec.client asks cannot be had, or will not answer; the message has its own sentence.

    `status` is the answer's, None where there was none; `retry_after` its seconds, where it names some.
    """

    def __init__(self, message: str, *, status: int | None = None, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.retry_after = retry_after


def quoted(value: object) -> str:
    """What a stranger wrote, for a sentence: on one line, in printable ASCII, and short; of a container its type.

    Of an error of a library, which may quote a stranger at length, its message.
    """
    most = MOST_OF_ERROR if isinstance(value, Exception) else MOST_QUOTED
    if not isinstance(value, str | int | float | Exception):
        return type(value).__name__
    text = str(value)[: most + 1].encode("unicode-escape").decode("ascii")
    return text if len(text) <= most else text[:most] + "..."
