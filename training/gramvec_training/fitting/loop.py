"""The training loop: seeded, resumable, stopped cleanly by Ctrl-C or SIGTERM."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np
import torch
from tqdm import tqdm

from gramvec.errors import GramvecError, InputError
from gramvec_training.encoders import Encoder
from gramvec_training.fitting.checkpoint import load_checkpoint, save_checkpoint
from gramvec_training.fitting.signals import noted_signals
from gramvec_training.fitting.trainer import Trainer
from gramvec_training.objectives import Examples, Objective

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
    """What a run did: steps, examples, wall seconds over all its parts, and the logs as (step, value)."""

    steps: int = 0
    examples: int = 0
    seconds: float = 0.0
    losses: list[tuple[int, float]] = field(default_factory=list)
    dev: list[tuple[int, dict[str, float]]] = field(default_factory=list)


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

    steps, batch = trainer.objective.steps, trainer.objective.schedule.batch
    with (
        noted_signals() as caught,
        tqdm(
            total=steps * batch,
            initial=history.steps * batch,
            desc="fit",
            unit="",
            unit_scale=True,
            disable=not sys.stderr.isatty(),
        ) as bar,
    ):
        clock = saved = time.monotonic()
        for examples in _examples(trainer.objective, range(history.steps, steps)):
            window += trainer.take(examples)
            history.steps, history.examples = examples.step + 1, history.examples + examples.count
            bar.update(batch)
            if history.steps % LOG_EVERY == 0 or history.steps == steps:
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
                raise Interrupted(history.steps, steps, caught[0])
            if now - saved >= save_every:
                save()
                saved = time.monotonic()
        save()
    return history


def _examples(objective: Objective, steps: range) -> Iterator[Examples]:
    """What the steps learn from; where the objective allows it, the next is cut in a thread while one is learned."""
    if not objective.ahead:
        yield from map(objective.examples_at, steps)
        return
    with ThreadPoolExecutor(1, thread_name_prefix="gramvec-batches") as worker:
        coming = worker.submit(objective.examples_at, steps[0]) if steps else None
        for step in steps:
            assert coming is not None
            found = coming.result()
            coming = worker.submit(objective.examples_at, step + 1) if step + 1 in steps else None
            yield found
