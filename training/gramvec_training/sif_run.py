"""From a [sif] config to a finished run folder."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from gramvec.errors import InputError
from gramvec.features import Featuriser
from gramvec_training.data import read_frequencies, read_vectors
from gramvec_training.encode import cosines, reference
from gramvec_training.evaluate import find_sets, score_sets
from gramvec_training.memo import Repeated
from gramvec_training.runs import PARITY_TEXTS, Begun, Weights, finish_run, load_run, save_inputs, spec_of, versions
from gramvec_training.sif import common_components, word_table, word_weights
from gramvec_training.texts import collect_texts

Floats = npt.NDArray[np.float32]


def run_sif(begun: Begun, folder: Path) -> dict[str, Any]:
    """Build the SIF model of a begun run's config into its folder; gives the record, with development scores."""
    start = time.monotonic()
    config, data = begun.config, begun.data
    sif = config.sif
    assert sif is not None
    if config.features.unknown_words == "row":
        raise InputError('SIF has no row for unknown words, it skips them; set features.unknown_words = "skip".')
    dev = find_sets([data / path for path in config.dev.sets])[0] if config.dev.sets else []
    source = data / sif.vectors if sif.vectors is not None else folder.resolve().parent / str(sif.run)
    words, vectors, origin = _word_vectors(source)
    frequencies = read_frequencies(data / sif.frequencies)
    vocabulary, table = word_table(words, vectors, frequencies, max_words=sif.max_words)
    if sif.weighted:
        entries = vocabulary.entries()
        table = table * word_weights([entry.text for entry in entries], frequencies, sif.a)[:, None]

    texts, counts = collect_texts(config.texts, data, spans=0, seed=sif.seed)
    texts = texts[: sif.sample]
    used = [{"name": one.name, "licence": one.licence, "texts": counts[one.name]} for one in config.texts]
    save_inputs(folder, vocabulary, (texts or words)[:PARITY_TEXTS], Repeated({}, {}))
    featuriser = Featuriser(spec_of(config), vocabulary)
    components = None
    if sif.components:
        plain = reference(Weights(table), featuriser, pooling=config.model.pooling, activation="linear")
        components = common_components(plain(texts), sif.components)
    weights = Weights(table, components=components)
    encode = reference(weights, featuriser, pooling=config.model.pooling, activation=config.model.activation)
    record = {
        "name": config.model.name,
        "kind": config.model.kind,
        "command": begun.command,
        "config": config.public(),
        "data": used,
        "vectors": origin,
        "rows": len(vocabulary),
        "sentences": len(texts),
        "seconds": round(time.monotonic() - start, 1),
        "versions": versions(),
        "scores": score_sets(dev, cosines(encode, featuriser)) if dev else {"tasks": {}, "notes": []},
    }
    finish_run(folder, weights, record)
    return record


def _word_vectors(source: Path) -> tuple[list[str], Floats, dict[str, Any]]:
    """Words, vectors float32[n, d], and where they are from, for the record."""
    if not source.is_dir():
        words, vectors = read_vectors(source)
        return words, vectors, {"file": source.name}
    run = load_run(source)
    rows = [(row, entry.text) for row, entry in enumerate(run.vocabulary.entries()) if entry.kind == "word"]
    if not rows:
        raise InputError(f"The run in {source} has no word vectors; name the run of a word model.")
    vectors = run.weights.table[[row for row, _ in rows]]
    kept = ("name", "kind", "command", "data", "teacher", "spans", "steps", "pairs", "seconds")
    return [word for _, word in rows], vectors, {key: run.record.get(key) for key in kept}
