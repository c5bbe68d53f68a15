"""`Embed`: batches of Arrow or numpy with a column of vectors added, for Ray Data and Spark.

    ray.data.read_parquet("texts").map_batches(
        Embed, fn_constructor_kwargs={"model": "gramvec-en"}, batch_format="pyarrow", concurrency=2
    )

    embed = SparkEmbed("gramvec-en", column="title")
    frame.mapInArrow(embed, embed.schema(frame.schema))

`embed_parquet` embeds whole files on many machines by Ray Data. The extra `ray` installs it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gramvec.embed.embedder import MAX_CHARACTERS
from gramvec.embed.loading import load
from gramvec.errors import InputError, import_extra
from gramvec.jobs.bulk.embed_file import COLUMN, EMBEDDING, Files, Options, Work, embed_file, provenance
from gramvec.jobs.common.bad_rows import BadRows, OnError
from gramvec.jobs.tables.batches import START, Block
from gramvec.jobs.tables.parquet import pyarrow, texts_of, vector_column, with_metadata

SPARK_TYPES = {"float32": "FloatType", "int8": "ByteType", "binary": "ByteType"}


class Embed:
    """Model that adds a column of vectors to batches. The first batch of a process opens it.

    Args:
        model: a name in models/, or a bundle's folder, on the machine that computes.
        column: name of the texts' column.
        embedding: name of the new column.
        on_error: "skip" gives a bad text null (numpy: zeros), "stop" raises InputError.
        digest: a model with another digest is refused, so that all machines have the same one.
        normalize, dimensions, truncate, precision, max_characters, device, threads: as in `gramvec embed`.
    """

    def __init__(
        self,
        model: str | os.PathLike[str] = "gramvec-en",
        *,
        column: str = COLUMN,
        embedding: str = EMBEDDING,
        normalize: bool = True,
        dimensions: int | None = None,
        truncate: bool = False,
        precision: str = "float32",
        on_error: OnError = "stop",
        max_characters: int = MAX_CHARACTERS,
        device: str = "auto",
        threads: int = 1,
        digest: str | None = None,
    ) -> None:
        self.model = os.fspath(model)
        self.column = column
        self.embedding = embedding
        self.options = Options(normalize, dimensions, truncate, precision)  # type: ignore[arg-type]
        self.on_error: OnError = on_error
        self.max_characters = max_characters
        self.device = device
        self.threads = threads
        self.digest = digest
        self._work: Work | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_work": None}  # an open model does not travel; the other process opens its own

    def open(self) -> Work:
        """Return the open model. Raises what gramvec.load raises, and InputError for another digest or bad options."""
        if self._work is None:
            embedder = load(
                self.model,
                device=self.device,  # type: ignore[arg-type]
                max_characters=self.max_characters,
                threads=self.threads,
            )
            if self.digest not in (None, embedder.digest):
                raise InputError(
                    f"{embedder.bundle.path}: has digest {embedder.digest}, not {self.digest}; copy the same model"
                )
            self.options.check(embedder)
            self._work = Work(embedder, self.options, BadRows(self.on_error, "row"))
        return self._work

    def __call__(self, batch: Any) -> Any:
        """Return a pyarrow Table or RecordBatch, or a dict of numpy arrays, with the new column as its last."""
        if isinstance(batch, dict):
            return self._numpy(batch)
        return self._arrow(batch)

    def _arrow(self, batch: Any) -> Any:
        pa = pyarrow("Arrow")
        self._check(batch.schema.names)
        texts = texts_of(batch.column(batch.schema.get_field_index(self.column)), self.column)
        vectors, missing = self._vectors(texts)
        column = self._column(vectors, missing)
        schema = batch.schema.append(pa.field(self.embedding, column.type))
        entries = provenance(self.open().embedder, vars(self.options))
        return type(batch).from_arrays([*batch.columns, column], schema=with_metadata(schema, entries))

    def _column(self, vectors: NDArray[np.generic], missing: NDArray[np.bool_]) -> Any:
        return vector_column(vectors, missing)

    def _numpy(self, batch: dict[str, Any]) -> dict[str, Any]:
        self._check(list(batch))
        vectors, _ = self._vectors(list(batch[self.column]))
        return {**batch, self.embedding: vectors}

    def _check(self, names: list[str]) -> None:
        if self.column not in names:
            raise InputError(f"no column {self.column!r}; there are {', '.join(names)}: name one by column=")
        if self.embedding in names:
            raise InputError(f"there is a column {self.embedding!r} already; name another one by embedding=")

    def _vectors(self, texts: list[str | None]) -> tuple[NDArray[np.generic], NDArray[np.bool_]]:
        block = Block(START)
        for text in texts:
            if isinstance(text, str):
                block.texts.append(text)
            else:
                block.refuse(f"of type {type(text).__name__}, not a text")
        block.numbers = list(range(1, len(texts) + 1))
        found = self.open().embed_block(block)
        return found.vectors, found.missing


class SparkEmbed(Embed):
    """`Embed` over an iterator of record batches, for Spark's DataFrame.mapInArrow."""

    def __call__(self, batch: Any) -> Any:
        """Yield record batches, each with the column of vectors."""
        return self._each(batch)

    def _each(self, found: Iterator[Any]) -> Iterator[Any]:
        for batch in found:
            yield self._arrow(batch)

    def _column(self, vectors: NDArray[np.generic], missing: NDArray[np.bool_]) -> Any:
        column = super()._column(vectors, missing)  # Spark only knows lists of any length
        return column.cast(pyarrow().list_(column.type.value_type))

    def schema(self, frame: Any) -> Any:
        """Return the pyspark StructType of the result for one of the input. Spark has no unsigned bytes."""
        types = import_module("pyspark.sql.types")
        if (kind := SPARK_TYPES.get(self.options.precision)) is None:
            raise InputError(f"precision {self.options.precision} is unsigned, Spark has no such bytes; take int8")
        column = types.StructField(self.embedding, types.ArrayType(getattr(types, kind)()))
        return types.StructType([*frame.fields, column])


class _EmbedFile:
    """Ray actor that opens the model once, and turns file after file into one with vectors, whole or not at all."""

    def __init__(self, **options: Any) -> None:
        self._embed = Embed(**options)

    def __call__(self, batch: dict[str, Any]) -> dict[str, list[Any]]:
        work = self._embed.open()
        rows, bad = [], []
        for source, target in zip(batch["source"], batch["target"], strict=True):
            files = Files(
                Path(source), Path(target), "parquet", "parquet", self._embed.column, self._embed.embedding
            )  # fmt: skip
            done = embed_file(
                work.embedder, files, work.options, on_error=work.bad.on_error, threads=self._embed.threads
            )
            rows.append(done.rows)
            bad.append(done.bad.count)
        return {"target": list(batch["target"]), "rows": rows, "bad": bad}


def embed_parquet(
    source: str | Path, output: str | Path, *, workers: int = 2, overwrite: bool = False, **options: Any
) -> dict[str, int]:
    """Embed the Parquet files of a folder into files of the same names in another, by Ray Data.

    A file is the unit of work, and has the bytes that `gramvec embed` gives it, with the model's digest in its
    metadata. A file that exists with this digest and these options is left unchanged, so that the same call resumes
    a broken one.
    Both folders, and the model, must be the same on every machine.

    Args:
        source: a folder of .parquet files, or a file.
        output: the folder of the new files.
        workers: actors.
        overwrite: embed files again that exist.
        options: those of Embed; `threads` is also an actor's CPUs.

    Returns:
        {"files", "rows", "bad", "skipped"}.

    Raises:
        InputError: there is nothing to read, or Ray is not installed.
    """
    data = import_extra("ray.data", "ray", "this")
    sources = _sources(Path(source))
    folder = Path(output).absolute()
    folder.mkdir(parents=True, exist_ok=True)
    embed = Embed(**options)
    work = embed.open()
    options = {**options, "digest": work.embedder.digest}
    tasks = [{"source": str(file), "target": str(folder / file.name)} for file in sources]
    made = provenance(work.embedder, vars(work.options))
    wanted = {key: made[key] for key in ("gramvec.digest", "gramvec.options")}
    left = [task for task in tasks if overwrite or not _is_done(Path(task["target"]), wanted)]
    counts = {"files": len(tasks), "rows": 0, "bad": 0, "skipped": len(tasks) - len(left)}
    if not left:
        return counts
    done = data.from_items(left, override_num_blocks=len(left)).map_batches(
        _EmbedFile,
        fn_constructor_kwargs=options,
        batch_size=1,
        num_cpus=embed.threads,
        compute=data.ActorPoolStrategy(size=min(workers, len(left))),
    )
    for row in done.iter_rows():
        counts["rows"] += int(row["rows"])
        counts["bad"] += int(row["bad"])
    return counts


def _sources(path: Path) -> list[Path]:
    found = [path] if path.is_file() else sorted(path.glob("*.parquet"))
    if not found:
        raise InputError(f"{path}: no Parquet file and no folder with any (*.parquet)")
    return [file.absolute() for file in found]


def _is_done(target: Path, wanted: dict[str, str]) -> bool:
    if not target.is_file():
        return False
    pq = pyarrow(module="pyarrow.parquet")
    metadata = pq.read_schema(target).metadata or {}
    return all(metadata.get(key.encode()) == value.encode() for key, value in wanted.items())
