"""gramvec_training.fit, distill and evaluate: what the commands do, from a Python program."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import gramvec
import gramvec_training
from gramvec.errors import InputError
from gramvec_training import LabelOptions, PairOptions, RunOptions, TextOptions, WeightOptions
from support.errors import refused
from support.training import call

PAIRS = "".join(f"the {n} red car\tthat car, {n} and red\n" for n in range(40))
CONFIG = """[model]
name = "tiny"
kind = "charagram-phrase"
dimension = 8
[training]
batch = 8
steps = 5
[[data]]
path = "my.tsv"
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my.tsv").write_text(PAIRS)
    (tmp_path / "tiny.toml").write_text(CONFIG)
    return tmp_path


def test_a_config_trains_the_model_of_the_command(here: Path) -> None:
    made = gramvec_training.fit("tiny.toml", "of-python", data=here, out="run")
    assert made == Path("of-python")
    assert call("fit", "tiny.toml", "--data", ".", "--out", "other", "--export", "of-command").exit_code == 0
    assert (made / "model.onnx.data").read_bytes() == Path("of-command/model.onnx.data").read_bytes()
    with refused(InputError, "of-python", "holds a model already"):
        gramvec_training.fit("tiny.toml", made, out="run")
    again = gramvec_training.fit("tiny.toml", made, data=here, out="run", run=RunOptions(overwrite=True))
    assert gramvec.load(again, device="cpu").embed(["red car"]).shape == (1, 8)


def test_the_options_say_what_is_learned_from_a_file(here: Path) -> None:
    start = str(gramvec_training.fit("tiny.toml", "small", out="first"))
    pairs = gramvec_training.fit("my.tsv", "pairs", options=PairOptions(start=start, epochs=1), anyway=True)
    (here / "labels.tsv").write_text("".join(f"{'red' if n % 2 else 'blue'}\ttext {n} of it\n" for n in range(40)))
    labels = gramvec_training.fit("labels.tsv", "labels", options=LabelOptions(epochs=1))
    (here / "both.tsv").write_text("".join(f"car {n}\tthe car {n % 7}\t{n % 2}\n" for n in range(40)))
    weights = gramvec_training.fit("both.tsv", "weights", options=WeightOptions(start=start), anyway=True)
    for made, name in ((pairs, "pairs"), (labels, "labels"), (weights, "weights")):
        assert gramvec.load(made, device="cpu").manifest.name == name
    with refused(InputError, "anyway=True"):
        gramvec_training.fit("both.tsv", "none", options=WeightOptions(start=start))


def test_a_student_and_scores(here: Path) -> None:
    teacher = str(gramvec_training.fit("tiny.toml", here / "teacher", out="first"))
    (here / "texts.txt").write_text(PAIRS.replace("\t", "\n"))
    made = gramvec_training.distill(
        TextOptions(texts=(Path("texts.txt"),), teacher=teacher, dimension=4, epochs=1), "student", out="run"
    )
    (here / "sets").mkdir()
    (here / "sets/a.tsv").write_text("5\tred car\tred car\n0\tred car\tthat\n3\tred\tred car\n")
    scores = gramvec_training.evaluate([made, "run"], ["sets"], device="cpu")
    assert list(scores) == ["student", "run"]
    (task,) = scores["student"]["tasks"].values()
    assert set(task["mean"]) >= {"pearson", "spearman"}
    with refused(InputError, "texts and teacher"):
        gramvec_training.distill(TextOptions(teacher=teacher), "none")
    with refused(InputError, "no [distillation]"):
        gramvec_training.distill("tiny.toml", "none")


@pytest.mark.parametrize("given", [None, 3, [("a", "b")], iter(())])
def test_what_is_no_path_is_refused_by_its_name(here: Path, given: Any) -> None:
    calls: dict[str, Callable[[], object]] = {
        "source": lambda: gramvec_training.fit(given, "none", options=PairOptions()),
        "bundle": lambda: gramvec_training.fit("my.tsv", given, options=PairOptions()),
    }
    for name, refuses in calls.items():
        with refused(InputError, name, type(given).__name__):
            refuses()
    with refused(InputError, "source", type(given).__name__):
        gramvec_training.distill(given, "none")
    assert not (here / "none").exists() and not (here / "runs").exists()


def test_records_of_another_kind_are_refused(here: Path) -> None:
    wrong: Any = {"epochs": 1}
    with refused(InputError, "options", "PairOptions", "dict"):
        gramvec_training.fit("my.tsv", "none", options=wrong)
    with refused(InputError, "run", "RunOptions", "dict"):
        gramvec_training.fit("my.tsv", "none", options=PairOptions(), run=wrong)
    for given, names in (({"steps": 3}, ("PairOptions", "steps")), ({"epochs": 0}, ("PairOptions", "epochs"))):
        with refused(InputError, *names):
            PairOptions(**given)
    with refused(InputError, "WeightOptions", "start"):
        WeightOptions()  # type: ignore[call-arg]


def test_one_model_and_one_set_need_no_list_and_none_is_refused(here: Path) -> None:
    model = gramvec_training.fit("tiny.toml", "small", out="first")
    (here / "a.tsv").write_text("5\tred car\tred car\n0\tred car\tthat\n3\tred\tred car\n")
    alone = gramvec_training.evaluate(model, "a.tsv", device="cpu")
    assert alone == gramvec_training.evaluate(iter([model]), iter([Path("a.tsv")]), device="cpu")
    for models, sets, name in (([], ["a.tsv"], "models"), ([model], [], "sets"), (3, "a.tsv", "models")):
        with refused(InputError, name):
            gramvec_training.evaluate(models, sets)  # type: ignore[arg-type]
