"""Request bodies: untrusted JSON text is bounded and parsed, then checked by strict schemas.

The schemas of other routes stand beside their handlers.
"""

from __future__ import annotations

import json
import re
from typing import Annotated, Any, ClassVar, Literal, cast

import orjson
from pydantic import BaseModel, BeforeValidator, ConfigDict, Discriminator, Field, Tag, model_validator

from gramvec.embed.vectors import Space, VectorPrecision
from gramvec.server.errors import HttpError

# The bytes that begin and separate values, and quotes.
_STRUCTURE = b'",[{'
_OTHERS = bytes(set(range(256)) - set(_STRUCTURE))
_CLOSING = {ord("["): b"]", ord("{"): b"}"}
# orjson reads no more containers in one another.
MAX_DEPTH = 1024
# Bytes that are scanned between two checks of the count.
_STEP = 64 * 1024
# A string as a whole, or a byte that begins, separates or ends values. Quantifiers are possessive, so that no byte is
# tried twice, and a string that does not end reaches to the end of the text.
_token = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?|[\[\]{},]', re.DOTALL)


def holds_more(raw: bytes, max_values: int) -> bool:
    """Return True if a JSON text holds more than about `max_values` values: members, elements and their containers.

    The answer is False for a text of at most `max_values` values, True for twice as many, and either for text that is
    not JSON.
    """
    # Strings are removed only if that matters.
    if not _may_hold_more(raw, max_values):
        return False
    if b"\\" in raw:
        raw = raw.replace(b"\\\\", b"").replace(b'\\"', b"")
    structure = raw.translate(None, _OTHERS)
    if structure.count(b'"') > 4 * max_values:  # a member has two strings at most
        return True
    outside = structure.split(b'"')[::2]
    # Values but the first stand behind a comma, or are the first in a container.
    return sum(map(len, outside)) > 2 * max_values


def _may_hold_more(raw: bytes, max_values: int) -> bool:
    separators = 0
    for start in range(0, len(raw), _STEP):
        separators += sum(raw.count(character, start, start + _STEP) for character in (b",", b"[", b"{"))
        if separators >= max_values:
            return True
    return False


def first_values(raw: bytes, max_values: int) -> bytes:
    """Return the beginning of a JSON text with about twice `max_values` values, closed so that it is JSON itself.

    A text of at most `max_values` values is returned unchanged. Text that is not JSON stays text that is not JSON, and
    what is deeper than orjson reads becomes such.
    """
    open_ones: list[bytes] = []
    # Each value but the first begins after a bracket or a comma; an empty list or object has a bracket of its own. So
    # `max_values` values have fewer than twice as many of both.
    begun = 0
    for number, token in enumerate(_token.finditer(raw)):
        start, end = token.span()
        character = raw[start]
        if character in _CLOSING:
            open_ones.append(_CLOSING[character])
        elif character in b"]}" and open_ones:
            open_ones.pop()
        begun += character in b"[{,"
        if len(open_ones) > MAX_DEPTH:
            return raw[:end]
        # No JSON has this many strings and closing brackets for its values.
        if begun >= 2 * max_values or number > 8 * max_values:
            return raw[: start if character == ord(",") else end] + b"".join(reversed(open_ones))
    return raw


def parse_slowly(raw: bytes) -> Any:
    """Return the value of a JSON text (RFC 8259: UTF-8, no NaN) that may hold lone surrogates.

    Raises:
        HttpError: 400 with the place where the text stops being JSON.
    """
    try:
        return orjson.loads(raw)
    except orjson.JSONDecodeError as error:
        # orjson refuses the escape of a lone surrogate as if it were bad JSON. It is good JSON of a bad text, and the
        # response has to name that text.
        if "surrogate" not in str(error):
            raise _not_json(str(error)) from None
    try:
        return json.loads(raw.decode("utf-8"), parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise _not_json(str(error)) from None


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _not_json(reason: str) -> HttpError:
    return HttpError(400, "validation", f"the body is not JSON in UTF-8: {reason}")


def _lower(value: Any) -> Any:
    return value.lower() if isinstance(value, str) else value


# The Hugging Face client sends capitals, as Text Embeddings Inference takes them; generated clients must not see both.
Direction = Annotated[
    Literal["left", "right"] | None,
    BeforeValidator(_lower),
    Field(description="The end at which a long text is cut."),
]
RequestedModel = Annotated[str | None, Field(description="Name of a served model; null for the default.")]


def _to_whole(value: Any) -> Any:
    return int(value) if isinstance(value, float) and value.is_integer() else value


# JSON has one kind of number: 3.0, as some languages write 3, is an integer to JSON Schema.
WHOLE = BeforeValidator(_to_whole)
NonNegative = Annotated[int, Field(ge=0), WHOLE]
PositiveWhole = Annotated[int, Field(ge=1), WHOLE]
Dimensions = Annotated[
    PositiveWhole | None,
    Field(description="Keep the first components, this many, then normalize again; at most the model's dimension."),
]


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


class LenientBody(Body):
    """Base of bodies in the shape of other services: null is absent, and fields that they do not have are ignored.

    `Request` names the ignored fields in a header.
    """

    model_config = ConfigDict(extra="ignore")

    @model_validator(mode="before")
    @classmethod
    def _with_one_unknown_field(cls, value: Any) -> Any:
        known = cls.model_fields.keys()
        if isinstance(value, dict) and (None in value.values() or not value.keys() <= known):
            return {name: value[name] for name in known if value.get(name) is not None}
        return value


# Validation ends at the first wrong text: each error takes a kilobyte and 6 us.
Texts = Annotated[list[str], Field(min_length=1, fail_fast=True)]


# A tag starts with "@", unlike a field, so that a message can leave it out of an error's location.
def _one_or_many(value: Any) -> str:
    return "@one" if isinstance(value, str) else "@many"


OneOrManyTexts = Annotated[
    Annotated[str, Tag("@one")] | Annotated[Texts, Tag("@many")],
    Discriminator(_one_or_many),
]


OneOrManyOrNoTexts = Annotated[
    Annotated[str, Tag("@one")] | Annotated[Annotated[list[str], Field(fail_fast=True)], Tag("@many")],
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


def _empty_as_null(value: Any) -> Any:
    return None if value == "" else value


NoPrompt = Annotated[
    None,
    BeforeValidator(_empty_as_null),
    Field(description="The models have no prompts; only null and an empty name are accepted."),
]


class EmbedRequest(OneOrManyBody, LenientBody):
    """Texts to embed, in the shape of Text Embeddings Inference."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"inputs": ["vehicles", "a fast car"], "dimensions": 3}]})

    inputs: OneOrManyTexts = Field(description="One text, or a list of texts. The empty string is a text.")
    normalize: bool | None = Field(True, description="Scale each vector to length 1.")
    truncate: Truncate = None
    truncation_direction: Direction = "right"
    dimensions: Dimensions = None
    precision: VectorPrecision | None = Field(
        "float32",
        description="Type of the components: int8 is 127 times the component, rounded, and uint8 128 more than that; "
        "ubinary packs the signs of eight components into a byte, and binary is 128 less than that.",
    )
    space: Space | None = Field(
        None,
        description="Only the semantic or only the lexical columns, where the service has both; null for all.",
    )
    prompt_name: NoPrompt = None
    model: RequestedModel = None


class TextObject(LenientBody):
    """Text as an object, in Jina's and Cohere's shape; its other fields are ignored."""

    text: str


def _shape_of_item(value: Any) -> str:
    return "@object" if isinstance(value, dict) else "@text"


TextsOrObjects = Annotated[
    list[
        Annotated[Annotated[str, Tag("@text")] | Annotated[TextObject, Tag("@object")], Discriminator(_shape_of_item)]
    ],
    Field(min_length=1, fail_fast=True),
]
OneOrManyItems = Annotated[
    Annotated[str, Tag("@one")] | Annotated[TextsOrObjects, Tag("@many")],
    Discriminator(_one_or_many),
]


def _upper(value: Any) -> Any:
    return value.upper() if isinstance(value, str) else value


def _only_one(value: Any) -> Any:
    return value[0] if isinstance(value, list) and len(value) == 1 else value


def _word_or_flag(value: Any) -> str:
    return "@word" if isinstance(value, str) else "@flag"


TruncateInWords = Annotated[
    Annotated[bool | None, Tag("@flag")]
    | Annotated[Literal["NONE", "START", "END"], BeforeValidator(_upper), Tag("@word")],
    Discriminator(_word_or_flag),
    Field(
        description="Cut a text at the length limit instead of refusing it; null for the service's setting. In NVIDIA's"
        " and Cohere's words NONE, or the end that is cut."
    ),
]


class EmbeddingsRequest(OneOrManyBody, LenientBody):
    """Texts to embed, in OpenAI's shape, with the fields that Jina's and Voyage's clients add to it."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"input": ["vehicles", "a fast car"], "dimensions": 3},
                {"input": "vehicles", "encoding_format": "base64", "dimensions": 3},
            ]
        }
    )

    holds: ClassVar[str] = "input"

    input: OneOrManyItems = Field(
        description="One text, or a list of texts. The empty string is a text. Where the service was given their "
        "encoding, token ids: a list of integers, or of such lists."
    )
    model: RequestedModel = None
    encoding_format: Literal["float", "base64"] | None = Field(
        "float", description="A list of numbers, or little-endian components in base64."
    )
    dimensions: Dimensions = None
    output_dimension: Dimensions = Field(None, description="Voyage's name of dimensions.")
    output_dtype: Literal["float", "int8", "uint8", "binary", "ubinary"] | None = Field(
        "float", description="Voyage's name of the components' type, see precision of /embed."
    )
    embedding_type: Annotated[
        Literal["float", "base64", "int8", "uint8", "binary", "ubinary"] | None,
        BeforeValidator(_only_one),
        Field(description="Jina's name of the components' type, or base64 for its form; also in a list of one."),
    ] = None
    normalized: bool | None = Field(True, description="Scale each vector to length 1, in Jina's words.")
    truncation: Truncate = Field(None, description="Voyage's name of truncate.")
    truncate: TruncateInWords = None
    user: str | None = Field(None, description="Accepted and ignored.")

    def texts(self) -> list[str]:
        """Return all texts in the order in which `path` counts them."""
        given = [self.input] if isinstance(self.input, str) else self.input
        return [item if isinstance(item, str) else item.text for item in given]

    def path(self, index: int) -> str:
        """Return the place of a text in the body."""
        if isinstance(self.input, str):
            return "input"
        return f"input[{index}]" + ("" if isinstance(self.input[index], str) else ".text")

    @property
    def width(self) -> int | None:
        """The number of components asked for; None for the default."""
        return self.dimensions if self.dimensions is not None else self.output_dimension

    @property
    def precision(self) -> VectorPrecision:
        """Type of the components."""
        given = self.embedding_type if self.embedding_type not in (None, "base64") else self.output_dtype
        return "float32" if given in (None, "float") else cast(VectorPrecision, given)

    @property
    def in_base64(self) -> bool:
        """True for components in base64."""
        return "base64" in (self.encoding_format, self.embedding_type)

    @property
    def cut(self) -> bool | None:
        """True to cut a long text, False to refuse it, None for the service's setting."""
        given = self.truncate if self.truncate is not None else self.truncation
        return given != "NONE" if isinstance(given, str) else given

    @property
    def direction(self) -> Literal["left", "right"]:
        """The end at which a long text is cut."""
        return "left" if self.truncate == "START" else "right"


class SourceAndSentences(LenientBody):
    """Source text and the sentences that it is compared with."""

    source_sentence: str
    sentences: Texts

    def texts(self) -> list[str]:
        """Return all texts in the order in which `path` counts them."""
        return [self.source_sentence, *self.sentences]

    def path(self, index: int) -> str:
        """Return the place of a text in the body."""
        return f"inputs.sentences[{index - 1}]" if index else "inputs.source_sentence"


class Pairs(LenientBody):
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


class LeftAndRight(LenientBody):
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


class SimilarityParameters(LenientBody):
    """Parameters of a similarity, as Text Embeddings Inference calls them."""

    truncate: Truncate = None
    truncation_direction: Direction = "right"
    prompt_name: NoPrompt = None


class SimilarityRequest(LenientBody):
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
    model: RequestedModel = None


def _embeds_or_compares(value: Any) -> str:
    compares = isinstance(value, dict) and isinstance(value.get("inputs"), dict)
    return "@similarity" if compares else "@embed"


EmbedOrSimilarity = Annotated[
    Annotated[EmbedRequest, Tag("@embed")] | Annotated[SimilarityRequest, Tag("@similarity")],
    Discriminator(_embeds_or_compares),
]
