"""A head of the papers over fixed vectors of pairs, against what a user writes with torch.nn for the same batches.

A task is as large as SICK: 3,240 scored pairs to learn from, 30 epochs in batches of 25, 300 dimensions. The peer is
two torch.nn.Linear below a third, torch.log_softmax and torch.optim.Adam.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from benchmarks.measure import Setting, interleaved, rates
from benchmarks.results import Part
from gramvec_training.configuration import BagSettings, Supervision
from gramvec_training.data import Corpus
from gramvec_training.encoders import Bag
from gramvec_training.fitting import Trainer
from gramvec_training.objectives import HeadObjective, new_head, score_targets

PAIRS, EPOCHS, BATCH, DIMENSION, HIDDEN, CLASSES = 3_240, 30, 25, 300, 50, 5
OURS, PEER = "gramvec-train head", "torch.nn.Linear, Adam"
STEPS = 20  # a call


class TorchHead(nn.Module):
    """Products and distances of two vectors, a sigmoid layer, and logits."""

    def __init__(self) -> None:
        super().__init__()
        self.times, self.apart = nn.Linear(DIMENSION, HIDDEN), nn.Linear(DIMENSION, HIDDEN, bias=False)
        self.outer = nn.Linear(HIDDEN, CLASSES)

    def forward(self, left: Tensor, right: Tensor) -> Tensor:
        """Logits float32[n, classes]."""
        return self.outer(torch.sigmoid(self.times(left * right) + self.apart((left - right).abs())))


def add_heads(part: Part, setting: Setting) -> None:
    """A group of the steps of both, and a line of what a task takes."""
    rng = np.random.default_rng(1)
    vectors = torch.from_numpy(rng.normal(0, 0.05, (2 * PAIRS, DIMENSION)).astype(np.float32))
    corpus = Corpus(np.arange(2 * PAIRS, dtype=np.int32), np.arange(2 * PAIRS + 1), 2 * PAIRS)
    pairs = np.arange(2 * PAIRS).reshape(-1, 2)
    settings = Supervision(epochs=EPOCHS, batch=BATCH, hidden=HIDDEN, rate=5e-3, fixed_table=True, l2_head=1e-6)
    targets = score_targets(rng.uniform(1, CLASSES, PAIRS), CLASSES)
    head = new_head(2, DIMENSION, CLASSES, settings)
    objective = HeadObjective(corpus, pairs, targets, head, settings)
    trainer = Trainer(Bag(vectors, BagSettings(activation="linear", bias=False)), objective, torch.device("cpu"))
    theirs = TorchHead()
    adam = torch.optim.Adam(theirs.parameters(), lr=settings.rate)
    steps, peer_steps = iter(range(10**9)), iter(range(10**9))

    def step() -> None:
        for _ in range(STEPS):
            trainer.take(objective.examples_at(next(steps) % (objective.steps_per_epoch - 1)))

    def peer_step() -> None:
        for _ in range(STEPS):
            one = objective.examples_at(next(peer_steps) % (objective.steps_per_epoch - 1))
            left, right = vectors[torch.from_numpy(one.batch.texts)].chunk(2)
            assert one.targets is not None
            said = functional.log_softmax(theirs(left, right), dim=1)
            adam.zero_grad()
            functional.kl_div(said, torch.from_numpy(one.targets), reduction="batchmean").backward()  # type: ignore[no-untyped-call]
            adam.step()

    timings = interleaved({PEER: peer_step, OURS: step}, STEPS * BATCH, setting.rounds)
    title = f"training: a head over fixed vectors of pairs, {DIMENSION}-d, batches of {BATCH}, one thread"
    part.add("training_head", rates(title, "pairs", timings, PEER))
    seconds = PAIRS * EPOCHS / timings[OURS].per_cpu_second
    part.note(f"a head over fixed vectors: {seconds:.1f} s of a core a task of {PAIRS:,} pairs and {EPOCHS} epochs")
