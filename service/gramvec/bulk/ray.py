"""Ray Data: `Embed` for Dataset.map_batches, and `embed_parquet` for folders of Parquet on many machines.

    import ray
    from gramvec.bulk.ray import Embed

    vectors = ray.data.read_parquet("texts").map_batches(
        Embed, fn_constructor_kwargs={"model": "gramvec-en"}, batch_format="pyarrow", concurrency=2
    )

Each actor opens the model once. Wants the extra `ray`.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

from gramvec.bulk.embed_file import Files, embed_file
from gramvec.bulk.metadata import provenance
from gramvec.bulk.transform import Embed
from gramvec.errors import InputError
from gramvec.tables.arrow import pyarrow

__all__ = ["Embed", "embed_parquet"]

MISSING = "Ray Data is not installed: pip install 'gramvec[ray]'"


class _EmbedFile:
    """An actor: it opens the model once, and turns file after file into one with vectors, whole or not at all."""

    def __init__(self, **options: Any) -> None:
        self._embed = Embed(**options)

    def __call__(self, batch: dict[str, Any]) -> dict[str, list[Any]]:
        work = self._embed.open()
        rows, bad = [], []
        for source, target in zip(batch["source"], batch["target"], strict=True):
            files = Files(
                Path(source), Path(target), "parquet", "parquet", self._embed.column, self._embed.embedding
            )  # fmt: skip
            done = embed_file(work.embedder, files, work.options, on_error=work.on_error, threads=self._embed.threads)
            rows.append(done.rows)
            bad.append(done.bad.count)
        return {"target": list(batch["target"]), "rows": rows, "bad": bad}


def embed_parquet(
    source: str | Path, output: str | Path, *, workers: int = 2, overwrite: bool = False, **options: Any
) -> dict[str, int]:
    """Embed the Parquet files of a folder (or one file) into files of the same names in another, on `workers` actors.

    A file is the unit of work, and is what `gramvec embed` makes of it, byte for byte, with the model's digest in its
    metadata. A file that is there already with this digest and these options is left as it is, unless `overwrite`: so
    the same call goes on where a broken one ended. options: those of Embed; `threads` is also an actor's CPUs.
    Both folders must be the same ones on every machine, and so must the model.
    Returns {"files", "rows", "bad", "skipped"}. Raises InputError if there is nothing to read or Ray is missing, and
    what Ray raises for a file that cannot be embedded, after the others that had begun.
    """
    try:
        data = import_module("ray.data")
    except ImportError as error:
        raise InputError(MISSING) from error
    sources = _sources(Path(source))
    folder = Path(output).absolute()
    folder.mkdir(parents=True, exist_ok=True)
    embed = Embed(**options)
    work = embed.open()
    options = {**options, "digest": work.embedder.digest}
    tasks = [{"source": str(one), "target": str(folder / one.name)} for one in sources]
    wanted = {"gramvec.digest": work.embedder.digest, "gramvec.options": _options_of(embed)}
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


def _options_of(embed: Embed) -> str:
    return provenance(embed.open().embedder, vars(embed.options))["gramvec.options"]


def _sources(path: Path) -> list[Path]:
    found = [path] if path.is_file() else sorted(path.glob("*.parquet"))
    if not found:
        raise InputError(f"{path}: no Parquet file and no folder with any (*.parquet)")
    return [one.absolute() for one in found]


def _is_done(target: Path, wanted: dict[str, str]) -> bool:
    if not target.is_file():
        return False
    pq = pyarrow(module="pyarrow.parquet")
    metadata = pq.read_schema(target).metadata or {}
    return all(metadata.get(key.encode()) == value.encode() for key, value in wanted.items())
