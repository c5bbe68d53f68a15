"""The training loop: signals, checkpoints, development scores, and the choice of the kept model."""

from __future__ import annotations

import math
import signal
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

import torch

from gramvec.errors import GramvecError, InputError
from gramvec.progress import NO_PROGRESS, Progress
from gramvec_training.encoders.base import Encoder
from gramvec_training.fitting.trainer import Trainer
from gramvec_training.objectives.base import Examples, Objective
from gramvec_training.sections import Every
from gramvec_training.shared import write_atomically


@contextmanager
def collect_signals() -> Iterator[list[int]]:
    """Collect SIGINT and SIGTERM in the returned list; a second signal acts as usual."""
    caught: list[int] = []
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def note(number: int, frame: FrameType | None) -> None:
        caught.append(number)
        signal.signal(number, before[signal.Signals(number)])

    try:
        for number in before:
            signal.signal(number, note)
    except ValueError:  # not the main thread: signals stay as they are
        yield caught
        return
    try:
        yield caught
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


_VERSION = 3  # 1: parameters without names; 2: no kept model


def save_checkpoint(path: Path, state: dict[str, Any]) -> None:
    """Write `state` (tensors, numbers, strings, lists and dicts of these) atomically."""
    write_atomically(path, lambda handle: torch.save({"version": _VERSION, **state}, handle))


def load_checkpoint(path: Path) -> dict[str, Any]:
    """Load the state that `save_checkpoint` wrote, on the CPU.

    Raises InputError where the file is missing, damaged or of another version. No code in the file is run.
    """
    try:
        state: dict[str, Any] = torch.load(path, map_location="cpu", weights_only=True)
    except FileNotFoundError:
        raise InputError(f"{path}: no such checkpoint; start the run without --resume") from None
    except Exception as error:  # torch.load raises half a dozen types for a damaged file
        raise InputError(f"{path}: the checkpoint is damaged; start over with --overwrite") from error
    if not isinstance(state, dict) or state.get("version") != _VERSION:
        raise InputError(f"{path}: the checkpoint is not of version {_VERSION}; start over with --overwrite")
    return state


@dataclass(frozen=True)
class Log:
    """Scores written to the run's record: `score` returns JSON values for the current encoder."""

    score: Callable[[Encoder], Any]
    every: Every


@dataclass(frozen=True)
class Selection:
    """Model selection: of the models at every `every` steps and at the end, keep the one with the highest `score`.

    Of equal ones the first. A score that is not a number is below all others.
    """

    score: Callable[[Encoder], float]
    every: Every = "quarter"


def is_due(every: Every, done: int, steps: int, steps_per_epoch: int) -> bool:
    """Return whether a score is due after `done` of `steps` steps.

    The quarters of an epoch are its first steps by which a quarter, two, three and all of it are done; an epoch of
    fewer than four steps has fewer.
    """
    if done == steps:
        return True
    if every == "quarter":
        return 4 * done // steps_per_epoch > 4 * (done - 1) // steps_per_epoch
    return done % every == 0


LOG_EVERY = 100  # steps over which one entry of the loss log is the mean


class TrainingInterrupted(GramvecError):
    """Training stopped by a signal, after a checkpoint was written."""

    def __init__(self, step: int, steps: int, signal_number: int) -> None:
        super().__init__(f"stopped at step {step:,} of {steps:,}; a checkpoint is written")
        self.step = step
        self.signal_number = signal_number


@dataclass
class History:
    """Outcome of a run: steps, examples, wall seconds over all its parts, and logs of (step, value).

    selection: the scores that the kept model was chosen by; kept: the step after which it was that model.
    """

    steps: int = 0
    examples: int = 0
    seconds: float = 0.0
    losses: list[tuple[int, float]] = field(default_factory=list)
    dev: list[tuple[int, Any]] = field(default_factory=list)
    selection: list[tuple[int, float]] = field(default_factory=list)
    kept: int | None = None


def fit(
    trainer: Trainer,
    checkpoint: Path,
    *,
    identity: str,
    resume: bool = False,
    save_every: float = 60.0,
    log: Log | None = None,
    selection: Selection | None = None,
    progress: Progress = NO_PROGRESS,
) -> History:
    """Train to the last step; write `checkpoint` every `save_every` seconds and when stopped.

    Resumed from the checkpoint, the model ends with the bytes of an uninterrupted run on the same machine with the
    same number of threads. `identity` names config and data: a checkpoint of another is refused with InputError. None
    is written at the end: a run that fails later resumes from the last one, `save_every` seconds back at most. With a
    `selection` the trainer ends with the best model, not with the last.

    Raises:
        TrainingInterrupted: SIGINT or SIGTERM.
        InputError: The loss is not finite.
    """
    run = _Fit(trainer, checkpoint, identity, log, selection)
    if resume:
        run.restore()
    history, steps, batch = run.history, trainer.objective.steps, trainer.objective.schedule.batch
    progress.start("fit", steps * batch, "examples", history.steps * batch)
    with collect_signals() as caught:
        clock = saved = time.monotonic()
        for examples in _examples(trainer.objective, range(history.steps, steps)):
            mean = run.take(examples)
            progress.advance(batch, "" if mean is None else f"loss {mean:.4f}")
            run.look()
            now = time.monotonic()
            history.seconds, clock = history.seconds + now - clock, now
            if caught:
                run.save()
                raise TrainingInterrupted(history.steps, steps, caught[0])
            if now - saved >= save_every:
                run.save()
                saved = time.monotonic()
    if run.best:
        trainer.take_values(run.best)
    return history


class _Fit:
    """Progress of a run, and its checkpoint."""

    def __init__(
        self, trainer: Trainer, checkpoint: Path, identity: str, log: Log | None, selection: Selection | None
    ) -> None:
        self.trainer = trainer
        self.history = History()
        self.best: dict[str, torch.Tensor] = {}  # what Trainer.values gave after the step history.kept
        self._most = -math.inf
        self._window = torch.zeros((), device=trainer.device)
        self._checkpoint = checkpoint
        self._identity = identity
        self._log = log
        self._selection = selection

    def take(self, examples: Examples) -> float | None:
        """Learn from the examples of a step; return the mean loss since it was last logged, if it is due."""
        history = self.history
        self._window += self.trainer.take(examples)
        history.steps, history.examples = examples.step + 1, history.examples + examples.count
        if history.steps % LOG_EVERY and history.steps != self.trainer.objective.steps:
            return None
        mean = float(self._window) / ((history.steps - 1) % LOG_EVERY + 1)
        if not math.isfinite(mean):
            raise InputError(f"the loss is not finite at step {history.steps}; lower the rate")
        history.losses.append((history.steps, mean))
        self._window.zero_()
        return mean

    def look(self) -> None:
        """Score the model for the log and for the selection where these are due."""
        history, objective = self.history, self.trainer.objective
        done = history.steps, objective.steps, objective.steps_per_epoch
        if self._log is not None and is_due(self._log.every, *done):
            history.dev.append((history.steps, self._log.score(self.trainer.encoder)))
        if self._selection is not None and is_due(self._selection.every, *done):
            score = float(self._selection.score(self.trainer.encoder))
            score = -math.inf if math.isnan(score) else score
            history.selection.append((history.steps, score))
            if not self.best or score > self._most:
                self._most, history.kept = score, history.steps
                self.best = {name: value.clone() for name, value in self.trainer.values().items()}

    def save(self) -> None:
        own = {"identity": self._identity, "history": asdict(self.history), "window": self._window}
        save_checkpoint(self._checkpoint, self.trainer.state() | own | {"best": self.best, "most": self._most})

    def restore(self) -> None:
        state = load_checkpoint(self._checkpoint)
        if state["identity"] != self._identity:
            raise InputError(
                f"{self._checkpoint}: the checkpoint is of another config or other data; "
                "go back to those, or start over with --overwrite"
            )
        self.trainer.restore(state)
        self.history = History(**state["history"])
        self.best, self._most = state["best"], state["most"]
        self._window.copy_(state["window"])


def _examples(objective: Objective, steps: range) -> Iterator[Examples]:
    """Yield the examples of the steps; where the objective allows it, a thread prepares the next ones."""
    if not objective.ahead:
        yield from map(objective.examples_at, steps)
        return
    with ThreadPoolExecutor(1, thread_name_prefix="gramvec-batches") as worker:
        coming = worker.submit(objective.examples_at, steps[0]) if steps else None
        for step in steps:
            assert coming is not None
            examples = coming.result()
            coming = worker.submit(objective.examples_at, step + 1) if step + 1 in steps else None
            yield examples
