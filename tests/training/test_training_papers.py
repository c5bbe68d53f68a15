"""What the papers vary besides the loss: optimizers, mega-batches, vocabularies and the first epoch, by hand."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional

from gramvec.errors import InputError
from gramvec.features.spec import FeatureSpec
from gramvec.text.vocabulary import Vocabulary
from gramvec_training.config import Config, Training, load_config, parse_config
from gramvec_training.data.corpus import Corpus
from gramvec_training.data.sampling import Mixture, SourceGroups
from gramvec_training.data.vocabulary import build_vocabulary
from gramvec_training.encoders.bag import Bag
from gramvec_training.fitting.optimizers import LazyAdaGrad, LazyAdam, LazyOptimizer
from gramvec_training.fitting.trainer import Trainer
from gramvec_training.objectives import pairs as negatives
from gramvec_training.objectives.pairs import MarginObjective, choose_negatives, find_mega_batch_negatives
from gramvec_training.options import RunOptions
from gramvec_training.runs.pairs import PairPlan
from gramvec_training.runs.run_dir import StartedRun
from gramvec_training.runs.warm_start import begin_encoder
from gramvec_training.sections import BagSettings
from support.training import research

CONFIGS = Path(__file__).parents[2] / "training" / "configs" / "papers"


def step(optimizer: LazyOptimizer, rows: list[int], gradient: list[list[float]], rate: float) -> None:
    where = torch.tensor(rows)
    optimizer.step(where, optimizer.leaf(where), torch.tensor(gradient), rate)


def test_lazy_adagrad_is_dense_adagrad() -> None:
    generator = torch.Generator().manual_seed(1)
    start = torch.randn(6, 3, generator=generator)
    dense, table = nn.Parameter(start.clone()), start.clone()
    reference, optimizer = torch.optim.Adagrad([dense], lr=0.05), LazyAdaGrad(table)
    for _ in range(6):
        rows = torch.randperm(6, generator=generator)[:3].sort().values
        gradient = torch.randn(3, 3, generator=generator)
        dense.grad = torch.zeros(6, 3).index_copy_(0, rows, gradient)
        reference.step()
        optimizer.step(rows, optimizer.leaf(rows), gradient.clone(), 0.05)
    torch.testing.assert_close(table, dense.detach())


def test_clip_by_hand() -> None:
    table = torch.zeros(2, 2)
    optimizer = LazyAdaGrad(table, clip=1.0)
    step(optimizer, [0, 1], [[3.0, 0.0], [0.0, 4.0]], 0.1)  # of length 5, so 0.6 and 0.8: sums 0.36 and 0.64
    step(optimizer, [0, 1], [[0.3, 0.0], [0.0, 0.4]], 0.1)  # of length 0.5, so as it is: sums 0.45 and 0.8
    torch.testing.assert_close(table[0, 0].item(), -0.1 - 0.1 * 0.3 / math.sqrt(0.45))
    torch.testing.assert_close(table[1, 1].item(), -0.1 - 0.1 * 0.4 / math.sqrt(0.8))
    assert table[0, 1] == table[1, 0] == 0


def test_the_l2_term_is_half_of_lambda_times_the_square_and_is_clipped_too() -> None:
    """Its gradient is lambda * row; of two AdaGrad steps the second sees how long the first was."""
    table = torch.tensor([[3.0, 4.0]])
    optimizer = LazyAdaGrad(table, l2=0.5)
    leaf = optimizer.leaf(torch.tensor([0]))
    (slope,) = torch.autograd.grad(0.5 * 0.5 * leaf.square().sum(), leaf)
    step(optimizer, [0], [[0.0, 0.0]], 0.1)
    squares = optimizer.state()["squares"]
    assert isinstance(squares, torch.Tensor)
    torch.testing.assert_close(squares, slope.square())

    clipped = LazyAdaGrad(torch.tensor([[3.0, 4.0]]), l2=0.5, clip=1.0)
    step(clipped, [0], [[0.0, 0.0]], 0.1)
    torch.testing.assert_close(clipped.state()["squares"], torch.tensor([[0.36, 0.64]]))


@pytest.mark.parametrize(("kind", "tables"), [(LazyAdam, 2), (LazyAdaGrad, 1)])
def test_an_optimizer_holds_its_moments_and_the_initial_table_only_where_it_pulls_there(
    kind: type[LazyOptimizer], tables: int
) -> None:
    def held(**settings: Any) -> int:
        state = kind(torch.zeros(4, 3), **settings).state()
        return sum(isinstance(value, torch.Tensor) for value in state.values())

    assert held() == held(l2=0.1) == held(center="initial") == tables
    assert held(l2=0.1, center="initial") == tables + 1


def circle(degrees: list[float]) -> torch.Tensor:
    angles = torch.deg2rad(torch.tensor(degrees))
    return torch.stack([torch.cos(angles), torch.sin(angles)], dim=1)


# A text is one word, and its row a point on the circle. Four pairs, two of them a batch.
DEGREES = [0.0, 60.0, 180.0, 230.0, 5.0, 70.0, 100.0, 290.0]
PAIRS = np.array([[0, 1], [2, 3], [4, 5], [6, 7]])


def word_objective(**settings: Any) -> MarginObjective:
    corpus = Corpus(np.arange(8, dtype=np.int32), np.arange(9), 8)
    encoder = Bag(circle(DEGREES), BagSettings(activation="linear", bias=False))
    mixture = Mixture([SourceGroups("s", PAIRS.ravel(), np.arange(0, 9, 2))], seed=1, shuffle_first_epoch=False)
    values = {"batch": 2, "epochs": 2, "rate": 0.01, **settings}
    return MarginObjective(encoder, corpus, mixture, Training.model_validate(values))


def test_mega_batch_by_hand() -> None:
    one = word_objective()
    # 0 deg: 5, not its partner at 60. 180: 100. 5: 0. 100: 70. 60: 70. 230: 290 (60 off, as the partner's 50 is out).
    assert find_mega_batch_negatives(one.encoder, one.corpus, PAIRS, "max").tolist() == [[4, 6, 0, 5], [5, 7, 1, 3]]
    # In their own batches 0 deg is held from 230 (130 off; 180 is farther) and 180 from 60.
    first = find_mega_batch_negatives(one.encoder, one.corpus, PAIRS[:2], "max")
    assert first.tolist() == [[3, 1], [2, 0]]


def hinge(x: float, partner: float, negative: float) -> float:
    cos = [math.cos(math.radians(x - other)) for other in (partner, negative)]
    return max(0.0, 0.4 - cos[0] + cos[1])


def test_the_loss_of_a_mega_batch_by_hand() -> None:
    one = word_objective(mega_batch=2)
    sides = [set(pair) for pair in one.pairs_at(0).tolist()]
    assert sides == [{0, 1}, {2, 3}]
    examples = one.examples_at(0)
    loss = Trainer(one.encoder, one, torch.device("cpu")).take(examples)
    held = {0: 4, 1: 5, 2: 6, 3: 7}  # as above
    expected = [hinge(DEGREES[x], DEGREES[x ^ 1], DEGREES[negative]) for x, negative in held.items()]
    assert (loss.item(), examples.count) == (pytest.approx(sum(expected) / 2, abs=1e-6), 2)


def test_a_mega_batch_keeps_the_negatives_that_were_chosen_at_its_start() -> None:
    one = word_objective(mega_batch=2)
    one.examples_at(0)
    with torch.no_grad():
        one.encoder.table.copy_(torch.randn(8, 2, generator=torch.Generator().manual_seed(0)))
    before = find_mega_batch_negatives(word_objective().encoder, one.corpus, one.pairs_at(0, 2), "max")[:, 2:]
    now = find_mega_batch_negatives(one.encoder, one.corpus, one.pairs_at(0, 2), "max")[:, 2:]
    batch = one.examples_at(1).batch
    assert before.tolist() != now.tolist()
    assert batch.texts[4:].tolist() == np.unique(before).tolist()


@pytest.mark.parametrize("sampling", ["max", "mix"])
def test_large_mega_batches_are_searched_in_parts(monkeypatch: pytest.MonkeyPatch, sampling: Any) -> None:
    unit = functional.normalize(torch.randn(60, 5, generator=torch.Generator().manual_seed(3)), dim=1)
    texts = torch.randint(0, 40, (60,), generator=torch.Generator().manual_seed(4))
    whole = choose_negatives(unit, texts, "max")
    monkeypatch.setattr(negatives, "CHUNK_PHRASES", 7)
    chosen = choose_negatives(unit, texts, sampling, generator=torch.Generator().manual_seed(5))
    partners = texts.roll(30)
    assert not ((texts[chosen] == texts) | (texts[chosen] == partners)).any()
    assert (chosen == whole).double().mean().item() == (1.0 if sampling == "max" else pytest.approx(0.5, abs=0.2))


def test_the_most_frequent_ngrams_of_each_order_by_hand() -> None:
    # " abab ": " a" 1, "ab" 2, "ba" 1, "b " 1; " ab" 1, "aba" 1, "bab" 1, "ab " 1. Equal counts go by text.
    spec = FeatureSpec(orders=(2, 3))
    assert [(e.text, e.count) for e in build_vocabulary(["abab"], spec, max_ngrams_each=2).entries()] == [
        ("ab", 2),
        (" a", 1),
        (" ab", 1),
        ("ab ", 1),
    ]
    assert [e.text for e in build_vocabulary(["abab"], spec, max_ngrams_each=2, min_count=2).entries()] == ["ab"]
    assert [e.text for e in build_vocabulary(["abab"], spec, max_ngrams_each=2, max_ngrams=1).entries()] == ["ab"]
    assert len(build_vocabulary(["abab"], spec, max_ngrams_each=50)) == 8


def test_given_words_have_rows_seen_or_not_and_others_have_none() -> None:
    spec = FeatureSpec(orders=(), words=True, unknown_words="row")
    words = ["dog", "unseen", "Upper", "two words", "don't", "cat"]
    entries = build_vocabulary(["cat dog dog bird"], spec, min_count=2, words=words).entries()
    assert [(e.kind, e.text, e.count) for e in entries] == [
        ("word", "dog", 2),
        ("word", "cat", 1),
        ("word", "unseen", 0),
        ("unknown", "", 0),
    ]


def words_config(**changes: Any) -> Config:
    values: dict[str, Any] = {
        "model": {"name": "m", "kind": "paragram-phrase", "dimension": 2, "vectors": "v.txt"},
        "features": {"orders": [], "words": True, "unknown_words": "row"},
        "vocabulary": {"words_of_vectors": True},
        "training": {"steps": 1},
        "data": [{"path": "pairs.tsv"}],
    }
    return parse_config({**values, **changes}, source="test")


def vocabulary_in(folder: Path, config: Config) -> Vocabulary:
    (folder / "pairs.tsv").write_text("cat\tkitten\ncat\tdog\ndog\tcat\n")
    (folder / "v.txt").write_text("dog 1 2\nbird 3 4\ncat 5 6\n")
    assert config.training is not None
    plan = PairPlan(StartedRun(config, folder, "test"), folder, RunOptions(device="cpu"))
    plan.prepare()
    return plan.vocabulary


def test_the_words_of_the_initial_vectors_are_the_vocabulary(tmp_path: Path) -> None:
    assert [e.text for e in vocabulary_in(tmp_path, words_config()).entries()] == ["cat", "dog", "bird", ""]
    without = words_config(model={"name": "m", "kind": "paragram-phrase"})
    with pytest.raises(InputError, match=r"words_of_vectors needs model\.vectors and features\.words"):
        vocabulary_in(tmp_path, without)


def test_the_unknown_word_begins_with_its_own_vector(tmp_path: Path) -> None:
    config = words_config()
    vocabulary = vocabulary_in(tmp_path, config)
    (tmp_path / "v.txt").write_text("dog 1 2\nUUUNKKK 7 8\n")
    table = begin_encoder(config, None, 1, vocabulary, tmp_path).table
    assert table[vocabulary.unknown_row].tolist() == [7, 8]
    assert table[0].tolist() != [7, 8]


def test_the_limits_of_the_config_reach_the_vocabulary(tmp_path: Path) -> None:
    limits = {"min_count": 1, "max_ngrams_each": 3, "max_words": 2}
    config = words_config(features={"orders": [2, 3], "words": True}, vocabulary=limits)
    entries = vocabulary_in(tmp_path, config).entries()
    assert [len(e.text) for e in entries if e.kind == "ngram"].count(2) == 3
    assert [len(e.text) for e in entries if e.kind == "ngram"].count(3) == 3
    assert sum(e.kind == "word" for e in entries) == 2


def test_the_first_epoch_may_keep_the_order_of_the_files() -> None:
    first = SourceGroups("a", np.arange(40), np.arange(0, 41, 2), pairs_per_group=1, cap=15)
    second = SourceGroups("b", np.arange(40, 60), np.arange(0, 21, 2))
    ordered = Mixture([first, second], seed=1, shuffle_first_epoch=False)
    groups = (ordered.epoch(0) // 2)[:, 0].tolist()
    assert groups == sorted(set(groups))
    assert len(groups) == 25
    assert groups[15:] == list(range(20, 30))
    assert ordered.epoch(1).tolist() == Mixture([first, second], seed=1).epoch(1).tolist()
    later = (ordered.epoch(1) // 2)[:, 0].tolist()
    assert later != sorted(later)


def test_the_config_decides_the_order_of_the_first_epoch(tmp_path: Path) -> None:
    (tmp_path / "pairs.tsv").write_text("".join(f"a{n}\tb{n}\n" for n in range(30)))
    training = {"steps": 1, "shuffle_first_epoch": False}
    config = parse_config(
        {
            "model": {"name": "m", "kind": "charagram-phrase"},
            "training": training,
            "data": [{"path": "pairs.tsv"}],
        },
        source="test",
    )
    assert config.training is not None
    plan = PairPlan(StartedRun(config, tmp_path, "test"), tmp_path, RunOptions(device="cpu"))
    plan.prepare()
    objective = plan.make_objective(plan.make_encoder(), torch.device("cpu"))
    assert isinstance(objective, MarginObjective)
    pairs = objective.mixture.epoch(0)
    assert (pairs // 2)[:, 0].tolist() == list(range(30))


@pytest.mark.parametrize(
    ("name", "batch", "rate", "epochs", "l2", "center", "clip", "optimizer", "negatives"),
    [
        ("charagram-phrase-paper", 100, 1e-3, 10, 1e-6, "zero", None, "adam", "max"),
        ("charagram-paper", 25, 1e-3, 25, 0.0, "zero", None, "adam", "max"),
        ("charagram-table-5-words", 25, 1e-3, 5, 0.0, "zero", None, "adam", "max"),
        ("charagram-table-5-sentences", 100, 1e-3, 5, 0.0, "zero", None, "adam", "max"),
        ("paragram-phrase-paper", 100, 0.05, 10, 1e-6, "initial", None, "adagrad", "max"),
        ("paragram-phrase-demo", 100, 5e-3, 10, 1e-6, "initial", 1.0, "adam", "max"),
        ("paragram-projection-paper", 100, 5e-4, 10, 1e-8, "initial", None, "adam", "max"),
        ("dan-paper", 100, 0.05, 10, 1e-5, "initial", None, "adagrad", "max"),
        ("rnn-paper", 100, 5e-4, 10, 1e-6, "initial", None, "adam", "mix"),
        ("irnn-paper", 100, 5e-3, 10, 1e-6, "initial", 1.0, "adam", "max"),
        ("lstm-paper", 100, 5e-4, 10, 1e-6, "initial", None, "adam", "max"),
        ("lstm-no-gate-paper", 50, 5e-4, 10, 1e-6, "initial", None, "adam", "max"),
        ("charlstm-words-paper", 50, 1e-3, 50, 1e-6, "zero", None, "adam", "mix"),
        ("charcnn-words-paper", 25, 1e-3, 50, 1e-6, "zero", None, "adam", "mix"),
        ("charlstm-phrase-paper", 100, 1e-3, 10, 1e-6, "zero", None, "adam", "max"),
        ("charcnn-phrase-paper", 25, 1e-3, 10, 1e-6, "zero", None, "adam", "max"),
    ],
)
def test_the_papers_settings(
    name: str,
    batch: int,
    rate: float,
    epochs: int,
    l2: float,
    center: str,
    clip: float | None,
    optimizer: str,
    negatives: str,
) -> None:
    """The numbers of the papers and of their authors' commands, as the configs have them."""
    config = load_config(CONFIGS / f"{name}.toml")
    training = config.training
    assert training is not None
    assert (training.batch, training.rate, training.epochs) == (batch, rate, epochs)
    assert (training.l2, training.l2_center, training.clip) == (l2, center, clip)
    assert (training.optimizer, training.negatives, training.decay) == (optimizer, negatives, "none")
    assert (training.margin, training.mega_batch, config.model.dimension) == (0.4, 1, 300)
    assert training.shuffle_first_epoch is not name.startswith(("charlstm", "charcnn"))
    assert (training.epsilon, training.epsilon_in_root) == ((1e-6, True) if optimizer == "adagrad" else (None, False))
    assert config.select is not None
    words = config.data[0].path.name.startswith("ppdb-1.0-xxl-lexical")
    assert config.select.set.name == ("ws353.tsv" if words else "pavlick.tsv")
    assert (config.select.measure, config.select.every) == ("spearman", "quarter")


def test_the_papers_models() -> None:
    sentence, word, average, irnn, sif = (
        load_config(CONFIGS / f"{name}-paper.toml")
        for name in ("charagram-phrase", "charagram", "paragram-phrase", "irnn", "sif")
    )
    assert (sentence.features.orders, sentence.model.activation) == ((2, 3, 4), "tanh")
    assert (word.features.orders, word.model.activation) == ((2, 3, 4, 5, 6), "linear")
    assert word.vocabulary.max_ngrams_each == 50_000
    assert average.composition == BagSettings(pooling="mean", activation="linear", bias=False)
    assert average.features.unknown_words == "row"
    assert irnn.training is not None
    assert (irnn.training.l2_composition, irnn.training.l2_composition_center) == (10.0, "initial")
    assert sif.sif is not None
    assert (sif.sif.a, sif.sif.components, sif.sif.weights) == (1e-3, 1, "sif")


@pytest.mark.parametrize(
    ("name", "rows", "all_of_them", "composition"),
    [
        ("charcnn-phrase-paper", 134, 881_025, 840_825),  # CHARAGRAM, section 4.4
        ("charcnn-words-paper", 134, 671_025, 630_825),
        ("charlstm-words-paper", 134, 762_300, 722_100),  # printed as 763,200 there: two digits are swapped
        ("charlstm-phrase-paper", 134, 581_700, 541_500),
        ("lstm-paper", 0, 722_100, 722_100),
        ("lstm-no-gate-paper", 0, 541_500, 541_500),
        ("rnn-paper", 0, 180_300, 180_300),
        ("irnn-paper", 0, 180_300, 180_300),
        ("paragram-projection-paper", 0, 90_300, 90_300),
        ("dan-paper", 0, 90_300, 90_300),
    ],
)
def test_numbers_of_parameters_are_the_papers(name: str, rows: int, all_of_them: int, composition: int) -> None:
    result = research("parameters", CONFIGS / f"{name}.toml", "--rows", str(rows))
    assert result.exit_code == 0, result.output
    lines = dict(line.rsplit(None, 1) for line in result.stdout.splitlines()[-2:])
    assert lines == {"without the table": f"{composition:,}", "in all": f"{all_of_them:,}"}
