"""The tagger over word encoders: a slow reference a step, gradients, capitals, and what is learned of a treebank."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from gramvec.errors import InputError
from gramvec.features.featurizer import Featurizer
from gramvec.features.spec import FeatureSpec
from gramvec_research.catalog import experiment_named
from gramvec_research.shared import ExperimentInputs
from gramvec_research.tagging import (
    CHARAGRAM,
    ENCODINGS,
    Sentences,
    TaggedSentence,
    Tagger,
    Tagging,
    TaggingObjective,
    Treebank,
    learn_tagger,
    mark_capitals,
    read_treebank_files,
    resize,
)
from gramvec_training.data.corpus import Corpus
from gramvec_training.data.vocabulary import build_vocabulary
from gramvec_training.encoders.bag import Bag
from gramvec_training.encoders.base import Steps
from gramvec_training.fitting.trainer import Trainer
from gramvec_training.sections import BagSettings

pytestmark = pytest.mark.slow

SMALL = {"states": 3, "hidden": 4, "epochs": 4, "batch": 2}
Doubles = Sequence[float] | np.ndarray


def tagger(dimension: int = 5, tags: int = 6, **settings: Any) -> Tagger:
    made = Tagger(dimension, tags, Tagging.model_validate(SMALL | settings), torch.Generator().manual_seed(1)).double()
    generator = torch.Generator().manual_seed(2)
    with torch.no_grad():
        for one in made.parameters():
            one.add_(torch.randn(one.shape, dtype=torch.float64, generator=generator), alpha=0.3)
    return made


def sigmoid(x: torch.Tensor) -> torch.Tensor:
    return 1 / (1 + torch.exp(-x))


def slow_states(made: Tagger, way: int, words: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """The equations of Gers et al., one step of one sentence at a time; i, f, candidate and o."""
    h = made.recurrent[way].shape[0]
    state, cell = torch.zeros(h).double(), torch.zeros(h).double()
    peep, found = made.peepholes[way], []
    for x in words if way == 0 else list(reversed(words)):
        of_i, of_f, of_c, of_o = (x @ made.inputs[way] + state @ made.recurrent[way] + made.biases[way]).split(h)
        i, f = sigmoid(of_i + peep[0] * cell), sigmoid(of_f + peep[1] * cell)
        cell = f * cell + i * torch.tanh(of_c)
        state = sigmoid(of_o + peep[2] * cell) * torch.tanh(cell)
        found.append(state)
    return found if way == 0 else found[::-1]


def slow_logits(made: Tagger, vectors: torch.Tensor, sentences: Sequence[Sequence[int]]) -> torch.Tensor:
    found = []
    for one in sentences:
        words = [vectors[word] for word in one]
        both = zip(slow_states(made, 0, words), slow_states(made, 1, words), strict=True)
        found += [torch.tanh(torch.cat(pair) @ made.inner + made.bias) @ made.outer + made.outer_bias for pair in both]
    return torch.stack(found)


SENTENCES = ([0, 2, 1], [3], [], [2, 2, 0, 3, 1, 2], [1, 3])


def flat(sentences: Sequence[Sequence[int]]) -> tuple[torch.Tensor, torch.Tensor]:
    offsets = np.cumsum([0, *map(len, sentences)])
    return torch.tensor([word for one in sentences for word in one], dtype=torch.int32), torch.from_numpy(offsets)


def test_a_step_at_a_time_gives_the_same_logits_and_gradients() -> None:
    made = tagger()
    vectors = torch.randn(4, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(3), requires_grad=True)
    learned = [vectors, *made.parameters()]
    fast, slow = made(vectors, *flat(SENTENCES)), slow_logits(made, vectors, SENTENCES)
    torch.testing.assert_close(fast, slow, rtol=1e-10, atol=1e-12)
    weights = torch.randn(fast.shape, dtype=torch.float64, generator=torch.Generator().manual_seed(4))
    for ours, theirs in zip(
        torch.autograd.grad((fast * weights).sum(), learned), torch.autograd.grad((slow * weights).sum(), learned),
        strict=True,
    ):  # fmt: skip
        torch.testing.assert_close(ours, theirs, rtol=1e-8, atol=1e-10)


def test_a_sentence_has_the_same_tags_whatever_stands_beside_it() -> None:
    made, vectors = tagger(), torch.randn(4, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(3))
    whole = made(vectors, *flat(SENTENCES))
    alone = torch.cat([made(vectors, *flat([one])) for one in SENTENCES if one])
    torch.testing.assert_close(whole, alone, rtol=1e-12, atol=1e-13)
    assert made(vectors, *flat([])).shape == (0, 6)


def test_words_behind_the_longest_sentence_have_states_of_zeros(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gramvec_training.encoders.base.LONGEST", 2)
    made, vectors = tagger(), torch.randn(4, 5, dtype=torch.float64)
    found = made(vectors, *flat([[0, 1, 2, 3]]))
    torch.testing.assert_close(found[:2], made(vectors, *flat([[0, 1]])))
    torch.testing.assert_close(found[2], torch.tanh(made.bias) @ made.outer + made.outer_bias)
    assert len(Steps.from_offsets(torch.tensor([0, 4])).places) == 2


def test_numbers_of_parameters_are_those_of_the_papers_sizes() -> None:
    """150-d words, 50 states each way, a layer of 50, 45 tags of the Penn Treebank."""
    settings = Tagging(epochs=50)
    made = Tagger(150, 45, settings, torch.Generator().manual_seed(1))
    lstm = 4 * (150 * 50 + 50 * 50 + 50) + 3 * 50
    assert sum(one.numel() for one in made.parameters()) == 2 * lstm + (100 * 50 + 50) + (50 * 45 + 45)
    assert (settings.batch, settings.rate, settings.momentum, settings.optimizer) == (100, 0.2, 0.95, "sgd")
    assert settings.decay == "none"


def small_objective(**settings: Any) -> tuple[Bag, TaggingObjective, Sentences]:
    """Five words, a row each; the tag of a word is whether the one before it was odd."""
    offsets = np.cumsum([0, 4, 3, 5])
    words = np.array([0, 1, 2, 3, 4, 3, 0, 1, 1, 2, 4, 3], np.int32)
    tags = np.array([0, 0, 1, 0, 0, 0, 1, 0, 1, 1, 0, 0], np.int32)
    sentences = Sentences(Corpus(words, offsets, 5), Corpus(tags, offsets, 0))
    values = Tagging.model_validate(SMALL | settings)
    corpus = Corpus(np.arange(5, dtype=np.int32), np.arange(6), 5)
    table = torch.randn(5, 4, generator=torch.Generator().manual_seed(5))
    made = Tagger(4, 2, values, torch.Generator().manual_seed(6))
    return (
        Bag(table, BagSettings(activation="linear", bias=False)),
        TaggingObjective(corpus, sentences, made, values, 5),
        sentences,
    )


def test_the_loss_is_the_mean_over_words_and_each_epoch_has_every_sentence() -> None:
    encoder, one, _ = small_objective()
    assert (one.steps_per_epoch, one.steps) == (2, 8)
    seen = []
    for step in (0, 1):
        examples = one.examples_at(step)
        ids, offsets = (torch.from_numpy(part) for part in (examples.batch.ids, examples.batch.offsets))
        loss = one.loss(encoder(ids, offsets), examples)
        distinct = examples.batch.texts[examples.words]
        bounds = examples.offsets
        parts = [distinct[a:b].tolist() for a, b in pairwise(bounds)]
        seen += [tuple(part) for part in parts]
        with torch.no_grad():
            slow = slow_logits(one.tagger.double(), encoder.table.double(), parts).log_softmax(1)
        one.tagger.float()
        assert examples.targets is not None
        expected = -np.mean([float(slow[place, tag]) for place, tag in enumerate(examples.targets)])
        assert loss.item() == pytest.approx(expected, rel=1e-5)
    assert sorted(seen) == [(0, 1, 2, 3), (1, 1, 2, 4, 3), (4, 3, 0)]


def test_a_step_is_that_of_dense_sgd_with_momentum_and_l2() -> None:
    """torch's own, whose weight decay is the gradient of half of lambda times the square."""
    settings = {"l2": 0.01, "l2_composition": 0.01, "l2_head": 0.01, "rate": 0.1, "momentum": 0.9}
    encoder, one, _ = small_objective(**settings)
    peer, other, _ = small_objective(**settings)
    trainer = Trainer(encoder, one, torch.device("cpu"))
    learned = [peer.table, *other.parameters().values()]
    # torch's velocity is of gradients, ours of steps: with a constant rate they move alike.
    sgd = torch.optim.SGD(learned, lr=0.1, momentum=0.9, weight_decay=0.01)
    for step in range(one.steps):
        trainer.take(one.examples_at(step))
        examples = other.examples_at(step)
        sgd.zero_grad()
        ids, offsets = (torch.from_numpy(part) for part in (examples.batch.ids, examples.batch.offsets))
        other.loss(peer(ids, offsets), examples).backward()  # type: ignore[no-untyped-call]
        sgd.step()
    for ours, theirs in zip([encoder.table, *one.parameters().values()], learned, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-6)


def test_what_depends_on_the_word_before_is_learned() -> None:
    encoder, one, sentences = small_objective(epochs=150)
    trainer = Trainer(encoder, one, torch.device("cpu"))
    for step in range(one.steps):
        trainer.take(one.examples_at(step))
    assert one.accuracy(encoder, sentences) == 100
    wrong = replace(sentences, tags=Corpus(np.full(12, -1, np.int32), sentences.words.offsets, 0))
    assert one.accuracy(encoder, wrong) == 0


def test_a_capital_is_a_row_behind_the_ngrams() -> None:
    words = ["Ab", "ab", "", "xYz"]
    spec = FeatureSpec(orders=(2,))
    vocabulary = build_vocabulary(["ab xyz"], spec)
    plain = Featurizer(spec, vocabulary)(words)
    found = mark_capitals(Featurizer(spec, vocabulary), len(vocabulary), words)
    for index, word in enumerate(words):
        of_word = found.ids[found.offsets[index] : found.offsets[index + 1]].tolist()
        before = plain.ids[plain.offsets[index] : plain.offsets[index + 1]].tolist()
        assert of_word == before + [len(vocabulary)] * (word in ("Ab", "xYz"))


def conllu(sentences: int, seed: int) -> str:
    """Sentences whose words that end in "s" are verbs, and nouns but after "to"."""
    rng = np.random.default_rng(seed)
    lines = []
    for _ in range(sentences):
        before = ""
        for index in range(int(rng.integers(2, 7))):
            word = str(rng.choice(["to", "runs", "Dog", "eats", "cat", "plan"]))
            tag = "TO" if word == "to" else "VBZ" if word.endswith("s") else "VB" if before == "to" else "NN"
            lines.append("\t".join([str(index + 1), word, "_", "X", tag, *["_"] * 5]))
            before = word
        lines.append("")
    return "\n".join(lines) + "\n"


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> ExperimentInputs:
    folder = tmp_path_factory.mktemp("pos")
    for seed, name in enumerate(("train", "dev", "test")):
        (folder / f"xx-ud-{name}.conllu").write_text(conllu(300 if name == "train" else 60, seed))
    return ExperimentInputs(Path("none"), (), (), work=folder / "work", seeds=(1,), tagged=folder)


@pytest.mark.parametrize("name", [name for name in ENCODINGS if name != "charLSTM"])
def test_each_encoder_learns_the_tags_of_words_and_of_places(inputs: ExperimentInputs, name: str) -> None:
    found = learn_tagger(inputs, name, ENCODINGS[name], 30, 1)
    usual = read_treebank_files(inputs.tagged or Path()).commonest(read_treebank_files(inputs.tagged or Path()).scored)
    assert found.scored > usual + 5
    assert len(found.curve) == 30
    assert found.other is None


def test_the_same_seed_gives_the_same_tagger_and_another_another(inputs: ExperimentInputs, tmp_path: Path) -> None:
    first = learn_tagger(inputs, CHARAGRAM, resize(100, (2, 3)), 2, 1)
    assert learn_tagger(replace(inputs, work=tmp_path), CHARAGRAM, resize(100, (2, 3)), 2, 1) == first
    assert learn_tagger(inputs, CHARAGRAM, resize(100, (2, 3)), 2, 2) != first


def test_a_tagger_is_learned_once(inputs: ExperimentInputs) -> None:
    learn_tagger(inputs, "once", resize(5, (2,)), 1, 1)
    (path,) = (inputs.work / "taggers").glob("once-*")
    path.write_text('{"curve": [1.0], "scored": 2.0, "other": null, "parameters": 3}')
    assert learn_tagger(inputs, "once", resize(5, (2,)), 1, 1).scored == 2.0


def test_the_tag_that_a_word_had_most_often_by_hand() -> None:
    learned = [TaggedSentence(("a", "b", "a", "a"), ("X", "Y", "Z", "X")), TaggedSentence(("c",), ("Z",))]
    scored = [TaggedSentence(("a", "b", "new", "c"), ("X", "Y", "X", "X"))]  # X is the commonest with Z, and first
    assert Treebank(learned, [], [], []).commonest(scored) == 75


def test_a_folder_without_a_part_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a-train.conllu").write_text(conllu(2, 1))
    with pytest.raises(InputError, match=r"\*-dev.conllu.*--tagged"):
        read_treebank_files(tmp_path)
    with pytest.raises(InputError, match="give --tagged, a folder of a treebank"):
        experiment_named("charagram-table-4").run(ExperimentInputs(Path("none"), (), ()))
