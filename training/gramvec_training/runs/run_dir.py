"""The run folder: everything that a run leaves behind, from which a bundle is exported.

config.json, vocab.bin, texts.txt (texts for the export's parity check) and repeated.tsv (counts for its memo) are
written before training; checkpoint.pt while it runs, and no longer, as input.tsv, which a pipe gave; weights.npz, the
arrays that the encoder is made of, by name, and, last, run.json when it is finished.
"""

from __future__ import annotations

import os
import platform
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import torch

import gramvec
from gramvec.bundle.manifest import Manifest
from gramvec.errors import InputError
from gramvec.features.featurizer import Featurizer
from gramvec.features.spec import FeatureSpec
from gramvec.text.vocabulary import Vocabulary
from gramvec_training.config import Config
from gramvec_training.data.vocabulary import RepeatedParts
from gramvec_training.encoders.base import Arrays, Encoder
from gramvec_training.encoders.build import make_encode, restore_encoder
from gramvec_training.encoders.graphs import graph_encoder
from gramvec_training.evaluation.card import write_card
from gramvec_training.export.adapt import make_whitening, scale_rows
from gramvec_training.export.bundle import NO_MEMO, can_have_memo, choose_chunks, export_bundle
from gramvec_training.readers.lines import RowsRead, SkippedRows
from gramvec_training.sections import Export, Precision
from gramvec_training.shared import write_atomically

CHECKPOINT = "checkpoint.pt"
INPUT = "input.tsv"
PARITY_TEXTS = 1000
_CONFIG, _RECORD, _TEXTS = "config.json", "run.json", "texts.txt"
_VOCABULARY, _WEIGHTS, _REPEATED = "vocab.bin", "weights.npz", "repeated.tsv"
_MAX_REPEATED = 200_000  # chunks, and as many edges


@dataclass(frozen=True)
class StartedRun:
    """A started run: its config, the folder of its data, the command that started it, and what was read of its data."""

    config: Config
    data: Path
    command: str
    read: RowsRead | None = None

    def take_rows(self) -> tuple[list[Any], SkippedRows] | None:
        """Return the rows of the run's one file, where they were read before it began, and only once."""
        return self.read.take() if self.read is not None else None


@dataclass(frozen=True)
class FinishedRun:
    """A finished run: config, data folder, vocabulary, encoder and record."""

    folder: Path
    config: Config
    vocabulary: Vocabulary
    encoder: Encoder
    texts: list[str]
    repeated: RepeatedParts
    record: dict[str, Any]


def make_spec(config: Config) -> FeatureSpec:
    """Return the FeatureSpec of a config."""
    features = config.features
    return FeatureSpec(
        orders=features.orders,
        words=features.words,
        unknown_words=features.unknown_words,
        lowercase=features.lowercase,
        normalization=features.normalization,
        word_rule=features.word_rule,
    )


def begin_run(folder: Path, config: Config, data: Path, *, command: str, read: RowsRead | None = None) -> StartedRun:
    """Create the folder; write its config, data folder and command. read: the rows of its one file, if read already."""
    begun = StartedRun(config, data.resolve(), command, read)
    folder.mkdir(parents=True, exist_ok=True)
    values = {"command": command, "data": str(begun.data), "config": config.model_dump(mode="json")}
    write_atomically(folder / _CONFIG, lambda handle: handle.write(_to_json(values)))
    return begun


def read_begun(folder: Path) -> StartedRun:
    """Read what `begin_run` wrote.

    Raises:
        InputError: The folder holds no run.
    """
    path = folder / _CONFIG
    try:
        values = orjson.loads(path.read_bytes())
        return StartedRun(Config.model_validate(values["config"]), Path(values["data"]), values["command"])
    except FileNotFoundError:
        raise InputError(f"{folder}: no run here; give a folder that gramvec-train fit wrote") from None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(f"{path}: damaged or of another version; start the run again") from error


def is_begun(folder: Path) -> bool:
    """Return whether a folder holds a run, finished or not."""
    return (folder / _CONFIG).is_file()


def is_finished(folder: Path) -> bool:
    """Return whether the run in a folder is finished."""
    return (folder / _RECORD).is_file()


def make_way(folder: Path, *, overwrite: bool) -> None:
    """Prepare a folder for a new run; with `overwrite`, remove what an earlier run left there.

    Files that no run wrote stay.

    Raises:
        InputError: Saying what to do, where there is anything but the beginnings of a run, which hold nothing learned.
    """
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder}: not a folder but a file; give --out a folder")
    there = {path.name for path in folder.iterdir()} if folder.exists() else set()
    if there <= {_CONFIG, _VOCABULARY, _TEXTS, _REPEATED, INPUT}:
        return
    if not overwrite:
        raise InputError(
            f"{folder}: not empty; give another --out, --overwrite to start over, or --resume to continue it"
        )
    for name in (_RECORD, CHECKPOINT, _WEIGHTS, _VOCABULARY, _TEXTS, _REPEATED, _CONFIG, INPUT):
        (folder / name).unlink(missing_ok=True)


def is_better(record: dict[str, Any]) -> bool:
    """Return False where a record has a verdict that the new model is no better for sure."""
    judged = record.get("labels") or record.get("held_out") or {}
    return bool(judged.get("verdict", {"better": True})["better"])


def save_inputs(folder: Path, vocabulary: Vocabulary, texts: Sequence[str], repeated: RepeatedParts) -> None:
    """Write the vocabulary, the texts one a line (line breaks become spaces), and the memo counts."""
    partial = folder / f".{_VOCABULARY}.{os.getpid()}.partial"
    vocabulary.save(partial)
    partial.replace(folder / _VOCABULARY)
    lines = "".join(" ".join(text.splitlines()) + "\n" for text in texts)
    write_atomically(folder / _TEXTS, lambda handle: handle.write(lines.encode()))
    counted = "".join(
        f"{count}\t{text}\n"
        for counts in repeated
        for text, count in sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:_MAX_REPEATED]
    )
    write_atomically(folder / _REPEATED, lambda handle: handle.write(counted.encode()))


def finish_run(folder: Path, arrays: Arrays, record: dict[str, Any]) -> None:
    """Write the encoder's arrays, then the record that marks the run as finished.

    The checkpoint and a pipe's copy are removed.
    """
    write_atomically(folder / _WEIGHTS, lambda handle: np.savez(handle, **arrays))  # type: ignore[arg-type]
    write_atomically(folder / _RECORD, lambda handle: handle.write(_to_json(record)))
    for name in (CHECKPOINT, INPUT):
        (folder / name).unlink(missing_ok=True)


def load_run(folder: Path) -> FinishedRun:
    """Load a finished run.

    Raises:
        InputError: There is no run, it is not finished, or a file of it is damaged.
    """
    config = read_begun(folder).config
    if not is_finished(folder):
        raise InputError(
            f"{folder}: the run is not finished; continue it with gramvec-train fit --out {folder} --resume"
        )
    try:
        with np.load(folder / _WEIGHTS, allow_pickle=False) as arrays:
            encoder = restore_encoder(config.composition, dict(arrays), config.model.dimension)
        record = orjson.loads((folder / _RECORD).read_bytes())
        texts = (folder / _TEXTS).read_text(encoding="utf-8").split("\n")[:-1]
        counted = (folder / _REPEATED).read_text(encoding="utf-8").split("\n")[:-1]
        counts = {text: int(count) for count, _, text in (line.partition("\t") for line in counted)}
        edges = {text: count for text, count in counts.items() if " " in text}
        repeated = RepeatedParts({text: count for text, count in counts.items() if text not in edges}, edges)
    except (OSError, ValueError, KeyError, RuntimeError, zipfile.BadZipFile) as error:
        raise InputError(f"{folder}: the run has a missing or damaged file ({error}); run it again") from error
    vocabulary = Vocabulary.open(folder / _VOCABULARY)
    if len(vocabulary) != len(encoder.table):
        raise InputError(f"{folder}: the run mixes files of two runs; run it again")
    return FinishedRun(folder, config, vocabulary, encoder, texts, repeated, record)


def list_versions() -> dict[str, str]:
    """Return the versions of the libraries for a record."""
    return {
        "gramvec": gramvec.__version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "torch": torch.__version__,
    }


def _to_json(values: Any) -> bytes:
    return orjson.dumps(values, option=orjson.OPT_INDENT_2 | orjson.OPT_SERIALIZE_NUMPY) + b"\n"


_BYTES = {"float32": 4.0, "float16": 2.0, "int8": 1.0, "int4": 0.5}


def export_run(
    run: FinishedRun,
    path: Path,
    *,
    export: Export | None = None,
    precision: Precision | None = None,
    name: str | None = None,
) -> Manifest:
    """Write the bundle of a finished run, checked against torch on texts of its training data.

    export: in the place of the section of the run's config; precision: in the place of that of `export`.
    """
    model = run.config.model
    spec = make_spec(run.config)
    export = export or run.config.export
    precision = precision or export.precision
    name = name or model.name
    featurizer = Featurizer(spec, run.vocabulary)
    encoder = _shape_table(run, export, featurizer)
    has_memo = can_have_memo(spec, sums=graph_encoder(encoder).sums)
    kept = {key: value for key, value in run.record.items() if key not in ("loss", "dev", "kind", "name")}
    return export_bundle(
        path,
        name=name,
        kind=model.kind,
        spec=spec,
        vocabulary=run.vocabulary,
        encoder=encoder,
        precision=precision,
        parity_texts=run.texts,
        memo=(
            choose_chunks(run.repeated, featurizer, chunks=export.memo_chunks, edges=export.memo_edges)
            if has_memo
            else NO_MEMO
        ),
        provenance={"license": model.license, **kept, "export": export.model_dump(mode="json")},
        card=write_card(
            {**run.record, "export": export.model_dump(mode="json")},
            name=name,
            precision=precision,
            table_bytes=round(run.encoder.table.numel() * _BYTES[precision]),
        ),
    )


def _shape_table(run: FinishedRun, export: Export, featurizer: Featurizer) -> Encoder:
    if not export.scales and not export.whitening:
        return run.encoder
    scales = {str(kind): scale for kind, scale in export.scales.items()}
    arrays = run.encoder.arrays()
    table = scale_rows(arrays["table"], run.vocabulary.entries(), scales)
    if export.whitening:  # which the config allows only for a linear bag
        bag = restore_encoder(run.config.composition, arrays | {"table": table}, run.encoder.dimension)
        table = table @ make_whitening(make_encode(bag, featurizer)(run.texts), export.whitening)
    return restore_encoder(run.config.composition, arrays | {"table": table}, run.encoder.dimension)
