"""Errors as OpenAI's clients read them: {"error": {"message", "type", "param", "code"}}, all four always there."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel

from gramvec.server.contract.errors import ErrorType, HttpError

OpenAIType = Literal["invalid_request_error", "rate_limit_error", "server_error"]

# What an error is called below /v1: its type, and its code where the error itself has none.
NAMES: dict[ErrorType, tuple[OpenAIType, str | None]] = {
    "validation": ("invalid_request_error", None),
    "empty": ("invalid_request_error", "empty_array"),
    "too_large": ("invalid_request_error", "too_large"),
    "unauthorized": ("invalid_request_error", "invalid_api_key"),
    "not_found": ("invalid_request_error", "not_found"),
    "overloaded": ("rate_limit_error", "rate_limit_exceeded"),
    "unhealthy": ("server_error", "service_unavailable"),
    "backend": ("server_error", "backend_error"),
}


class OpenAIErrorDetail(BaseModel):
    """What went wrong; `param` names the field at fault."""

    message: str
    type: OpenAIType
    param: str | None
    code: str | None


class OpenAIErrorBody(BaseModel):
    """The body of every error below /v1."""

    error: OpenAIErrorDetail


def envelope(error: HttpError) -> dict[str, dict[str, str | None]]:
    """The JSON value of `OpenAIErrorBody`."""
    name, code = NAMES.get(error.error_type, ("server_error" if error.status >= 500 else "invalid_request_error", None))
    return {"error": {"message": str(error), "type": name, "param": error.param, "code": error.code or code}}
