"""How a model is learned: by the margin loss, from a teacher, or by SIF's closed form; and what it starts from."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, model_validator

from gramvec_training.configuration.model import FeatureKind
from gramvec_training.configuration.schedule import Decay, Optimiser, Schedule
from gramvec_training.configuration.sources import TextSource
from gramvec_training.configuration.strict import Count, Number, Penalty, Positive, Seed, Strict

Sampling = Literal["max", "mix", "rand"]
Among = Literal["both", "own"]
Weights = Literal["sif", "idf", "none"]
PairLayout = Literal["compared", "joined"]


class Training(Schedule):
    """The margin loss; `batch` counts pairs. See Schedule for how it is brought down."""

    margin: Positive = 0.4
    negatives: Sampling = "max"
    negatives_among: Among = "both"  # or a phrase's own side, as PARAGRAM-PHRASE's formula has it
    batch: Annotated[int, Field(ge=2)] = 128
    mega_batch: Count = 1  # batches among which the negatives are sought
    cosine_epsilon: Penalty = 0.0  # added to the product of the lengths: 1e-4 of charCNN, 1e-6 of charLSTM
    shuffle_first_epoch: bool = True  # else in the order of the files


class Spelling(Strict):
    """Words beside the texts of a distillation: a misspelt one is drawn to its own, and away from others spelt alike.

    Each step has `groups` words of the `count` most frequent in the file `words` (of four letters or more), each with
    those most alike, `near` in all, and of each word a misspelt copy: one of `copies`. The loss beside the texts' is
    `keep` * (1 - cos(word, its vector of the teacher)) + `weight` * cross-entropy of the copy's cosines with the words
    of the step, over `temperature`, by which only the copies are moved.
    """

    words: Path
    count: Count = 50_000
    groups: Count = 64
    near: Annotated[int, Field(ge=2)] = 8
    copies: Count = 6
    weight: Positive = 0.3
    temperature: Positive = 0.05
    keep: Penalty = 1.5


class Distillation(Schedule):
    """Learning from a teacher's vectors of [[texts]]; `batch` counts texts."""

    teacher: str  # a sentence-transformers model's folder, an installed package that carries one, or a bundle
    relation: Penalty = 0.5  # weight of the batch's cosines beside the vectors themselves
    batch: Annotated[int, Field(ge=2)] = 1024
    rate: Positive = 2e-3
    spans: Number = 0  # texts that a short phrase is cut from, besides
    max_texts: Count | None = None  # of all texts, keep so many
    # Of a kind of features: how many occurrences a step leaves out. What is served has all; [export] scales them down.
    dropout: dict[FeatureKind, Annotated[float, Field(gt=0, lt=1)]] = Field(default_factory=dict)
    whitening: Annotated[float, Field(ge=0, le=1)] = 0.0  # of the teacher's vectors; 0 for none
    misspelt: Annotated[float, Field(ge=0, le=1)] = 0.1  # misspelt copies, as a share of the texts
    misspelt_words: Annotated[float, Field(gt=0, le=1)] = 0.3  # share of a copy's longer words
    misspellings: tuple[Path, ...] = ()  # files of word<TAB>misspelling
    spelling: Spelling | None = None  # words to learn from besides


class Supervision(Schedule):
    """Learning a head from labels; `batch` counts labelled texts or pairs. Its own L2 term is towards zero.

    The papers' regimes: words drawn to their first values and the rest to zero; all drawn to a finished model's, which
    is what the encoder then begins as; or a fixed table of texts' vectors, and the head alone.

    pair: what a head sees of a pair, "compared" for products and distances, which are the same in either order, or
    "joined" for both, each through a layer of `narrow` tanh, side by side below three layers of `hidden`.
    """

    batch: Annotated[int, Field(ge=2)] = 25
    hidden: Count = 50
    pair: PairLayout = "compared"
    narrow: Count = 100
    l2_head: Penalty = 0.0


class Tagging(Schedule):
    """Learning a tagger of words; `batch` counts sentences. The defaults are CHARAGRAM's (section 4.2).

    states: of each of the two LSTMs over the sentence; hidden: of the layer above them. l2_head: of these and the rest
    of the tagger, towards zero.
    """

    batch: Annotated[int, Field(ge=2)] = 100
    optimiser: Optimiser = "sgd"
    rate: Positive = 0.2
    momentum: Annotated[float, Field(ge=0, lt=1)] = 0.95
    decay: Decay = "none"
    states: Count = 50
    hidden: Count = 50
    l2_head: Penalty = 0.0


class Sif(Strict):
    """Word weights and common components over the words of a run, or of a file of vectors.

    weights: "sif", a / (a + p(w)); "idf", log((1 + N) / (1 + N_w)) of N `documents`, N_w of them with the word (SIF,
    equation 7); "none", 1. `frequencies` also decide the order of the rows, and so what max_words keeps.
    """

    run: str | None = None  # a run folder beside the one that is written
    vectors: Path | None = None
    frequencies: Path
    a: Positive = 1e-3
    weights: Weights = "sif"
    documents: tuple[TextSource, ...] = ()
    components: Number = 1
    sample: Count = 100_000  # texts that the components are taken from
    max_words: Count | None = None
    seed: Seed = 1

    @model_validator(mode="after")
    def _one_source(self) -> Sif:
        if (self.run is None) == (self.vectors is None):
            raise ValueError("give either run or vectors")
        if (self.weights == "idf") != bool(self.documents):
            raise ValueError('documents and weights = "idf" go together: give both or neither')
        return self


class Start(Strict):
    """The bundle that training goes on from, and how many rows the new texts may add to its table.

    `bundle` is a folder or a name. A new row goes to an n-gram or word that the training texts hold `min_count` times
    and the bundle lacks, the most frequent first.
    """

    bundle: Path
    digest: str | None = None  # the bundle must have it
    min_count: Count = 2
    max_ngrams: Number = 10_000
    max_words: Number = 5_000
