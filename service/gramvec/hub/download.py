"""The library huggingface_hub with bounds, because a hub may be hostile or broken, and its errors in one sentence each.

The library has no timeouts, reads answers of any size and unpacks them. Here each wait and each answer is bounded, one
deadline covers the whole, and packed answers are refused, since their size is unknown.

`snapshot_download` of huggingface_hub 2 is not taken so far. Where it stood in the place of `Hub.download`, 11 of 32
tests of hostile hubs failed, because it asks for more (a listing of the tree, and the head of each file), which the
hub of the tests does not answer; what it does with endless, longer and shorter answers within these bounds is not
known.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any, TypeVar

from gramvec.errors import BundleError, GramvecError, InputError, ServiceError, import_extra, quote

OLDEST_LIBRARY = 2
TOKEN = "set HF_TOKEN, or log in with: hf auth login"  # noqa: S105 - a hint, no token
# Seconds for questions and for each wait, and for each byte of the files: 200 kB a second.
MIN_SECONDS, SECONDS_A_BYTE = 60.0, 5e-6
MAX_ANSWER_BYTES = 2 * 2**20
MAX_REDIRECTS = 5

_T = TypeVar("_T")
_commit = re.compile(r"[0-9a-f]{40}").fullmatch


def library() -> Any:
    """Return the module huggingface_hub. Raises InputError, with what installs it, for none and for an old one."""
    module = import_extra("huggingface_hub", "hub", "this")
    version = str(module.__version__)
    if not version.partition(".")[0].isdecimal() or int(version.partition(".")[0]) < OLDEST_LIBRARY:
        raise InputError(
            f"this needs huggingface-hub {OLDEST_LIBRARY} or later, and {quote(version)} is installed; "
            "upgrade it with: pip install --upgrade 'gramvec[hub]'"
        )
    return module


class Hub:
    """The library's requests about one repository, bounded in a `with` block and afterwards as they were before it.

    Args:
        repository: ORG/NAME.
    """

    def __init__(self, repository: str) -> None:
        self.repository = repository
        self.commit = ""
        self.sizes: dict[str, int] = {}
        self._library = library()
        self._max_bytes = MAX_ANSWER_BYTES
        self.allow(0)

    def __enter__(self) -> Hub:
        client = import_module("httpx2")
        usual = self._library.get_session()
        hooks, timeout, follow = usual.event_hooks, usual.timeout, usual.follow_redirects
        self._usual = lambda: client.Client(event_hooks=hooks, timeout=timeout, follow_redirects=follow)
        bound = self._bound_response(client.SyncByteStream)
        self._library.set_client_factory(
            lambda: client.Client(
                event_hooks={**hooks, "response": [*hooks.get("response", []), bound]},
                headers={"accept-encoding": "identity"},
                follow_redirects=True,
                max_redirects=MAX_REDIRECTS,
                timeout=MIN_SECONDS,
            )
        )
        return self

    def __exit__(self, *_: object) -> None:
        self._library.set_client_factory(self._usual)

    def allow(self, size: int) -> None:
        """Set the deadline for `size` bytes of files."""
        self._deadline = time.monotonic() + MIN_SECONDS + size * SECONDS_A_BYTE

    def call(self, request: Callable[[], _T]) -> _T:
        """Return what `request` returns, run in a thread that is abandoned at the deadline.

        A client's timeouts are for one read each, so they do not end an answer that comes a byte at a time.

        Raises:
            InputError: the name is not valid, or there is no such repository, revision or file.
            ServiceError: the hub is unreachable, refuses, is too slow, or sends something else than an answer.
        """
        ends: SimpleQueue[tuple[_T | None, BaseException | None]] = SimpleQueue()

        def run() -> None:
            try:
                ends.put((request(), None))
            except BaseException as error:
                ends.put((None, error))

        Thread(target=run, name="gramvec-hub", daemon=True).start()
        with _refusals(self.repository):
            try:
                result, error = ends.get(timeout=max(0.0, self._deadline - time.monotonic()))
            except Empty:
                raise _slow_error(self.repository) from None
            if error is not None:
                raise error
        return result  # type: ignore[return-value]

    def find(self, revision: str) -> None:
        """Ask for the commit of a branch, a tag or a commit ("" for the main branch), and for the sizes of its files.

        Raises:
            InputError, ServiceError: see `call`.
        """
        api = self._library.HfApi(library_name="gramvec")
        info = self.call(
            lambda: api.model_info(self.repository, revision=revision or None, files_metadata=True, timeout=MIN_SECONDS)
        )
        if not isinstance(info.sha, str) or _commit(info.sha) is None:
            raise ServiceError(f"the hub does not name a commit of {quote(self.repository)}; see to HF_ENDPOINT")
        self.commit = info.sha
        for file in info.siblings or ():
            if isinstance(file.rfilename, str) and type(file.size) is int and file.size >= 0:
                self.sizes[file.rfilename] = file.size

    def check_size(self, name: str, lowest: int, highest: int) -> None:
        """Raise BundleError unless the commit has this file, of `lowest` to `highest` bytes."""
        size = self.sizes.get(name)
        if size is None:
            raise BundleError(f"{self.repository}: {name} is not there; pull another revision")
        if not lowest <= size <= highest:
            raise BundleError(
                f"{self.repository}: {name} has {size} bytes, and may have {lowest} to {highest}; pull another revision"
            )

    def download(self, name: str, path: Path) -> None:
        """Write a file of the commit, of the size that the hub has announced, to the new file `path`.

        Raises:
            InputError: the repository has no such file.
            ServiceError: the hub sends more or fewer bytes, is unreachable, refuses, or is too slow.
        """
        utils, endpoint = import_module("huggingface_hub.utils"), import_module("huggingface_hub.constants").ENDPOINT
        url = self._library.hf_hub_url(self.repository, name, revision=self.commit, endpoint=endpoint)
        headers = utils.build_hf_headers(library_name="gramvec")

        def stream() -> None:
            with self._library.get_session().stream("GET", url, headers=headers) as response, path.open("xb") as file:
                utils.hf_raise_for_status(response)
                for chunk in response.iter_raw():
                    file.write(chunk)

        self._max_bytes = self.sizes[name]
        try:
            self.call(stream)
        finally:
            self._max_bytes = MAX_ANSWER_BYTES
        if (size := path.stat().st_size) != self.sizes[name]:
            raise ServiceError(
                f"the hub sends {size:,} bytes of {name}, and has announced {self.sizes[name]:,}; try again later"
            )

    def _bound_response(self, stream_type: Any) -> Callable[[Any], None]:
        """Return a hook of httpx2's client that bounds each response."""
        hub = self

        class CountedStream(stream_type):  # type: ignore[misc]
            def __init__(self, stream: Any) -> None:
                self._stream = stream

            def __iter__(self) -> Iterator[bytes]:
                size = 0
                for chunk in self._stream:
                    size += len(chunk)
                    hub._check_bytes(size)
                    if time.monotonic() > hub._deadline:
                        raise _slow_error(hub.repository)
                    yield chunk

            def close(self) -> None:
                self._stream.close()

        def bound(response: Any) -> None:
            if response.headers.get("content-encoding", "identity") != "identity":
                raise ServiceError("the hub sends a compressed answer, which was not asked for; try again later")
            announced = response.headers.get("content-length", "")
            if announced.isdecimal():
                self._check_bytes(int(announced[:20]))
            response.stream = CountedStream(response.stream)

        return bound

    def _check_bytes(self, size: int) -> None:
        # An answer that refuses a file may be longer than the file.
        if size > max(self._max_bytes, MAX_ANSWER_BYTES):
            raise ServiceError(
                f"the hub sends over {max(self._max_bytes, MAX_ANSWER_BYTES):,} bytes about {quote(self.repository)}; "
                "see to HF_ENDPOINT"
            )


@contextmanager
def _refusals(repository: str) -> Iterator[None]:
    """Raise huggingface_hub's errors in this block as InputError (the name is at fault) or ServiceError."""
    errors: Any = import_module("huggingface_hub.errors")
    client: Any = import_module("httpx2")

    try:
        yield
    except GramvecError:
        raise
    except client.TimeoutException as error:
        raise _slow_error(repository) from error
    except (errors.HTTPError, client.InvalidURL, OSError, errors.HFValidationError) as error:
        raise _translate_error(repository, error, errors) from error
    # The library reads answers unchecked.
    except (AttributeError, KeyError, RecursionError, TypeError, ValueError) as error:
        raise ServiceError(f"the hub sent nonsense about {quote(repository)}; see to HF_ENDPOINT") from error


def _slow_error(repository: str) -> ServiceError:
    return ServiceError(f"the hub is too slow with {quote(repository)}; try again later")


def _translate_error(repository: str, error: Exception, errors: Any) -> InputError | ServiceError:
    """Return our error for one of the library's; these inherit from each other, so the first that fits counts."""
    name = quote(repository)
    translations: list[tuple[type[Exception], type[InputError | ServiceError], str]] = [
        (errors.HFValidationError, InputError, f"{name} is no name of a repository; give it as in ORG/NAME"),
        (errors.LocalTokenNotFoundError, ServiceError, f"the hub needs a token; {TOKEN}"),
        (errors.OfflineModeIsEnabled, ServiceError, "HF_HUB_OFFLINE is set, so the hub is not asked; unset it"),
        (errors.GatedRepoError, ServiceError, f"{name} asks you to agree to terms; do so on its page, and {TOKEN}"),
        (errors.RevisionNotFoundError, InputError, f"{name} has no such revision; give a branch, a tag or a commit"),
        (errors.EntryNotFoundError, InputError, f"{name}: a file of the model is not there; pull another revision"),
        (errors.RepositoryNotFoundError, InputError, f"there is no model {name} on the hub, or not for you; {TOKEN}"),
    ]
    for kind, ours, sentence in translations:
        if isinstance(error, kind):
            return ours(sentence)
    if isinstance(error, errors.HfHubHTTPError):
        return _status_error(name, error.response.status_code)
    return ServiceError(_describe_unreachable(error))


def _status_error(name: str, status: int) -> ServiceError:
    if status == 401:
        return ServiceError(f"the hub does not know your token; {TOKEN}", status=status)
    if status == 403:
        return ServiceError(f"your token may not do that to {name}; make one that may write to it", status=status)
    return ServiceError(f"the hub answered {status} for {name}; try again later", status=status)


def _describe_unreachable(error: Exception) -> str:
    return f"the hub cannot be reached ({type(error).__name__}); see to the network, or to HF_ENDPOINT"
