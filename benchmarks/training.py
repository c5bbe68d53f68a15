"""Training steps of CHARAGRAM-PHRASE: the product's lazy Adam against torch's dense Adam on the same batches.

100 pairs a batch, phrases of about 69 n-grams, 300 dimensions, MAX negatives.
"""

from __future__ import annotations

import numpy as np
import torch
from torch.nn import functional

from benchmarks.measure import Setting, interleaved, rates
from benchmarks.results import Part
from gramvec.features.featurizer import Featurizer
from gramvec.features.spec import FeatureSpec
from gramvec_training.config import Training
from gramvec_training.data.corpus import Corpus
from gramvec_training.data.sampling import Mixture, SourceGroups
from gramvec_training.data.vocabulary import build_vocabulary
from gramvec_training.encoders.bag import Bag
from gramvec_training.fitting.trainer import Trainer
from gramvec_training.objectives.pairs import MarginObjective, choose_negatives, margin_loss
from gramvec_training.sections import BagSettings

BATCH = 100
CHARACTERS = 24  # with its two spaces, 25 + 24 + 23 n-grams
DIMENSION = 300


def run(setting: Setting) -> Part:
    part, texts = Part(), setting.texts
    torch.set_num_threads(1)
    phrases = list(dict.fromkeys(text[:CHARACTERS].strip() for text in texts))
    spec = FeatureSpec()
    vocabulary = build_vocabulary(texts, spec)
    corpus = Corpus.from_texts(phrases, Featurizer(spec, vocabulary), len(vocabulary))
    pairs = len(phrases) // 2
    source = SourceGroups("phrases", np.arange(pairs * 2), np.arange(0, pairs * 2 + 1, 2))
    batch_pairs = max(1, min(BATCH, pairs // 3))  # two whole batches an epoch at least
    settings = Training(batch=batch_pairs, steps=1_000_000)
    encoder = _encoder(len(vocabulary))
    objective = MarginObjective(encoder, corpus, Mixture([source], 1), settings)
    lazy = Trainer(encoder, objective, torch.device("cpu"))
    dense = _encoder(len(vocabulary))
    adam = torch.optim.Adam(dense.parameters(), lr=settings.rate)
    lazy_steps, dense_steps = iter(range(10**9)), iter(range(10**9))

    def lazy_step() -> None:
        for _ in range(10):
            lazy.take(objective.examples_at(next(lazy_steps) % (objective.steps_per_epoch - 1)))

    def dense_step() -> None:
        batch = objective.examples_at(next(dense_steps) % (objective.steps_per_epoch - 1)).batch
        ids, offsets = corpus.cut(batch.texts)
        unit = functional.normalize(dense(torch.from_numpy(ids), torch.from_numpy(offsets)), dim=1)
        negatives = choose_negatives(unit, torch.from_numpy(batch.texts), "max")
        adam.zero_grad()
        left, right = unit.chunk(2)
        margin_loss(left, right, negatives, settings.margin).backward()  # type: ignore[no-untyped-call]
        adam.step()

    fast = interleaved({"lazy Adam (gramvec-train)": lazy_step}, 10 * batch_pairs, setting.rounds)
    slow = interleaved({"dense Adam (torch)": dense_step}, batch_pairs, setting.rounds)
    title = f"training: {corpus.counts.mean():.0f} n-grams a phrase, {len(vocabulary):,} rows, one thread"
    part.add("training", rates(title, "pairs", {**slow, **fast}, "dense Adam (torch)"))
    return part


def _encoder(rows: int) -> Bag:
    start = torch.empty(rows, DIMENSION).uniform_(-0.01, 0.01, generator=torch.Generator().manual_seed(1))
    return Bag(start, BagSettings())
