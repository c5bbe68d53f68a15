"""The papers' options: which model is kept, optimizers, negatives, what parameters are drawn to, by hand."""

from __future__ import annotations

import math
import os
import signal
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pytest
import torch
from torch.nn import functional

from gramvec.errors import InputError
from gramvec_training.config import Training, load_config, parse_config
from gramvec_training.data.corpus import Corpus
from gramvec_training.data.sampling import Mixture, SourceGroups
from gramvec_training.encoders.bag import Bag
from gramvec_training.encoders.base import Encoder
from gramvec_training.encoders.build import build_encoder
from gramvec_training.encoders.recurrent import IrnnSettings
from gramvec_training.fitting.loop import Selection, TrainingInterrupted, fit, is_due
from gramvec_training.fitting.optimizers import LazyAdaGrad, LazySgd, make_optimizer
from gramvec_training.fitting.trainer import Trainer
from gramvec_training.objectives.base import Examples, Objective
from gramvec_training.objectives.pairs import MarginObjective, choose_negatives, margin_loss
from gramvec_training.runs.run_dir import load_run
from gramvec_training.sections import BagSettings
from support.training import call, sentence

ROWS, TEXTS = 40, 48


def trained(encoder: Encoder, **values: Any) -> Trainer:
    """Pairs whose texts share half of their rows."""
    rng = np.random.default_rng(5)
    shared = np.repeat(rng.integers(0, ROWS, size=(TEXTS // 2, 2)), 2, axis=0)
    bags = np.concatenate([shared, rng.integers(0, ROWS, size=(TEXTS, 2))], axis=1).astype(np.int32)
    corpus = Corpus(bags.ravel(), np.arange(0, bags.size + 1, 4), ROWS)
    mixture = Mixture([SourceGroups("s", np.arange(TEXTS), np.arange(0, TEXTS + 1, 2))], 2)
    settings = Training.model_validate({"batch": 8, "steps": 30, "rate": 0.01, **values})
    return Trainer(encoder, MarginObjective(encoder, corpus, mixture, settings), torch.device("cpu"))


def bag() -> Bag:
    table = torch.empty(ROWS, 4).uniform_(-0.1, 0.1, generator=torch.Generator().manual_seed(0))
    return Bag(table, BagSettings(activation="linear"))


# The model that is kept


def test_quarters_of_an_epoch() -> None:
    # Of 10 steps a quarter is 2.5: done after the third, and so on; a run of 13 ends within its second epoch.
    assert [done for done in range(1, 14) if is_due("quarter", done, 13, 10)] == [3, 5, 8, 10, 13]
    assert [done for done in range(1, 4) if is_due("quarter", done, 3, 3)] == [1, 2, 3]
    assert [done for done in range(1, 8) if is_due(3, done, 7, 99)] == [3, 6, 7]


SCORES = (0.1, 0.5, math.nan, 0.5, 0.2)


def scored(scores: list[float], seen: list[bytes]) -> Selection:
    """A selection by scores that are given; `seen` gets the table at each."""

    def score(encoder: Encoder) -> float:
        seen.append(encoder.arrays()["table"].tobytes())
        return scores[len(seen) - 1]

    return Selection(score, 6)


def test_the_best_model_is_kept_and_of_equals_the_first(tmp_path: Path) -> None:
    one, seen = trained(bag()), list[bytes]()
    history = fit(one, tmp_path / "c.pt", identity="x", selection=scored(list(SCORES), seen))
    assert [step for step, _ in history.selection] == [6, 12, 18, 24, 30]
    assert history.selection[2][1] == -math.inf
    assert history.kept == 12
    assert one.encoder.arrays()["table"].tobytes() == seen[1] != seen[4]


def test_without_any_score_that_is_a_number_the_first_is_kept(tmp_path: Path) -> None:
    seen = list[bytes]()
    history = fit(trained(bag()), tmp_path / "c.pt", identity="x", selection=scored([math.nan] * 5, seen))
    assert history.kept == 6


@pytest.mark.parametrize("stop", [11, 12, 13, 29])
def test_a_resumed_run_keeps_the_same_model(tmp_path: Path, stop: int) -> None:
    whole, seen = trained(bag()), list[bytes]()
    fit(whole, tmp_path / "whole.pt", identity="x", selection=scored(list(SCORES), seen))

    stopped, seen = trained(bag()), list[bytes]()
    take = stopped.take

    def take_and_stop(examples: Examples) -> Any:
        if examples.step == stop - 1:
            os.kill(os.getpid(), signal.SIGTERM)
        return take(examples)

    stopped.take = take_and_stop  # type: ignore[method-assign]
    with pytest.raises(TrainingInterrupted):
        fit(stopped, tmp_path / "c.pt", identity="x", selection=scored(list(SCORES), seen))
    resumed = trained(bag())
    fit(resumed, tmp_path / "c.pt", identity="x", resume=True, selection=scored(list(SCORES), seen))
    assert {name: value.tobytes() for name, value in resumed.encoder.arrays().items()} == {
        name: value.tobytes() for name, value in whole.encoder.arrays().items()
    }


def test_a_run_is_selected_by_its_config(tmp_path: Path) -> None:
    (tmp_path / "pairs.tsv").write_text("".join(f"red car {i}\tauto {i} red\n" for i in range(24)))
    (tmp_path / "dev").mkdir()
    (tmp_path / "dev/words.tsv").write_text("1.0\tred 1\tauto 9\n4.0\tcar 3\tauto 3\n2.0\tred\tcar\n")
    (tmp_path / "dev/more.tsv").write_text("1.0\tred 1\tauto 2\n4.0\tcar 3\tauto 3\n2.0\tred\tcar\n")
    (tmp_path / "c.toml").write_text(
        '[model]\nname = "c"\nkind = "charagram-phrase"\ndimension = 8\n'
        '[training]\nbatch = 6\nepochs = 3\n[[data]]\npath = "pairs.tsv"\n'
        '[dev]\nsets = ["dev"]\nevery = "quarter"\n[select]\nset = "dev/words.tsv"\n'
    )
    result = call("fit", tmp_path / "c.toml", "--data", tmp_path, "--out", tmp_path / "run")
    assert result.exit_code == 0, result.output
    record = orjson.loads((tmp_path / "run/run.json").read_bytes())
    steps = [step for step, _ in record["dev"]]
    assert steps == [step for step, _ in record["selection"]["scores"]] == list(range(1, 13))
    best = max(record["selection"]["scores"], key=lambda one: one[1])
    assert record["selection"]["kept"] == best[0]
    # Its score is that of the log at this step, and of the finished run.
    at = dict((step, tasks) for step, tasks in record["dev"])[best[0]]["dev"]["sets"]["words"]
    assert at["spearman"] == pytest.approx(best[1], abs=1e-3)
    assert record["scores"]["tasks"]["dev"]["sets"]["words"]["spearman"] == pytest.approx(best[1])
    assert set(record["dev"][0][1]["dev"]["sets"]) == {"words", "more"}
    shown = call("report", tmp_path / "run", "--no-plot", "--measure", "spearman").stdout
    assert f"kept: the model after step {best[0]}, {best[1]:.1f} on what it was chosen by" in shown
    assert f"dev: best {max(one['dev']['mean']['spearman'] for _, one in record['dev']):.1f}" in shown
    assert f"{sum(record['parameters'].values()):,} parameters (8 without the table)" in shown


# Optimizers


def test_epsilon_inside_the_root_by_hand() -> None:
    table = torch.zeros(1, 2)
    optimizer = LazyAdaGrad(table, epsilon=1e-6, in_root=True)
    row = torch.tensor([0])
    optimizer.step(row, optimizer.leaf(row), torch.tensor([[3e-4, 3.0]]), 0.05)
    # An entry far below 1e-3 moves by the rate times |g| / 1e-3; 1e-10 beside the root moves it by the whole rate.
    expected = [-0.05 * 3e-4 / math.sqrt(9e-8 + 1e-6), -0.05 * 3 / math.sqrt(9 + 1e-6)]
    np.testing.assert_allclose(table[0], expected, rtol=1e-6)
    usual = torch.zeros(1, 2)
    other = LazyAdaGrad(usual)
    other.step(row, other.leaf(row), torch.tensor([[3e-4, 3.0]]), 0.05)
    np.testing.assert_allclose(usual[0], [-0.05, -0.05], rtol=1e-5)


@pytest.mark.parametrize("momentum", [0.0, 0.95])
def test_sgd_is_torchs_where_every_row_is_touched(momentum: float) -> None:
    """torch adds g to its buffer and multiplies by the rate later: the same at a constant rate."""
    start = torch.randn(5, 3, generator=torch.Generator().manual_seed(1))
    table, dense = start.clone(), start.clone().requires_grad_()
    lazy, reference = LazySgd(table, momentum=momentum), torch.optim.SGD([dense], lr=0.2, momentum=momentum)
    for step in range(20):
        gradient = torch.randn(5, 3, generator=torch.Generator().manual_seed(step))
        rows = torch.arange(5)
        lazy.step(rows, lazy.leaf(rows), gradient.clone(), 0.2)
        dense.grad = gradient
        reference.step()
    np.testing.assert_allclose(table, dense.detach(), atol=1e-5)


def test_a_schedule_makes_its_optimizer() -> None:
    def step(**values: Any) -> list[float]:
        table = torch.zeros(1, 1)
        optimizer = make_optimizer(table, Training(steps=1, **values), l2=0.0, center="zero")
        row = torch.tensor([0])
        for _ in range(2):
            optimizer.step(row, optimizer.leaf(row), torch.tensor([[1e-3]]), 0.1)
        return [round(float(value), 6) for value in table[0]]

    assert step() == [-0.199998]  # Adam: nearly the rate each time
    assert step(epsilon=1.0) == [-0.0002]
    assert step(optimizer="adagrad") == [round(-0.1 - 0.1 / math.sqrt(2), 6)]
    assert step(optimizer="adagrad", epsilon=1e-6, epsilon_in_root=True) == [
        round(-0.1 / math.sqrt(2) - 0.1 / math.sqrt(3), 6)
    ]
    assert step(optimizer="sgd") == [-0.0002]
    assert step(optimizer="sgd", momentum=0.5) == [-0.00025]


# What parameters are drawn to


def test_irnn_is_drawn_to_the_identity_and_words_to_their_start() -> None:
    table = torch.empty(ROWS, 4).uniform_(-0.5, 0.5, generator=torch.Generator().manual_seed(0))

    def distances(weight: float) -> tuple[float, float, float]:
        encoder = build_encoder(IrnnSettings(kind="irnn"), table.clone(), 4, torch.Generator())
        l2 = {"l2": weight, "l2_center": "initial", "l2_composition": weight, "l2_composition_center": "initial"}
        one = trained(encoder, **l2, steps=300, optimizer="sgd", rate=0.05, decay="none")
        for step in range(300):
            one.take(one.objective.examples_at(step))
        arrays = encoder.arrays()
        return (
            float(np.abs(arrays["recurrent"] - np.eye(4)).max()),
            float(np.abs(arrays["bias"]).max()),
            float(np.abs(arrays["table"] - table.numpy()).max()),
        )

    free, drawn = distances(0.0), distances(10.0)
    # How far the bias goes depends on the processor: 300 steps multiply the last bits of a recurrent sum.
    for far, near, times in zip(free, drawn, (3, 1.3, 3), strict=True):
        assert far > times * near, (free, drawn)


class Scaled(Objective):
    """A loss of zero with a parameter of its own: what remains is the L2 term."""

    def __init__(self, l2_own: float) -> None:
        self.schedule = Training(steps=5, optimizer="sgd", rate=0.1, decay="none", batch=2, l2_composition=0.5)
        self.steps = self.steps_per_epoch = 5
        self.l2_own = l2_own
        self.scale = torch.nn.Parameter(torch.ones(2))
        self._corpus = Corpus(np.zeros(2, np.int32), np.array([0, 1, 2]), 1)

    def examples_at(self, step: int) -> Examples:
        return Examples(step, self._corpus.batch(np.array([0, 1])), 2)

    def loss(self, vectors: torch.Tensor, examples: Examples) -> torch.Tensor:
        return 0 * (vectors.sum() + self.scale.sum())

    def parameters(self) -> dict[str, torch.nn.Parameter]:
        return {"scale": self.scale}


def test_an_objectives_own_parameters_have_their_own_weight() -> None:
    encoder = Bag(torch.ones(1, 3), BagSettings(activation="linear"))
    assert encoder.bias is not None
    encoder.bias.data.fill_(2.0)
    objective = Scaled(l2_own=0.2)
    one = Trainer(encoder, objective, torch.device("cpu"))
    for step in range(5):
        one.take(objective.examples_at(step))
    np.testing.assert_allclose(objective.scale.detach(), (1 - 0.1 * 0.2) ** 5, rtol=1e-6)
    np.testing.assert_allclose(encoder.bias.detach(), 2 * (1 - 0.1 * 0.5) ** 5, rtol=1e-6)
    assert set(one.values()) == {"table", "bias", "scale"}


def test_a_fixed_table_stays_and_the_rest_is_learned(tmp_path: Path) -> None:
    encoder = build_encoder(IrnnSettings(kind="irnn"), bag().table.detach().clone(), 4, torch.Generator())
    before = {name: value.copy() for name, value in encoder.arrays().items()}
    fit(trained(encoder, fixed_table=True, l2=1.0), tmp_path / "c.pt", identity="x")
    after = encoder.arrays()
    assert np.array_equal(before["table"], after["table"])
    assert not np.allclose(before["recurrent"], after["recurrent"])
    with pytest.raises(InputError, match="fixed_table leaves nothing to learn"):
        trained(Bag(torch.zeros(ROWS, 4), BagSettings(bias=False)), fixed_table=True)


# Negatives and cosines


def test_own_side_negatives_are_of_the_own_side() -> None:
    unit = functional.normalize(torch.randn(40, 3, generator=torch.Generator().manual_seed(1)), dim=1)
    texts = torch.arange(40)
    cosines = unit @ unit.T
    found = choose_negatives(unit, texts, "max", among="own")
    for phrase in range(40):
        side = range(20) if phrase < 20 else range(20, 40)
        others = [t for t in side if t != phrase]
        assert found[phrase] == max(others, key=lambda t: float(cosines[phrase, t]))
    assert not torch.equal(found, choose_negatives(unit, texts, "max"))
    alone = choose_negatives(unit[:2], torch.arange(2), "max", among="own")
    assert alone.tolist() == [-1, -1]


@pytest.mark.parametrize("among", ["both", "own"])
def test_rand_is_uniform_over_the_allowed(among: Any) -> None:
    unit = functional.normalize(torch.randn(8, 3, generator=torch.Generator().manual_seed(1)), dim=1)
    texts, generator = torch.tensor([0, 1, 2, 3, 4, 5, 6, 1]), torch.Generator().manual_seed(2)
    drawn = torch.stack(
        [choose_negatives(unit, texts, "rand", among=among, generator=generator) for _ in range(3000)]
    ).numpy()
    for phrase in range(8):
        partner = (phrase + 4) % 8
        side = range(8) if among == "both" else range(4 * (phrase // 4), 4 * (phrase // 4) + 4)
        allowed = [t for t in side if int(texts[t]) not in (int(texts[phrase]), int(texts[partner]))]
        counts = np.bincount(drawn[:, phrase], minlength=8)
        assert set(np.flatnonzero(counts)) == set(allowed)
        assert np.abs(counts[allowed] - 3000 / len(allowed)).max() < 5 * math.sqrt(3000 / len(allowed))


def test_cosines_with_an_epsilon_by_hand() -> None:
    x = torch.tensor([[3.0, 4.0], [0.0, 2.0], [6.0, 8.0], [1.0, 0.0]])  # two left phrases, then their right ones
    lengths = x.norm(dim=1)
    unit = x / lengths.unsqueeze(1)
    negatives = torch.tensor([1, 0, 3, 2])
    epsilon, delta = 0.5, 0.4

    def cosine(i: int, j: int) -> float:
        return float(x[i] @ x[j]) / (float(lengths[i] * lengths[j]) + epsilon)

    expected = 0.0
    for i, partner in ((0, 2), (1, 3), (2, 0), (3, 1)):
        expected += max(0.0, delta - cosine(i, partner) + cosine(i, int(negatives[i])))
    left, right = unit.chunk(2)
    found = margin_loss(left, right, negatives, delta, lengths=lengths, epsilon=epsilon)
    assert float(found) == pytest.approx(expected / 2, rel=1e-6)


def test_presence_counts_a_repeated_feature_once() -> None:
    table = torch.tensor([[1.0, 0.0], [0.0, 1.0], [5.0, 5.0]])
    encoder = Bag(table, BagSettings(activation="linear", bias=False, presence=True))
    ids, offsets = torch.tensor([1, 0, 1, 1, 2, 2]), torch.tensor([0, 4, 4, 6])
    assert encoder(ids, offsets).tolist() == [[1.0, 1.0], [0.0, 0.0], [5.0, 5.0]]
    counted = Bag(table, BagSettings(activation="linear", bias=False))
    assert counted(ids, offsets).tolist() == [[1.0, 3.0], [0.0, 0.0], [10.0, 10.0]]


def test_a_model_of_presence_stays_with_its_trainer(tmp_path: Path) -> None:
    (tmp_path / "pairs.tsv").write_text("".join(f"red car {i}\tauto {i} red\n" for i in range(24)))
    (tmp_path / "p.toml").write_text(
        '[model]\nname = "p"\nkind = "charagram-phrase"\ndimension = 8\n[encoder]\nkind = "bag"\npresence = true\n'
        '[training]\nbatch = 6\nsteps = 3\n[[data]]\npath = "pairs.tsv"\n'
    )
    assert call("fit", tmp_path / "p.toml", "--data", tmp_path, "--out", tmp_path / "run").exit_code == 0
    assert "counts a feature as often as it is there" in sentence(
        call("export", tmp_path / "run", "-o", tmp_path / "p")
    )


# Configs


@pytest.mark.parametrize(
    ("training", "message"),
    [
        ({"momentum": 0.9}, 'momentum belongs to optimizer "sgd", not "adam"'),
        ({"optimizer": "sgd", "epsilon": 1e-6}, 'epsilon belongs to optimizer "adam" or "adagrad"'),
        ({"epsilon_in_root": True}, 'epsilon_in_root belongs to optimizer "adagrad"'),
        ({"negatives": "hard"}, "'max', 'mix' or 'rand'"),
        ({"momentum": 1.0, "optimizer": "sgd"}, "less than 1"),
    ],
    ids=str,
)
def test_options_that_do_not_fit_are_said(training: dict[str, Any], message: str) -> None:
    values = {"model": {"name": "m", "kind": "gramvec"}, "data": [{"path": "x"}]}
    with pytest.raises(InputError, match=message):
        parse_config({**values, "training": {"steps": 1, **training}}, source="test")


def test_a_config_may_change_another(tmp_path: Path) -> None:
    (tmp_path / "one.toml").write_text(
        '[model]\nname = "one"\nkind = "dan"\n[encoder]\nkind = "dan"\nlayers = 2\n[features]\norders = []\n'
        'words = true\n[training]\nsteps = 5\nrate = 0.5\n[[data]]\npath = "a"\n[[data]]\npath = "b"\n'
    )
    (tmp_path / "two.toml").write_text(
        'base = "one.toml"\n[model]\nname = "two"\n[encoder]\nkind = "lstm"\n[training]\nrate = 0.25\n'
        '[[data]]\npath = "c"\n'
    )
    config = load_config(tmp_path / "two.toml")
    assert config.training is not None
    assert (config.model.name, config.model.kind, config.training.steps, config.training.rate) == (
        "two",
        "dan",
        5,
        0.25,
    )
    assert config.composition.kind == "lstm"  # without the layers of the other encoder
    assert [one.path.name for one in config.data] == ["c"]
    for text, message in (
        ('base = "three.toml"\n', "base leads back to this config"),
        ("base = 3\n", "base is not a file name in quotes, got 3"),
        ('base = "none.toml"\n', "no such config"),
    ):
        (tmp_path / "three.toml").write_text(text)
        with pytest.raises(InputError, match=message):
            load_config(tmp_path / "three.toml")


def test_a_selected_run_without_the_set_is_refused(tmp_path: Path) -> None:
    (tmp_path / "pairs.tsv").write_text("a b\tb a\nc d\td c\n")
    (tmp_path / "c.toml").write_text(
        '[model]\nname = "c"\nkind = "charagram-phrase"\n[training]\nsteps = 1\n[[data]]\npath = "pairs.tsv"\n'
        '[select]\nset = "no.tsv"\n'
    )
    result = call("fit", tmp_path / "c.toml", "--data", tmp_path, "--out", tmp_path / "run")
    assert "no such folder" in sentence(result)
    with pytest.raises(InputError):
        load_run(tmp_path / "run")
