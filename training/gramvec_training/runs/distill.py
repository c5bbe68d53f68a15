"""A [distillation] run: texts, their teacher vectors, and misspelled copies."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from tqdm import tqdm

from gramvec.errors import InputError
from gramvec.features.featurizer import Featurizer
from gramvec.progress import progress_bar
from gramvec_training.config import How, Spelling
from gramvec_training.data.corpus import Corpus, collect_texts
from gramvec_training.data.misspelling import copies_of, misspelt, spelt_alike
from gramvec_training.data.vocabulary import count_repeated
from gramvec_training.encoders.base import Encoder
from gramvec_training.export.adapt import kind_of
from gramvec_training.fit.loop import History
from gramvec_training.fit.trainer import choose_device
from gramvec_training.objectives.base import Objective
from gramvec_training.objectives.distillation import SpellingObjective, SpellingWords, TeacherObjective
from gramvec_training.readers.vectors import read_frequencies, read_misspellings
from gramvec_training.runs.plan import Plan
from gramvec_training.runs.run_dir import PARITY_TEXTS, StartedRun, spec_of
from gramvec_training.runs.warm_start import begin_encoder, begin_from, begin_vocabulary, origin_record
from gramvec_training.teachers import open_teacher, principal_projection

SHORTEST_WORD = 4  # misspelt, a shorter one is most often another word
PROJECTION_TEXTS = 200_000  # the axes are steady to the third digit from a tenth of that


def prepare_distillation(begun: StartedRun, folder: Path, how: How) -> Plan:
    """Collect the texts, get their teacher vectors, and featurize them and their misspelled copies once."""
    config, data = begun.config, begun.data
    settings = config.distillation
    assert settings is not None
    texts, counts = collect_texts(
        config.texts, data, seed=settings.seed, spans=settings.spans, limit=settings.max_texts
    )
    started = begin_from(config)
    teacher = open_teacher(settings.teacher, how.cache, device=choose_device(how.device), threads=how.threads)
    with _bar("teacher", len(texts)) as bar:
        vectors = teacher.vectors(texts, progress=bar.update)
    if vectors.shape[1] < config.model.dimension:
        raise InputError(
            f"the teacher has {vectors.shape[1]} dimensions; a student has at most as many, not "
            f"{config.model.dimension}: set model.dimension, or --dimension"
        )
    rng = np.random.default_rng([settings.seed, 2**31])
    projection = principal_projection(
        vectors[np.sort(rng.permutation(len(texts))[:PROJECTION_TEXTS])],
        config.model.dimension,
        whitening=settings.whitening,
    )
    spec = spec_of(config)
    vocabulary = begin_vocabulary(config, started, texts, spec, data)
    featurizer = Featurizer(spec, vocabulary)

    known = read_misspellings([data / path for path in settings.misspellings])
    copied = rng.permutation(len(texts))[: int(settings.misspelt * len(texts))]
    copies = misspelt([texts[i] for i in copied.tolist()], rng, share=settings.misspelt_words, known=known)
    every, learned = [*texts, *copies], None
    if settings.spelling is not None:
        words = _words(settings.spelling, data)
        alike = spelt_alike(words, settings.spelling.near)
        learned = SpellingWords(settings.spelling, len(every), alike, teacher.vectors(words))
        every += [*words, *copies_of(words, settings.spelling.copies, rng, known=known)]
    with _bar("features", len(every)) as bar:
        corpus = Corpus.of(every, featurizer, len(vocabulary), progress=bar.update)
    rows = np.concatenate([np.arange(len(texts)), copied])
    rates = {str(kind): rate for kind, rate in settings.dropout.items()}
    dropout = np.array([rates.get(kind_of(one), 0) for one in vocabulary.entries()], np.float32) if rates else None

    def make_objective(encoder: Encoder, device: torch.device) -> Objective:
        given = (corpus, rows, vectors, projection, settings, device)
        if learned is None:
            return TeacherObjective(*given, dropout=dropout)
        return SpellingObjective(learned, *given, dropout=dropout)

    def record(history: History, encoder: Encoder) -> dict[str, Any]:
        return {
            "data": [{"name": one.name, "license": one.license, "texts": counts[one.name]} for one in config.texts],
            "spans": counts.get("spans", 0),
            "teacher": {
                "model": Path(settings.teacher).name,
                "digest": teacher.digest,
                "precision": teacher.precision,
                "dimension": int(vectors.shape[1]),
                "kept_by_projection": round(projection.kept, 4),
            },
            "texts": len(texts),
            "misspelt_copies": len(copies),
            **({} if learned is None else {"misspelt_words": len(learned.alike)}),
            "examples": history.examples,
            **origin_record(started),
        }

    return Plan(
        vocabulary,
        featurizer,
        texts[:PARITY_TEXTS],
        count_repeated(texts, spec),
        make_encoder=lambda: begin_encoder(config, started, settings.seed, vocabulary, data),
        record=record,
        make_objective=make_objective,
        digests=(corpus.digest, teacher.digest, teacher.precision),
    )


def _words(settings: Spelling, data: Path) -> list[str]:
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


def _bar(title: str, total: int) -> tqdm[Any]:
    return progress_bar(title, total, " texts")
