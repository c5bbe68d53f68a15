"""Sections of a training config: schedules, data sources, features, encoders, export.

Every section is frozen and refuses unknown keys.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    model_serializer,
    model_validator,
)

from gramvec.bundle.manifest import Precision as Precision
from gramvec.features.spec import PLAIN
from gramvec.features.spec import UnknownWords as UnknownWords
from gramvec.features.spec import WordRule as WordRule
from gramvec.jobs.tables.inputs import UTF_8, FileFormat, Form, form_of
from gramvec_training.registry import Registry

PositiveCount = Annotated[int, Field(ge=1)]
Number = Annotated[int, Field(ge=0)]
Positive = Annotated[float, Field(gt=0)]
Penalty = Annotated[float, Field(ge=0)]
Seed = Annotated[int, Field(ge=0, lt=2**31)]


class Strict(BaseModel):
    """A frozen section of a config that refuses unknown keys."""

    model_config = ConfigDict(frozen=True, extra="forbid")


Optimizer = Literal["adam", "adagrad", "sgd"]
Decay = Literal["linear", "none"]
Center = Literal["zero", "initial"]
# A number of steps, or the quarters of an epoch, as the papers have it.
Every = PositiveCount | Literal["quarter"]


class Schedule(Strict):
    """Optimizer, learning rate and length of training: either `steps` or `epochs`; `batch` counts examples.

    The L2 terms are 0.5 * l2 * ||theta - center||^2, added to the batch's mean loss, as in the authors' code (the
    papers' formulas have no 0.5). They and the optimizers are lazy on the table (gramvec_training.fitting.optimizers).
    The center "initial" is what a parameter was at the start: word vectors, iRNN's identity, or a finished model.
    """

    batch: Annotated[int, Field(ge=2)]
    optimizer: Optimizer = "adam"
    rate: Positive = 1e-3
    decay: Decay = "linear"
    momentum: Annotated[float, Field(ge=0, lt=1)] = 0.0  # of SGD: classical
    epsilon: Positive | None = None  # beside the root: 1e-8 of Adam, 1e-10 of AdaGrad
    epsilon_in_root: bool = False  # AdaGrad's: g / sqrt(sum of g^2 + epsilon), the papers' code with 1e-6
    clip: Positive | None = None  # the greatest length of each parameter's gradient
    steps: PositiveCount | None = None
    epochs: PositiveCount | None = None
    fixed_table: bool = False  # the rows stay unchanged, and only the other parameters are learned
    l2: Penalty = 0.0  # on the table
    l2_center: Center = "zero"
    l2_composition: Penalty = 0.0  # on all other parameters of the encoder
    l2_composition_center: Center = "zero"
    seed: Seed = 1

    @model_validator(mode="after")
    def _one_length(self) -> Schedule:
        if (self.steps is None) == (self.epochs is None):
            raise ValueError("give either steps or epochs")
        return self

    @model_validator(mode="after")
    def _of_the_optimizer(self) -> Schedule:
        if self.momentum and self.optimizer != "sgd":
            raise ValueError(f'momentum belongs to optimizer "sgd", not "{self.optimizer}"')
        if self.epsilon is not None and self.optimizer == "sgd":
            raise ValueError('epsilon belongs to optimizer "adam" or "adagrad", not "sgd"')
        if self.epsilon_in_root and self.optimizer != "adagrad":
            raise ValueError(f'epsilon_in_root belongs to optimizer "adagrad", not "{self.optimizer}"')
        return self


FileLayout = Literal["pairs", "groups", "ppdb"]
TextLayout = Literal["lines", "columns", "words", "similarity"]
Measure = Literal["pearson", "spearman"]
OnBad = Literal["skip", "refuse"]


class TableFormat(Strict):
    """Format of a file of rows; the file's ending names its form where `form` does not."""

    form: Form | None = None
    delimiter: str | None = None  # of CSV; recognized by the header where it is left out
    encoding: str = UTF_8

    def for_path(self, path: Path) -> FileFormat:
        """Return the format of a file. Raises InputError for an unknown ending, delimiter or encoding."""
        return FileFormat(self.form or form_of(path), self.delimiter, self.encoding)


class DataSet(Strict):
    """A file of paraphrases, or of texts with labels, and its share of an epoch."""

    path: Path
    license: str = "not stated"
    layout: FileLayout | None = None
    labeled: bool = False  # a label and a text a row: texts of one label are pairs, and negatives of all others
    format: TableFormat | None = None  # other than the file's ending names
    bad_rows: OnBad = "skip"
    max_groups: PositiveCount | None = None  # keep at most this many groups, drawn once, to bound the memory
    pairs_per_group: PositiveCount = 1
    cap: PositiveCount | None = None  # at most this many pairs an epoch
    held_out: Annotated[float, Field(ge=0, le=0.5)] = 0.0  # share that is not trained on, for a report at the end

    @model_serializer(mode="wrap")
    def _without_usual_format(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        values: dict[str, Any] = write(self)
        if self.format is None:  # records of runs, and digests of them, are as they were without the key
            values.pop("format", None)
        return values

    @property
    def name(self) -> str:
        """Return the file name up to its first dot."""
        return self.path.name.split(".", 1)[0]


class TextSource(Strict):
    """A file of texts.

    Layout `columns` reads the columns of a TSV file, `words` the first word of each line of a counts file,
    `similarity` the texts of score<TAB>text<TAB>text lines, from a file or from all .tsv files of a folder.

    `sentences` cuts a line where a sentence ends. Texts shorter than two characters (but for words) or longer than
    `max_characters` are left out; of the others at most `cap` are taken, at random, or, of words, the first. The texts
    of the sources marked `first` come before all others, so that a limit on the number of texts does not touch them.
    """

    path: Path
    license: str = "not stated"
    layout: TextLayout = "lines"
    columns: PositiveCount | None = None  # of a TSV file; all without it
    sentences: bool = False
    max_characters: Annotated[int, Field(ge=2)] | None = None
    cap: PositiveCount | None = None
    first: bool = False

    @property
    def name(self) -> str:
        """Return the file name up to its first dot."""
        return self.path.name.split(".", 1)[0]


class Dev(Strict):
    """Development sets (folders of score<TAB>text<TAB>text files), scored at the end and every `every` steps."""

    sets: tuple[Path, ...] = ()
    every: Every | None = None


class Select(Strict):
    """Model selection: of the models at every `every` steps, keep the one with the best score on a development set.

    `set` is a file of score<TAB>text<TAB>text lines, or a folder of them, whose mean counts. The papers: every quarter
    of an epoch, Spearman, on an annotated sample of PPDB or on a set of words.
    """

    set: Path
    measure: Measure = "spearman"
    every: Every = "quarter"


EncoderPooling = Literal["sum", "mean"]
Activation = Literal["linear", "tanh", "relu"]
FeatureKind = Literal["word", "1", "2", "3", "4", "5", "6"]


class ModelSettings(Strict):
    """Name, kind and sizes of the model.

    `dimension` is the width of a vector, `width` that of a table row; by default both are equal.

    `initial` is the half-width of the table's uniform first values, "glorot" for sqrt(6 / (rows + width)), or "rows"
    for 0.5 / rows (the character embeddings of charCNN and charLSTM).
    """

    name: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9._-]*$")]
    kind: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]*$")]  # a system's, or that of [encoder] (see systems)
    dimension: PositiveCount = 300
    width: PositiveCount | None = None
    pooling: EncoderPooling = "sum"
    activation: Activation = "tanh"
    bias: bool = True
    initial: Positive | Literal["glorot", "rows"] = "glorot"
    license: str = "not stated"  # under which the model itself may be used
    # Word vectors that replace the first values of the words they know: a file, or an installed package with one.
    vectors: Path | None = None

    @property
    def table_width(self) -> int:
        """Return the number of columns of the table."""
        return self.width or self.dimension


class FeatureSettings(Strict):
    """Features of a text; the fields are those of gramvec.features.spec.FeatureSpec."""

    orders: tuple[PositiveCount, ...] = (2, 3, 4)
    words: bool = False
    unknown_words: UnknownWords = "skip"
    lowercase: bool = True
    normalization: tuple[str, ...] = (PLAIN, "nfc/1", "spaces/1")
    word_rule: WordRule = "runs-and-symbols/1"


class VocabularyLimits(Strict):
    """Limits of the vocabulary: features that occur `min_count` times (the paper's C), the most frequent first."""

    min_count: PositiveCount = 1
    max_ngrams: PositiveCount | None = None
    max_ngrams_each: PositiveCount | None = None  # of each order: the k of CHARAGRAM's Table 5
    max_words: PositiveCount | None = None
    words_of_vectors: bool = False  # the words of model.vectors have a row, seen or not, and no others


class EncoderSettings(Strict):
    """Base of the settings of an encoder, the section [encoder]; `kind` is its name in the config."""

    kind: str
    reads_in_order: ClassVar[bool] = False  # the rows of a text must be only words, or only single characters
    keeps_width: ClassVar[bool] = False  # vectors are as wide as the rows of the table

    def check(self, model: ModelSettings, learning: Schedule | None, export: Export) -> None:
        """Raise ValueError where other sections of the config do not fit this encoder."""


ENCODERS: Registry[EncoderSettings] = Registry("encoder", "gramvec_training.encoders")


class BagSettings(EncoderSettings):
    """A bag of rows; the default where a config has no [encoder].

    With `presence` a feature that occurs twice counts once, as in the authors' code of CHARAGRAM; the paper's equation
    counts it twice, and so does the service, so such a model stays with its trainer.
    """

    kind: Literal["bag"] = "bag"
    keeps_width: ClassVar[bool] = True
    pooling: EncoderPooling = "sum"
    activation: Activation = "tanh"
    bias: bool = True
    presence: bool = False


class ObjectiveSettings(Strict):
    """Base of the settings of what is learned, the section [objective]; `kind` is its name in the config."""

    kind: str
    section: ClassVar[Literal["training", "distillation"]] = "training"  # it learns from pairs, or from a teacher

    def check(self, learning: Any) -> None:
        """Raise ValueError where the section that it learns by does not fit this objective."""


OBJECTIVES: Registry[ObjectiveSettings] = Registry("objective", "gramvec_training.objectives")


class Export(Strict):
    """Changes of the finished table (see gramvec_training.export.adapt) and its storage in the bundle."""

    precision: Precision = "float32"
    scales: dict[FeatureKind, Positive] = Field(default_factory=dict)  # of words, and of n-grams by order
    whitening: Annotated[float, Field(ge=0, le=1)] = 0.0  # 0 for none; only for a linear model
    # Rows for this many frequent chunks and edges of the training texts, which make it faster (gramvec.text.memo); only
    # for sums of n-grams of two characters or more, other models have none.
    memo_chunks: Number = 20_000
    memo_edges: Number = 10_000
