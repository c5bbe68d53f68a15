"""A [distillation] run: texts, their teacher vectors, and misspelled copies."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch

from gramvec.errors import InputError
from gramvec.features.featurizer import Featurizer
from gramvec.jobs.common.watch import NO_WATCH, JobWatch
from gramvec_training.config import Spelling
from gramvec_training.data.corpus import Corpus, collect_texts
from gramvec_training.data.misspelling import find_spelt_alike, make_copies, misspell
from gramvec_training.data.vocabulary import count_repeated
from gramvec_training.encoders.base import Encoder
from gramvec_training.export.adapt import scale_kind
from gramvec_training.fitting.loop import History
from gramvec_training.fitting.trainer import choose_device
from gramvec_training.objectives.base import Objective
from gramvec_training.objectives.distillation import SpellingWords, TaughtTexts, build_distillation
from gramvec_training.readers.vectors import read_frequencies, read_misspellings
from gramvec_training.runs.plan import Plan
from gramvec_training.runs.run_dir import PARITY_TEXTS, make_spec
from gramvec_training.runs.warm_start import begin_encoder, begin_from, begin_vocabulary, make_origin_record
from gramvec_training.teachers import find_principal_projection, open_teacher

SHORTEST_WORD = 4  # misspelt, a shorter one is most often another word
PROJECTION_TEXTS = 200_000  # the axes are steady to the third digit from a tenth of that


class DistillationPlan(Plan):
    """A run over texts and their teacher vectors; the texts and their misspelled copies are featurized once."""

    def prepare(self, watch: JobWatch = NO_WATCH) -> None:
        """See `Plan.prepare`."""
        config, data, options = self.config, self.data, self.options
        assert config.distillation is not None
        self.settings = settings = config.distillation
        texts, self._counts = collect_texts(
            config.texts, data, seed=settings.seed, spans=settings.spans, limit=settings.max_texts
        )
        self.started = begin_from(config)
        self._teacher = open_teacher(
            settings.teacher, options.cache, device=choose_device(options.device), threads=options.threads
        )
        self._vectors = self._teacher.vectors(texts, progress=watch)
        if self._vectors.shape[1] < config.model.dimension:
            raise InputError(
                f"the teacher has {self._vectors.shape[1]} dimensions; a student has at most as many, not "
                f"{config.model.dimension}: set model.dimension, or --dimension"
            )
        rng = np.random.default_rng([settings.seed, 2**31])
        self._projection = find_principal_projection(
            self._vectors[np.sort(rng.permutation(len(texts))[:PROJECTION_TEXTS])],
            config.model.dimension,
            whitening=settings.whitening,
        )
        spec = make_spec(config)
        self.vocabulary = begin_vocabulary(config, self.started, texts, spec, data, watch)
        self.featurizer = Featurizer(spec, self.vocabulary)

        known = read_misspellings([data / path for path in settings.misspellings])
        copied = rng.permutation(len(texts))[: int(settings.misspelt * len(texts))]
        copies = misspell([texts[i] for i in copied.tolist()], rng, share=settings.misspelt_words, known=known)
        every = [*texts, *copies]
        self._learned: SpellingWords | None = None
        if settings.spelling is not None:
            words = _read_words(settings.spelling, data)
            alike = find_spelt_alike(words, settings.spelling.near)
            self._learned = SpellingWords(settings.spelling, len(every), alike, self._teacher.vectors(words))
            every += [*words, *make_copies(words, settings.spelling.copies, rng, known=known)]
        self._corpus = Corpus.from_texts(every, self.featurizer, len(self.vocabulary), progress=watch)
        self._rows = np.concatenate([np.arange(len(texts)), copied])
        self._sizes = len(texts), len(copies)
        self.texts = texts[:PARITY_TEXTS]
        self.repeated = count_repeated(texts, spec)
        self.digests = (self._corpus.digest, self._teacher.digest, self._teacher.precision)

    def make_encoder(self) -> Encoder:
        """Return the encoder with its first values, or with those of the bundle that it starts from."""
        return begin_encoder(self.config, self.started, self.settings.seed, self.vocabulary, self.data)

    def make_objective(self, encoder: Encoder, device: torch.device) -> Objective:
        """Return what the teacher's vectors teach."""
        rates = {str(kind): rate for kind, rate in self.settings.dropout.items()}
        entries = self.vocabulary.entries() if rates else ()
        dropout = np.array([rates.get(scale_kind(entry), 0) for entry in entries], np.float32) if rates else None
        texts = TaughtTexts(self._corpus, self._rows, self._vectors, self._projection, dropout, self._learned)
        return build_distillation(self.config.objective, texts, self.settings, device)

    def record(self, history: History, encoder: Encoder) -> dict[str, Any]:
        """Return the record of the texts and of the teacher."""
        teacher, (texts, copies) = self._teacher, self._sizes
        return {
            "data": [
                {"name": source.name, "license": source.license, "texts": self._counts[source.name]}
                for source in self.config.texts
            ],
            "spans": self._counts.get("spans", 0),
            "teacher": {
                "model": Path(self.settings.teacher).name,
                "digest": teacher.digest,
                "precision": teacher.precision,
                "dimension": int(self._vectors.shape[1]),
                "kept_by_projection": round(self._projection.kept, 4),
            },
            "texts": texts,
            "misspelt_copies": copies,
            **({} if self._learned is None else {"misspelt_words": len(self._learned.alike)}),
            "examples": history.examples,
            **make_origin_record(self.started),
        }


def _read_words(settings: Spelling, data: Path) -> list[str]:
    """Return the most frequent words of at least four letters.

    Raises:
        InputError: There are fewer than are compared.
    """
    frequencies = read_frequencies(data / settings.words)
    known = [word for word in frequencies if word.isalpha() and len(word) >= SHORTEST_WORD]
    words = sorted(known, key=lambda word: -frequencies[word])[: settings.count]
    if len(words) < settings.near:
        raise InputError(
            f"{data / settings.words}: {len(words)} words of four letters and more, {settings.near} are compared: "
            "name a file of more"
        )
    return words
