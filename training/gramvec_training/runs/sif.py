"""Runs of [sif]: word vectors, their weights, and common components of sentences. Nothing is trained."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from gramvec.errors import InputError
from gramvec.features.featurizer import Featurizer
from gramvec.features.spec import FeatureSpec
from gramvec.jobs.common.watch import NO_WATCH, JobWatch
from gramvec.text.vocabulary import Vocabulary
from gramvec_training.config import Sif
from gramvec_training.data.corpus import collect_texts, read_source_texts
from gramvec_training.data.vocabulary import RepeatedParts, count_documents
from gramvec_training.encoders.bag import Bag
from gramvec_training.encoders.base import Encoder
from gramvec_training.encoders.build import make_encode
from gramvec_training.fitting.loop import History
from gramvec_training.fitting.sif import find_common_components, make_word_table, weigh_words, weigh_words_by_idf
from gramvec_training.readers.vectors import find_vectors, read_frequencies, read_vectors
from gramvec_training.runs.plan import Plan
from gramvec_training.runs.run_dir import PARITY_TEXTS, is_begun, load_run, make_spec
from gramvec_training.runs.warm_start import UNKNOWN_WORD
from gramvec_training.sections import BagSettings
from gramvec_training.shared import Floats


class SifPlan(Plan):
    """A run that weighs the words' vectors and computes the common components from the texts; nothing is learned."""

    def prepare(self, watch: JobWatch = NO_WATCH) -> None:
        """See `Plan.prepare`."""
        start = time.monotonic()
        config, data, folder = self.config, self.data, self.folder
        sif, settings = config.sif, config.composition
        assert sif is not None
        if not isinstance(settings, BagSettings):
            raise InputError(f"SIF weighs a bag of words; leave out [encoder] {settings.kind}")
        source = find_vectors(sif.vectors, data) if sif.vectors is not None else folder.resolve().parent / str(sif.run)
        words, vectors, self._origin = read_word_vectors(source)
        frequencies = read_frequencies(data / sif.frequencies)
        unknown = _unknown_word(words) if config.features.unknown_words == "row" else None
        spec = make_spec(config)
        self.vocabulary, table = make_word_table(
            words, vectors, frequencies, max_words=sif.max_words, unknown=unknown, symbols=spec.has_symbols
        )
        table = table * _weigh_rows(sif, self.vocabulary, frequencies, spec, data, unknown)[:, None]

        texts, self._counts = collect_texts(config.texts, data, spans=0, seed=sif.seed)
        texts = texts[: sif.sample]
        self.featurizer = Featurizer(spec, self.vocabulary)
        self._encoder = Bag(torch.from_numpy(table), settings)
        if sif.components:
            pooled = Bag(
                self._encoder.table.detach(), BagSettings(pooling=settings.pooling, activation="linear", bias=False)
            )
            components = find_common_components(make_encode(pooled, self.featurizer)(texts), sif.components)
            self._encoder = Bag(self._encoder.table.detach(), settings, components=torch.from_numpy(components))
        self._sentences = len(texts)
        self._seconds = round(time.monotonic() - start, 1)
        self.texts = (texts or words)[:PARITY_TEXTS]
        self.repeated = RepeatedParts({}, {})

    def make_encoder(self) -> Encoder:
        """Return the bag of weighted vectors, with the components where the config has some."""
        return self._encoder

    def record(self, history: History, encoder: Encoder) -> dict[str, Any]:
        """Return the record of the texts and of where the vectors come from."""
        return {
            "data": [
                {"name": source.name, "license": source.license, "texts": self._counts[source.name]}
                for source in self.config.texts
            ],
            "vectors": self._origin,
            "sentences": self._sentences,
            "seconds": self._seconds,
        }


def _unknown_word(words: Sequence[str]) -> str:
    """Return the word for all words without a vector, as in the authors' code: UUUNKKK, or else the last one."""
    return UNKNOWN_WORD if UNKNOWN_WORD in words else words[-1]


def _weigh_rows(
    sif: Sif,
    vocabulary: Vocabulary,
    frequencies: Mapping[str, float],
    spec: FeatureSpec,
    data: Path,
    unknown: str | None,
) -> Floats:
    """Return the weights float32[rows]; unknown words have the weight of the word whose vector they share."""
    words = [entry.text or str(unknown) for entry in vocabulary.entries()]
    if sif.weights == "none":
        return np.ones(len(words), np.float32)
    if sif.weights == "sif":
        return weigh_words(words, frequencies, sif.a)
    documents = [text for source in sif.documents for text in read_source_texts(source, data)]
    return weigh_words_by_idf(count_documents(documents, Featurizer(spec, vocabulary), len(vocabulary)), len(documents))


def read_word_vectors(source: Path) -> tuple[list[str], Floats, dict[str, Any]]:
    """Return words, vectors float32[n, d], and their source for the record."""
    if not is_begun(source):
        words, vectors = read_vectors(source)
        return words, vectors, {"file": source.name}
    run = load_run(source)
    rows = [(row, entry.text) for row, entry in enumerate(run.vocabulary.entries()) if entry.kind == "word"]
    if not rows:
        raise InputError(f"{source}: the run has no word vectors; name the run of a word model")
    vectors = run.encoder.arrays()["table"][[row for row, _ in rows]]
    kept = ("name", "kind", "command", "data", "teacher", "spans", "steps", "pairs", "seconds")
    return [word for _, word in rows], vectors, {key: run.record.get(key) for key in kept}
