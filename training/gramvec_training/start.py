"""Training that goes on from a bundle: its weights in float32 again, and rows for what the new texts add."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import numpy as np
import numpy.typing as npt
import onnx
from onnx import numpy_helper
from pydantic import BaseModel, ConfigDict, Field

from gramvec.bundle import Bundle, open_bundle
from gramvec.errors import BundleError, InputError
from gramvec.features import FeatureSpec
from gramvec.vocab import Entry, Vocabulary
from gramvec.vocab.characters import MAX_ALPHABET
from gramvec.vocab.suffixes import separated, suffix_rows
from gramvec_training.vocabulary import build_vocabulary

Floats = npt.NDArray[np.float32]

_log = logging.getLogger(__name__)


class Start(BaseModel):
    """The bundle that training goes on from, and how many rows the new texts may add to its table.

    `bundle` is a folder or a name. A new row goes to an n-gram or word that the training texts hold `min_count` times
    and the bundle lacks, the most frequent first.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    bundle: Path
    digest: str | None = None  # the bundle must have it
    min_count: Annotated[int, Field(ge=1)] = 2
    max_ngrams: Annotated[int, Field(ge=0)] = 10_000
    max_words: Annotated[int, Field(ge=0)] = 5_000


@dataclass(frozen=True)
class Started:
    """What a bundle holds: `table` float32[rows, d] and `bias` float32[d] or None, as the graph has them."""

    bundle: Bundle
    table: Floats
    bias: Floats | None


def read_start(start: Start) -> Started:
    """Open the bundle and read its weights.

    Raises BundleError where it is missing or damaged, and InputError where it is not the one with `start.digest`.
    """
    bundle = open_bundle(start.bundle)
    if start.digest is not None and bundle.digest != start.digest:
        raise InputError(
            f"The bundle {start.bundle} has changed since the run began; put the old one back, or start the run anew "
            "with --overwrite."
        )
    table, bias = read_weights(bundle)
    return Started(bundle, table, bias)


def read_weights(bundle: Bundle) -> tuple[Floats, Floats | None]:
    """The table float32[rows, d] and the bias float32[d], or None, of a bundle of any precision, without its memo.

    int8 rows are multiplied by their scales, and columns by theirs; suffixes are taken out of rows that hold them.
    Common components were removed when the bundle was written. Raises BundleError where the graph holds no such table.
    """
    path, manifest = bundle.graph_path, bundle.manifest
    try:
        stored = {one.name: numpy_helper.to_array(one) for one in onnx.load(str(path)).graph.initializer}
        table = stored["table"].astype(np.float32)
        if "scales" in stored:
            table *= stored["scales"]
        table *= stored.get("columns", np.float32(1))
    except (KeyError, ValueError, OSError, onnx.checker.ValidationError) as error:
        raise BundleError(f"{path}: holds no table that can be read ({error}); export the model again") from error
    if table.shape != (manifest.rows + manifest.memo, manifest.dimension):
        raise BundleError(f"{path}: a table of shape {table.shape}, the manifest says otherwise; export it again")
    bias = stored.get("bias")
    table = table[: manifest.rows]
    if bundle.memoised.memo is not None:
        table = separated(table, suffix_rows(bundle.vocabulary))
    return table, None if bias is None else bias.astype(np.float32)


def check_fits(
    started: Started, spec: FeatureSpec, *, dimension: int, pooling: str, activation: str, bias: bool
) -> None:
    """Raise InputError where a config asks for another model than the bundle's."""
    manifest = started.bundle.manifest
    wanted = {
        "dimension": (dimension, manifest.dimension),
        "pooling": (pooling, manifest.graph.pooling),
        "activation": (activation, manifest.graph.activation),
        "bias": (bias, started.bias is not None),
        # Of another Unicode version only the characters differ that were assigned in between.
        "features": (spec, replace(started.bundle.spec, unicode=spec.unicode)),
    }
    for name, (asked, given) in wanted.items():
        if asked != given:
            raise InputError(f"The config's {name} is not that of the bundle {manifest.name}, which has {given}.")


def extended_vocabulary(start: Start, known: Vocabulary, texts: Iterable[str], spec: FeatureSpec) -> Vocabulary:
    """The bundle's rows in their order, then new ones for `texts`; the unknown word's row, if any, stays last."""
    found = build_vocabulary(texts, spec).entries()
    return Vocabulary.build(_extended(start, known.entries(), found, spec), lowercase=spec.lowercase)


def _extended(start: Start, known: Sequence[Entry], found: Sequence[Entry], spec: FeatureSpec) -> list[Entry]:
    left = {"ngram": start.max_ngrams, "word": start.max_words, "unknown": 0}
    present = {(entry.kind, entry.text) for entry in known}
    letters = set().union(*(entry.text for entry in known))
    most_letters = min((1 << 64 // max(spec.orders, default=1)) - 1, MAX_ALPHABET)
    added: list[Entry] = []
    for entry in found:  # by descending count
        if entry.count < start.min_count or not left[entry.kind] or (entry.kind, entry.text) in present:
            continue
        if len(letters.union(entry.text)) > most_letters:
            continue
        letters.update(entry.text)
        left[entry.kind] -= 1
        added.append(entry)
    rows = [entry for entry in known if entry.kind != "unknown"]
    return [*rows, *added, *(entry for entry in known if entry.kind == "unknown")]


def started_table(started: Started, vocabulary: Vocabulary, seed: int) -> Floats:
    """The bundle's rows where `vocabulary` has them, float32[rows, d].

    A new word begins as the unknown word's row where the bundle has one, so that texts keep their vectors; any other
    new row is uniform within sqrt(6 / (rows + d)), drawn by the seed.
    """
    known = started.bundle.vocabulary
    places = {(entry.kind, entry.text): row for row, entry in enumerate(known.entries())}
    old_rows = np.array([places.get((entry.kind, entry.text), -1) for entry in vocabulary.entries()])
    is_new = old_rows < 0
    if known.unknown_row >= 0:
        old_rows[[new and entry.kind == "word" for new, entry in zip(is_new, vocabulary.entries(), strict=True)]] = (
            known.unknown_row
        )
    rows, dimension = len(vocabulary), started.table.shape[1]
    half = (6 / (rows + dimension)) ** 0.5
    table = np.random.default_rng(seed).uniform(-half, half, (rows, dimension)).astype(np.float32)
    table[old_rows >= 0] = started.table[old_rows[old_rows >= 0]]
    _log.info("%s gives %d rows; %d are new", started.bundle.manifest.name, rows - is_new.sum(), is_new.sum())
    return table
