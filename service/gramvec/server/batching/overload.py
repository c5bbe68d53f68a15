"""Why a request is not let into the line, or has to leave it: each as an error that says when to come again."""

from __future__ import annotations

from gramvec.errors import Overloaded, OverloadReason


def shutting_down() -> Overloaded:
    """Nothing is taken any more."""
    return Overloaded("the model is shutting down; send the request again", retry_after=1.0, reason="shutting_down")


def no_room(
    what: str, waiting: int, more: int, limit: int, *, reason: OverloadReason, retry_after: float
) -> Overloaded:
    """So many texts or characters wait, and so many more would be over the limit."""
    return Overloaded(
        f"{waiting} {what} are waiting and {more} more would exceed the queue's {limit}; send the request again later",
        retry_after=retry_after,
        reason=reason,
    )


def would_be_late(wait: float, deadline: float, *, retry_after: float) -> Overloaded:
    """The model would begin in `wait` seconds, and should in `deadline`."""
    return Overloaded(
        f"the model would begin with this request in about {wait:.1f} s, after its deadline of {deadline:g} s;"
        " send the request again later",
        retry_after=retry_after,
        reason="deadline",
    )


def is_late(waited: float, deadline: float, *, retry_after: float) -> Overloaded:
    """The model has not begun within the deadline, in seconds."""
    return Overloaded(
        f"the request waited {waited:.1f} s, longer than its deadline of {deadline:g} s; send it again later",
        retry_after=retry_after,
        reason="deadline",
    )
