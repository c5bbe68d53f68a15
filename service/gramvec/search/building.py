"""`build_index`, `add_to_index` and `remove_from_index`: each writes a new file, which takes the old one's place."""

from __future__ import annotations

import tempfile
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gramvec.bulk.dedupe_io import units_of
from gramvec.bulk.embed_file import COLUMN, Done, Files, Interrupted, Options, Watcher, embed_file
from gramvec.embed.embedder import Embedder
from gramvec.embed.vectors import Vectors
from gramvec.errors import InputError, quoted
from gramvec.lexical.sketch import LexicalSketch
from gramvec.search.filters import MOST_COLUMNS, FilterHeader
from gramvec.search.form import IndexForm, Removal
from gramvec.search.layout import MOST_LABEL, Bytes, IndexHeader, Layout, WeightsHeader
from gramvec.search.weighing import Weights, weighed
from gramvec.tables.columns import OnError
from gramvec.tables.inputs import Form
from gramvec.tables.staging import open_stage

MOST_NAMED = 5


@dataclass(frozen=True)
class _Units(Options):
    """Vectors of length 1, or 0 for a text without any known feature, which resembles nothing."""

    def embed(self, embedder: Embedder, texts: list[str]) -> Vectors:
        return units_of(embedder, texts, truncate=self.truncate, watch=lambda _: None)


def build_index(
    embedder: Embedder,
    source: Path,
    output: Path,
    *,
    form: Form | None = None,
    column: str = COLUMN,
    id_column: str | None = None,
    filters: Sequence[str] = (),
    fine: bool = True,
    weights: Weights = "texts",
    truncate: bool = False,
    on_error: OnError = "stop",
    resume: bool = False,
    threads: int | None = None,
    watch: Watcher | None = None,
) -> Done:
    """Make an index of the rows of a file; what is at `output` is replaced when it is whole.

    id_column: of different ids; None takes the numbers of the lines. filters: columns that a search can be narrowed by,
    at most 16, of values as short as a word or a number. fine: keep what int8 rounds off as well, for exact scores; as
    many bytes again as the vectors have. weights: of n-grams, which `hybrid` goes by, and vectors of another space than
    meaning: by the texts, counted before, or the model's; an embedder that is `adapted` keeps its own.
    The other arguments and errors are embed_file's;
    InputError also for a file without a text, and for two rows with one id. The embedder should have threads=1.
    """
    if len(set(filters)) < len(filters):
        raise InputError("a column to filter by is named twice; leave one out")
    if len(filters) > MOST_COLUMNS:
        raise InputError(f"{len(filters)} columns to filter by; an index takes {MOST_COLUMNS}: leave some out")
    for name in (column, id_column or "", *filters):
        if len(name) > MOST_LABEL:
            raise InputError(f"a column's name of over {MOST_LABEL} characters cannot be kept; give it a shorter one")
    lexical = embedder.own_lexical
    if lexical is None and weights == "texts":
        try:
            lexical = weighed(embedder, source, form, column)
        except KeyboardInterrupt as error:
            raise Interrupted("stopped; nothing was done yet") from error
    if lexical is not None and embedder.space != "semantic":
        embedder = embedder.with_lexical(lexical, embedder.space)
    said, stored = _stored(lexical)
    header = IndexHeader(
        model=embedder.name, digest=embedder.digest, space=embedder.space, dimensions=embedder.dimension,
        column=column, id=id_column, fine=fine, filters=tuple(FilterHeader(column=name) for name in filters),
        weights=said,
    )  # fmt: skip
    header.packed()  # names that are too long are refused before the work
    files = Files(source, output, form, None, column)
    return embed_file(
        embedder, files, _Units(truncate=truncate), on_error=on_error, resume=resume, threads=threads, watch=watch,
        written=IndexForm(header, lambda: None, stored),
        also={
            "index": None, "fine": fine, "id": id_column, "filters": [*filters],
            "weights": None if lexical is None else lexical.digest,
        },
    )  # fmt: skip


def add_to_index(
    embedder: Embedder,
    path: Path,
    source: Path,
    *,
    form: Form | None = None,
    truncate: bool = False,
    on_error: OnError = "stop",
    resume: bool = False,
    threads: int | None = None,
    watch: Watcher | None = None,
) -> Done:
    """Add the rows of a file to an index; its columns of texts and ids are the index's.

    Arguments and errors as build_index; InputError for another model, and for an id that is there already.
    """
    former = Layout(path, verify=False)
    embedder = made_by(former, embedder)

    def base() -> Layout:
        now = Layout(path)
        if now.digest != former.digest:
            raise InputError(f"{path}: another run has changed it meanwhile; call again")
        return now

    files = Files(source, path, form, None, former.header.column)
    return embed_file(
        embedder, files, _Units(truncate=truncate), on_error=on_error, resume=resume, threads=threads, watch=watch,
        written=IndexForm(former.header, base, former.weights), also={"index": former.digest, "id": former.header.id},
    )  # fmt: skip


def remove_from_index(path: Path, ids: Collection[str]) -> int:
    """Take rows out of an index by their ids; how many rows are left.

    Raises InputError for an id that is not there and if none would be left; then nothing has changed.
    """
    wanted = set(ids)

    def kept(former: Layout) -> NDArray[np.bool_]:
        found = np.fromiter((one in wanted for one in former.every_id()), np.bool_, former.header.rows)
        if int(found.sum()) < len(wanted):
            absent = sorted(wanted.difference(former.every_id()))
            named = ", ".join(map(quoted, absent[:MOST_NAMED])) + (", ..." if len(absent) > MOST_NAMED else "")
            raise InputError(f"{path}: {len(absent):,} ids are not there ({named}); nothing was removed")
        return ~found

    Layout(path, verify=False)  # what is no index is named before a file is put beside it
    removal = Removal(path, kept)
    stage = open_stage(path, None, resume=False)
    try:
        stage.finish(removal, 0)
    except BaseException:
        stage.discard()
        raise
    return removal.left


def made_by(layout: Layout, embedder: Embedder) -> Embedder:
    """What made the vectors: this model, or it with the index's weights of n-grams. Raises InputError for another."""
    digest, lexical = layout.header.digest, layout.lexical
    if embedder.digest == digest:
        return embedder
    if lexical is not None and layout.header.space != "semantic":
        found = embedder.with_lexical(lexical, layout.header.space)
        if found.digest == digest:
            return found
    raise InputError(
        f"{layout.path} was made with {quoted(layout.header.model)} {digest[:12]}, not with "
        f"{embedder.name} {embedder.digest[:12]}; name that model, or build the index again"
    )


def _stored(lexical: LexicalSketch | None) -> tuple[WeightsHeader | None, Bytes]:
    """What an index says of a lexical sketch, and its lexical.safetensors."""
    if lexical is None:
        return None, np.zeros(0, np.uint8)
    with tempfile.TemporaryDirectory(prefix="gramvec-") as folder:
        path = Path(folder) / "lexical.safetensors"
        lexical.weights.save(path)
        data = np.frombuffer(path.read_bytes(), np.uint8)
    return WeightsHeader(bytes=len(data), **lexical.shape), data
