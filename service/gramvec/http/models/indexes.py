"""Indexes that are served: opened beside the models that made them, and opened again when their files are others.

`gramvec.search` is imported when there is one: it brings numkong and the readers of files, which vectors do not need.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from gramvec.embedding import Embedder
from gramvec.errors import InputError
from gramvec.http.models.loading import Change, Wanted, close_but, renewed
from gramvec.http.settings import Settings

if TYPE_CHECKING:
    from gramvec.search import Index


@dataclass(frozen=True, eq=False)
class OpenIndex:
    """An index under the name that requests give it, its file, and the name of the served model that made it."""

    name: str
    path: Path
    index: Index
    model: str


def open_indexes(
    settings: Settings, embedders: Sequence[Embedder], tell: Callable[[str], None] = lambda _: None
) -> list[OpenIndex]:
    """The indexes of the settings, in their order, each read once and checked; `tell` hears what is being done.

    Raises:
        InputError: one cannot be had, or the model that made it is not among these.
    """
    if not settings.indexes:
        return []
    from gramvec.search import kernels

    kernels()
    found = []
    for name, path in settings.indexes.items():
        tell(f"the index {name} is being opened")
        found.append(_opened(settings, name, path, embedders))
    return found


def renewed_indexes(
    settings: Settings, serving: Sequence[OpenIndex], embedders: Sequence[Embedder], wanted: Sequence[Wanted] = ()
) -> list[OpenIndex]:
    """The indexes as their files hold them now; one that is the same is kept.

    Args:
        settings: how to open them.
        serving: those open now.
        embedders: the models that will be served beside them.
        wanted: as in `renewed`, index by index.

    Raises:
        InputError: one cannot be had, is not the wanted one, or was made by a model that is not among these.
    """
    found = []
    for number, old in enumerate(serving):
        expected = wanted[number].digest if wanted else None
        if expected == old.index.digest or (expected is None and _digest(old) == old.index.digest):
            _check_model(old.path, old.index, embedders)
            found.append(old)
            continue
        new = _opened(settings, old.name, old.path, embedders)
        if expected is not None and new.index.digest != expected:
            raise InputError(f"{old.path}: changed again while it was reloaded; reload once more")
        found.append(new)
    return found


def renewed_all(
    settings: Settings,
    serving: Sequence[Embedder],
    indexes: Sequence[OpenIndex],
    wanted: Sequence[Wanted] = (),
) -> tuple[list[Embedder], list[OpenIndex]]:
    """`renewed` models and `renewed_indexes`; raises what both do, and then nothing stays open that was not before."""
    found = renewed(settings, serving, wanted[: len(serving)])
    try:
        return found, renewed_indexes(settings, indexes, found, wanted[len(serving) :])
    except BaseException:
        close_but(found, serving)
        raise


def index_changes(serving: Sequence[OpenIndex], found: Sequence[OpenIndex]) -> list[Change]:
    """What a reload from the first to the second is, index by index."""
    return [Change(new.name, new.index.digest, new is not old) for old, new in zip(serving, found, strict=True)]


def _opened(settings: Settings, name: str, path: Path, embedders: Sequence[Embedder]) -> OpenIndex:
    from gramvec.search import Index

    # Workers are as many as there are cores to be used.
    index = Index(path, threads=1 if settings.workers > 1 else None)
    return OpenIndex(name, path, index, _check_model(path, index, embedders))


def _digest(old: OpenIndex) -> str:
    """Of the file as it is now, by its header alone."""
    from gramvec.search import Index

    return Index(old.path, verify=False).digest


def _check_model(path: Path, index: Index, embedders: Sequence[Embedder]) -> str:
    for embedder in embedders:
        if embedder.digest == index.header.digest:
            return embedder.name
    names = ", ".join(f"{one.name} {one.digest[:12]}" for one in embedders)
    raise InputError(
        f"{path} was made with {index.header.model[:100]!r} {index.header.digest[:12]}, and served here is {names}; "
        "serve that model as well, or build the index again"
    )
