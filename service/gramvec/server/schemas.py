"""Schemas of request bodies: strict types, no unknown fields, null for every optional field.

The schemas of other routes stand beside their handlers.
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Discriminator, Field, Tag, model_validator

from gramvec.embed.vectors import Space, VectorPrecision

# Text Embeddings Inference takes both spellings, and the Hugging Face client sends the capitals.
Direction = Literal["left", "right", "Left", "Right"]


def _whole(value: Any) -> Any:
    return int(value) if isinstance(value, float) and value.is_integer() else value


# JSON has one kind of number: 3.0, as some languages write 3, is an integer to JSON Schema.
WHOLE = BeforeValidator(_whole)
PositiveWhole = Annotated[int, Field(ge=1), WHOLE]


class Body(BaseModel):
    """Base of all request bodies."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _with_one_unknown_field(cls, value: Any) -> Any:
        # The message names the first; pydantic would make an error for each of thousands.
        known = cls.model_fields
        if not isinstance(value, dict) or len(value) <= len(known):
            return value
        unknown = next(name for name in value if name not in known)
        return {name: value[name] for name in [*known, unknown] if name in value}


# Validation ends at the first wrong text: each error takes a kilobyte and 6 us.
Texts = Annotated[list[str], Field(min_length=1, fail_fast=True)]


# A tag starts with "@" so that it can be told from a field where an error's location is put into words.
def _one_or_many(value: Any) -> str:
    return "@one" if isinstance(value, str) else "@many"


OneOrManyTexts = Annotated[
    Annotated[str, Tag("@one")] | Annotated[Texts, Tag("@many")],
    Discriminator(_one_or_many),
]


class OneOrManyBody(Body):
    """Body with one text or a list of texts in the field that `holds` names."""

    holds: ClassVar[str] = "inputs"

    def texts(self) -> list[str]:
        """Return all texts in the order in which `path` counts them."""
        given: str | list[str] = getattr(self, self.holds)
        return [given] if isinstance(given, str) else given

    def path(self, index: int) -> str:
        """Return the place of a text in the body."""
        return self.holds if isinstance(getattr(self, self.holds), str) else f"{self.holds}[{index}]"


Truncate = Annotated[
    bool | None,
    Field(description="Cut a text at the length limit instead of refusing it; null for the service's setting."),
]


class EmbedRequest(OneOrManyBody):
    """Texts to embed, in the shape of Text Embeddings Inference."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"inputs": ["vehicles", "a fast car"], "dimensions": 3}]})

    inputs: OneOrManyTexts = Field(description="One text, or a list of texts. The empty string is a text.")
    normalize: bool | None = Field(True, description="Scale each vector to length 1.")
    truncate: Truncate = None
    truncation_direction: Direction | None = Field("right", description="The end at which a long text is cut.")
    dimensions: PositiveWhole | None = Field(
        None,
        description="Keep the first components, this many, then normalize again; at most the model's dimension.",
    )
    precision: VectorPrecision | None = Field(
        "float32",
        description="Type of the components: int8 is 127 times the component, rounded, and uint8 128 more than that; "
        "ubinary packs the signs of eight components into a byte, and binary is 128 less than that.",
    )
    space: Space | None = Field(
        None,
        description="Only the semantic or only the lexical columns, where the service has both; null for all.",
    )
    prompt_name: None = Field(None, description="The models have no prompts; only null is accepted.")
    model: str | None = Field(None, description="Name of a served model; null for the default.")


class EmbeddingsRequest(OneOrManyBody):
    """Texts to embed, in OpenAI's shape."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"input": ["vehicles", "a fast car"], "dimensions": 3},
                {"input": "vehicles", "encoding_format": "base64", "dimensions": 3},
            ]
        }
    )

    holds: ClassVar[str] = "input"

    input: OneOrManyTexts = Field(
        description="One text, or a list of texts. The empty string is a text. Where the service was given their "
        "encoding, token ids: a list of integers, or of such lists."
    )
    model: str | None = Field(None, description="Name of a served model; null for the default.")
    encoding_format: Literal["float", "base64"] | None = Field(
        "float", description="A list of numbers, or little-endian float32 in base64."
    )
    dimensions: PositiveWhole | None = Field(
        None,
        description="Keep the first components, this many, then normalize again; at most the model's dimension.",
    )
    user: str | None = Field(None, description="Accepted and ignored.")


class SourceAndSentences(Body):
    """Source text and the sentences that it is compared with."""

    source_sentence: str
    sentences: Texts

    def texts(self) -> list[str]:
        """Return all texts in the order in which `path` counts them."""
        return [self.source_sentence, *self.sentences]

    def path(self, index: int) -> str:
        """Return the place of a text in the body."""
        return f"inputs.sentences[{index - 1}]" if index else "inputs.source_sentence"


class Pairs(Body):
    """Pairs of texts."""

    pairs: list[Annotated[list[str], Field(min_length=2, max_length=2, fail_fast=True)]] = Field(
        min_length=1, fail_fast=True
    )

    def texts(self) -> list[str]:
        """Return all texts in the order in which `path` counts them."""
        return [text for pair in self.pairs for text in pair]

    def path(self, index: int) -> str:
        """Return the place of a text in the body."""
        return f"inputs.pairs[{index // 2}][{index % 2}]"


class LeftAndRight(Body):
    """Every left text compared with every right one."""

    left: Texts
    right: Texts

    def texts(self) -> list[str]:
        """Return all texts in the order in which `path` counts them."""
        return [*self.left, *self.right]

    def path(self, index: int) -> str:
        """Return the place of a text in the body."""
        beyond = index - len(self.left)
        return f"inputs.left[{index}]" if beyond < 0 else f"inputs.right[{beyond}]"


def _shape_of_inputs(value: Any) -> str | None:
    keys = value if isinstance(value, dict) else ()
    if "pairs" in keys:
        return "@pairs"
    if "left" in keys or "right" in keys:
        return "@matrix"
    if "source_sentence" in keys or "sentences" in keys:
        return "@source"
    return None


SimilarityInputs = Annotated[
    Annotated[SourceAndSentences, Tag("@source")]
    | Annotated[Pairs, Tag("@pairs")]
    | Annotated[LeftAndRight, Tag("@matrix")],
    Discriminator(_shape_of_inputs),
]


class SimilarityParameters(Body):
    """Parameters of a similarity, as Text Embeddings Inference calls them."""

    truncate: Truncate = None
    truncation_direction: Direction | None = Field("right", description="The end at which a long text is cut.")
    prompt_name: None = Field(None, description="The models have no prompts; only null is accepted.")


class SimilarityRequest(Body):
    """Texts to compare, in one of three shapes."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"inputs": {"source_sentence": "vehicals", "sentences": ["vehicles", "cars", "bananas"]}},
                {"inputs": {"pairs": [["a fast car", "a quick automobile"], ["a fast car", "ripe bananas"]]}},
                {"inputs": {"left": ["vehicals"], "right": ["vehicles", "cars", "bananas"]}, "top_k": 2},
            ]
        }
    )

    inputs: SimilarityInputs
    parameters: SimilarityParameters | None = None
    top_k: PositiveWhole | None = Field(
        None, description="With left and right: only the best matches of each left text, this many, with their indices."
    )
    model: str | None = Field(None, description="Name of a served model; null for the default.")
