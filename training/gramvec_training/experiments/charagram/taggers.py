"""Taggers over the papers' word encoders: a treebank, an encoder and a seed -> accuracies, kept."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import torch
from pydantic import TypeAdapter

from gramvec.text.batch import FeatureBatch
from gramvec.text.featurizer import Featurizer
from gramvec.text.spec import FeatureSpec
from gramvec_training.configuration import EncoderSettings, Tagging
from gramvec_training.data import Corpus, Featurize, build_vocabulary
from gramvec_training.encoders import build_encoder, glorot
from gramvec_training.experiments.charagram.treebank import Treebank, tagged
from gramvec_training.experiments.common import Inputs
from gramvec_training.files import write_atomically
from gramvec_training.fitting import Selection, Trainer, choose_device, fit, settle
from gramvec_training.objectives import Sentences, Tagger, TaggingObjective
from gramvec_training.readers import TaggedSentence

CHARAGRAM, TWO_LAYERS, CHAR_CNN, CHAR_LSTM = "CHARAGRAM", "CHARAGRAM, 2 layers", "charCNN", "charLSTM"
_DIMENSION, _CHARACTER = 150, 50  # columns of a word's vector, and of a character's row


@dataclass(frozen=True)
class Encoding:
    """How a word becomes a vector. settings: of an encoder; l2: on all parameters, towards zero.

    orders: of characters alone the encoder reads a word's characters, in upper and lower case. Of n-grams the word is
    lower-cased, and one more row says that it has a capital. min_count, each: which n-grams have a row.
    """

    settings: dict[str, Any]
    l2: float
    orders: tuple[int, ...] = (1,)
    min_count: int = 1
    each: int | None = None

    @property
    def characters(self) -> bool:
        """Whether it reads single characters in their order."""
        return self.orders == (1,)


@dataclass(frozen=True)
class Accuracies:
    """All times 100. curve: on the held-out part after each epoch; the others are of the epoch that was best there."""

    curve: list[float]
    scored: float
    other: float | None
    parameters: int = field(default=0)  # of encoder and tagger, table included


_BAG = {"kind": "bag", "activation": "relu"}
ENCODINGS = {
    CHAR_CNN: Encoding({"kind": "char-cnn", "filters": "a"}, 1e-5),
    CHAR_LSTM: Encoding({"kind": "lstm"}, 1e-5),
    CHARAGRAM: Encoding(_BAG, 1e-6, (2, 3, 4), min_count=2),
    TWO_LAYERS: Encoding({"kind": "two-layer", "activation": "relu"}, 1e-6, (2, 3, 4), min_count=2),
}


def sized(each: int, orders: tuple[int, ...]) -> Encoding:
    """CHARAGRAM with so many n-grams of each order, the most frequent, without L2 (Table 5)."""
    return Encoding(_BAG, 0.0, orders, each=each)


def learned_tagger(inputs: Inputs, name: str, encoding: Encoding, epochs: int, seed: int) -> Accuracies:
    """What a tagger comes to that learns for so many epochs. It is kept in the folder `work`."""
    trees = tagged(inputs)
    settings = Tagging(
        epochs=epochs, seed=seed, l2=encoding.l2, l2_composition=encoding.l2, l2_head=encoding.l2
    )  # fmt: skip
    values = [trees.digest, asdict(encoding), settings.model_dump(mode="json")]
    key = hashlib.sha256(orjson.dumps(values)).hexdigest()[:8]
    slug = name.lower().replace(",", "").replace(" ", "-")
    path = inputs.work / "taggers" / f"{slug}-{seed}-{key}.json"
    if path.is_file():
        return Accuracies(**orjson.loads(path.read_bytes()))
    path.parent.mkdir(parents=True, exist_ok=True)
    found = _learned(trees, encoding, settings, path.with_suffix(".pt"), key)
    write_atomically(path, lambda handle: handle.write(orjson.dumps(asdict(found))))
    path.with_suffix(".pt").unlink(missing_ok=True)
    return found


def _learned(trees: Treebank, encoding: Encoding, settings: Tagging, checkpoint: Path, key: str) -> Accuracies:
    parts = (trees.learned, trees.held_out, trees.scored, trees.other)
    words = sorted({word for part in parts for one in part for word in one.words})
    tags = sorted({tag for one in trees.learned for tag in one.tags})
    featurize, rows = _features(trees.learned, encoding)
    corpus = Corpus.of(words, featurize, rows)
    learned, held_out, scored, other = (_sentences(part, words, tags) for part in parts)
    generator = torch.Generator().manual_seed(settings.seed)
    encoder = build_encoder(
        TypeAdapter[EncoderSettings](EncoderSettings).validate_python(encoding.settings),
        _first_rows(rows, encoding, generator), _DIMENSION, generator,
    )  # fmt: skip
    tagger = Tagger(_DIMENSION, len(tags), settings, generator)
    objective = TaggingObjective(corpus, learned, tagger, settings, rows)
    selection = Selection(lambda one: objective.accuracy(one, held_out), objective.steps_per_epoch)
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


def _first_rows(rows: int, encoding: Encoding, generator: torch.Generator) -> torch.Tensor:
    if not encoding.characters:
        return glorot(rows, _DIMENSION, generator)
    return torch.empty(rows, _CHARACTER).uniform_(-0.5 / rows, 0.5 / rows, generator=generator)


def _features(learned: Sequence[TaggedSentence], encoding: Encoding) -> tuple[Featurize, int]:
    """What makes rows of words, and how many rows there are, from the words of all places that are learned from."""
    spec = FeatureSpec(orders=encoding.orders, lowercase=not encoding.characters)
    places = [word for one in learned for word in one.words]
    vocabulary = build_vocabulary(places, spec, min_count=encoding.min_count, max_ngrams_each=encoding.each)
    featurize = Featurizer(spec, vocabulary)
    if encoding.characters:
        return featurize, len(vocabulary)
    return functools.partial(with_capitals, featurize, len(vocabulary)), len(vocabulary) + 1


def with_capitals(featurize: Featurize, row: int, words: Sequence[str]) -> FeatureBatch:
    """The features of words, and behind them this row of those that have a capital."""
    found = featurize(words)
    capital = np.array([any(letter.isupper() for letter in word) for word in words], bool)
    ids = np.insert(found.ids, found.offsets[1:][capital], row)
    return FeatureBatch(ids, found.offsets + np.append(0, np.cumsum(capital)))


def _sentences(part: Sequence[TaggedSentence], words: Sequence[str], tags: Sequence[str]) -> Sentences:
    number, tag = ({text: index for index, text in enumerate(texts)} for texts in (words, tags))
    offsets = np.cumsum([0, *(len(one.words) for one in part)])
    ids = np.array([number[word] for one in part for word in one.words], np.int32)
    truth = np.array([tag.get(name, -1) for one in part for name in one.tags], np.int32)
    return Sentences(Corpus(ids, offsets, len(words)), Corpus(truth, offsets, 0))
