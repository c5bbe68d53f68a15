"""Ray Data: `Search` for Dataset.map_batches, and `search_parquet` for folders of Parquet on many machines.

    import ray
    from gramvec.search.ray import Search

    found = ray.data.read_parquet("questions").map_batches(
        Search, fn_constructor_kwargs={"index": "things.gvi", "k": 3}, batch_format="pyarrow", concurrency=2
    )

An index is built once, and each actor maps it: those of one machine share its memory. Wants the extras `ray`, `search`.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from gramvec.bulk.dedupe_io import units_of
from gramvec.bulk.embed_file import COLUMN
from gramvec.errors import InputError
from gramvec.search.filters import Where
from gramvec.search.index import Index, View, check_k
from gramvec.search.scan import TILE_QUERIES, kernels
from gramvec.tables.arrow import pyarrow, texts_of, with_metadata
from gramvec.tables.columns import OnError
from gramvec.tables.staging import whole

__all__ = ["Search", "search_parquet"]

MISSING = "Ray Data is not installed: pip install 'gramvec[ray]'"
ROWS = 8_192


class Search:
    """An index that adds two columns to batches of Arrow: `ids` of the nearest rows, list<string>, and `scores`.

    index: a file, at the same path on every machine; it is opened once, by the first batch of a process. column: the
    texts' column. k, where: as in Index.search. threshold: the least score; with k=1 it joins two tables. digest:
    refuse an index with another one (Index.digest). on_error: "skip" gives a bad text null, "stop" raises InputError.
    model, device, truncate: those of Index and Index.search; threads: that look through the rows.
    """

    def __init__(
        self,
        index: str | os.PathLike[str],
        *,
        column: str = COLUMN,
        k: int = 10,
        threshold: float = -1,
        where: Where | None = None,
        ids: str = "ids",
        scores: str = "scores",
        on_error: OnError = "stop",
        model: str | os.PathLike[str] | None = None,
        device: str = "auto",
        truncate: bool = False,
        threads: int = 1,
        digest: str | None = None,
    ) -> None:
        check_k(k)
        if not -1 <= threshold <= 1:
            raise InputError(f"the threshold must be from -1 to 1, not {threshold:g}", field="threshold")
        self.index = os.fspath(index)
        self.column, self.ids, self.scores = column, ids, scores
        self.k, self.threshold, self.where = k, threshold, where
        self.on_error: OnError = on_error
        self.model = None if model is None else os.fspath(model)
        self.device = device
        self.truncate = truncate
        self.threads = threads
        self.digest = digest
        self._opened: tuple[Index, View] | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_opened": None}  # the other process maps the file itself

    def open(self, *, verify: bool = False) -> tuple[Index, View]:
        """The open index and its rows. Raises InputError for another digest, model or column to narrow by."""
        if self._opened is None:
            kernels()
            index = Index(
                self.index,
                model=self.model,
                device=self.device,  # type: ignore[arg-type]
                threads=self.threads,
                verify=verify,
            )
            if self.digest not in (None, index.digest):
                raise InputError(f"{self.index} has digest {index.digest}, not {self.digest}; copy the same index")
            view = index.view(index.narrowing(self.where))
            _ = index.embedder  # another model is refused before there is work
            self._opened = index, view
        return self._opened

    def __call__(self, batch: Any) -> Any:
        """A pyarrow Table or RecordBatch: the same with the two columns, as its last."""
        pa = pyarrow("Arrow")
        if isinstance(batch, dict):
            raise InputError('Search takes batches of Arrow; say batch_format="pyarrow"')
        self._check(batch.schema.names)
        texts = texts_of(batch.column(batch.schema.get_field_index(self.column)), self.column)
        ids, scores = self._found(texts)
        columns = [pa.array(ids, pa.list_(pa.string())), pa.array(scores, pa.list_(pa.float32()))]
        schema = batch.schema
        for name, one in zip((self.ids, self.scores), columns, strict=True):
            schema = schema.append(pa.field(name, one.type))
        return type(batch).from_arrays([*batch.columns, *columns], schema=with_metadata(schema, self.metadata()))

    def metadata(self) -> dict[str, str]:
        """What files of results say: the index's digest, and what was asked of it."""
        index, _ = self.open()
        asked = {"column": self.column, "k": self.k, "threshold": self.threshold, "where": self.where}
        asked |= {"truncate": self.truncate, "ids": self.ids, "scores": self.scores, "on_error": self.on_error}
        return {
            "gramvec.index": index.digest,
            "gramvec.search": orjson.dumps(asked, option=orjson.OPT_SORT_KEYS, default=list).decode(),
        }

    def _check(self, names: list[str]) -> None:
        if self.column not in names:
            raise InputError(f"no column {self.column!r}; there are {', '.join(names)}: name one by column=")
        for name in (self.ids, self.scores):
            if name in names:
                raise InputError(f"there is a column {name!r} already; name others by ids= and scores=")

    def _found(self, texts: list[str | None]) -> tuple[list[Any], list[Any]]:
        index, view = self.open()
        good = [row for row, text in enumerate(texts) if self._is_good(row, text)]
        ids: list[Any] = [None] * len(texts)
        scores: list[Any] = [None] * len(texts)
        for start in range(0, len(good), TILE_QUERIES):
            some = good[start : start + TILE_QUERIES]
            asked = [str(texts[row]) for row in some]
            units = units_of(index.embedder, asked, truncate=self.truncate, watch=lambda _: None)
            for row, rows, cosines in zip(some, *view.nearest(units, self.k), strict=True):
                near = cosines >= np.float32(self.threshold)
                ids[row] = view.ids(rows[near])
                scores[row] = cosines[near]
        return ids, scores

    def _is_good(self, row: int, text: str | None) -> bool:
        try:
            if text is None:
                raise InputError("text 0 is missing")
            self.open()[0].embedder.prepare([text], truncate=self.truncate)
        except InputError as error:
            if self.on_error == "skip":
                return False
            raise InputError(f"row {row + 1} of a batch: {str(error).replace('text 0', 'the text', 1)}") from error
        return True


class _SearchFile:
    """An actor: it maps the index once, and turns file after file into one with what was found, whole or not at all."""

    def __init__(self, **options: Any) -> None:
        self._search = Search(**options)

    def __call__(self, batch: dict[str, Any]) -> dict[str, list[Any]]:
        rows = [
            _search_file(self._search, Path(source), Path(target))
            for source, target in zip(batch["source"], batch["target"], strict=True)
        ]
        return {"target": list(batch["target"]), "rows": rows}


def search_parquet(
    source: str | Path, output: str | Path, *, workers: int = 2, overwrite: bool = False, **options: Any
) -> dict[str, int]:
    """Search for the texts of a folder of Parquet files (or of one) into files of the same names, on `workers` actors.

    A file is the unit of work. One that is there already, of this index and these options, is left as it is unless
    `overwrite`: so the same call goes on where a broken one ended. options: those of Search; `threads` is also an
    actor's CPUs. Folders and index must be the same ones on every machine, and so must the model.
    Returns {"files", "rows", "skipped"}. Raises InputError if there is nothing to read or Ray is missing, and what Ray
    raises for a file that cannot be searched for, after the others that had begun.
    """
    try:
        data = import_module("ray.data")
    except ImportError as error:
        raise InputError(MISSING) from error
    path, folder = Path(source), Path(output).absolute()
    sources = [path] if path.is_file() else sorted(path.glob("*.parquet"))
    if not sources:
        raise InputError(f"{path}: no Parquet file and no folder with any (*.parquet)")
    search = Search(**options)
    index, _ = search.open(verify=True)
    folder.mkdir(parents=True, exist_ok=True)
    wanted = search.metadata()
    tasks = [{"source": str(one.absolute()), "target": str(folder / one.name)} for one in sources]
    left = [task for task in tasks if overwrite or not _is_done(Path(task["target"]), wanted)]
    counts = {"files": len(tasks), "rows": 0, "skipped": len(tasks) - len(left)}
    if left:
        done = data.from_items(left, override_num_blocks=len(left)).map_batches(
            _SearchFile,
            fn_constructor_kwargs={**options, "index": str(Path(search.index).absolute()), "digest": index.digest},
            batch_size=1,
            num_cpus=search.threads,
            compute=data.ActorPoolStrategy(size=min(workers, len(left))),
        )
        counts["rows"] = sum(int(row["rows"]) for row in done.iter_rows())
    return counts


def _search_file(search: Search, source: Path, target: Path) -> int:
    pq = pyarrow(module="pyarrow.parquet")
    rows = 0
    with pq.ParquetFile(source) as file, whole(target) as out:
        empty: Callable[[], Any] = file.schema_arrow.empty_table
        schema = search(empty()).schema
        with pq.ParquetWriter(out, schema) as writer:
            for batch in file.iter_batches(ROWS):
                writer.write_batch(search(batch).cast(schema))
                rows += batch.num_rows
    return rows


def _is_done(target: Path, wanted: dict[str, str]) -> bool:
    if not target.is_file():
        return False
    metadata = pyarrow(module="pyarrow.parquet").read_schema(target).metadata or {}
    return all(metadata.get(key.encode()) == value.encode() for key, value in wanted.items())
