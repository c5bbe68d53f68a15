"""What is built: the model, its features, which of them get a row, and how the bundle stores it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from gramvec_training.configuration.strict import Count, Number, Positive, Strict

Kind = Literal[
    "charagram-phrase",
    "charagram-2-layer",
    "paragram-phrase",
    "paragram-projection",
    "dan",
    "rnn",
    "irnn",
    "lstm",
    "charlstm",
    "charcnn",
    "sif",
    "gramvec",
]
Pooling = Literal["sum", "mean"]
Activation = Literal["linear", "tanh", "relu"]
LayerActivation = Literal["linear", "tanh", "relu", "sigmoid"]
FilterSet = Literal["a", "b"]
UnknownWords = Literal["skip", "row"]
WordRule = Literal["runs-and-symbols/1", "white-space/1"]  # the second for text that is cut into tokens already
Precision = Literal["float32", "float16", "int8"]
FeatureKind = Literal["word", "1", "2", "3", "4", "5", "6"]


class Model(Strict):
    """What is built. `dimension` is a vector's, `width` a table row's, the same where it is left out.

    `initial` is the half-width of the table's uniform first values, "glorot" for sqrt(6 / (rows + width)), or "rows"
    for 0.5 / rows (the character embeddings of charCNN and charLSTM).
    """

    name: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9._-]*$")]
    kind: Kind
    dimension: Count = 300
    width: Count | None = None
    pooling: Pooling = "sum"
    activation: Activation = "tanh"
    bias: bool = True
    initial: Positive | Literal["glorot", "rows"] = "glorot"
    licence: str = "not stated"  # under which the model itself may be used
    # Word vectors that replace the first values of the words they know: a file, or an installed package with one.
    vectors: Path | None = None

    @property
    def table_width(self) -> int:
        """Columns of the table."""
        return self.width or self.dimension


class Features(Strict):
    """What a text is made of; see gramvec.text.FeatureSpec."""

    orders: tuple[Count, ...] = (2, 3, 4)
    words: bool = False
    unknown_words: UnknownWords = "skip"
    lowercase: bool = True
    word_rule: WordRule = "runs-and-symbols/1"


class VocabularyLimits(Strict):
    """Which features get a row: seen `min_count` times (the paper's C), and so many, the most frequent first."""

    min_count: Count = 1
    max_ngrams: Count | None = None
    max_ngrams_each: Count | None = None  # of each order: the k of CHARAGRAM's Table 5
    max_words: Count | None = None
    words_of_vectors: bool = False  # the words of model.vectors have a row, seen or not, and no others


class BagSettings(Strict):
    """A bag of rows, which is what [model] says where there is no [encoder].

    With `presence` a feature that occurs twice counts once, as in the authors' code of CHARAGRAM; the paper's equation
    counts it twice, and so does the service, so such a model stays with its trainer.
    """

    kind: Literal["bag"] = "bag"
    pooling: Pooling = "sum"
    activation: Activation = "tanh"
    bias: bool = True
    presence: bool = False


class WeightedSettings(Strict):
    """The mean of the words' rows, which are fixed, each times a number that is learned."""

    kind: Literal["weighted"]


class TwoLayerSettings(Strict):
    """CHARAGRAM with a second layer: a sum of rows, h, a matrix, h."""

    kind: Literal["two-layer"]
    activation: Activation = "tanh"


class ProjectionSettings(Strict):
    """The mean of the words' rows and one layer: PARAGRAM-PHRASE's PP-proj."""

    kind: Literal["projection"]
    activation: LayerActivation = "linear"


class DanSettings(Strict):
    """Deep averaging network: the mean of the words' rows and some layers."""

    kind: Literal["dan"]
    layers: Annotated[int, Field(ge=1, le=4)] = 1
    activation: LayerActivation = "tanh"


class RnnSettings(Strict):
    """A plain recurrent network over words or characters, whose last state is the vector."""

    kind: Literal["rnn"]
    activation: Literal["tanh", "linear", "relu"] = "tanh"


class IrnnSettings(Strict):
    """iRNN: linear, begun at the identity, its last state divided by the length; so it begins as the average."""

    kind: Literal["irnn"]


class LstmSettings(Strict):
    """An LSTM with peepholes (Gers et al., 2003) over words or characters, with or without its output gate."""

    kind: Literal["lstm"]
    output_gate: bool = True


class CharCnnSettings(Strict):
    """Convolutions over characters, the maximum over places, and a layer.

    filters: "a" is 175 each of 2, 3 and 4 characters, "b" 25, 50, 75, 100, 125 and 150 of 1 to 6 (Kim et al., 2015);
    `scale` times as many of each. Without `layer` the filters' maxima are the vector. dropout: of what goes into it.
    """

    kind: Literal["char-cnn"]
    filters: FilterSet = "b"
    scale: Positive = 1.0
    filter_activation: Activation = "tanh"
    layer: bool = True
    activation: Activation = "tanh"
    dropout: Annotated[float, Field(ge=0, lt=1)] = 0.0

    @property
    def counts(self) -> tuple[tuple[int, int], ...]:
        """(characters, filters) of each width."""
        usual = {"a": ((2, 175), (3, 175), (4, 175)), "b": tuple((width, 25 * width) for width in range(1, 7))}
        return tuple((width, max(1, round(count * self.scale))) for width, count in usual[self.filters])


EncoderSettings = Annotated[
    BagSettings
    | WeightedSettings
    | TwoLayerSettings
    | ProjectionSettings
    | DanSettings
    | RnnSettings
    | IrnnSettings
    | LstmSettings
    | CharCnnSettings,
    Field(discriminator="kind"),
]
# What reads a text's rows in their order, so that they must be those of words alone or of single characters alone.
SEQUENCES = (RnnSettings, IrnnSettings, LstmSettings, CharCnnSettings)


class Export(Strict):
    """What is done to the finished table, see gramvec_training.export.shape, and how the bundle stores it."""

    precision: Precision = "float32"
    scales: dict[FeatureKind, Positive] = Field(default_factory=dict)  # of words, and of n-grams by order
    whitening: Annotated[float, Field(ge=0, le=1)] = 0.0  # 0 for none; for a linear model alone
    # Rows for so many frequent chunks and edges of the training texts, which make it faster (gramvec.text.memo); only
    # for sums of n-grams of two characters or more, other models have none.
    memo_chunks: Number = 20_000
    memo_edges: Number = 10_000
