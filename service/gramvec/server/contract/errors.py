"""What went wrong -> status code and body, as the HTTP contract's table has it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Any, Literal

from pydantic import BaseModel, ValidationError
from starlette.exceptions import HTTPException

from gramvec.errors import BackendError, GramvecError, InputError, Overloaded

ErrorType = Literal[
    "validation", "empty", "too_large", "overloaded", "unhealthy", "backend", "unauthorized", "not_found"
]


# pydantic's error types -> our words. The parts in braces are the path, the JSON type given, and pydantic's context.
NOT_AN_OBJECT = "{path} must be a JSON object, not {given}"
NO_KNOWN_SHAPE = "{path} must be an object with source_sentence and sentences, with pairs, or with left and right"
SENTENCES = {
    "missing": "{path} is missing",
    "unknown_field": "{path} is not a known field; this route takes {known}",
    "nearly_known": "{path} is not a known field; did you mean {nearest}? This route takes {known}",
    "extra_forbidden": "{path} is not a known field",
    "string_type": "{path} must be a string, not {given}",
    "string_unicode": "{path} has a lone surrogate, which is no character; remove it or send the whole pair",
    "text_or_list": "{path} must be a string or a list of strings, not {given}",
    "list_type": "{path} must be a list, not {given}",
    "too_short": "{path} must hold two texts, not {actual_length}",
    "too_long": "{path} must hold two texts, not {actual_length}",
    "bool_type": "{path} must be true or false, not {given}",
    "int_type": "{path} must be a whole number, not {given}",
    "float_type": "{path} must be a number, not {given}",
    "greater_than_equal": "{path} must be at least {ge}, not {value}",
    "less_than_equal": "{path} must be at most {le}, not {value}",
    "literal_error": "{path} must be {expected}",
    "none_required": "{path} must be null: the models have no prompts",
    "union_tag_not_found": NO_KNOWN_SHAPE,
    "union_tag_invalid": NO_KNOWN_SHAPE,
    "model_type": NOT_AN_OBJECT,
    "model_attributes_type": NOT_AN_OBJECT,
    "dict_type": NOT_AN_OBJECT,
}
# "input" and "inputs" share 0.91, "more" and "model" 0.67.
NEAR = 0.75
# So much of what a client has sent is repeated to it.
SHOWN_CHARACTERS = 200


class ErrorBody(BaseModel):
    """The body of every error."""

    error: str
    error_type: ErrorType


class HttpError(Exception):
    """An answer other than 200, raised anywhere between the socket and the model."""

    def __init__(
        self,
        status: int,
        error_type: ErrorType,
        message: str,
        headers: Mapping[str, str] | None = None,
        *,
        param: str | None = None,
        code: str | None = None,
    ) -> None:
        """`param` is the field at fault, `code` OpenAI's word for the case; both are told below /v1 only."""
        super().__init__(message)
        self.status = status
        self.error_type: ErrorType = error_type
        self.headers = dict(headers or {})
        self.param = param
        self.code = code


def unhealthy(message: str, retry_after: float = 1.0) -> HttpError:
    """503: no requests are taken, for the reason that the message gives; `retry_after` is in seconds."""
    return HttpError(503, "unhealthy", message, {"Retry-After": _whole_seconds(retry_after)})


def reason_of(error: HttpError | GramvecError, *, stopping: bool) -> str | None:
    """Why a request was refused, in a word for the metrics and the log; None where it failed instead.

    "queue_texts", "queue_characters", "memory", "deadline", "shutting_down", "not_ready", "timeout", "unauthorized",
    "too_large", "not_found" (a route, a method or a model) or "validation".
    """
    if isinstance(error, Overloaded):
        return error.reason
    if isinstance(error, GramvecError):
        error = from_gramvec(error)
    if error.status == 408:
        return "timeout"
    if error.error_type == "unhealthy":
        return "shutting_down" if stopping else "not_ready"
    if error.error_type == "backend":
        return None
    return "validation" if error.error_type == "empty" else error.error_type


def too_large(sentence: str) -> HttpError:
    """413 for more of something than one request may have, which the sentence says."""
    return HttpError(413, "too_large", sentence)


def too_large_body(limit: int) -> HttpError:
    """413: the body is over `limit` bytes; the connection is closed after the answer."""
    return HttpError(
        413,
        "too_large",
        f"the body is larger than the limit of {limit} bytes; send fewer texts in a request",
        {"Connection": "close"},
    )


def reload_under_way() -> HttpError:
    """409: the models are being reloaded already."""
    return HttpError(409, "unhealthy", "another reload is under way; ask again when it is done", {"Retry-After": "1"})


def not_reloaded(reason: str) -> HttpError:
    """422: what the folders hold cannot be served."""
    return HttpError(422, "validation", f"not reloaded, the models go on as they are: {reason}")


def reload_given_up(seconds: float) -> str:
    """Why a reload was ended: whatever it reads has not come in this time."""
    return f"it took more than {seconds:g} s and was given up; see that the models' files can be read"


def from_gramvec(error: GramvecError) -> HttpError:
    """The answer to an exception that gramvec raised on purpose."""
    if isinstance(error, InputError):
        return HttpError(422, "validation", str(error), param=error.field)
    if isinstance(error, Overloaded):
        return HttpError(429, "overloaded", str(error), {"Retry-After": _whole_seconds(error.retry_after)})
    if isinstance(error, BackendError):
        return HttpError(424, "backend", str(error))
    return unhealthy(str(error))


def from_starlette(error: HTTPException, method: str, path: str) -> HttpError:
    """The answer to what the router itself refuses: an unknown route or a wrong method."""
    headers, path = dict(error.headers or {}), shortened(path)
    if error.status_code == 405:
        allowed = headers.get("Allow", "another method")
        return HttpError(405, "not_found", f"{path} does not take {method}; use {allowed}", headers)
    if error.status_code == 404:
        message = f"there is no route {path}; /docs lists those that exist"
        return HttpError(404, "not_found", message, headers, code="unknown_url")
    return HttpError(error.status_code, "validation", str(error.detail), headers)


def shortened(text: str) -> str:
    """What a client has sent, as a sentence repeats it."""
    return text if len(text) <= SHOWN_CHARACTERS else f"{text[:SHOWN_CHARACTERS]}..."


def from_validation(error: ValidationError, known_fields: Sequence[str], *, whole: bool = True) -> HttpError | None:
    """422 for the first thing wrong with a body, named by its path, as in `inputs[3]`.

    Of a body that was cut off (not `whole`) nothing is said to be missing; None where nothing else is wrong.
    """
    found = error.errors(include_url=False)
    first = next((one for one in found if whole or one["type"] not in ("missing", "union_tag_not_found")), None)
    if first is None:
        return None
    # Of {"input": ...} it is better said that "input" is wrong than that "inputs" is missing.
    if first["type"] == "missing":
        first = next((one for one in found if _nearest(one, known_fields) == path_of(first["loc"])), first)
    param = path_of(first["loc"]) or None
    path = param or "the body"
    kind = first["type"]
    if kind == "too_short" and first.get("ctx", {}).get("min_length") == 1:
        return HttpError(422, "empty", f"{path} is empty; give at least one", param=param)
    return HttpError(422, "validation", _sentence(kind, path, first, known_fields), param=param)


def _nearest(detail: Mapping[str, Any], known_fields: Sequence[str]) -> str | None:
    """The field that an unknown one is nearly the name of."""
    path = path_of(detail["loc"])
    if detail["type"] != "extra_forbidden" or "." in path:
        return None
    return next(iter(get_close_matches(path, known_fields, 1, NEAR)), None)


def path_of(location: Sequence[int | str]) -> str:
    """`("inputs", "@many", 3)` -> `inputs[3]`; parts that start with "@" name a branch of a union."""
    path = ""
    for part in location:
        if isinstance(part, int):
            path += f"[{part}]"
        elif not part.startswith("@"):
            path += f".{part[:64]}" if path else part[:64]
    return path


def _sentence(kind: str, path: str, detail: Mapping[str, Any], known_fields: Sequence[str]) -> str:
    if kind == "list_type" and "@many" in detail["loc"]:
        kind = "text_or_list"
    elif kind == "extra_forbidden" and "." not in path:
        kind = "nearly_known" if _nearest(detail, known_fields) else "unknown_field"
    return SENTENCES.get(kind, "{path}: {msg}").format(
        path=path,
        given=_json_type(detail["input"]),
        value=detail["input"],
        known=", ".join(known_fields),
        nearest=_nearest(detail, known_fields),
        msg=detail["msg"],
        **detail.get("ctx", {}),
    )


def _json_type(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "a boolean"
        case int() | float():
            return "a number"
        case str():
            return "a string"
        case list():
            return "a list"
        case _:
            return "an object"


def _whole_seconds(seconds: float) -> str:
    return str(max(1, math.ceil(seconds)))
