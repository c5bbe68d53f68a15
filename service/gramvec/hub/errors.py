"""What goes wrong with the hub, each in one sentence."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from gramvec.errors import InputError, ServiceError, quoted

TOKEN = "set HF_TOKEN, or log in with: hf auth login"  # noqa: S105 - says where one goes


def library() -> Any:
    """huggingface_hub. Raises InputError that says how to install it."""
    try:
        return import_module("huggingface_hub")
    except ImportError as error:
        raise InputError("this needs huggingface_hub; install it with: pip install 'gramvec[hub]'") from error


@contextmanager
def refusals(repository: str) -> Iterator[None]:
    """Raise the hub's errors in this block as InputError (the name is at fault) or ServiceError."""
    errors: Any = import_module("huggingface_hub.errors")

    try:
        yield
    except (errors.HTTPError, OSError, errors.HFValidationError) as error:
        raise _in_words(repository, error, errors) from error


def _in_words(repository: str, error: Exception, errors: Any) -> InputError | ServiceError:
    """The library's errors are each other's kind in part: the first that fits."""
    name = quoted(repository)
    found: list[tuple[type[Exception], type[InputError | ServiceError], str]] = [
        (errors.HFValidationError, InputError, f"{name} is no name of a repository; give it as in ORG/NAME"),
        (errors.LocalTokenNotFoundError, ServiceError, f"the hub wants to know who you are; {TOKEN}"),
        (errors.OfflineModeIsEnabled, ServiceError, "HF_HUB_OFFLINE is set, so the hub is not asked; unset it"),
        (errors.GatedRepoError, ServiceError, f"{name} asks you to agree to terms; do so on its page, and {TOKEN}"),
        (errors.RevisionNotFoundError, InputError, f"{name} has no such revision; give a branch, a tag or a commit"),
        (errors.RepositoryNotFoundError, InputError, f"there is no model {name} on the hub, or not for you; {TOKEN}"),
        (errors.LocalEntryNotFoundError, ServiceError, _unreachable(error)),
        (errors.EntryNotFoundError, InputError, f"{name} is not a gramvec model: a file of one is not there"),
    ]
    for kind, ours, sentence in found:
        if isinstance(error, kind):
            return ours(sentence)
    if isinstance(error, errors.HfHubHTTPError):
        return _http(name, error.response.status_code)
    return ServiceError(_unreachable(error))


def _http(name: str, status: int) -> ServiceError:
    if status == 401:
        return ServiceError(f"the hub does not know your token; {TOKEN}", status=status)
    if status == 403:
        return ServiceError(f"your token may not do that to {name}; make one that may write to it", status=status)
    return ServiceError(f"the hub answered {status} for {name}; try again later", status=status)


def _unreachable(error: Exception) -> str:
    return f"the hub cannot be reached ({type(error).__name__}); see to the network, or to HF_ENDPOINT"
