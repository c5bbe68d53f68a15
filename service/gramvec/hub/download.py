"""Bounded downloads from a model hub, which may be hostile or broken, and the hub's errors in one sentence each.

Every answer is streamed and counted, and ends at the size that was announced or allowed. Compressed answers are
refused, because their size is unknown. One deadline covers a whole pull, whatever the hub does between two bytes.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from io import BytesIO
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any, BinaryIO
from urllib.parse import quote

import orjson

from gramvec.errors import BundleError, GramvecError, InputError, ServiceError, import_extra, quoted

TOKEN = "set HF_TOKEN, or log in with: hf auth login"  # noqa: S105 - says where one goes
# Seconds for the questions before the first file, and for each byte of the files: 200 kB a second.
LEAST_SECONDS, SECONDS_A_BYTE = 60.0, 5e-6
IDLE_SECONDS = 20.0
MOST_JSON_BYTES = 2 * 2**20
MOST_REDIRECTS = 5

_commit = re.compile(r"[0-9a-f]{40}").fullmatch


def library() -> Any:
    """Return the module huggingface_hub. Raises InputError that says how to install it."""
    return import_extra("huggingface_hub", "hub", "this")


class Download:
    """Files of one commit of a repository, with one deadline.

    Args:
        repository: ORG/NAME.
        revision: a branch, a tag or a commit; "" for the main branch.

    Raises:
        InputError: the name is not valid, or there is no such repository or revision.
        ServiceError: the hub is unreachable, refuses, or sends something else than an answer.
    """

    def __init__(self, repository: str, revision: str) -> None:
        library()
        constants = import_module("huggingface_hub.constants")
        with refusals(repository):
            import_module("huggingface_hub.utils").validate_repo_id(repository)
        if constants.HF_HUB_OFFLINE:
            raise ServiceError("HF_HUB_OFFLINE is set, so the hub is not asked; unset it")
        self.repository = repository
        self._endpoint: str = constants.ENDPOINT
        self._deadline = time.monotonic() + LEAST_SECONDS
        self._headers: dict[str, str] = import_module("huggingface_hub.utils").build_hf_headers(library_name="gramvec")
        self._api = f"{self._endpoint}/api/models/{repository}"
        commit = self._answer(f"/revision/{quote(revision, safe='')}" if revision else "").get("sha")
        if not isinstance(commit, str) or _commit(commit) is None:
            raise ServiceError(f"the hub does not name a commit of {quoted(repository)}; see to HF_ENDPOINT")
        self.commit = commit

    def allow(self, size: int) -> None:
        """Set the deadline for files of `size` bytes together."""
        self._deadline = time.monotonic() + LEAST_SECONDS + size * SECONDS_A_BYTE

    def file(self, name: str, path: Path, most: int, least: int = 0) -> None:
        """Write a file of the commit to `path`.

        Raises:
            InputError: the repository has no such file.
            BundleError: the file has not `least` to `most` bytes; no more than `most` are written.
            ServiceError: the hub is unreachable, refuses, or is too slow.
        """
        url = f"{self._endpoint}/{self.repository}/resolve/{self.commit}/{quote(name)}"

        with path.open("xb") as file:
            self._fetch(url, name, file, most, least)

    def sizes(self) -> dict[str, int]:
        """Return the size in bytes of each file of the commit, as the hub announces it.

        Raises:
            ServiceError: the hub is unreachable, refuses, or sends something else.
        """
        listed = self._answer(f"/revision/{self.commit}?blobs=true").get("siblings")
        found = {}
        for one in listed if isinstance(listed, list) else ():
            name, size = (one.get("rfilename"), one.get("size")) if isinstance(one, dict) else (None, None)
            if isinstance(name, str) and type(size) is int and size >= 0:
                found[name] = size
        return found

    def _answer(self, path: str) -> dict[str, Any]:
        """Return the hub's answer about the repository, empty where it is not a JSON object."""
        answer = BytesIO()
        self._fetch(self._api + path, "the hub's answer", answer, MOST_JSON_BYTES)
        try:
            values = orjson.loads(answer.getvalue())
        except orjson.JSONDecodeError:
            values = None
        return values if isinstance(values, dict) else {}

    def _fetch(self, url: str, name: str, file: BinaryIO, most: int, least: int = 0) -> None:
        """Write an answer to a file in a thread, which is abandoned at the deadline.

        A client's timeouts are for one read each, so they do not end an answer that comes a byte at a time.
        """
        import httpx

        ends: SimpleQueue[BaseException | None] = SimpleQueue()

        def run() -> None:
            try:
                self._stream(url, name, file, most, least)
                ends.put(None)
            except BaseException as error:
                ends.put(error)

        Thread(target=run, name="gramvec-pull", daemon=True).start()
        try:
            error = ends.get(timeout=max(0.0, self._deadline - time.monotonic()))
        except Empty:
            raise self._too_slow() from None
        if isinstance(error, httpx.TimeoutException):
            raise self._too_slow() from error
        if isinstance(error, httpx.HTTPError | httpx.InvalidURL):
            raise ServiceError(_unreachable(error)) from error
        if error is not None:
            raise error

    def _stream(self, url: str, name: str, file: BinaryIO, most: int, least: int) -> None:
        import httpx

        headers = {**self._headers, "accept-encoding": "identity"}
        with (
            httpx.Client(timeout=IDLE_SECONDS, follow_redirects=True, max_redirects=MOST_REDIRECTS) as client,
            client.stream("GET", url, headers=headers) as response,
        ):
            self._check_status(response.status_code, response.headers.get("x-error-code", ""))
            if response.headers.get("content-encoding", "identity") != "identity":
                raise ServiceError(f"the hub sends {name} compressed, which was not asked for; try again later")
            announced = response.headers.get("content-length", "")
            if announced.isdecimal() and not least <= int(announced[:20]) <= most:
                raise self._wrong_size(name, announced[:20], most, least)
            size = 0
            for chunk in response.iter_raw():
                size += len(chunk)
                if size > most:
                    raise self._wrong_size(name, f"over {most}", most, least)
                if time.monotonic() > self._deadline:
                    raise self._too_slow()
                file.write(chunk)
            if size < least:
                raise self._wrong_size(name, str(size), most, least)

    def _wrong_size(self, name: str, size: str, most: int, least: int) -> BundleError:
        return BundleError(
            f"{self.repository}: {name} has {size} bytes, and may have {least} to {most}; pull another revision"
        )

    def _too_slow(self) -> ServiceError:
        return ServiceError(f"the hub is too slow with {quoted(self.repository)}; try again later")

    def _check_status(self, status: int, code: str) -> None:
        if status == 200:
            return
        name = quoted(self.repository)
        if code == "GatedRepo":
            raise ServiceError(f"{name} asks you to agree to terms; do so on its page, and {TOKEN}")
        if code == "RevisionNotFound":
            raise InputError(f"{name}: has no such revision; give a branch, a tag or a commit")
        if code == "EntryNotFound":
            raise MissingFileError(f"{name}: a file of the model is not there")
        if code == "RepoNotFound" or status == 404:
            raise InputError(f"there is no model {name} on the hub, or not for you; {TOKEN}")
        raise _http(name, status)


@contextmanager
def bounded_answers(repository: str, upload_bytes: int) -> Iterator[None]:
    """Bound the library's own requests in this block: each wait, the size of each answer, and the whole by a deadline.

    The library itself waits forever and reads answers of any size. Afterwards its requests are again as they were.

    Args:
        repository: ORG/NAME, for messages.
        upload_bytes: size of what is uploaded.
    """
    hub, client = library(), import_module("httpx2")
    deadline = time.monotonic() + LEAST_SECONDS + SECONDS_A_BYTE * upload_bytes

    class Counted(client.SyncByteStream):  # type: ignore[name-defined, misc]
        def __init__(self, stream: Any) -> None:
            self._stream = stream

        def __iter__(self) -> Iterator[bytes]:
            size = 0
            for chunk in self._stream:
                size += len(chunk)
                if size > MOST_JSON_BYTES:
                    raise ServiceError(f"the hub sends over {MOST_JSON_BYTES:,} bytes about {quoted(repository)}")
                if time.monotonic() > deadline:
                    raise ServiceError(f"the hub is too slow with {quoted(repository)}; try again later")
                yield chunk

        def close(self) -> None:
            self._stream.close()

    def count(response: Any) -> None:
        if response.headers.get("content-encoding", "identity") != "identity":
            raise ServiceError("the hub sends a compressed answer, which was not asked for; try again later")
        response.stream = Counted(response.stream)

    before = hub.get_session()
    hooks, timeout, follow = before.event_hooks, before.timeout, before.follow_redirects
    hub.set_client_factory(
        lambda: client.Client(
            event_hooks={**hooks, "response": [*hooks.get("response", []), count]},
            headers={"accept-encoding": "identity"},
            follow_redirects=True,
            max_redirects=MOST_REDIRECTS,
            timeout=LEAST_SECONDS,
        )
    )
    try:
        yield
    finally:
        hub.set_client_factory(lambda: client.Client(event_hooks=hooks, timeout=timeout, follow_redirects=follow))


class MissingFileError(InputError):
    """The repository lacks a file."""


@contextmanager
def refusals(repository: str) -> Iterator[None]:
    """Raise huggingface_hub's errors in this block as InputError (the name is at fault) or ServiceError."""
    errors: Any = import_module("huggingface_hub.errors")

    try:
        yield
    except (errors.HTTPError, OSError, errors.HFValidationError) as error:
        raise _in_words(repository, error, errors) from error
    except GramvecError:
        raise
    except (AttributeError, KeyError, TypeError, ValueError) as error:  # the library reads answers unchecked
        raise ServiceError(f"the hub sent nonsense about {quoted(repository)}; see to HF_ENDPOINT") from error


def _in_words(repository: str, error: Exception, errors: Any) -> InputError | ServiceError:
    """Return our error for one of the library's; these inherit from each other, so the first that fits counts."""
    name = quoted(repository)
    found: list[tuple[type[Exception], type[InputError | ServiceError], str]] = [
        (errors.HFValidationError, InputError, f"{name} is no name of a repository; give it as in ORG/NAME"),
        (errors.LocalTokenNotFoundError, ServiceError, f"the hub needs a token; {TOKEN}"),
        (errors.OfflineModeIsEnabled, ServiceError, "HF_HUB_OFFLINE is set, so the hub is not asked; unset it"),
        (errors.RevisionNotFoundError, InputError, f"{name} has no such revision; give a branch, a tag or a commit"),
        (errors.RepositoryNotFoundError, InputError, f"there is no model {name} on the hub, or not for you; {TOKEN}"),
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
