"""Heads over texts and pairs, and NB-SVM: the papers' equations by hand, and against slow references."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy import sparse

from gramvec.errors import InputError
from gramvec_research.answers import spread_scores
from gramvec_research.heads import HeadObjective, JoinedHead, PairHead, Supervision, TextHead, new_head
from gramvec_research.shared import ExperimentInputs
from gramvec_research.supervised import LabeledPart, SupervisedTask, fit_linear_svm, fit_nb_svm, read_entailment
from gramvec_training.data.corpus import Corpus
from gramvec_training.encoders.bag import Bag
from gramvec_training.fitting.trainer import Trainer
from gramvec_training.sections import BagSettings

pytestmark = pytest.mark.slow


def pair_head(dimension: int = 2, hidden: int = 1, classes: int = 2) -> PairHead:
    return PairHead(dimension, hidden, classes, torch.Generator().manual_seed(1))


def test_targets_of_scores_by_hand() -> None:
    found = spread_scores(np.array([1.0, 3.6, 5.0, 0.0, 9.0]), 5)
    expected = [[1, 0, 0, 0, 0], [0, 0, 0.4, 0.6, 0], [0, 0, 0, 0, 1], [1, 0, 0, 0, 0], [0, 0, 0, 0, 1]]
    np.testing.assert_allclose(found, expected, atol=1e-6)
    y = np.random.default_rng(1).uniform(1, 5, 50)
    np.testing.assert_allclose(spread_scores(y, 5) @ np.arange(1, 6), y, rtol=1e-6)  # its mean is the score


def test_a_pairs_head_by_hand() -> None:
    """x = (1, 2), y = (3, -1): x * y = (3, -2), |x - y| = (2, 3)."""
    head = pair_head()
    with torch.no_grad():
        head.inner.copy_(torch.tensor([[0.5], [0.25]]))
        head.apart.copy_(torch.tensor([[0.1], [-0.2]]))
        head.bias.fill_(0.3)
        head.outer.copy_(torch.tensor([[1.0, -2.0]]))
        head.outer_bias.copy_(torch.tensor([0.5, 0.0]))
    hidden = 1 / (1 + math.exp(-(3 * 0.5 - 2 * 0.25 + 2 * 0.1 - 3 * 0.2 + 0.3)))
    x, y = torch.tensor([[1.0, 2.0]]), torch.tensor([[3.0, -1.0]])
    torch.testing.assert_close(head((x, y)), torch.tensor([[hidden + 0.5, -2 * hidden]]))
    assert torch.equal(head((x, y)), head((y, x)))


def test_a_joined_head_by_hand() -> None:
    """One column everywhere: tanh of each side, both side by side, and three layers; the order counts."""
    head = JoinedHead(1, 1, 2, torch.Generator().manual_seed(1), narrow=1)
    with torch.no_grad():
        head.side.copy_(torch.tensor([[0.5]]))
        head.side_bias.fill_(0.1)
        head.matrices[0].copy_(torch.tensor([[1.0], [-2.0]]))
        head.matrices[1].fill_(1.5)
        head.matrices[2].fill_(-1.0)
        for layer, bias in enumerate((0.2, 0.3, 0.4)):
            head.biases[layer].fill_(bias)
        head.outer.copy_(torch.tensor([[1.0, -2.0]]))
        head.outer_bias.copy_(torch.tensor([0.5, 0.0]))
    premise, hypothesis = math.tanh(0.5 * 2 + 0.1), math.tanh(0.5 * -1 + 0.1)
    z = math.tanh(premise - 2 * hypothesis + 0.2)
    z = math.tanh(-math.tanh(1.5 * z + 0.3) + 0.4)
    x, y = torch.tensor([[2.0]]), torch.tensor([[-1.0]])
    torch.testing.assert_close(head((x, y)), torch.tensor([[z + 0.5, -2 * z]]))
    assert not torch.allclose(head((x, y)), head((y, x)))
    # 300 to 100; 200 to 200 three times; 200 to 3: what the papers' SNLI classifier has above the vectors.
    own = JoinedHead(300, 200, 3, torch.Generator(), narrow=100)
    assert sum(one.numel() for one in own.parameters()) == 30_100 + 3 * 40_200 + 603


def test_which_head_the_settings_name() -> None:
    settings = Supervision(epochs=1, hidden=7)
    assert type(new_head(1, 4, 3, settings)) is TextHead
    assert type(new_head(2, 4, 3, settings)) is PairHead
    joined = Supervision(epochs=1, hidden=7, pair="joined", narrow=5)
    head = new_head(2, 4, 3, joined)
    assert isinstance(head, JoinedHead)
    assert (head.side.shape, head.matrices[0].shape, head.outer.shape) == ((4, 5), (10, 7), (7, 3))
    with pytest.raises(InputError, match="for pairs of texts"):
        new_head(1, 4, 3, joined)


def objective(targets: np.ndarray, *, sides: int = 2, **settings: object) -> tuple[Bag, HeadObjective]:
    """Texts of one word each: a table of as many rows."""
    texts = sides * len(targets)
    table = torch.randn(texts, 2, generator=torch.Generator().manual_seed(2))
    corpus = Corpus(np.arange(texts, dtype=np.int32), np.arange(texts + 1), texts)
    kind = PairHead if sides == 2 else TextHead
    head = kind(2, 3, targets.shape[1], torch.Generator().manual_seed(3))
    values = Supervision.model_validate({"epochs": 40, "batch": 3, "rate": 0.05, "decay": "none", **settings})
    numbers = np.arange(texts).reshape(-1, sides)
    return Bag(table, BagSettings(activation="linear", bias=False)), HeadObjective(
        corpus, numbers, targets.astype(np.float32), head, values
    )


def test_the_loss_is_the_divergence_from_the_targets_of_each_pair() -> None:
    """Against a loop over the pairs of a batch, whose zeros of p count as nothing."""
    targets = spread_scores(np.array([1.0, 2.5, 4.2, 3.0]), 5)
    encoder, one = objective(targets)
    examples = one.examples_at(0)
    vectors = encoder.table.detach()[torch.from_numpy(examples.batch.texts)]
    loss = one.loss(vectors, examples)
    expected = 0.0
    for left, right in examples.batch.texts.reshape(2, -1).T:
        assert right == left + 1  # the two texts of one pair
        with torch.no_grad():
            said = torch.softmax(one.head((encoder.table[left : left + 1], encoder.table[right : right + 1])), 1)[0]
        expected += sum(p * math.log(p / float(q)) for p, q in zip(targets[left // 2], said, strict=True) if p)
    assert loss.item() == pytest.approx(expected / examples.count, rel=1e-4)
    assert sorted(np.concatenate([one.examples_at(step).batch.texts for step in (0, 1)]).tolist()) == list(range(8))


@pytest.mark.parametrize("sides", [1, 2])
@pytest.mark.parametrize("fixed", [True, False])
def test_a_head_learns_its_labels_and_a_fixed_table_stays(sides: int, fixed: bool) -> None:
    encoder, one = objective(np.eye(2)[[0, 1, 1, 0, 1]], sides=sides, fixed_table=fixed)
    before = encoder.table.detach().clone()
    trainer = Trainer(encoder, one, torch.device("cpu"))
    losses = [float(trainer.take(one.examples_at(step))) for step in range(one.steps)]
    assert np.mean(losses[-2:]) < 0.5 * np.mean(losses[:2])
    assert torch.equal(before, encoder.table) == fixed
    numbers = np.arange(5 * sides).reshape(-1, sides)
    found = one.probabilities(encoder, numbers)
    np.testing.assert_allclose(found.sum(axis=1), 1, rtol=1e-5)
    alone = np.concatenate([one.probabilities(encoder, numbers[at : at + 1]) for at in range(5)])
    np.testing.assert_allclose(found, alone, rtol=1e-5)
    assert one.probabilities(encoder, numbers[:0]).shape == (0, 2)


def task() -> SupervisedTask:
    def part(*labels: float) -> LabeledPart:
        return LabeledPart([(f"text number {index}",) for index in range(len(labels))], np.array(labels))

    return SupervisedTask("t", ("no", "yes"), part(0, 0, 0, 0, 0, 0, 1, 1, 1), part(1), part(0, 1, 1))


def test_a_few_labels_have_every_class() -> None:
    for number in (2, 4):
        few = task().only(number, seed=5)
        assert sorted(few.learned.truth.tolist()) == [0.0] * (number // 2) + [1.0] * (number // 2)
    assert task().only(4, 1).digest != task().only(4, 2).digest


def test_scores_and_majority_by_hand() -> None:
    one = task()
    assert one.majority() == pytest.approx(100 / 3)
    assert one.score(np.array([[0.9, 0.1], [0.9, 0.1], [0.2, 0.8]], np.float32), one.scored) == pytest.approx(200 / 3)
    scored = LabeledPart([("a", "b")] * 3, np.array([1.0, 3.0, 5.0]))
    scores = SupervisedTask("s", (), scored, scored, scored)
    assert scores.score(scores.targets(scored), scored) == pytest.approx(100)
    assert scores.score(scores.targets(scored)[::-1], scored) == pytest.approx(-100)
    assert scores.score(np.full((3, 5), 0.2, np.float32), scored) == 0


def test_shuffling_keeps_the_words_of_each_text() -> None:
    other = task().shuffled(1)
    assert other.learned.texts != task().learned.texts
    for (text,), (before,) in zip(other.learned.texts, task().learned.texts, strict=True):
        assert sorted(text.split()) == sorted(before.split())
    assert other.digest == task().shuffled(1).digest != task().digest


def test_a_label_that_was_not_learned_is_refused(tmp_path: Path) -> None:
    (tmp_path / "sick").mkdir()
    (tmp_path / "sick" / "train.entail.tsv").write_text("A\tx\ty\nB\tx\ty\n" * 5)
    (tmp_path / "sick" / "trial.entail.tsv").write_text("C\tx\ty\n")
    with pytest.raises(InputError, match="labels of entailment are not all of one kind"):
        read_entailment(ExperimentInputs(tmp_path, (), (), labeled=tmp_path))
    with pytest.raises(InputError, match="give --labeled"):
        read_entailment(ExperimentInputs(tmp_path, (), ()))


def test_nb_svm_knows_words_and_pairs_of_words() -> None:
    good, bad = ["a fine film", "a good one", "fine and good"], ["a bad film", "a poor one", "not good"]
    truth = np.array([True] * 3 + [False] * 3)
    assert fit_nb_svm([*good, *bad], truth, [*good, *bad]).tolist() == truth.tolist()
    assert fit_nb_svm([*good, *bad], truth, ["fine", "poor", "bad unseen"]).tolist() == [True, False, False]


def test_the_svm_is_that_of_scikit_learn() -> None:
    svm = pytest.importorskip("sklearn.svm", reason="scikit-learn is not installed")
    rng = np.random.default_rng(1)
    features = rng.normal(size=(60, 5))
    truth = features @ np.array([1, -2, 0, 0.5, 1]) + rng.normal(size=60) > 0
    reference = svm.LinearSVC(C=1.0, loss="squared_hinge", tol=1e-8, max_iter=100_000).fit(features, truth)
    weights, bias = fit_linear_svm(sparse.csr_array(features), truth)
    np.testing.assert_allclose(weights, reference.coef_[0], atol=1e-3)
    assert bias == pytest.approx(reference.intercept_[0], abs=1e-3)
