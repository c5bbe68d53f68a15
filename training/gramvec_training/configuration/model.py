"""What is built: the model, its features, which of them get a row, and how the bundle stores it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from gramvec_training.configuration.strict import Count, Number, Positive, Strict

Kind = Literal["charagram-phrase", "charagram-2-layer", "paragram-phrase", "sif", "gramvec"]
Pooling = Literal["sum", "mean"]
Activation = Literal["linear", "tanh"]
Precision = Literal["float32", "float16", "int8"]
FeatureKind = Literal["word", "1", "2", "3", "4", "5", "6"]


class Model(Strict):
    """What is built. `initial` is the half-width of the uniform first values, or "glorot" for sqrt(6 / (rows + d))."""

    name: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9._-]*$")]
    kind: Kind
    dimension: Count = 300
    pooling: Pooling = "sum"
    activation: Activation = "tanh"
    bias: bool = True
    initial: Positive | Literal["glorot"] = "glorot"
    licence: str = "not stated"  # under which the model itself may be used
    vectors: Path | None = None  # word vectors that replace the first values of the words they know


class Features(Strict):
    """What a text is made of; see gramvec.features.FeatureSpec."""

    orders: tuple[Count, ...] = (2, 3, 4)
    words: bool = False
    unknown_words: Literal["skip", "row"] = "skip"
    lowercase: bool = True


class VocabularyLimits(Strict):
    """Which features get a row: seen `min_count` times (the paper's C), and so many, the most frequent first."""

    min_count: Count = 1
    max_ngrams: Count | None = None
    max_ngrams_each: Count | None = None  # of each order: the k of CHARAGRAM's Table 5
    max_words: Count | None = None
    words_of_vectors: bool = False  # the words of model.vectors have a row, seen or not, and no others


class BagSettings(Strict):
    """A bag of rows, which is what [model] says where there is no [encoder]."""

    kind: Literal["bag"] = "bag"
    pooling: Pooling = "sum"
    activation: Activation = "tanh"
    bias: bool = True


class TwoLayerSettings(Strict):
    """CHARAGRAM with a second layer: a sum of rows, tanh, a matrix, tanh."""

    kind: Literal["two-layer"]


EncoderSettings = Annotated[BagSettings | TwoLayerSettings, Field(discriminator="kind")]


class Export(Strict):
    """What is done to the finished table, see gramvec_training.export.shape, and how the bundle stores it."""

    precision: Precision = "float32"
    scales: dict[FeatureKind, Positive] = Field(default_factory=dict)  # of words, and of n-grams by order
    whitening: Annotated[float, Field(ge=0, le=1)] = 0.0  # 0 for none; for a linear model alone
    # Rows for so many frequent chunks and edges of the training texts, which make it faster (gramvec.vocab.memo); only
    # for sums of n-grams of two characters or more, other models have none.
    memo_chunks: Number = 20_000
    memo_edges: Number = 10_000
