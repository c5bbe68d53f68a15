"""Indexes and heads: files that belong to a model, opened beside it, and reopened when they change.

Their readers are imported only where there is one: `gramvec.search` brings tantivy, which vectors do not need.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from gramvec.embed.embedder import Embedder
from gramvec.errors import InputError
from gramvec.server.settings import Settings
from gramvec.server.state.models import Change, changes, close_but, renewed

if TYPE_CHECKING:
    from gramvec.classify.head import Head
    from gramvec.search.index import Index


class Opened(NamedTuple):
    """An open file: its content, its digest, the name and digest of its model, and a test for that model."""

    held: Any
    digest: str
    model: str
    model_digest: str
    is_of: Callable[[Embedder], bool]


class Kind(NamedTuple):
    """A kind of file.

    Attributes:
        files: returns those of the settings, by name.
        opened: reads and checks a file.
    """

    name: str
    files: Callable[[Settings], dict[str, Path]]
    opened: Callable[[Settings, Path], Opened]


@dataclass(frozen=True, eq=False)
class Attached:
    """A served file: the name that requests give it, its content, and the name of the model it belongs to."""

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
    """Open the indexes, then the heads of the settings; `tell` is called with the current step.

    Raises:
        InputError: a file is unavailable, or its model is not among these.
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
) -> tuple[list[Embedder], list[Attached]]:
    """Reopen models and files; keep those that have not changed.

    Args:
        settings: how to open them.
        serving: the models open now.
        attached: the files open now.

    Raises:
        GramvecError: a model or file is unavailable, or belongs to a model that is not among these. Everything that was
            opened is closed.
    """
    found = renewed(settings, serving)
    try:
        return found, [_renewed(settings, one, found) for one in attached]
    except BaseException:
        close_but(found, serving)
        raise


def _changes(before: Sequence[Attached], after: Sequence[Attached], kind: Kind) -> list[Change]:
    """Return the effect of a reload from the first to the second on each file of a kind."""
    return [
        Change(new.name, new.digest, new is not old)
        for old, new in zip(before, after, strict=True)
        if new.kind is kind
    ]  # fmt: skip


def _renewed(settings: Settings, old: Attached, embedders: Sequence[Embedder]) -> Attached:
    # Read whole in any case: a digest is what a file says of itself, also one that was cut or changed since.
    new = _opened(settings, old.kind, old.name, old.path, embedders)
    same = (new.digest, new.model_digest) == (old.digest, old.model_digest)
    return old if same else new


def _opened(settings: Settings, kind: Kind, name: str, path: Path, embedders: Sequence[Embedder]) -> Attached:
    found = kind.opened(settings, path)
    for embedder in embedders:
        if found.is_of(embedder):
            return Attached(kind, name, path, found.held, found.digest, embedder.name, embedder.digest)
    names = ", ".join(f"{one.name} {one.digest[:12]}" for one in embedders)
    raise InputError(
        f"{path}: was made with {found.model[:100]!r} {found.model_digest[:12]}, and served here is {names}; "
        f"serve that model as well, or make the {kind.name} again"
    )


def _open_index(settings: Settings, path: Path) -> Opened:
    from gramvec.search.index import Index

    # Workers are as many as there are cores to be used.
    index: Index = Index(path, threads=1 if settings.workers > 1 else None)
    manifest = index.manifest
    return Opened(
        index,
        index.digest,
        manifest.model,
        manifest.digest,
        lambda embedder: (embedder.digest, embedder.dimension) == (manifest.digest, manifest.dimensions),
    )


def _open_head(settings: Settings, path: Path) -> Opened:
    from gramvec.classify.head import Head

    head: Head = Head.load(path)

    def is_of(embedder: Embedder) -> bool:
        if embedder.digest != head.digest:
            return False
        head.check_bundle(embedder.digest, embedder.dimension)
        return True

    return Opened(head, head.file_digest, head.model, head.digest, is_of)


INDEX = Kind("index", lambda settings: settings.indexes, _open_index)
HEAD = Kind("head", lambda settings: settings.heads, _open_head)
KINDS = (INDEX, HEAD)


class Reloaded(NamedTuple):
    """Effect of a reload on each model, index and head."""

    models: list[Change]
    indexes: list[Change]
    heads: list[Change]

    @classmethod
    def between(
        cls,
        before: tuple[Sequence[Embedder], Sequence[Attached]],
        after: tuple[Sequence[Embedder], Sequence[Attached]],
    ) -> Reloaded:
        """Compare models and files before and after a reload."""
        return cls(changes(before[0], after[0]), *(_changes(before[1], after[1], kind) for kind in KINDS))

    def told(self) -> dict[str, Any]:
        """Return the effects as a JSON value."""
        return {what: [change._asdict() for change in some] for what, some in self._asdict().items()}
