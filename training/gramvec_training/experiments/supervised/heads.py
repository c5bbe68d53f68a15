"""Heads over the systems' encoders in the papers' three regimes: a task, a system and a seed -> a score, kept."""

from __future__ import annotations

import functools
import hashlib
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import orjson
import torch

from gramvec.errors import InputError
from gramvec.text.featurizer import Featurizer
from gramvec.text.spec import FeatureSpec
from gramvec_training.configuration import BagSettings, ProjectionSettings, Supervision
from gramvec_training.data import Corpus, Ints
from gramvec_training.encoders import Average, Bag, Encoder, bag_of, encoder_function
from gramvec_training.experiments.common import Inputs, vectors_of
from gramvec_training.experiments.supervised.labelled import Task
from gramvec_training.experiments.systems import learned_system
from gramvec_training.files import digest, write_atomically
from gramvec_training.fitting import Selection, Trainer, choose_device, fit, word_table, word_weights
from gramvec_training.objectives import HeadObjective, new_head
from gramvec_training.readers import read_frequencies, treebank_tokens, vectors_at
from gramvec_training.runs import begun_encoder, load_run, run_model
from gramvec_training.types import Floats

Regime = Literal["trained", "universal", "features"]
SIF = "SIF"  # weighted averages of given vectors, W, which are fixed, below a learned projection
_PROJECTION = 2_400
_A = 1e-3
_WORDS = FeatureSpec(orders=(), words=True, word_rule="white-space/1")

# One setting for all systems and tasks, not searched: the papers searched for each.
_SETTINGS: dict[Regime, dict[str, Any]] = {
    "trained": {"epochs": 10, "rate": 2e-3, "l2": 1e-5, "l2_centre": "initial", "l2_composition": 1e-6},
    "universal": {
        "epochs": 10, "rate": 2e-3, "l2": 1e-5, "l2_centre": "initial", "l2_composition": 1e-4,
        "l2_composition_centre": "initial",
    },
    "features": {"epochs": 30, "rate": 5e-3, "fixed_table": True},
}  # fmt: skip
_SIF = {"epochs": 10, "rate": 1e-3, "fixed_table": True, "l2_composition": 1e-6}
_SHARED = {"batch": 25, "hidden": 50, "l2_head": 1e-6}
_JOINED = {"pair": "joined", "hidden": 200, "narrow": 100}
_LARGE = 10_000  # examples, above which there are fewer epochs of larger batches
_OF_LARGE = {"batch": 50, "epochs": 4}


@dataclass(frozen=True)
class _Start:
    """What is learned on: the encoder as it begins, and the texts of a task in the order of `_texts`."""

    encoder: Encoder
    corpus: Corpus


def scored_head(inputs: Inputs, task: Task, system: str, regime: Regime, seed: int, *, joined: bool = False) -> float:
    """The score, times 100, of the epoch that was best on the held-out part. It is kept in the folder `work`.

    joined: with Bowman's layers, in place of the head that compares.
    """
    settings = _settings(task, system, regime, seed, joined=joined)
    origin = _origin(inputs, system, seed)
    values = [task.digest, origin, regime, settings.model_dump(mode="json")]
    key = hashlib.sha256(orjson.dumps(values)).hexdigest()[:8]
    slug = system.lower().replace(",", "").replace(" ", "-")
    path = inputs.work / "heads" / f"{task.name}-{slug}-{regime}-{seed}-{key}.json"
    if path.is_file():
        return float(orjson.loads(path.read_bytes())["score"])
    path.parent.mkdir(parents=True, exist_ok=True)
    start = _start(inputs, task, system, regime, seed)
    checkpoint = path.with_suffix(".pt")
    learned, held_out, scored = _examples(task)
    head = new_head(task.sides, start.encoder.dimension, task.width, settings)
    objective = HeadObjective(start.corpus, learned, task.targets(task.learned), head, settings)
    selection = Selection(
        lambda encoder: task.score(objective.probabilities(encoder, held_out), task.held_out), objective.steps_per_epoch
    )
    trainer = Trainer(start.encoder, objective, choose_device("cpu"))
    fit(trainer, checkpoint, identity=key, resume=checkpoint.is_file(), selection=selection)
    found = {
        "score": task.score(objective.probabilities(trainer.encoder, scored), task.scored),
        "held out": task.score(objective.probabilities(trainer.encoder, held_out), task.held_out),
    }
    write_atomically(path, lambda handle: handle.write(orjson.dumps(found)))
    checkpoint.unlink(missing_ok=True)
    return found["score"]


def averages(inputs: Inputs, texts: list[str], a: float | None = _A) -> Floats:
    """float32[n, d]: the means of the given vectors of each text's words, weighted as SIF does, or all alike."""
    tokens = [treebank_tokens(text).lower() for text in texts]
    occurring = {word for one in tokens for word in one.split()}
    words, vectors = vectors_of(inputs.vectors)
    kept = [row for row, word in enumerate(words) if word.lower() in occurring]
    if not kept:
        raise InputError(f"{inputs.vectors} has a vector for no word of these texts; give vectors of their language.")
    vocabulary, table = word_table([words[row] for row in kept], vectors[kept], {}, symbols=False)
    if a is not None:
        listed = [entry.text for entry in vocabulary.entries()]
        table = table * word_weights(listed, _frequencies(inputs.frequencies[0]), a)[:, None]
    return encoder_function(bag_of(table, pooling="mean", activation="linear"), Featurizer(_WORDS, vocabulary))(tokens)


_frequencies = functools.lru_cache(1)(read_frequencies)  # a second, and the same for each fit


def _settings(task: Task, system: str, regime: Regime, seed: int, *, joined: bool) -> Supervision:
    own = _SIF if system == SIF else _SETTINGS[regime]
    values = {**_SHARED, **own, "seed": seed}
    if len(task.learned) > _LARGE:
        values |= _OF_LARGE
    if joined:
        values |= _JOINED
    return Supervision.model_validate(values)


def _origin(inputs: Inputs, system: str, seed: int) -> str:
    if system == SIF:
        return "-".join(digest(path.resolve()) for path in (vectors_at(inputs.vectors), inputs.frequencies[0]))
    return learned_system(inputs, system, seed)[0].name  # which has a digest of all that it was learned from


def _start(inputs: Inputs, task: Task, system: str, regime: Regime, seed: int) -> _Start:
    texts = _texts(task)
    if system == SIF:
        table = torch.from_numpy(averages(inputs, texts))
        generator = torch.Generator().manual_seed(seed)
        encoder: Encoder = Average(table, ProjectionSettings(kind="projection"), _PROJECTION, generator)
        return _Start(encoder, _one_row_each(len(texts)))
    run = load_run(learned_system(inputs, system, seed)[0])
    model = run_model(run)
    if regime == "features":
        table = torch.from_numpy(model.encode(texts))
        return _Start(Bag(table, BagSettings(activation="linear", bias=False)), _one_row_each(len(texts)))
    corpus = Corpus.of(texts, model.featurizer, len(run.vocabulary))
    assert inputs.data is not None
    fresh = regime == "trained"
    return _Start(begun_encoder(run.config, None, seed, run.vocabulary, inputs.data) if fresh else run.encoder, corpus)


def _one_row_each(texts: int) -> Corpus:
    return Corpus(np.arange(texts, dtype=np.int32), np.arange(texts + 1), texts)


def _texts(task: Task) -> list[str]:
    parts = (task.learned, task.held_out, task.scored)
    return [text for part in parts for sides in part.texts for text in sides]


def _examples(task: Task) -> tuple[Ints, Ints, Ints]:
    """int64[n, sides] of each part: the numbers of its texts among `_texts`."""
    ends = np.cumsum([len(task.learned), len(task.held_out), len(task.scored)])
    numbers = np.arange(ends[-1] * task.sides).reshape(-1, task.sides)
    learned, held_out, scored = np.split(numbers, ends[:-1])
    return learned, held_out, scored
