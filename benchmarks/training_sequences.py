"""Training steps of the encoders that read in order, against what torch offers for the same batches.

An LSTM of 50 dimensions over phrases of two to four words in batches of 100 pairs with MAX, charLSTM and charCNN of 100
dimensions over single words in batches of 50 and 25 pairs with MIX: the papers' settings. The peers are what a user
writes in twenty lines: an embedding, torch.nn.LSTM over packed sequences (which has no peepholes, and so less to do) or
torch.nn.Conv1d over padded ones, and torch's dense Adam; the loss and its negatives are ours in both.

The tagger over three of the papers' word encoders learns from batches of 100 sentences; its peer is CHARAGRAM's sum as
torch.nn.EmbeddingBag, a bidirectional torch.nn.LSTM and torch's SGD. A word's tag is its last letter: what is learned
does not change the time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence

from benchmarks.measure import Setting, interleaved, rates
from benchmarks.results import Part
from gramvec.text.featurizer import Featurizer
from gramvec.text.spec import FeatureSpec
from gramvec_training.configuration import (
    BagSettings,
    CharCnnSettings,
    EncoderSettings,
    LstmSettings,
    Tagging,
    Training,
)
from gramvec_training.data import Corpus, Mixture, SourceGroups, build_vocabulary
from gramvec_training.encoders import build_encoder
from gramvec_training.fitting import Trainer
from gramvec_training.objectives import (
    PairObjective,
    Sentences,
    TaggedExamples,
    Tagger,
    TaggingObjective,
    choose_negatives,
    margin_loss,
)

LETTERS = 3  # of the shortest word
WORDS = (2, 3, 4)  # of a phrase, in turn
TAGGER_PEER = "torch.nn.EmbeddingBag and LSTM, SGD"


@dataclass(frozen=True)
class Case:
    """An encoder and how it is trained: texts are words or phrases, by character or by word."""

    name: str
    title: str
    settings: EncoderSettings
    dimension: int
    training: Training
    characters: bool
    peer: Callable[[int, int], nn.Module]
    peer_name: str


class TorchLstm(nn.Module):
    """The last states of torch.nn.LSTM over packed sequences."""

    def __init__(self, rows: int, dimension: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(rows, dimension)
        self.lstm = nn.LSTM(dimension, dimension, batch_first=True)

    def forward(self, texts: list[Tensor]) -> Tensor:
        """float32[n, d] of n texts as ids."""
        lengths = torch.tensor([len(text) for text in texts])
        padded = self.embedding(pad_sequence(texts, batch_first=True))
        packed = pack_padded_sequence(padded, lengths, batch_first=True, enforce_sorted=False)
        return self.lstm(packed)[1][0][0]


class TorchCnn(nn.Module):
    """The maxima of torch.nn.Conv1d over padded sequences, and a layer."""

    def __init__(self, rows: int, dimension: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(rows + 1, dimension, padding_idx=rows)
        self.convolutions = nn.ModuleList(nn.Conv1d(dimension, 175, width) for width in (2, 3, 4))
        self.layer = nn.Linear(525, dimension)
        self.nothing = rows

    def forward(self, texts: list[Tensor]) -> Tensor:
        """float32[n, d] of n texts as ids."""
        padded = pad_sequence(texts, batch_first=True, padding_value=self.nothing)
        padded = functional.pad(padded, (0, max(0, 4 - padded.shape[1])), value=self.nothing)
        x = self.embedding(padded).transpose(1, 2)
        maxima = [torch.tanh(one(x)).amax(dim=2) for one in self.convolutions]
        return self.layer(torch.cat(maxima, dim=1))


CASES = (
    Case(
        "training_lstm", "training: LSTM with peepholes, 50-d, over short phrases of words",
        LstmSettings(kind="lstm"), 50, Training(batch=100, steps=10**6), False, TorchLstm,
        "torch.nn.LSTM, dense Adam",
    ),
    Case(
        "training_charlstm", "training: charLSTM with peepholes, 100-d, over words",
        LstmSettings(kind="lstm"), 100, Training(batch=50, steps=10**6, negatives="mix"), True, TorchLstm,
        "torch.nn.LSTM, dense Adam",
    ),
    Case(
        "training_charcnn", "training: charCNN, 525 filters, 100-d, over words",
        CharCnnSettings(kind="char-cnn", filters="a", activation="linear"), 100,
        Training(batch=25, steps=10**6, negatives="mix"), True, TorchCnn, "torch.nn.Conv1d, dense Adam",
    ),
)  # fmt: skip


def add_sequences(part: Part, setting: Setting) -> None:
    """A group for each case: the trainer's steps and the peer's."""
    words = [word for text in setting.texts for word in text.lower().split() if len(word) >= LETTERS and word.isalpha()]
    starts = np.cumsum([0, *np.resize(WORDS, len(words) // 3)])
    phrases = [" ".join(words[a:b]) for a, b in pairwise(starts) if b <= len(words)]
    for case in CASES:
        _measure(part, setting, case, list(dict.fromkeys(words if case.characters else phrases)))
    _measure_taggers(part, setting)


def _measure(part: Part, setting: Setting, case: Case, texts: list[str]) -> None:
    spec = FeatureSpec(orders=(1,) if case.characters else (), words=not case.characters)
    vocabulary = build_vocabulary(texts, spec)
    corpus = Corpus.of(texts, Featurizer(spec, vocabulary), len(vocabulary))
    pairs = len(texts) // 2
    source = SourceGroups("texts", np.arange(pairs * 2), np.arange(0, pairs * 2 + 1, 2))
    batch = max(2, min(case.training.batch, pairs // 3))
    training = case.training.model_copy(update={"batch": batch})
    table = torch.empty(len(vocabulary), case.dimension).uniform_(-0.1, 0.1)
    encoder = build_encoder(case.settings, table, case.dimension, torch.Generator().manual_seed(1))
    objective = PairObjective(encoder, corpus, Mixture([source], 1), training)
    ours, theirs = Trainer(encoder, objective, torch.device("cpu")), case.peer(len(vocabulary), case.dimension)
    adam = torch.optim.Adam(theirs.parameters(), lr=training.rate)
    steps, peer_steps = iter(range(10**9)), iter(range(10**9))

    def examples(number: int) -> Any:
        return objective.examples_at(number % max(1, objective.steps_per_epoch - 1))

    def step() -> None:
        for _ in range(5):
            ours.take(examples(next(steps)))

    def peer_step() -> None:
        number = next(peer_steps)
        numbers = examples(number).batch.texts
        ids, offsets = corpus.cut(numbers)
        bags = [torch.from_numpy(ids[a:b]).long() for a, b in pairwise(offsets)]
        unit = functional.normalize(theirs(bags), dim=1)
        generator = torch.Generator().manual_seed(number)
        negatives = choose_negatives(unit, torch.from_numpy(numbers), training.negatives, generator=generator)
        left, right = unit.chunk(2)
        adam.zero_grad()
        margin_loss(left, right, negatives, training.margin).backward()  # type: ignore[no-untyped-call]
        adam.step()

    slow = interleaved({case.peer_name: peer_step}, batch, setting.rounds)
    fast = interleaved({"gramvec-train": step}, 5 * batch, setting.rounds)
    title = f"{case.title}: {corpus.counts.mean():.1f} rows a text, batches of {batch}, one thread"
    part.add(case.name, rates(title, "pairs", {**slow, **fast}, case.peer_name))


class TorchTagger(nn.Module):
    """A sum of n-grams, a bidirectional torch.nn.LSTM over packed sentences, and two layers."""

    def __init__(self, rows: int, dimension: int, tags: int, settings: Tagging) -> None:
        super().__init__()
        self.embedding = nn.EmbeddingBag(rows, dimension, mode="sum", include_last_offset=True)
        self.lstm = nn.LSTM(dimension, settings.states, batch_first=True, bidirectional=True)
        self.inner = nn.Linear(2 * settings.states, settings.hidden)
        self.outer = nn.Linear(settings.hidden, tags)

    def forward(self, ids: Tensor, offsets: Tensor, words: Tensor, sentences: list[int]) -> Tensor:
        """Logits float32[m, tags] of m words; sentences: how many each has."""
        vectors = torch.relu(self.embedding(ids, offsets))[words]
        padded = pad_sequence(list(vectors.split(sentences)), batch_first=True)
        packed = pack_padded_sequence(padded, torch.tensor(sentences), batch_first=True, enforce_sorted=False)
        states, _ = pad_packed_sequence(self.lstm(packed)[0], batch_first=True)
        whole = torch.cat([one[:length] for one, length in zip(states, sentences, strict=True)])
        return self.outer(torch.tanh(self.inner(whole)))


def _measure_taggers(part: Part, setting: Setting) -> None:
    sentences = [text.split() for text in setting.texts if text.split()]
    words = sorted({word for one in sentences for word in one})
    number = {word: index for index, word in enumerate(words)}
    letters = sorted({word[-1] for word in words})
    offsets = np.cumsum([0, *map(len, sentences)])
    ids = np.array([number[word] for one in sentences for word in one], np.int32)
    tags = np.array([letters.index(word[-1]) for one in sentences for word in one], np.int32)
    learned = Sentences(Corpus(ids, offsets, len(words)), Corpus(tags, offsets, 0))
    settings = Tagging(batch=max(2, min(100, len(sentences))), epochs=1)

    def objective(encoder: EncoderSettings, orders: tuple[int, ...], width: int) -> tuple[Trainer, TaggingObjective]:
        spec = FeatureSpec(orders=orders)
        vocabulary = build_vocabulary(words, spec)
        corpus = Corpus.of(words, Featurizer(spec, vocabulary), len(vocabulary))
        generator = torch.Generator().manual_seed(1)
        table = torch.empty(len(vocabulary), width).uniform_(-0.01, 0.01, generator=generator)
        tagger = Tagger(150, len(letters), settings, generator)
        made = TaggingObjective(corpus, learned, tagger, settings, len(vocabulary))
        return Trainer(build_encoder(encoder, table, 150, generator), made, torch.device("cpu")), made

    ours = {
        "CHARAGRAM (gramvec-train)": objective(BagSettings(activation="relu"), (2, 3, 4), 150),
        "charCNN (gramvec-train)": objective(CharCnnSettings(kind="char-cnn", filters="a"), (1,), 50),
        "charLSTM (gramvec-train)": objective(LstmSettings(kind="lstm"), (1,), 50),
    }
    trainer, first = ours["CHARAGRAM (gramvec-train)"]
    rows = len(trainer.encoder.table)
    peer = TorchTagger(rows, 150, len(letters), settings)
    sgd = torch.optim.SGD(peer.parameters(), lr=settings.rate, momentum=settings.momentum)

    def peer_step() -> None:
        one = first.examples_at(0)
        given = (torch.from_numpy(array) for array in (one.batch.ids, one.batch.offsets, one.words))
        sgd.zero_grad()
        functional.cross_entropy(
            peer(*given, np.diff(one.offsets).tolist()), torch.from_numpy(_targets(one)).long()
        ).backward()  # type: ignore[no-untyped-call]
        sgd.step()

    tasks: dict[str, Callable[[], object]] = {TAGGER_PEER: peer_step}
    tasks |= {name: lambda by=by, made=made: by.take(made.examples_at(0)) for name, (by, made) in ours.items()}
    places = len(first.examples_at(0).words)
    title = f"training: a tagger over {rows:,} n-grams or single characters"
    timings = interleaved(tasks, places, setting.rounds)
    part.add("training_tagger", rates(f"{title}, {places:,} words a batch, one thread", "words", timings, TAGGER_PEER))


def _targets(examples: TaggedExamples) -> Any:
    assert examples.targets is not None
    return examples.targets
