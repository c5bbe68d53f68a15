"""Sentences whose words have tags: CoNLL-U (Universal Dependencies), or a word and a tag a line."""

from __future__ import annotations

import functools
import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn import functional

from gramvec.errors import InputError
from gramvec.features.featurizer import Featurizer
from gramvec.features.spec import FeatureSpec
from gramvec.text.arrays import FeatureBatch, Int32s
from gramvec_research.heads import ShuffledObjective
from gramvec_research.shared import (
    ExperimentInputs,
    Finding,
    ResultRow,
    ResultTable,
    key_of,
    list_values,
    load_or_make,
    slug_of,
)
from gramvec_research.sweep import TABLE_5_ORDERS, TABLE_5_SIZES, spell_orders
from gramvec_training.data.corpus import Corpus, Featurize, TrainingBatch
from gramvec_training.data.vocabulary import build_vocabulary
from gramvec_training.encoders.base import Encoder, Steps, glorot, normal, project_rows
from gramvec_training.encoders.build import build_encoder
from gramvec_training.encoders.recurrent import lstm
from gramvec_training.fitting.loop import Selection, fit
from gramvec_training.fitting.trainer import Trainer, choose_device, settle
from gramvec_training.objectives.base import Examples, move
from gramvec_training.readers.lines import number_lines, shorten_path
from gramvec_training.sections import ENCODERS, Decay, Optimizer, Penalty, Positive, PositiveCount, Schedule
from gramvec_training.shared import Ints


class Tagging(Schedule):
    """Learning a tagger of words; `batch` counts sentences. The defaults are CHARAGRAM's (section 4.2).

    states: of each of the two LSTMs over the sentence; hidden: of the layer above them. l2_head: of these and the rest
    of the tagger, towards zero.
    """

    batch: Annotated[int, Field(ge=2)] = 100
    optimizer: Optimizer = "sgd"
    rate: Positive = 0.2
    momentum: Annotated[float, Field(ge=0, lt=1)] = 0.95
    decay: Decay = "none"
    states: PositiveCount = 50
    hidden: PositiveCount = 50
    l2_head: Penalty = 0.0


TagColumn = Literal["xpos", "upos"]

_COLUMNS = {"upos": 3, "xpos": 4}
_CONLLU, _TWO = 10, 2


class TaggedSentence(NamedTuple):
    """The words of a sentence and the tag of each."""

    words: tuple[str, ...]
    tags: tuple[str, ...]


def read_tagged(path: Path, *, column: TagColumn = "xpos") -> list[TaggedSentence]:
    """Read the sentences of a file, plain or compressed, in which an empty line ends each.

    A line is of CoNLL-U (ten columns with tabs between, of which `column` is the tag: "xpos" of the treebank, "upos"
    universal), or a word, a tab and a tag. Comments, tokens of several words ("1-2") and empty nodes ("1.1") are left
    out. Raises InputError naming the first line that is neither, and for a file without a sentence.
    """
    sentences: list[TaggedSentence] = []
    pairs: list[tuple[str, str]] = []

    def end() -> None:
        if pairs:
            words, tags = zip(*pairs, strict=True)
            sentences.append(TaggedSentence(words, tags))
            pairs.clear()

    for number, line in number_lines(path):
        fields = line.split("\t")
        if fields == [""]:
            end()
        elif len(fields) > 1 or not fields[0].startswith("#"):
            pairs += _tag(fields, _COLUMNS[column], shorten_path(path), number)
    end()
    if not sentences:
        raise InputError(f"{shorten_path(path)}: no sentence; give CoNLL-U, or a word, a tab and a tag a line")
    return sentences


def _tag(fields: list[str], column: int, path: Path, number: int) -> list[tuple[str, str]]:
    if len(fields) == _CONLLU:
        return [(fields[1], fields[column])] if fields[0].isdigit() else []
    if len(fields) == _TWO and all(fields):
        return [(fields[0], fields[1])]
    raise InputError(f"{path} line {number}: {len(fields)} columns; give CoNLL-U, or a word, a tab and a tag")


_WORDS, _SENTENCES = 4_096, 512  # that are encoded, and tagged, at a time
_NONE = np.zeros(0, np.int32)


@dataclass(frozen=True)
class Sentences:
    """words: of each sentence the numbers of its words in a corpus of words; tags: of each of them its tag's, or -1."""

    words: Corpus
    tags: Corpus


@dataclass(frozen=True)
class TaggedExamples(Examples):
    """Whose batch is of the distinct words. words: int32[m], of each place which; offsets: int32[n + 1] of sentences.

    The targets are the places' tags, int32[m].
    """

    words: Int32s = field(default_factory=lambda: _NONE)
    offsets: Int32s = field(default_factory=lambda: _NONE)


class Tagger(nn.Module):
    """softmax(tanh([forward_t; backward_t] W + b) W_p + b_p) of each word t of a sentence: its tags.

    forward and backward are LSTMs with peepholes and output gate (see encoders.Lstm) that read the words' vectors from
    the first to the last, and from the last to the first. (Ling et al., 2015, with the sizes of Wieting et al., 2016a,
    section 4.2.) LSTMs begin normal with standard deviation 0.1, W and W_p as Glorot and Bengio's uniform, biases at
    zero. Words behind the 4,096th of a sentence have states of zeros.
    """

    def __init__(self, dimension: int, tags: int, settings: Tagging, generator: torch.Generator) -> None:
        super().__init__()
        h = settings.states
        self.inputs = nn.ParameterList(nn.Parameter(normal(dimension, 4 * h, generator=generator)) for _ in range(2))
        self.recurrent = nn.ParameterList(nn.Parameter(normal(h, 4 * h, generator=generator)) for _ in range(2))
        self.peepholes = nn.ParameterList(nn.Parameter(normal(3, h, generator=generator)) for _ in range(2))
        self.biases = nn.ParameterList(nn.Parameter(torch.zeros(4 * h)) for _ in range(2))
        self.inner = nn.Parameter(glorot(2 * h, settings.hidden, generator))  # [2h, hidden]
        self.bias = nn.Parameter(torch.zeros(settings.hidden))  # [hidden]
        self.outer = nn.Parameter(glorot(settings.hidden, tags, generator))  # [hidden, tags]
        self.outer_bias = nn.Parameter(torch.zeros(tags))  # [tags]

    def forward(self, vectors: Tensor, words: Tensor, offsets: Tensor) -> Tensor:
        """Return logits float32[m, tags] of sentences that begin at `offsets` [n + 1].

        vectors: float32[u, d] of the distinct words; words: int[m], of each place which of them it has.
        """
        states = torch.cat([self._states(vectors, words, offsets, way) for way in (0, 1)], dim=1)  # [m, 2h]
        hidden = torch.tanh(torch.addmm(self.bias, states, self.inner))  # [m, hidden]
        return torch.addmm(self.outer_bias, hidden, self.outer)

    def _states(self, vectors: Tensor, words: Tensor, offsets: Tensor, way: int) -> Tensor:
        steps = Steps.from_offsets(offsets, backwards=way == 1)
        values, at = project_rows(vectors, words[steps.places].long(), self.inputs[way], self.biases[way])
        states = lstm(values, at, self.recurrent[way], self.peepholes[way], steps.sizes, output_gate=True)
        return states.new_zeros(len(words), states.shape[1]).index_copy(0, steps.places, states)


class TaggingObjective(ShuffledObjective):
    """The cross-entropy of a tagger's tags, mean over the words of a batch of sentences.

    corpus: the distinct words of all sentences by number, as features. Of a batch each distinct word is encoded once.
    A step updates the whole table, as dense SGD does: with a momentum of 0.95 a row that is touched once moves twenty
    times as far in the steps after as in that one.
    """

    def __init__(self, corpus: Corpus, learned: Sentences, tagger: Tagger, settings: Tagging, rows: int) -> None:
        super().__init__(settings, len(learned.words), settings.l2_head)
        self.tagger = tagger
        self._corpus, self._learned = corpus, learned
        self._rows = np.arange(rows)

    def examples_at(self, step: int) -> TaggedExamples:
        """Return the sentences of a step, and their distinct words with all rows of the table."""
        chosen = self.numbers_at(step)
        sentences = self._learned.words.batch(chosen)
        ids, offsets = self._corpus.cut(sentences.rows)
        batch = TrainingBatch(self._rows, ids, offsets, sentences.rows)
        tags = self._learned.tags.cut(chosen)[0]
        return TaggedExamples(step, batch, len(chosen), tags, sentences.ids, sentences.offsets)

    def loss(self, vectors: Tensor, examples: Examples) -> Tensor:
        """Return the mean over the words of -log p(tag)."""
        assert isinstance(examples, TaggedExamples)
        assert examples.targets is not None
        words, offsets, tags = (
            move(array, vectors.device) for array in (examples.words, examples.offsets, examples.targets)
        )
        return functional.cross_entropy(self.tagger(vectors, words, offsets), tags.long())

    def parameters(self) -> dict[str, nn.Parameter]:
        """Return the tagger's parameters."""
        return {f"tagger.{name}": parameter for name, parameter in self.tagger.named_parameters()}

    @torch.no_grad()
    def tags(self, encoder: Encoder, sentences: Sentences) -> Ints:
        """Return int64[m]: the likeliest tag of each word of other sentences of the corpus."""
        device = encoder.table.device
        distinct, numbers = np.unique(sentences.words.ids.astype(np.int64), return_inverse=True)
        parts = []
        for start in range(0, len(distinct), _WORDS):
            ids, offsets = self._corpus.cut(distinct[start : start + _WORDS])
            parts.append(encoder(move(ids, device), move(offsets, device)))
        blocks: list[Ints] = []
        bounds = sentences.words.offsets
        for start in range(0, len(sentences.words), _SENTENCES):
            part = bounds[start : start + _SENTENCES + 1]
            words = move(numbers[part[0] : part[-1]], device)
            logits = self.tagger(torch.cat(parts), words, move(part - part[0], device))
            blocks.append(logits.argmax(dim=1).cpu().numpy())
        return np.concatenate(blocks) if blocks else np.zeros(0, np.int64)

    def accuracy(self, encoder: Encoder, sentences: Sentences) -> float:
        """Return, times 100, the share of words whose likeliest tag is right; a tag that was not learned is wrong."""
        return 100 * float(np.mean(self.tags(encoder, sentences) == sentences.tags.ids))


_OTHER = "wsj_sample.tsv"  # beside a treebank: scored, never learned from


@dataclass(frozen=True)
class Treebank:
    """The tagged sentences that are learned from, that an epoch is chosen on, and that are scored."""

    learned: list[TaggedSentence]
    held_out: list[TaggedSentence]
    scored: list[TaggedSentence]
    other: list[TaggedSentence]  # of other texts than those learned from; none where there is no such file

    @functools.cached_property
    def digest(self) -> str:
        """Return 16 hex digits over all of it."""
        return hashlib.sha256(repr((self.learned, self.held_out, self.scored, self.other)).encode()).hexdigest()[:16]

    def commonest(self, sentences: Sequence[TaggedSentence]) -> float:
        """Return the accuracy, times 100, of each word's commonest tag; of an unknown word the commonest of all."""
        counts: dict[str, Counter[str]] = {}
        for sentence in self.learned:
            for word, tag in zip(sentence.words, sentence.tags, strict=True):
                counts.setdefault(word, Counter())[tag] += 1
        (usual, _), *_ = sum(counts.values(), Counter[str]()).most_common(1)
        best = {word: tags.most_common(1)[0][0] for word, tags in counts.items()}
        places = [pair for sentence in sentences for pair in zip(sentence.words, sentence.tags, strict=True)]
        return 100 * float(np.mean([best.get(word, usual) == tag for word, tag in places]))


@functools.lru_cache(1)
def read_treebank_files(folder: Path) -> Treebank:
    """Read a folder of Universal Dependencies, files that end in train, dev and test, and wsj_sample.tsv beside.

    Raises InputError where there is not one file of each part.
    """
    other = folder / _OTHER
    learned, held_out, scored = (_part(folder, name) for name in ("train", "dev", "test"))
    return Treebank(learned, held_out, scored, read_tagged(other) if other.is_file() else [])


def _part(folder: Path, name: str) -> list[TaggedSentence]:
    paths = [path for ending in ("", ".gz") for path in sorted(folder.glob(f"*-{name}.conllu{ending}"))]
    if len(paths) != 1:
        what = f"{len(paths)} files *-{name}.conllu or .gz"
        raise InputError(f"{folder}: {what}; give --tagged a folder with one")
    return read_tagged(paths[0])


def read_treebank(inputs: ExperimentInputs) -> Treebank:
    """Return the treebank of the inputs. Raises InputError where they have none."""
    if inputs.tagged is None:
        raise InputError("this experiment learns taggers: give --tagged, a folder of a treebank in CoNLL-U")
    return read_treebank_files(inputs.tagged)


CHARAGRAM, TWO_LAYERS, CHAR_CNN, CHAR_LSTM = "CHARAGRAM", "CHARAGRAM, 2 layers", "charCNN", "charLSTM"
_DIMENSION, _CHARACTER = 150, 50  # columns of a word's vector, and of a character's row


@dataclass(frozen=True)
class WordEncoding:
    """How a word becomes a vector. settings: of an encoder; l2: on all parameters, towards zero.

    orders: with (1,) the encoder reads a word's characters, in upper and lower case. Of n-grams the word is
    lower-cased, and one more row marks a capital. min_count, each: which n-grams have a row.
    """

    settings: dict[str, Any]
    l2: float
    orders: tuple[int, ...] = (1,)
    min_count: int = 1
    each: int | None = None

    @property
    def characters(self) -> bool:
        """Return whether it reads single characters in their order."""
        return self.orders == (1,)


@dataclass(frozen=True)
class Accuracies:
    """All times 100. curve: on the held-out part after each epoch; the others are of the epoch that was best there."""

    curve: list[float]
    scored: float
    other: float | None
    parameters: int  # of encoder and tagger, table included


_BAG = {"kind": "bag", "activation": "relu"}
ENCODINGS = {
    CHAR_CNN: WordEncoding({"kind": "char-cnn", "filters": "a"}, 1e-5),
    CHAR_LSTM: WordEncoding({"kind": "lstm"}, 1e-5),
    CHARAGRAM: WordEncoding(_BAG, 1e-6, (2, 3, 4), min_count=2),
    TWO_LAYERS: WordEncoding({"kind": "two-layer", "activation": "relu"}, 1e-6, (2, 3, 4), min_count=2),
}


def resize(each: int, orders: tuple[int, ...]) -> WordEncoding:
    """Return CHARAGRAM with the most frequent n-grams of each order, `each` of them, without L2 (Table 5)."""
    return WordEncoding(_BAG, 0.0, orders, each=each)


def learn_tagger(inputs: ExperimentInputs, name: str, encoding: WordEncoding, epochs: int, seed: int) -> Accuracies:
    """Return the accuracies of a tagger that learns for this many epochs. It is kept in the folder `work`."""
    trees = read_treebank(inputs)
    settings = Tagging(epochs=epochs, seed=seed, l2=encoding.l2, l2_composition=encoding.l2, l2_head=encoding.l2)
    key = key_of([trees.digest, asdict(encoding), settings.model_dump(mode="json")])
    path = inputs.work / "taggers" / f"{slug_of(name)}-{seed}-{key}.json"
    return Accuracies(
        **load_or_make(path, lambda checkpoint: asdict(_learn(trees, encoding, settings, checkpoint, key)))
    )


def _learn(trees: Treebank, encoding: WordEncoding, settings: Tagging, checkpoint: Path, key: str) -> Accuracies:
    parts = (trees.learned, trees.held_out, trees.scored, trees.other)
    words = sorted({word for part in parts for sentence in part for word in sentence.words})
    tags = sorted({tag for sentence in trees.learned for tag in sentence.tags})
    featurize, rows = _features(trees.learned, encoding)
    corpus = Corpus.from_texts(words, featurize, rows)
    learned, held_out, scored, other = (_sentences(part, words, tags) for part in parts)
    generator = torch.Generator().manual_seed(settings.seed)
    encoder = build_encoder(
        ENCODERS.parse(encoding.settings),
        _first_rows(rows, encoding, generator), _DIMENSION, generator,
    )  # fmt: skip
    tagger = Tagger(_DIMENSION, len(tags), settings, generator)
    objective = TaggingObjective(corpus, learned, tagger, settings, rows)
    selection = Selection(lambda encoder: objective.accuracy(encoder, held_out), objective.steps_per_epoch)
    device = choose_device("cpu")
    settle(device, 1)
    trainer = Trainer(encoder, objective, device)
    history = fit(trainer, checkpoint, identity=key, resume=checkpoint.is_file(), selection=selection)
    return Accuracies(
        [score for _, score in history.selection],
        objective.accuracy(encoder, scored),
        objective.accuracy(encoder, other) if trees.other else None,
        sum(value.numel() for value in trainer.values().values()),
    )


def _first_rows(rows: int, encoding: WordEncoding, generator: torch.Generator) -> torch.Tensor:
    if not encoding.characters:
        return glorot(rows, _DIMENSION, generator)
    return torch.empty(rows, _CHARACTER).uniform_(-0.5 / rows, 0.5 / rows, generator=generator)


def _features(learned: Sequence[TaggedSentence], encoding: WordEncoding) -> tuple[Featurize, int]:
    """Return what makes rows of words, and how many rows, from the words of all places that are learned from."""
    spec = FeatureSpec(orders=encoding.orders, lowercase=not encoding.characters)
    places = [word for sentence in learned for word in sentence.words]
    vocabulary = build_vocabulary(places, spec, min_count=encoding.min_count, max_ngrams_each=encoding.each)
    featurize = Featurizer(spec, vocabulary)
    if encoding.characters:
        return featurize, len(vocabulary)
    return functools.partial(mark_capitals, featurize, len(vocabulary)), len(vocabulary) + 1


def mark_capitals(featurize: Featurize, row: int, words: Sequence[str]) -> FeatureBatch:
    """Return the features of words, and behind them this row of those that have a capital."""
    features = featurize(words)
    capital = np.array([any(letter.isupper() for letter in word) for word in words], bool)
    ids = np.insert(features.ids, features.offsets[1:][capital], row)
    return FeatureBatch(ids, features.offsets + np.append(0, np.cumsum(capital)))


def _sentences(part: Sequence[TaggedSentence], words: Sequence[str], tags: Sequence[str]) -> Sentences:
    number, tag = ({text: index for index, text in enumerate(texts)} for texts in (words, tags))
    offsets = np.cumsum([0, *(len(sentence.words) for sentence in part)])
    ids = np.array([number[word] for sentence in part for word in sentence.words], np.int32)
    truth = np.array([tag.get(name, -1) for sentence in part for name in sentence.tags], np.int32)
    return Sentences(Corpus(ids, offsets, len(words)), Corpus(truth, offsets, 0))


_EPOCHS = 10
_SHOWN = 10  # epochs of the figure, as in the paper's
_PAPER = {CHAR_CNN: 97.02, CHAR_LSTM: 96.90, CHARAGRAM: 96.99, TWO_LAYERS: 97.10}
_WITHIN = 1.0  # points: of all encoders
_SOON = 2  # epochs after which CHARAGRAM is above what the others are after as many and one more


def score_tagging(inputs: ExperimentInputs) -> ResultTable:
    """Make Table 4: accuracy of the epoch that was best on the held-out part, mean over seeds."""
    trees = read_treebank(inputs)
    of_systems = {name: _learn_tagging(inputs, name) for name in ENCODINGS}
    rows: list[ResultRow] = []
    for name, of_seeds in of_systems.items():
        on_other = [accuracies.other for accuracies in of_seeds if accuracies.other is not None]
        scores = [accuracies.scored for accuracies in of_seeds]
        rows.append({
            "encoder": name, "parameters": of_seeds[0].parameters,
            "held out": round(_mean([max(accuracies.curve) for accuracies in of_seeds]), 2),
            "test": round(_mean(scores), 2),
            "between seeds": round(max(scores) - min(scores), 2) if len(scores) > 1 else None,
            "WSJ": round(_mean(on_other), 2) if on_other else None, "paper": _PAPER[name],
        })  # fmt: skip
    rows.append({
        "encoder": "a word's commonest tag", "parameters": None, "held out": round(trees.commonest(trees.held_out), 2),
        "test": round(trees.commonest(trees.scored), 2), "between seeds": None,
        "WSJ": round(trees.commonest(trees.other), 2) if trees.other else None, "paper": None,
    })  # fmt: skip
    mean = {name: _mean([accuracies.scored for accuracies in of_seeds]) for name, of_seeds in of_systems.items()}
    apart = max(mean.values()) - min(mean.values())
    return ResultTable(
        tuple(rows),
        (
            Finding(f"all encoders are within {_WITHIN:g} point", apart <= _WITHIN, f"{apart:.2f}: {_list(mean)}"),
            Finding("a second layer makes CHARAGRAM better", mean[TWO_LAYERS] > mean[CHARAGRAM],
                    _list({name: mean[name] for name in (TWO_LAYERS, CHARAGRAM)})),
            Finding("charCNN > CHARAGRAM > charLSTM", mean[CHAR_CNN] > mean[CHARAGRAM] > mean[CHAR_LSTM],
                    _list(mean)),
            Finding("every encoder is above the commonest tag of each word",
                    min(mean.values()) > trees.commonest(trees.scored), f"{trees.commonest(trees.scored):.2f}"),
        ),
    )  # fmt: skip


def score_tagging_curves(inputs: ExperimentInputs) -> ResultTable:
    """Make Figure 1, tagging: accuracy on the held-out part after each of the first epochs, mean over seeds."""
    curves: dict[str, list[float]] = {
        name: np.mean([accuracies.curve for accuracies in _learn_tagging(inputs, name)], axis=0).tolist()
        for name in ENCODINGS
    }
    rows: tuple[ResultRow, ...] = tuple(
        {"epoch": epoch + 1} | {name: round(curve[epoch], 2) for name, curve in curves.items()}
        for epoch in range(min(_SHOWN, _EPOCHS))
    )
    first, later = curves[CHARAGRAM][_SOON - 1], {name: curves[name][_SOON] for name in (CHAR_CNN, CHAR_LSTM)}
    after = {name: curve[_SHOWN - 1] for name, curve in curves.items()}
    gaps = {name: after[CHARAGRAM] - after[name] for name in later}
    early = {name: curves[CHARAGRAM][0] - curves[name][0] for name in later}
    return ResultTable(
        rows,
        (
            Finding(f"CHARAGRAM after {_SOON} epochs is above charCNN and charLSTM after {_SOON + 1}",
                    first > max(later.values()), f"CHARAGRAM {first:.2f}; {_list(later)}"),
            Finding(f"charCNN and charLSTM are nearer to it after {_SHOWN} epochs than after one",
                    all(abs(gaps[name]) < early[name] for name in gaps),
                    f"after one {_list(early)}; after {_SHOWN} {_list(gaps)}"),
        ),
    )  # fmt: skip


def _learn_tagging(inputs: ExperimentInputs, name: str) -> list[Accuracies]:
    return [learn_tagger(inputs, name, ENCODINGS[name], _EPOCHS, seed) for seed in inputs.seeds]


def _mean(values: list[float]) -> float:
    return float(np.mean(values))


def _list(values: Mapping[str, float]) -> str:
    return list_values(values, ".2f")


_EPOCHS_TAGGING_SIZES = 2
_PAPER_TAGGING_SIZES = {
    100: (95.52, 96.09, 96.15, 96.13, 96.16),
    1_000: (96.72, 96.86, 96.97, 97.02, 97.03),
    50_000: (96.81, 97.00, 97.02, 97.04, 97.09),
}
_USUAL = TABLE_5_ORDERS.index((2, 3, 4))
_FEW = 1.5  # points: what 100 n-grams cost


def score_tagging_by_ngrams(inputs: ExperimentInputs) -> ResultTable:
    """Make Table 5, tagging: accuracy on the held-out part after the last epoch, mean over seeds."""
    scores: dict[int, list[float]] = {}
    for size in TABLE_5_SIZES:
        scores[size] = []
        for orders in TABLE_5_ORDERS:
            name = f"ngrams-{size}-{orders[-1]}"
            of_seeds = [
                learn_tagger(inputs, name, resize(size, orders), _EPOCHS_TAGGING_SIZES, seed) for seed in inputs.seeds
            ]
            scores[size].append(_mean([accuracies.curve[-1] for accuracies in of_seeds]))
    named = list(map(spell_orders, TABLE_5_ORDERS))
    rows: tuple[ResultRow, ...] = tuple(
        {"n-grams of each order": size}
        | {name: round(score, 2) for name, score in zip(named, of_orders, strict=True)}
        | {f"{name}, paper": value for name, value in zip(named, _PAPER_TAGGING_SIZES[size], strict=True)}
        for size, of_orders in scores.items()
    )
    few, middle, many = (scores[size] for size in TABLE_5_SIZES)
    best = max(max(of_orders) for of_orders in scores.values())
    return ResultTable(
        rows,
        (
            Finding("tagging: more n-grams are better, with every set of orders",
                    all(a < b < c for a, b, c in zip(few, middle, many, strict=True)), "see the table"),
            Finding(f"tagging: 100 n-grams of each of orders 2 to 4 cost at most {_FEW:g} points",
                    best - few[_USUAL] <= _FEW, f"{best:.2f}, {few[_USUAL]:.2f}"),
            Finding("tagging: orders to 6 are better than 2 alone at every size",
                    all(of_orders[-1] > of_orders[0] for of_orders in scores.values()),
                    ", ".join(f"{of_orders[-1] - of_orders[0]:+.2f}" for of_orders in scores.values())),
        ),
    )  # fmt: skip
