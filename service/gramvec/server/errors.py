"""Errors of the HTTP contract: status codes, sentences, and the two shapes of their bodies."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from itertools import islice
from typing import Any, Literal

from pydantic import BaseModel, ValidationError

from gramvec.errors import BackendError, GramvecError, InputError, Overloaded

ErrorType = Literal[
    "validation", "empty", "too_large", "overloaded", "unhealthy", "backend", "unauthorized", "not_found"
]
OpenAIType = Literal["invalid_request_error", "rate_limit_error", "server_error"]

# The type of an error below /v1, and its code where the error itself has none.
OPENAI_NAMES: dict[ErrorType, tuple[OpenAIType, str | None]] = {
    "validation": ("invalid_request_error", None),
    "empty": ("invalid_request_error", "empty_array"),
    "too_large": ("invalid_request_error", "too_large"),
    "unauthorized": ("invalid_request_error", "invalid_api_key"),
    "not_found": ("invalid_request_error", "not_found"),
    "overloaded": ("rate_limit_error", "rate_limit_exceeded"),
    "unhealthy": ("server_error", "service_unavailable"),
    "backend": ("server_error", "backend_error"),
}
# Messages for pydantic's error types, filled in with the path, the JSON type given, and pydantic's context.
NOT_AN_OBJECT = "{path}: must be a JSON object, got {given}"
NO_KNOWN_SHAPE = "{path}: must be an object with source_sentence and sentences, with pairs, or with left and right"
SENTENCES = {
    "missing": "{path} is missing",
    "unknown_field": "{path} is not a known field; this route takes {known}",
    "nearly_known": "{path} is not a known field; did you mean {nearest}? This route takes {known}",
    "extra_forbidden": "{path} is not a known field",
    "string_type": "{path}: must be a string, got {given}",
    "string_unicode": "{path} has a lone surrogate, which is no character; remove it or send the whole pair",
    "text_or_list": "{path}: must be a string or a list of strings, got {given}",
    "list_type": "{path}: must be a list, got {given}",
    "too_short": "{path}: must hold two texts, got {actual_length}",
    "too_long": "{path}: must hold two texts, got {actual_length}",
    "one_text": "{path}: must hold one text, got {actual_length}; pairs of texts have no labels here",
    "bool_type": "{path}: must be true or false, got {given}",
    "int_type": "{path}: must be a whole number, got {given}",
    "float_type": "{path}: must be a number, got {given}",
    "greater_than_equal": "{path}: must be at least {ge}, got {value}",
    "less_than_equal": "{path}: must be at most {le}, got {value}",
    "literal_error": "{path}: must be {expected}",
    "none_required": "{path}: must be null: the models have no prompts",
    "union_tag_not_found": NO_KNOWN_SHAPE,
    "union_tag_invalid": NO_KNOWN_SHAPE,
    "model_type": NOT_AN_OBJECT,
    "model_attributes_type": NOT_AN_OBJECT,
    "dict_type": NOT_AN_OBJECT,
}
# "input" and "inputs" share 0.91, "more" and "model" 0.67.
NEAR = 0.75
# Characters of untrusted text that a message repeats.
SHOWN_CHARACTERS = 200


class ErrorBody(BaseModel):
    """The body of every error outside of /v1."""

    error: str
    error_type: ErrorType


class OpenAIErrorDetail(BaseModel):
    """An error as OpenAI's clients read it; all four fields are always there."""

    message: str
    type: OpenAIType
    param: str | None
    code: str | None


class OpenAIErrorBody(BaseModel):
    """The body of every error below /v1."""

    error: OpenAIErrorDetail


class HttpError(Exception):
    """A response other than 200, raised anywhere between the socket and the model.

    It is no HTTPException, for which FastAPI has a handler that answers in another shape.

    Attributes:
        problems: what is wrong with a body, as pydantic describes it below "body"; empty for other errors.
        given: that body.
    """

    problems: Sequence[Any] = ()
    given: Any = None

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
        """Take `param`, the field at fault, and `code`, OpenAI's word for the case; both are sent below /v1 only."""
        super().__init__(message)
        self.headers: dict[str, str] = {**(headers or {})}
        self.status = status
        self.error_type: ErrorType = error_type
        self.param = param
        self.code = code


def is_openai(path: str) -> bool:
    """Return True for a path whose errors have OpenAI's shape."""
    return path.startswith(("/v1/", "/openai/")) or path in ("/v1", "/embeddings")


def error_value(error: HttpError, path: str = "") -> dict[str, Any]:
    """Return the JSON value of an error, in OpenAI's shape where the request's path is one of OpenAI's."""
    if not is_openai(path):
        return {"error": str(error), "error_type": error.error_type}
    name, code = OPENAI_NAMES[error.error_type]
    return {"error": {"message": str(error), "type": name, "param": error.param, "code": error.code or code}}


def reason_of(error: HttpError | GramvecError, *, stopping: bool) -> str | None:
    """Return why a request was refused, in a word for the metrics and the log; None where it failed instead.

    The words are "queue_texts", "queue_characters", "memory", "deadline", "shutting_down", "not_ready", "timeout",
    "unauthorized", "too_large", "not_found" (a route, a method or a model) and "validation".
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


def from_gramvec(error: GramvecError) -> HttpError:
    """Return the HTTP error of an exception that gramvec raised on purpose."""
    if isinstance(error, InputError):
        return HttpError(422, "validation", str(error), param=error.field)
    if isinstance(error, Overloaded):
        seconds = max(1, math.ceil(error.retry_after))
        return HttpError(429, "overloaded", str(error), {"Retry-After": str(seconds)})
    if isinstance(error, BackendError):
        return HttpError(424, "backend", str(error))
    return unhealthy_error(str(error))


def unhealthy_error(message: str) -> HttpError:
    """Return the 503 for a service that takes no requests."""
    return HttpError(503, "unhealthy", message, {"Retry-After": "1"})


def too_large_error(sentence: str) -> HttpError:
    """Return the 413 for more of something than one request may have."""
    return HttpError(413, "too_large", sentence)


def large_body_error(limit: int) -> HttpError:
    """Return the 413 for a body over `limit` bytes; the connection is closed after it."""
    return HttpError(
        413,
        "too_large",
        f"the body is larger than the limit of {limit} bytes; send fewer texts in a request",
        {"Connection": "close"},
    )


def reload_running_error() -> HttpError:
    """Return the 409 for a reload while another one runs."""
    return HttpError(409, "unhealthy", "another reload is under way; ask again when it is done", {"Retry-After": "1"})


def index_busy_error(name: str) -> HttpError:
    """Return the 409 for a change of an index that another process is changing."""
    sentence = f"another run is writing the index {shorten(name)!r}; send the request again when it has ended"
    return HttpError(409, "unhealthy", sentence, {"Retry-After": "1"})


def no_write_key_error() -> HttpError:
    """Return the 403 for a change of an index where no key allows any."""
    return HttpError(
        403,
        "unauthorized",
        "rows are added and removed over HTTP only where a key for it is set; start with --write-key-file, or use"
        " gramvec index add",
    )


def reload_failed_error(reason: str) -> HttpError:
    """Return the 422 for files that cannot be served."""
    return HttpError(422, "validation", f"not reloaded, the models stay as they are: {reason}")


def unknown_route_error(path: str) -> HttpError:
    """Return the 404 for a path without a route."""
    message = f"there is no route {shorten(path)}; /docs lists those that exist"
    return HttpError(404, "not_found", message, code="unknown_url")


def wrong_method_error(path: str, method: str, allowed: str) -> HttpError:
    """Return the 405 for a path that takes only the methods in `allowed`."""
    return HttpError(
        405, "not_found", f"{shorten(path)} does not take {method}; use {allowed}", headers={"Allow": allowed}
    )


def check_content_type(headers: Mapping[bytes, bytes]) -> None:
    """Raise HttpError 415 unless the headers announce JSON."""
    given = headers.get(b"content-type", b"").decode("latin-1")
    media_type = given.partition(";")[0].strip().lower()
    if media_type != "application/json" and not media_type.endswith("+json"):
        sent = f"got {given[:100]!r}" if given else "got none"
        raise HttpError(415, "validation", f"Content-Type: must be application/json, {sent}")


def shorten(text: str) -> str:
    """Return untrusted text as a message repeats it."""
    return text if len(text) <= SHOWN_CHARACTERS else f"{text[:SHOWN_CHARACTERS]}..."


def from_validation(
    error: ValidationError, known_fields: Sequence[str], *, given: Any = None, whole: bool = True
) -> HttpError | None:
    """Return the 422 for the first thing wrong with a body, named by its path, as in `inputs[3]`.

    A missing field is named together with an unknown one of the body `given` whose name is close.

    In a body that was cut off (not `whole`) nothing counts as missing; the result is None if nothing else is wrong.
    """
    found = error.errors(include_url=False)
    first = next(
        (problem for problem in found if whole or problem["type"] not in ("missing", "union_tag_not_found")), None
    )
    if first is None:
        return None
    # For {"input": ...} it helps more to say that "input" is wrong than that "inputs" is missing.
    if first["type"] == "missing":
        first = next((problem for problem in found if _nearest(problem, known_fields) == path_of(first["loc"])), first)
    param = path_of(first["loc"]) or None
    path = param or "the body"
    kind = first["type"]
    if kind == "too_short" and first.get("ctx", {}).get("min_length") == 1:
        return HttpError(422, "empty", f"{path} is empty; give at least one", param=param)
    if kind == "too_long" and first.get("ctx", {}).get("max_length") == 1:
        kind = "one_text"
    sentence = _sentence(kind, path, first, known_fields)
    if kind == "missing" and isinstance(given, dict) and param in known_fields:
        unknown = [name for name in islice(given, 100) if name not in known_fields]
        if nearest := get_close_matches(path, unknown, 1, NEAR):
            sentence = f"{sentence}; the body has {shorten(nearest[0])} in its place"
    return HttpError(422, "validation", sentence, param=param)


def _nearest(detail: Mapping[str, Any], known_fields: Sequence[str]) -> str | None:
    """Return the known field whose name is close to that of an unknown one."""
    path = path_of(detail["loc"])
    if detail["type"] != "extra_forbidden" or "." in path:
        return None
    return next(iter(get_close_matches(path, known_fields, 1, NEAR)), None)


def path_of(location: Sequence[int | str]) -> str:
    """Return `inputs[3]` for `("inputs", "@many", 3)`; a part that starts with "@" names a branch of a union."""
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
