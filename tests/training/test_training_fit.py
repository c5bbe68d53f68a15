"""The training loop: it learns, it is deterministic, and a stopped run ends as one that was not stopped."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from gramvec.errors import DeviceError, InputError
from gramvec_training.config import Training
from gramvec_training.data.corpus import Corpus
from gramvec_training.data.sampling import Mixture, SourceGroups
from gramvec_training.encoders.bag import Bag
from gramvec_training.fitting.loop import Log, TrainingInterrupted, fit
from gramvec_training.fitting.trainer import Trainer, choose_device
from gramvec_training.objectives.base import Examples
from gramvec_training.objectives.pairs import MarginObjective
from gramvec_training.sections import BagSettings

pytestmark = pytest.mark.slow

ROWS, DIMENSION, TEXTS = 60, 8, 80


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def trainer(*, bias: bool = True, **settings: Any) -> Trainer:
    """Forty pairs; the texts of a pair share three of their six features."""
    rng = np.random.default_rng(5)
    shared = np.repeat(rng.integers(0, ROWS, size=(TEXTS // 2, 3)), 2, axis=0)
    bags = np.concatenate([shared, rng.integers(0, ROWS, size=(TEXTS, 3))], axis=1).astype(np.int32)
    corpus = Corpus(bags.ravel(), np.arange(0, bags.size + 1, 6), ROWS)
    ordered = not settings.get("shuffle_first_epoch", True)
    mixture = Mixture([SourceGroups("s", np.arange(TEXTS), np.arange(0, TEXTS + 1, 2))], 2, not ordered)
    table = torch.empty(ROWS, DIMENSION).uniform_(-0.1, 0.1, generator=torch.Generator().manual_seed(0))
    encoder = Bag(table, BagSettings(bias=bias))
    values = {"batch": 12, "steps": 120, "rate": 0.01, "l2": 1e-4, "l2_center": "initial", **settings}
    objective = MarginObjective(encoder, corpus, mixture, Training.model_validate(values))
    return Trainer(encoder, objective, torch.device("cpu"))


def objective_of(one: Trainer) -> MarginObjective:
    assert isinstance(one.objective, MarginObjective)
    return one.objective


def bytes_of(one: Trainer) -> bytes:
    return b"".join(array.tobytes() for array in one.encoder.arrays().values())


def test_the_loss_falls_and_is_logged(tmp_path: Path) -> None:
    history = fit(trainer(), tmp_path / "c.pt", identity="x")
    steps = [step for step, _ in history.losses]
    assert steps == [100, 120]
    assert history.losses[-1][1] < 0.7 * history.losses[0][1]
    assert history.steps == 120
    # An epoch of 40 pairs is batches of 12, 12, 12 and 4.
    assert history.examples == 30 * 40


@pytest.mark.parametrize(
    "settings", [{"optimizer": "adagrad"}, {"mega_batch": 3}, {"clip": 0.01}, {"shuffle_first_epoch": False}], ids=str
)
def test_each_option_changes_the_model(tmp_path: Path, settings: dict[str, Any]) -> None:
    usual, other = trainer(steps=8), trainer(steps=8, **settings)
    losses = [fit(one, tmp_path / "c.pt", identity="x").losses for one in (usual, other)]
    assert bytes_of(usual) != bytes_of(other)
    assert all(np.isfinite(value) for log in losses for _, value in log)


def test_the_same_seed_gives_the_same_bytes(tmp_path: Path) -> None:
    first, second, other = trainer(), trainer(), trainer()
    object.__setattr__(objective_of(other).mixture, "seed", 3)
    for one in (first, second, other):
        fit(one, tmp_path / "c.pt", identity="x")
    assert bytes_of(first) == bytes_of(second) != bytes_of(other)


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"negatives": "mix"},
        {"bias": False, "decay": "none"},
        {"optimizer": "adagrad", "rate": 0.05, "l2_composition": 1e-3},
        {"mega_batch": 3},
        {"mega_batch": 3, "negatives": "mix", "clip": 0.05, "l2_center": "zero"},
        {"shuffle_first_epoch": False, "steps": None, "epochs": 30},
    ],
    ids=str,
)
@pytest.mark.parametrize("stop", [1, 100, 113, 120])
def test_a_stopped_and_resumed_run_ends_with_the_same_bytes(
    tmp_path: Path, settings: dict[str, Any], stop: int
) -> None:
    whole = trainer(**settings)
    uninterrupted = fit(whole, tmp_path / "whole.pt", identity="x")

    stopped = trainer(**settings)
    take = stopped.take

    def take_and_stop(examples: Examples) -> Any:
        if examples.step == stop - 1:
            os.kill(os.getpid(), signal.SIGTERM)
        return take(examples)

    stopped.take = take_and_stop  # type: ignore[method-assign]
    with pytest.raises(TrainingInterrupted, match=f"stopped at step {stop} of 120") as caught:
        fit(stopped, tmp_path / "c.pt", identity="x")
    assert caught.value.signal_number == signal.SIGTERM

    resumed = trainer(**settings)
    history = fit(resumed, tmp_path / "c.pt", identity="x", resume=True)
    assert bytes_of(resumed) == bytes_of(whole)
    assert (history.losses, history.examples) == (uninterrupted.losses, uninterrupted.examples)


def test_periodic_checkpoints_do_not_change_the_model(tmp_path: Path) -> None:
    often, once = trainer(steps=20), trainer(steps=20)
    fit(often, tmp_path / "often.pt", identity="x", save_every=0)
    fit(once, tmp_path / "once.pt", identity="x")
    assert bytes_of(often) == bytes_of(once)
    assert [path.name for path in tmp_path.iterdir()] == ["often.pt"]


def test_signals_act_as_before_when_the_loop_is_left(tmp_path: Path) -> None:
    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    fit(trainer(steps=1), tmp_path / "c.pt", identity="x")
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == before


def test_a_checkpoint_of_other_data_is_refused(tmp_path: Path) -> None:
    fit(trainer(steps=2), tmp_path / "c.pt", identity="x", save_every=0)
    with pytest.raises(InputError, match="another config or other data"):
        fit(trainer(steps=2), tmp_path / "c.pt", identity="y", resume=True)


def test_missing_and_damaged_checkpoints_are_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such checkpoint"):
        fit(trainer(), tmp_path / "c.pt", identity="x", resume=True)
    fit(trainer(steps=2), tmp_path / "c.pt", identity="x", save_every=0)
    data = (tmp_path / "c.pt").read_bytes()
    for damaged in (b"", b"rubbish", data[: len(data) // 2]):
        (tmp_path / "c.pt").write_bytes(damaged)
        with pytest.raises(InputError, match=r"c\.pt: the checkpoint is damaged"):
            fit(trainer(), tmp_path / "c.pt", identity="x", resume=True)


def test_a_loss_that_is_not_finite_ends_the_run(tmp_path: Path) -> None:
    broken = trainer()
    with torch.no_grad():
        broken.encoder.table[0] = float("nan")
    with pytest.raises(InputError, match="not finite at step 100"):
        fit(broken, tmp_path / "c.pt", identity="x")


def test_development_scores_are_taken_at_their_steps(tmp_path: Path) -> None:
    log = Log(lambda model: {"t": 1.5}, 10)
    history = fit(trainer(steps=25), tmp_path / "c.pt", identity="x", log=log)
    assert history.dev == [(10, {"t": 1.5}), (20, {"t": 1.5}), (25, {"t": 1.5})]


def test_epochs_count_whole_passes_and_a_last_pair_alone_is_left_out() -> None:
    assert trainer(steps=None, epochs=3).objective.steps == 3 * 4
    assert objective_of(trainer(steps=None, epochs=1, batch=13)).steps_per_epoch == 3  # 13 + 13 + 13 + 1
    assert len(trainer(batch=39).objective.examples_at(0).batch.texts) == 78


def test_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert choose_device("auto").type == "cpu"
    with pytest.raises(DeviceError, match="finds no CUDA device"):
        choose_device("cuda")
