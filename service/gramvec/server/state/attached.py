"""Indexes and heads: files that belong to a model, opened beside it, and opened again when they are others.

What reads them is imported when there is one: `gramvec.search` brings numkong and readers of files, which nobody needs
for vectors.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from gramvec.embed.embedder import Embedder
from gramvec.errors import InputError
from gramvec.server.settings.settings import Settings
from gramvec.server.state.loading import Change, Wanted, changes, close_but, renewed

if TYPE_CHECKING:
    from gramvec.classify.head import Head
    from gramvec.search.index import Index


class Opened(NamedTuple):
    """What a file holds, its digest, the name and digest of the model that it belongs to, and whether that is this."""

    held: Any
    digest: str
    model: str
    model_digest: str
    is_of: Callable[[Embedder], bool]


class Kind(NamedTuple):
    """files: of the settings, by name. opened: reads and checks a file. digest: of the file as it is now."""

    name: str
    files: Callable[[Settings], dict[str, Path]]
    opened: Callable[[Settings, Path], Opened]
    digest: Callable[[Path], str]


@dataclass(frozen=True, eq=False)
class Attached:
    """A file under the name that requests give it, what it holds, and the name of the served model it belongs to."""

    kind: Kind
    name: str
    path: Path
    held: Any
    digest: str
    model: str
    model_digest: str


def open_attached(
    settings: Settings, embedders: Sequence[Embedder], tell: Callable[[str], None] = lambda _: None
) -> list[Attached]:
    """The indexes, then the heads of the settings, each read once and checked; `tell` hears what is being done.

    Raises:
        InputError: one cannot be had, or its model is not among these.
    """
    found = []
    for kind in KINDS:
        for name, path in kind.files(settings).items():
            tell(f"the {kind.name} {name} is being opened")
            found.append(_opened(settings, kind, name, path, embedders))
    return found


def renewed_all(
    settings: Settings,
    serving: Sequence[Embedder],
    attached: Sequence[Attached],
    wanted: Sequence[Wanted] = (),
) -> tuple[list[Embedder], list[Attached]]:
    """`renewed` models, and what is attached as the files hold it now; what is the same is kept.

    Args:
        settings: how to open them.
        serving: the models open now.
        attached: what is open with them.
        wanted: as in `renewed`; the models first, then what is attached.

    Raises:
        GramvecError: something cannot be had, is not the wanted one, or belongs to a model that is not among these.
            Then nothing stays open that was not before.
    """
    found = renewed(settings, serving, wanted[: len(serving)])
    try:
        digests: list[str | None] = [one.digest for one in wanted[len(serving) :]]
        digests = digests if wanted else [None] * len(attached)
        return found, [_renewed(settings, *one, found) for one in zip(attached, digests, strict=True)]
    except BaseException:
        close_but(found, serving)
        raise


def _changes(before: Sequence[Attached], after: Sequence[Attached], kind: Kind) -> list[Change]:
    """What a reload from the first to the second is, for each of a kind."""
    return [
        Change(new.name, new.digest, new is not old)
        for old, new in zip(before, after, strict=True)
        if new.kind is kind
    ]  # fmt: skip


def _renewed(settings: Settings, old: Attached, expected: str | None, embedders: Sequence[Embedder]) -> Attached:
    same = old.digest == (expected or old.kind.digest(old.path))
    if same and any(one.digest == old.model_digest for one in embedders):
        return old
    new = _opened(settings, old.kind, old.name, old.path, embedders)
    if expected is not None and new.digest != expected:
        raise InputError(f"{old.path}: changed again while it was reloaded; reload once more")
    return new


def _opened(settings: Settings, kind: Kind, name: str, path: Path, embedders: Sequence[Embedder]) -> Attached:
    found = kind.opened(settings, path)
    for embedder in embedders:
        if found.is_of(embedder):
            return Attached(kind, name, path, found.held, found.digest, embedder.name, embedder.digest)
    names = ", ".join(f"{one.name} {one.digest[:12]}" for one in embedders)
    raise InputError(
        f"{path} was made with {found.model[:100]!r} {found.model_digest[:12]}, and served here is {names}; "
        f"serve that model as well, or make the {kind.name} again"
    )


def _open_index(settings: Settings, path: Path) -> Opened:
    from gramvec.search.index import Index
    from gramvec.search.scan import kernels

    kernels()
    # Workers are as many as there are cores to be used.
    index: Index = Index(path, threads=1 if settings.workers > 1 else None)
    return Opened(index, index.digest, index.header.model, index.header.digest, index.is_of)


def _index_digest(path: Path) -> str:
    from gramvec.search.index import Index

    return Index(path, verify=False).digest


def _open_head(settings: Settings, path: Path) -> Opened:
    from gramvec.classify.head import Head

    head: Head = Head.load(path)
    return Opened(head, head.file_digest, head.model, head.digest, lambda embedder: embedder.digest == head.digest)


def _head_digest(path: Path) -> str:
    from gramvec.classify.head import Head

    return Head.digest_of(path)


INDEX = Kind("index", lambda settings: settings.indexes, _open_index, _index_digest)
HEAD = Kind("head", lambda settings: settings.heads, _open_head, _head_digest)
KINDS = (INDEX, HEAD)


class Reloaded(NamedTuple):
    """What a reload made of each model, index and head."""

    models: list[Change]
    indexes: list[Change]
    heads: list[Change]

    @classmethod
    def between(
        cls,
        before: tuple[Sequence[Embedder], Sequence[Attached]],
        after: tuple[Sequence[Embedder], Sequence[Attached]],
    ) -> Reloaded:
        """What is served after, beside what was served before."""
        return cls(changes(before[0], after[0]), *(_changes(before[1], after[1], kind) for kind in KINDS))

    @classmethod
    def of(cls, told: dict[str, Any]) -> Reloaded:
        """What was told."""
        return cls(*([Change(**one) for one in told[what]] for what in cls._fields))

    def told(self) -> dict[str, Any]:
        """As JSON has it."""
        return {what: [change._asdict() for change in some] for what, some in self._asdict().items()}
