"""A training config: one TOML file, typed, frozen, and strict about its keys."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from gramvec.errors import InputError
from gramvec_training.data import Layout, OnBad
from gramvec_training.encoders import Activation, Pooling
from gramvec_training.negatives import Sampling
from gramvec_training.optim import Centre, Optimiser
from gramvec_training.start import Start
from gramvec_training.texts import TextSource

Kind = Literal["charagram-phrase", "paragram-phrase", "sif", "gramvec"]
Precision = Literal["float32", "float16", "int8"]

_Count = Annotated[int, Field(ge=1)]
_Positive = Annotated[float, Field(gt=0)]
_Penalty = Annotated[float, Field(ge=0)]


class _Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Model(_Strict):
    """What is built. `initial` is the half-width of the uniform first values, or "glorot" for sqrt(6 / (rows + d))."""

    name: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9._-]*$")]
    kind: Kind
    dimension: _Count = 300
    pooling: Pooling = "sum"
    activation: Activation = "tanh"
    bias: bool = True
    initial: _Positive | Literal["glorot"] = "glorot"
    licence: str = "not stated"  # under which the model itself may be used
    vectors: Path | None = None  # word vectors that replace the first values of the words they know


class Features(_Strict):
    """What a text is made of; see gramvec.features.FeatureSpec."""

    orders: tuple[_Count, ...] = (2, 3, 4)
    words: bool = False
    unknown_words: Literal["skip", "row"] = "skip"
    lowercase: bool = True


class VocabularyLimits(_Strict):
    """Which features get a row: seen `min_count` times (the paper's C), and so many, the most frequent first."""

    min_count: _Count = 1
    max_ngrams: _Count | None = None
    max_ngrams_each: _Count | None = None  # of each order: the k of CHARAGRAM's Table 5
    max_words: _Count | None = None
    words_of_vectors: bool = False  # the words of model.vectors have a row, seen or not, and no others


class Training(_Strict):
    """The margin loss and its optimiser. Either `steps` or `epochs`; `batch` counts pairs.

    The L2 terms are 0.5 * l2 * ||theta - centre||^2, added to the batch's mean loss, as in the authors' code (the
    papers' formulas have no 0.5). They and the optimisers are lazy: see gramvec_training.optim.
    """

    margin: _Positive = 0.4
    negatives: Sampling = "max"
    batch: Annotated[int, Field(ge=2)] = 128
    mega_batch: _Count = 1  # batches among which the negatives are sought
    optimiser: Optimiser = "adam"
    rate: _Positive = 1e-3
    decay: Literal["linear", "none"] = "linear"
    clip: _Positive | None = None  # the greatest length of each parameter's gradient
    shuffle_first_epoch: bool = True  # else in the order of the files
    steps: _Count | None = None
    epochs: _Count | None = None
    l2: _Penalty = 0.0  # on the table
    l2_centre: Centre = "zero"
    l2_composition: _Penalty = 0.0  # on all other parameters, towards zero
    seed: Annotated[int, Field(ge=0, lt=2**31)] = 1

    @model_validator(mode="after")
    def _one_length(self) -> Training:
        if (self.steps is None) == (self.epochs is None):
            raise ValueError("give either steps or epochs")
        return self


class Distillation(_Strict):
    """Learning from a teacher's vectors of [[texts]]. Either `steps` or `epochs`; `batch` counts texts."""

    teacher: str  # a sentence-transformers model's folder, an installed package that carries one, or a bundle
    relation: _Penalty = 0.5  # weight of the batch's cosines beside the vectors themselves
    batch: Annotated[int, Field(ge=2)] = 1024
    rate: _Positive = 2e-3
    decay: Literal["linear", "none"] = "linear"
    steps: _Count | None = None
    epochs: _Count | None = None
    l2: _Penalty = 0.0
    l2_centre: Centre = "zero"
    l2_composition: _Penalty = 0.0
    spans: Annotated[int, Field(ge=0)] = 0  # texts that a short phrase is cut from, besides
    max_texts: _Count | None = None  # of all texts, keep so many
    misspelt: Annotated[float, Field(ge=0, le=1)] = 0.1  # misspelt copies, as a share of the texts
    misspelt_words: Annotated[float, Field(gt=0, le=1)] = 0.3  # share of a copy's longer words
    misspellings: tuple[Path, ...] = ()  # files of word<TAB>misspelling
    seed: Annotated[int, Field(ge=0, lt=2**31)] = 1

    @model_validator(mode="after")
    def _one_length(self) -> Distillation:
        if (self.steps is None) == (self.epochs is None):
            raise ValueError("give either steps or epochs")
        return self


class Sif(_Strict):
    """Word weights a / (a + p(w)) and common components over the words of a run, or of a file of vectors."""

    run: str | None = None  # a run folder beside the one that is written
    vectors: Path | None = None
    frequencies: Path
    a: _Positive = 1e-3
    weighted: bool = True
    components: Annotated[int, Field(ge=0)] = 1
    sample: _Count = 100_000  # texts that the components are taken from
    max_words: _Count | None = None
    seed: Annotated[int, Field(ge=0, lt=2**31)] = 1

    @model_validator(mode="after")
    def _one_source(self) -> Sif:
        if (self.run is None) == (self.vectors is None):
            raise ValueError("give either run or vectors")
        return self


class DataSet(_Strict):
    """A file of paraphrases and its share of an epoch; see gramvec_training.mixture."""

    path: Path
    licence: str = "not stated"
    layout: Layout | None = None
    bad_rows: OnBad = "skip"
    max_groups: _Count | None = None  # keep so many groups, drawn once: bounds the memory
    pairs_per_group: _Count = 1
    cap: _Count | None = None  # at most so many pairs an epoch
    held_out: Annotated[float, Field(ge=0, le=0.5)] = 0.0  # share that is not trained on, for a report at the end

    @property
    def name(self) -> str:
        """The file's name up to its first dot."""
        return self.path.name.split(".", 1)[0]


class Dev(_Strict):
    """Development sets (folders of score<TAB>text<TAB>text files), scored at the end and every so many steps."""

    sets: tuple[Path, ...] = ()
    every: _Count | None = None


class Export(_Strict):
    """What is done to the finished table, see gramvec_training.shape, and how the bundle stores it."""

    precision: Precision = "float32"
    scales: dict[Literal["word", "1", "2", "3", "4", "5", "6"], _Positive] = {}  # of words, and n-grams by order
    whitening: Annotated[float, Field(ge=0, le=1)] = 0.0  # 0 for none; for a linear model alone
    # Rows for so many frequent chunks and edges of the training texts, which make it faster (gramvec.vocab.memo); only
    # for sums of n-grams of two characters or more, other models have none.
    memo_chunks: Annotated[int, Field(ge=0)] = 20_000
    memo_edges: Annotated[int, Field(ge=0)] = 10_000


class Config(_Strict):
    """A whole config: [model] and [training] with [[data]], [distillation] with [[texts]], or [sif] with [[texts]]."""

    model: Model
    features: Features = Features()
    vocabulary: VocabularyLimits = VocabularyLimits()
    training: Training | None = None
    distillation: Distillation | None = None
    sif: Sif | None = None
    start: Start | None = None  # the bundle that [training] or [distillation] goes on from
    data: tuple[DataSet, ...] = ()
    texts: tuple[TextSource, ...] = ()
    dev: Dev = Dev()
    export: Export = Export()

    @model_validator(mode="after")
    def _one_way(self) -> Config:
        if sum(part is not None for part in (self.training, self.distillation, self.sif)) != 1:
            raise ValueError("give one of [training], [distillation] and [sif]")
        if self.training is not None and not self.data:
            raise ValueError("[training] needs at least one [[data]] with a path")
        if self.export.whitening and (self.model.activation != "linear" or self.model.bias):
            raise ValueError("export.whitening needs a linear model without a bias")
        if self.distillation is not None and not self.texts:
            raise ValueError("[distillation] needs at least one [[texts]] with a path")
        if self.start is not None and self.sif is not None:
            raise ValueError("[start] belongs to [training] or [distillation]")
        if self.sif is not None and self.sif.components and not self.texts:
            raise ValueError("[sif] needs at least one [[texts]] with a path to take its components from")
        return self

    def public(self) -> dict[str, Any]:
        """The config as JSON types for records that travel: of absolute paths the file's name alone."""
        values: dict[str, Any] = _without_folders(self.model_dump())
        return values


def _without_folders(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_folders(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_without_folders(one) for one in value]
    if isinstance(value, Path):
        return value.name if value.is_absolute() else value.as_posix()
    return value


def load_config(path: Path) -> Config:
    """Read a TOML config. Raises InputError, one sentence naming the file and the key, for whatever is wrong in it."""
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputError(f"There is no config {path}; the shipped ones are in training/configs.") from None
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"The config {path} cannot be read: {error}.") from error
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"The config {path} is not TOML: {error}.") from error
    return parse_config(values, source=str(path))


def parse_config(values: dict[str, Any], *, source: str) -> Config:
    """The config that nested values spell; `source` names them in errors."""
    try:
        return Config.model_validate(values)
    except ValidationError as error:
        raise InputError(f"{source}: {_sentence(error)}") from error


def _sentence(error: ValidationError) -> str:
    first = error.errors(include_url=False)[0]
    key = ".".join(str(part) for part in first["loc"]) or "the config"
    if first["type"] == "extra_forbidden":
        return f"the key {key} is not known here; remove it or check its spelling."
    if first["type"] == "missing":
        return f"the key {key} is missing."
    message = first["msg"].removeprefix("Value error, ")
    given = f" (given: {first['input']!r})" if isinstance(first["input"], (str, int, float, bool)) else ""
    return f"{key}: {message[0].lower()}{message[1:]}{given}."
