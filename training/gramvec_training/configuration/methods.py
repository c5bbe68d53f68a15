"""How a model is learned: by the margin loss, from a teacher, or by SIF's closed form; and what it starts from."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, model_validator

from gramvec_training.configuration.strict import Count, Number, Penalty, Positive, Seed, Strict

Sampling = Literal["max", "mix"]
Centre = Literal["zero", "initial"]
Optimiser = Literal["adam", "adagrad"]
Decay = Literal["linear", "none"]


class Training(Strict):
    """The margin loss and its optimiser. Either `steps` or `epochs`; `batch` counts pairs.

    The L2 terms are 0.5 * l2 * ||theta - centre||^2, added to the batch's mean loss, as in the authors' code (the
    papers' formulas have no 0.5). They and the optimisers are lazy: see gramvec_training.fitting.
    """

    margin: Positive = 0.4
    negatives: Sampling = "max"
    batch: Annotated[int, Field(ge=2)] = 128
    mega_batch: Count = 1  # batches among which the negatives are sought
    optimiser: Optimiser = "adam"
    rate: Positive = 1e-3
    decay: Decay = "linear"
    clip: Positive | None = None  # the greatest length of each parameter's gradient
    shuffle_first_epoch: bool = True  # else in the order of the files
    steps: Count | None = None
    epochs: Count | None = None
    l2: Penalty = 0.0  # on the table
    l2_centre: Centre = "zero"
    l2_composition: Penalty = 0.0  # on all other parameters, towards zero
    seed: Seed = 1

    @model_validator(mode="after")
    def _one_length(self) -> Training:
        if (self.steps is None) == (self.epochs is None):
            raise ValueError("give either steps or epochs")
        return self


class Distillation(Strict):
    """Learning from a teacher's vectors of [[texts]]. Either `steps` or `epochs`; `batch` counts texts."""

    teacher: str  # a sentence-transformers model's folder, an installed package that carries one, or a bundle
    relation: Penalty = 0.5  # weight of the batch's cosines beside the vectors themselves
    batch: Annotated[int, Field(ge=2)] = 1024
    rate: Positive = 2e-3
    decay: Decay = "linear"
    steps: Count | None = None
    epochs: Count | None = None
    l2: Penalty = 0.0
    l2_centre: Centre = "zero"
    l2_composition: Penalty = 0.0
    spans: Number = 0  # texts that a short phrase is cut from, besides
    max_texts: Count | None = None  # of all texts, keep so many
    misspelt: Annotated[float, Field(ge=0, le=1)] = 0.1  # misspelt copies, as a share of the texts
    misspelt_words: Annotated[float, Field(gt=0, le=1)] = 0.3  # share of a copy's longer words
    misspellings: tuple[Path, ...] = ()  # files of word<TAB>misspelling
    seed: Seed = 1

    @model_validator(mode="after")
    def _one_length(self) -> Distillation:
        if (self.steps is None) == (self.epochs is None):
            raise ValueError("give either steps or epochs")
        return self


class Sif(Strict):
    """Word weights a / (a + p(w)) and common components over the words of a run, or of a file of vectors."""

    run: str | None = None  # a run folder beside the one that is written
    vectors: Path | None = None
    frequencies: Path
    a: Positive = 1e-3
    weighted: bool = True
    components: Number = 1
    sample: Count = 100_000  # texts that the components are taken from
    max_words: Count | None = None
    seed: Seed = 1

    @model_validator(mode="after")
    def _one_source(self) -> Sif:
        if (self.run is None) == (self.vectors is None):
            raise ValueError("give either run or vectors")
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
