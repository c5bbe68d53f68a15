"""Models that a process serves, with the indexes and heads that belong to them: opened, checked, and reopened.

The readers of indexes and heads are imported only where there is one: `gramvec.jobs.search` brings tantivy, which
vectors do not need.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from pydantic import BaseModel

from gramvec.bundle.resolve import find_bundle
from gramvec.embed.embedder import Embedder
from gramvec.embed.loading import load
from gramvec.errors import BundleError, GramvecError, InputError
from gramvec.server.batching.batcher import Batcher
from gramvec.server.settings import OTHERS, Settings, aliases_of, parse_named_files, token_files
from gramvec.server.state.token_ids import open_encodings

if TYPE_CHECKING:
    from gramvec.jobs.classify.head import Head
    from gramvec.jobs.search.index import Index

MAX_LABEL_BYTES = 1024


class LoadedModel(NamedTuple):
    """A loaded model and the queue in front of it.

    Attributes:
        label: for `x-model`: name and first digits of the digest.
        truncate: cut the texts of requests that do not say whether to.
    """

    embedder: Embedder
    batcher: Batcher
    label: bytes
    truncate: bool = False


@dataclass(frozen=True, eq=False)
class AttachedFile:
    """An open file of the settings, which belongs to a model.

    Attributes:
        name: that requests give it.
        held: its content.
        digest: of the file.
        model, model_digest: that it was made with.
        mark: of an index, what its commits change, as it was before the file was opened.
    """

    kind: Kind
    name: str
    path: Path
    held: Any
    digest: str
    model: str
    model_digest: str
    mark: tuple[object, ...] = ()


class Kind(NamedTuple):
    """A kind of file.

    Attributes:
        files: returns those of the settings, by name.
        open_file: reads and checks a file.
        is_of: returns True if what it holds belongs to a model.
    """

    name: str
    files: Callable[[Settings], dict[str, Path]]
    open_file: Callable[[Settings, str, Path], AttachedFile]
    is_of: Callable[[Any, Embedder], bool]


class ReloadedOne(BaseModel):
    """A model, index or head after a reload, and whether it is another one than before."""

    name: str
    digest: str
    changed: bool


class Reloaded(BaseModel):
    """What a reload may have changed: the response of /admin/reload."""

    models: list[ReloadedOne]
    indexes: list[ReloadedOne]
    heads: list[ReloadedOne]


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
        close_except(opened, ())
        raise
    return opened


def open_attached_files(
    settings: Settings, embedders: Sequence[Embedder], tell: Callable[[str], None] = lambda _: None
) -> list[AttachedFile]:
    """Open the indexes, then the heads of the settings; `tell` is called with the current step.

    Raises:
        InputError: a file is unavailable, or its model is not among these.
    """
    found = []
    for kind in KINDS:
        for name, path in kind.files(settings).items():
            tell(f"the {kind.name} {name} is being opened")
            found.append(_open_attached_file(settings, kind, name, path, embedders))
    return found


def check_there(settings: Settings) -> None:
    """Raise GramvecError for a model or a file of the settings that is missing, before anything is opened."""
    for source in settings.model:
        find_bundle(source)
    for kind in KINDS:
        for name, path in kind.files(settings).items():
            if not path.exists():
                raise InputError(f"the {kind.name} {name!r} is not there: {path} does not exist")
    open_encodings(settings.token_ids)


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
    """Raise BundleError for an alias that is a model's own name or names no model, and for such token ids."""
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


def reopen_models(
    settings: Settings, serving: Sequence[Embedder], attached: Sequence[AttachedFile]
) -> tuple[list[Embedder], list[AttachedFile]]:
    """Reopen models, and the files that belong to them; keep those that have not changed.

    Args:
        settings: how to open them.
        serving: the models open now; they stay open in any case.
        attached: the files open now.

    Raises:
        GramvecError: a model or file is unavailable, two models have the same name, or a file belongs to no model.
            Everything that was opened is closed.
    """
    found: list[Embedder] = []
    try:
        for old in serving:
            new = _reopen(settings, old)
            if new.digest == old.digest:
                new.close()
                new = old
            found.append(new)
        check_names(found)
        check_aliases(settings, found)
        return found, [renew_attached_file(settings, served, found) for served in attached]
    except BaseException:
        close_except(found, serving)
        raise


def effect(
    before: tuple[Sequence[Embedder], Sequence[AttachedFile]], after: tuple[Sequence[Embedder], Sequence[AttachedFile]]
) -> Reloaded:
    """Return the effect of a reload on each model, index and head."""

    def changes(*pairs: tuple[Any, Any]) -> list[ReloadedOne]:
        return [ReloadedOne(name=new.name, digest=new.digest, changed=new.digest != old.digest) for old, new in pairs]

    files = list(zip(before[1], after[1], strict=True))
    return Reloaded(
        models=changes(*zip(before[0], after[0], strict=True)),
        indexes=changes(*(pair for pair in files if pair[1].kind is INDEX)),
        heads=changes(*(pair for pair in files if pair[1].kind is HEAD)),
    )


def close_except(embedders: Iterable[Embedder], kept: Sequence[Embedder]) -> None:
    """Close `embedders` except those in `kept`."""
    for embedder in embedders:
        if not any(embedder is other for other in kept):
            embedder.close()


def _reopen(settings: Settings, old: Embedder) -> Embedder:
    # A model of the caller's may have other columns than the settings say, also ones adapted to texts of theirs.
    adapted = old.lexical if old.lexical is not old.bundle.lexical else None
    space = old.space if adapted is None else "semantic"
    as_before = settings.model_copy(update={"space": space, "max_characters": old.max_characters})
    path = old.bundle.path
    try:
        new = load_model(as_before, str(path))
    except GramvecError:
        raise
    except Exception as error:
        # An unexpected error is no reason to stop serving.
        raise BundleError(f"{path}: cannot be loaded ({type(error).__name__}: {error})") from error
    return new if adapted is None else new.with_lexical(adapted, old.space)


def renew_attached_file(settings: Settings, old: AttachedFile, embedders: Sequence[Embedder]) -> AttachedFile:
    """Return what a file holds now, or what it held where that is the same. Raises as `open_attached_files`."""
    # Read whole in any case: a file that was cut or changed since still states its old digest.
    new = _open_attached_file(settings, old.kind, old.name, old.path, embedders)
    same = (new.digest, new.model_digest) == (old.digest, old.model_digest)
    return replace(old, mark=new.mark) if same else new


def mark_now(index: AttachedFile) -> tuple[object, ...]:
    """Return the mark that a served index has now; it is `index.mark` where no commit came since it was opened."""
    from gramvec.jobs.search.folder import mark_of

    return mark_of(index.path, index.held.manifest.generation)


def _open_attached_file(
    settings: Settings, kind: Kind, name: str, path: Path, embedders: Sequence[Embedder]
) -> AttachedFile:
    found = kind.open_file(settings, name, path)
    for embedder in embedders:
        if kind.is_of(found.held, embedder):
            return replace(found, model=embedder.name)
    names = ", ".join(f"{embedder.name} {embedder.digest[:12]}" for embedder in embedders)
    raise InputError(
        f"{path}: was made with {found.model[:100]!r} {found.model_digest[:12]}, and served here is {names}; "
        f"serve that model as well, or make the {kind.name} again"
    )


def _open_index(settings: Settings, name: str, path: Path) -> AttachedFile:
    from gramvec.jobs.search.folder import mark_of, read_manifest
    from gramvec.jobs.search.index import Index

    # Before it is opened: a commit that comes meanwhile is not missed.
    mark = mark_of(path, read_manifest(path).generation)
    # Workers are as many as there are cores to be used.
    index: Index = Index(path, threads=1 if settings.workers > 1 else None)
    return AttachedFile(INDEX, name, path, index, index.digest, index.manifest.model, index.manifest.digest, mark)


def _index_is_of(index: Index, embedder: Embedder) -> bool:
    manifest = index.manifest
    return (embedder.digest, embedder.dimension) == (manifest.digest, manifest.dimensions)


def _open_head(settings: Settings, name: str, path: Path) -> AttachedFile:
    from gramvec.jobs.classify.head import Head

    head: Head = Head.load(path)
    return AttachedFile(HEAD, name, path, head, head.file_digest, head.model, head.digest)


def _head_is_of(head: Head, embedder: Embedder) -> bool:
    if embedder.digest != head.digest:
        return False
    head.check_bundle(embedder.digest, embedder.dimension)
    return True


INDEX = Kind("index", lambda settings: parse_named_files(settings.index), _open_index, _index_is_of)
HEAD = Kind("head", lambda settings: parse_named_files(settings.head), _open_head, _head_is_of)
KINDS = (INDEX, HEAD)
