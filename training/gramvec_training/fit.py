"""The training loop: seeded, resumable, stopped cleanly by Ctrl-C or SIGTERM."""

from __future__ import annotations

import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol

import numpy as np
import torch
from tqdm import tqdm

from gramvec.errors import DeviceError, GramvecError, InputError
from gramvec_training.checkpoint import load_checkpoint, save_checkpoint
from gramvec_training.corpus import Batch, Corpus
from gramvec_training.encoders import Encoder
from gramvec_training.optim import OPTIMISERS, Centre, Optimiser, rate_at
from gramvec_training.signals import noted_signals

LOG_EVERY = 100  # steps over which one entry of the loss log is the mean

Score = Callable[[Encoder], dict[str, float]]


class Interrupted(GramvecError):
    """Training was stopped by a signal after a checkpoint was written."""

    def __init__(self, step: int, steps: int, signal_number: int) -> None:
        super().__init__(f"Stopped at step {step:,} of {steps:,}; a checkpoint is written.")
        self.step = step
        self.signal_number = signal_number


@dataclass
class History:
    """What a run did: steps, wall seconds over all its parts, and the logs as (step, value)."""

    steps: int = 0
    pairs: int = 0
    seconds: float = 0.0
    losses: list[tuple[int, float]] = field(default_factory=list)
    dev: list[tuple[int, dict[str, float]]] = field(default_factory=list)


class Schedule(Protocol):
    """What a trainer asks of its settings: rate, decay and L2, see gramvec_training.config.Training."""

    @property
    def batch(self) -> int: ...  # noqa: D102
    @property
    def rate(self) -> float: ...  # noqa: D102
    @property
    def decay(self) -> Literal["linear", "none"]: ...  # noqa: D102
    @property
    def l2(self) -> float: ...  # noqa: D102
    @property
    def l2_centre(self) -> Centre: ...  # noqa: D102
    @property
    def l2_composition(self) -> float: ...  # noqa: D102


class Trainer(ABC):
    """One step at a time over a corpus. The step number alone decides the batch, the draws and the rate."""

    def __init__(
        self, encoder: Encoder, corpus: Corpus, schedule: Schedule, steps: int, device: torch.device, *,
        optimiser: Optimiser = "adam", clip: float | None = None,
    ) -> None:  # fmt: skip
        self.encoder = encoder
        self.corpus = corpus
        self.schedule = schedule
        self.steps = steps
        self.device = device
        lazy = OPTIMISERS[optimiser]
        self._table = lazy(encoder.table, l2=schedule.l2, centre=schedule.l2_centre, clip=clip)
        # The other parameters are rows that every step touches: torch's own Adam takes two seconds to import.
        self._composition = [
            lazy(parameter.view(1, -1), l2=schedule.l2_composition, clip=clip) for parameter in encoder.composition()
        ]
        self._only_row = torch.zeros(1, dtype=torch.int64, device=device)

    @abstractmethod
    def batch_at(self, step: int) -> Batch:
        """The batch of a step, counted from 0."""

    @abstractmethod
    def loss(self, vectors: torch.Tensor, batch: Batch, step: int) -> torch.Tensor:
        """The loss of a batch, a scalar, from its vectors float32[n, d]."""

    def examples(self, batch: Batch) -> int:
        """How many examples a batch counts as: its texts."""
        return len(batch.texts)

    def take(self, step: int) -> tuple[torch.Tensor, int]:
        """Learn from the batch of a step; gives the loss, on the device and without a gradient, and the examples."""
        batch = self.batch_at(step)
        rows = torch.from_numpy(batch.rows).to(self.device)
        ids = torch.from_numpy(batch.ids).to(self.device)
        offsets = torch.from_numpy(batch.offsets).to(self.device)

        leaf = self._table.leaf(rows)  # [u, d]
        loss = self.loss(self.encoder(ids, offsets, leaf), batch, step)
        gradients = torch.autograd.grad(loss, [leaf, *self.encoder.composition()])

        rate = rate_at(step, self.steps, self.schedule.rate, self.schedule.decay)
        self._table.step(rows, leaf, gradients[0], rate)
        for optimiser, gradient in zip(self._composition, gradients[1:], strict=True):
            optimiser.step(self._only_row, optimiser.leaf(self._only_row), gradient.view(1, -1), rate)
        return loss.detach(), self.examples(batch)

    def state(self) -> dict[str, Any]:
        """Parameters and optimisers: with the number of steps done, all that the following steps depend on."""
        return {
            "table": self.encoder.table.detach(),
            "composition": [parameter.detach() for parameter in self.encoder.composition()],
            "optimisers": [optimiser.state() for optimiser in (self._table, *self._composition)],
        }

    @torch.no_grad()
    def restore(self, state: dict[str, Any]) -> None:
        """Take up what `state` gave."""
        self.encoder.table.copy_(state["table"])
        for parameter, value in zip(self.encoder.composition(), state["composition"], strict=True):
            parameter.copy_(value)
        for optimiser, value in zip((self._table, *self._composition), state["optimisers"], strict=True):
            optimiser.restore(value)


def fit(
    trainer: Trainer,
    checkpoint: Path,
    *,
    identity: str,
    resume: bool = False,
    save_every: float = 60.0,
    score: Score | None = None,
    score_every: int | None = None,
) -> History:
    """Train to the last step, writing `checkpoint` every `save_every` seconds and when stopped.

    Resumed from the checkpoint, the model ends with the bytes of an uninterrupted run on the same machine with the
    same number of threads. `identity` names config and data: a checkpoint of another is refused with InputError.
    Raises Interrupted after SIGINT or SIGTERM, and InputError where the loss is not finite.
    """
    history = History()
    window = torch.zeros((), device=trainer.device)
    if resume:
        state = load_checkpoint(checkpoint)
        if state["identity"] != identity:
            raise InputError(
                f"The checkpoint {checkpoint} is of another config or other data; "
                "go back to those, or start the run anew with --overwrite."
            )
        trainer.restore(state)
        history = History(**state["history"])
        window.copy_(state["window"])

    def save() -> None:
        state = trainer.state() | {"identity": identity, "history": asdict(history), "window": window}
        save_checkpoint(checkpoint, state)

    with (
        noted_signals() as caught,
        tqdm(
            total=trainer.steps * trainer.schedule.batch,
            initial=history.steps * trainer.schedule.batch,
            desc="fit",
            unit="pair",
            unit_scale=True,
            disable=not sys.stderr.isatty(),
        ) as bar,
    ):
        clock = saved = time.monotonic()
        for step in range(history.steps, trainer.steps):
            loss, pairs = trainer.take(step)
            window += loss
            history.steps, history.pairs = step + 1, history.pairs + pairs
            bar.update(trainer.schedule.batch)
            if history.steps % LOG_EVERY == 0 or history.steps == trainer.steps:
                mean = float(window) / ((history.steps - 1) % LOG_EVERY + 1)
                if not np.isfinite(mean):
                    raise InputError(f"The loss is not finite at step {history.steps}; lower the rate.")
                history.losses.append((history.steps, mean))
                window.zero_()
                bar.set_postfix(loss=f"{mean:.4f}", refresh=False)
            if score is not None and score_every and history.steps % score_every == 0:
                history.dev.append((history.steps, score(trainer.encoder)))
            now = time.monotonic()
            history.seconds, clock = history.seconds + now - clock, now
            if caught:
                save()
                raise Interrupted(history.steps, trainer.steps, caught[0])
            if now - saved >= save_every:
                save()
                saved = time.monotonic()
        save()
    return history


def choose_device(name: str) -> torch.device:
    """`auto` is CUDA where torch has it, else the CPU. Raises DeviceError where `cuda` is asked for and not there."""
    if name == "cuda" and not torch.cuda.is_available():
        raise DeviceError(
            f"torch {torch.__version__} finds no CUDA device here; choose --device cpu or install a CUDA build."
        )
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    return torch.device(name)
