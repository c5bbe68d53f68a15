"""Between config and run folder: what is read, kept and started from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from gramvec.errors import InputError
from gramvec.features.featurizer import Featurizer
from gramvec.features.spec import FeatureSpec
from gramvec.text.vocabulary import Entry, Vocabulary
from gramvec_training.config import Config, parse_config
from gramvec_training.encoders.bag import make_bag
from gramvec_training.encoders.build import make_encode, make_similarity
from gramvec_training.fitting.loop import History
from gramvec_training.objectives.pairs import MarginObjective
from gramvec_training.options import RunOptions
from gramvec_training.runs.pairs import PairPlan
from gramvec_training.runs.plan import Plan
from gramvec_training.runs.run_dir import StartedRun, begin_run, load_run
from gramvec_training.runs.warm_start import begin_encoder

PAIRS = "cat\tkitten\ncat\tdog\nqqq\tzzz\ncat\tdog\n"


def config(**changes: Any) -> Config:
    values: dict[str, Any] = {
        "model": {"name": "m", "kind": "paragram-phrase", "dimension": 2, "pooling": "mean", "bias": False},
        "features": {"orders": [], "words": True},
        "training": {"steps": 1},
        "data": [{"path": "pairs.tsv"}],
    }
    return parse_config({**values, **changes}, source="test")


@pytest.fixture
def data(tmp_path: Path) -> Path:
    (tmp_path / "pairs.tsv").write_text(PAIRS)
    return tmp_path


def prepared(one: Config, data: Path) -> Plan:
    plan = PairPlan(StartedRun(one, data, "test"), data, RunOptions(device="cpu"))
    plan.prepare()
    return plan


def objective_of(plan: Plan) -> MarginObjective:
    objective = plan.make_objective(plan.make_encoder(), torch.device("cpu"))
    assert isinstance(objective, MarginObjective)
    return objective


def data_record(plan: Plan) -> dict[str, Any]:
    one: dict[str, Any] = plan.record(History(), plan.make_encoder())["data"][0]
    return one


def test_each_distinct_text_is_featurized_once(data: Path) -> None:
    got = prepared(config(), data)
    assert sorted(got.texts) == ["cat", "dog", "kitten", "qqq", "zzz"]
    assert len(objective_of(got).corpus) == 5
    assert objective_of(got).mixture.pairs_per_epoch == 4


def test_captions_of_a_picture_are_pairs_and_never_negatives(data: Path) -> None:
    """A line has all captions of one picture; an epoch takes so many pairs of each, and no text is its own partner."""
    captions = [[f"view{picture} {noun}" for noun in ("cat", "dog", "bird", "fish", "cow")] for picture in range(6)]
    (data / "captions.groups.tsv").write_text("".join("\t".join(one) + "\n" for one in captions))
    sources = [{"path": "captions.groups.tsv", "pairs_per_group": 1}]
    got = prepared(config(data=sources, training={"epochs": 4, "batch": 3}), data)
    assert (data_record(got)["groups"], data_record(got)["pairs_per_epoch"]) == (6, 6)
    objective, entries = objective_of(got), got.vocabulary.entries()
    of_text = [frozenset(entries[row].text for row in objective.corpus.cut(np.array([text]))[0]) for text in range(30)]
    pictures = [next(word for word in words if word.startswith("view")) for words in of_text]
    drawn = set()
    for epoch in range(100):
        for left, right in objective.mixture.epoch(epoch).tolist():
            assert left != right
            assert pictures[left] == pictures[right]
            drawn.add(of_text[left] | of_text[right])
    assert len(drawn) == 6 * 10  # each two of five, sooner or later
    for step in range(8):
        left = [pictures[one] for one in objective.pairs_at(step)[:, 0].tolist()]
        assert len(set(left)) == len(left)  # so that a picture's captions are not held against each other


def test_groups_without_known_features_are_left_out_and_counted(data: Path) -> None:
    got = prepared(config(vocabulary={"max_words": 3}), data)  # the words of equal count go by text: cat, dog, kitten
    assert data_record(got)["groups"] == 3
    assert data_record(got)["groups_without_known_features"] == 1
    assert set(objective_of(got).mixture.epoch(0).ravel().tolist()) == {0, 1, 2}


def test_nothing_known_at_all_is_refused(data: Path) -> None:
    (data / "pairs.tsv").write_text("a b\tc d\n")
    with pytest.raises(InputError, match="give no pair with known features on both sides"):
        prepared(config(vocabulary={"max_words": 1}), data)


def test_max_groups_keeps_a_sample_drawn_by_the_seed(data: Path) -> None:
    (data / "pairs.tsv").write_text("".join(f"a{n}\tb{n}\n" for n in range(100)))
    limited = [{"path": "pairs.tsv", "max_groups": 30}]
    first, again = (prepared(config(data=limited), data) for _ in range(2))
    other = prepared(config(data=limited, training={"steps": 1, "seed": 2}), data)
    assert data_record(first)["groups"] == 30
    assert first.digests == again.digests
    assert first.texts == again.texts
    assert set(first.texts) != set(other.texts)


def test_word_vectors_replace_the_first_values_of_the_words_they_know(data: Path) -> None:
    (data / "v.txt").write_text("dog 1 2\nbird 3 4\ncat 5 6\n")
    vocabulary = Vocabulary.build([Entry("word", text, 1) for text in ("cat", "kitten", "dog")])
    values = {**config().model.model_dump(), "vectors": "v.txt", "initial": 0.25}
    table = begin_encoder(config(model=values), None, 1, vocabulary, data).table.detach().numpy()
    np.testing.assert_array_equal(table[[0, 2]], [[5, 6], [1, 2]])
    assert (np.abs(table[1]) <= 0.25).all()
    assert table[1].any()

    wide = config(model={**values, "dimension": 3})
    with pytest.raises(InputError, match=r"v\.txt: 2 dimensions and model\.dimension is 3"):
        begin_encoder(wide, None, 1, vocabulary, data)


def test_glorot_bounds_and_seeds(data: Path) -> None:
    vocabulary = Vocabulary.build([Entry("word", f"w{n}", 1) for n in range(400)])
    table = begin_encoder(config(), None, 1, vocabulary, data).table.detach().numpy()
    bound = (6 / 402) ** 0.5
    assert 0.95 * bound < np.abs(table).max() <= bound
    assert table.tobytes() == begin_encoder(config(), None, 1, vocabulary, data).table.detach().numpy().tobytes()
    assert table.tobytes() != begin_encoder(config(), None, 2, vocabulary, data).table.detach().numpy().tobytes()


def test_a_bag_by_hand() -> None:
    """x = mean of the rows; x -= (x u^T) u; tanh(x + bias). A text without known words is similar to nothing."""
    spec = FeatureSpec(orders=(), words=True)
    featurizer = Featurizer(spec, Vocabulary.build([Entry("word", "a", 1), Entry("word", "b", 1)]))
    table = np.array([[2, 0], [0, 4]], dtype=np.float32)
    u = np.array([[0.6, 0.8]], dtype=np.float32)
    bias = np.array([0.1, 0.0], dtype=np.float32)
    bag = make_bag(table, bias, pooling="mean", activation="tanh", components=u)
    encode = make_encode(bag, featurizer)
    # "a b": mean (1, 2), along u 2.2, less (1.32, 1.76): (-0.32, 0.24).
    np.testing.assert_allclose(encode(["a b", "zzz"]), np.tanh([[-0.22, 0.24], [0.1, 0]]), rtol=1e-5)

    similarity = make_similarity(encode, featurizer)
    np.testing.assert_allclose(similarity(["a b", "zzz", "a"], ["a b", "zzz", "zzz"]), [1, 0, 0], atol=1e-6)


def test_damaged_runs_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no run here"):
        load_run(tmp_path)
    begin_run(tmp_path, config(), tmp_path, command="gramvec-train fit x")
    with pytest.raises(InputError, match="is not finished"):
        load_run(tmp_path)
    (tmp_path / "run.json").write_text("{}")
    with pytest.raises(InputError, match="missing or damaged file"):
        load_run(tmp_path)
    (tmp_path / "config.json").write_text('{"config": {"model": 3}}')
    with pytest.raises(InputError, match=r"config\.json: damaged"):
        load_run(tmp_path)
