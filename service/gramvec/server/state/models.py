"""Models that a process serves: opening, checking, and reopening when their folders change."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from gramvec.bundle.resolve import find_bundle
from gramvec.embed.embedder import Embedder
from gramvec.embed.loading import load
from gramvec.errors import BundleError, GramvecError, InputError
from gramvec.server.batching.batcher import Batcher
from gramvec.server.settings import OTHERS, Settings, aliases_of, token_files
from gramvec.server.state.token_ids import open_encodings

MAX_LABEL_BYTES = 1024


class Served(NamedTuple):
    """A loaded model and the queue in front of it.

    Attributes:
        label: for `x-model`: name and first digits of the digest.
        truncate: cut the texts of requests that do not say whether to.
    """

    embedder: Embedder
    batcher: Batcher
    label: bytes
    truncate: bool = False


def load_models(settings: Settings, tell: Callable[[str], None] = lambda _: None) -> list[Embedder]:
    """Load the models of the settings, in their order; `tell` is called with the current step.

    Raises:
        GramvecError: a model is unavailable, two have the same name, or an alias names none. Open models are closed.
    """
    opened: list[Embedder] = []
    try:
        for number, source in enumerate(settings.model, 1):
            of_all = f" ({number} of {len(settings.model)})" if len(settings.model) > 1 else ""
            tell(f"the model {source} is being loaded{of_all}")
            opened.append(load_model(settings, source))
            check_names(opened)
        check_aliases(settings, opened)
    except BaseException:
        for embedder in opened:
            embedder.close()
        raise
    return opened


def check_there(settings: Settings) -> None:
    """Raise GramvecError for a model or a file of the settings that is missing, before anything is opened."""
    for source in settings.model:
        find_bundle(source)
    for what, files in (("index", settings.indexes), ("head", settings.heads)):
        for name, path in files.items():
            if not path.exists():
                raise InputError(f"the {what} {name!r} is not there: {path} does not exist")
    open_encodings(settings)


def load_model(settings: Settings, source: str) -> Embedder:
    """Load the model of this name or folder. Raises GramvecError if it is unavailable."""
    return load(
        source,
        device=settings.device,
        max_characters=settings.max_characters,
        runtime=settings.runtime,
        space=settings.space,
        threads=1,  # calls are short and follow each other; other cores are for other workers
    )


def check_names(embedders: Sequence[Embedder]) -> None:
    """Raise BundleError if two models have one name, or one is too long.

    A request could not say which of the two it means, and each response carries a name in its head, of which clients
    and proxies take at most 8 KB.
    """
    paths: dict[str, Path] = {}
    for embedder in embedders:
        path = embedder.bundle.path
        if len(label_of(embedder)) > MAX_LABEL_BYTES:
            raise BundleError(
                f"{path}: the model's name makes a header of more than {MAX_LABEL_BYTES} bytes; export it under a "
                "shorter one"
            )
        if embedder.name in paths:
            raise BundleError(
                f"two models are named {embedder.name!r}, {paths[embedder.name]} and {path}; leave one out, "
                "or export one under another name"
            )
        paths[embedder.name] = path


def check_aliases(settings: Settings, embedders: Sequence[Embedder]) -> None:
    """Raise BundleError for an alias that is a model's own name or names none of these, and for such token ids."""
    names = [embedder.name for embedder in embedders]
    served = f"served: {', '.join(map(repr, names))}"
    for alias, model in aliases_of(settings.alias).items():
        if alias in names:
            raise BundleError(f"the alias {alias!r} is the name of a model that is served; choose another ({served})")
        if model not in names:
            raise BundleError(f"the alias {alias!r} is of a model {model!r} that is not served ({served})")
    for name in token_files(settings.token_ids):
        if name not in (OTHERS, *names, *aliases_of(settings.alias)):
            raise BundleError(f"token_ids names {name!r}, which is no model and no alias here ({served})")


def label_of(embedder: Embedder) -> bytes:
    """Return the label of a model for the header `x-model`: its name and the first digits of its digest."""
    # Characters other than printable ASCII are escaped.
    return b"%b@%b" % (embedder.name.encode("unicode-escape"), embedder.digest[:12].encode())


class Change(NamedTuple):
    """Effect of a reload on one model or file: its name, its digest, and whether that has changed."""

    name: str
    digest: str
    changed: bool


def renewed(settings: Settings, serving: Sequence[Embedder]) -> list[Embedder]:
    """Reopen every model from its folder; keep those that have not changed.

    Args:
        settings: how to open them.
        serving: the models open now; they stay open in any case.

    Raises:
        GramvecError: a model is unavailable, or two have the same name; new ones are closed.
    """
    found: list[Embedder] = []
    try:
        for old in serving:
            new = _reopened(settings, old.bundle.path)
            if new.digest == old.digest:
                new.close()
                new = old
            found.append(new)
        check_names(found)
        check_aliases(settings, found)
    except GramvecError:
        close_but(found, serving)
        raise
    return found


def changes(serving: Sequence[Embedder], found: Sequence[Embedder]) -> list[Change]:
    """Return the effect of a reload from the first to the second on each model."""
    return [Change(new.name, new.digest, new is not old) for old, new in zip(serving, found, strict=True)]


def close_but(embedders: Iterable[Embedder], kept: Sequence[Embedder]) -> None:
    """Close `embedders` except those in `kept`."""
    for embedder in embedders:
        if not any(embedder is other for other in kept):
            embedder.close()


def _reopened(settings: Settings, path: Path) -> Embedder:
    try:
        return load_model(settings, str(path))
    except GramvecError:
        raise
    except Exception as error:
        # An unexpected error is no reason to stop serving.
        raise BundleError(f"{path}: cannot be loaded ({type(error).__name__}: {error})") from error
