"""Frozen specification of the features of a text; with the vocabulary, it defines a featurizer."""

from __future__ import annotations

import hashlib
import json
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal, get_args

from gramvec.errors import InputError, quote
from gramvec.text.characters import compose
from gramvec.text.folding import read_plain

SPEC_VERSION = 1
MAX_ORDER = 6
MAX_RULES = 8
LONGEST_VERSION = 16

UnknownWords = Literal["skip", "row", "ngrams"]
WordRule = Literal["runs-and-symbols/1", "white-space/1"]


@dataclass(frozen=True)
class FeatureSpec:
    """Rules that turn a text into features. A bundle's manifest stores the digest of their canonical JSON.

    orders: the n of the character n-grams, ascending, each 1 to 6; () for none.
    words: whether whole words are features too.
    unknown_words: a word outside the vocabulary is dropped ("skip"), has the last row ("row"), or is spelt ("ngrams"):
        then it has the n-grams of itself between two spaces, a word that is listed has its own row and no n-grams, and
        no n-gram crosses from one word into the next.
    lowercase: whether each code point is replaced by its lower-case one (U+0130 by "i"), so that a
        text keeps its length. The papers lower-case outside their models.
    normalization, padding, boundary, word_rule: named and versioned rules, described in
        docs/design/features.md; this version of gramvec knows two of normalization and of word_rule, and exactly one
        of each other.
    unicode: the version of the Unicode data by which the vocabulary was made and is frozen.

    Raises InputError for a value that this version does not know.
    """

    orders: tuple[int, ...] = (2, 3, 4)
    words: bool = False
    unknown_words: UnknownWords = "skip"
    lowercase: bool = True
    normalization: tuple[str, ...] = ("nfc/1", "spaces/1")
    padding: str = " "
    boundary: str = "cross-words/1"
    word_rule: WordRule = "runs-and-symbols/1"
    unicode: str = unicodedata.unidata_version
    version: int = SPEC_VERSION

    def __post_init__(self) -> None:
        object.__setattr__(self, "orders", tuple(self.orders))
        object.__setattr__(self, "normalization", tuple(self.normalization))
        if self.version != SPEC_VERSION:
            raise InputError(
                f"FeatureSpec version {quote(self.version)} is not known; this gramvec reads version {SPEC_VERSION}"
            )
        if any(isinstance(n, bool) or not isinstance(n, int) or not 1 <= n <= MAX_ORDER for n in self.orders):
            raise InputError(f"orders: must be integers from 1 to {MAX_ORDER}, got {_show(self.orders)}")
        if list(self.orders) != sorted(set(self.orders)):
            raise InputError(f"orders: must ascend without repeats, got {_show(self.orders)}")
        if not self.orders and not self.words:
            raise InputError("a FeatureSpec needs n-gram orders, words, or both")
        if self.unknown_words not in get_args(UnknownWords):
            raise InputError(f"unknown_words: must be 'skip', 'row' or 'ngrams', got {_show(self.unknown_words)}")
        if self.unknown_words == "row" and not self.words:
            raise InputError("unknown_words='row' needs words=True")
        if self.unknown_words == "ngrams" and not (self.words and self.orders):
            raise InputError("unknown_words='ngrams' needs words=True and orders of n-grams")
        for name, rules in _KNOWN_RULES.items():
            if getattr(self, name) not in rules:
                known = " or ".join(map(_show, rules))
                raise InputError(f"{name} {_show(getattr(self, name))} is not known; this gramvec reads {known}")

    @property
    def spells(self) -> bool:
        """Return True if only words that are not listed have n-grams."""
        return self.unknown_words == "ngrams"

    @property
    def has_symbols(self) -> bool:
        """Return True if a character other than a letter or its like is a word by itself; Vocabulary.build takes it."""
        return self.word_rule == "runs-and-symbols/1"

    @property
    def read(self) -> Callable[[str], str]:
        """Return what puts a text into the form whose characters are looked up: NFC, of plain forms under plain/1."""
        return read_plain if PLAIN in self.normalization else compose

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as JSON types."""
        return {key: list(v) if isinstance(v, tuple) else v for key, v in asdict(self).items()}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> FeatureSpec:
        """Build a spec from the result of `to_dict`.

        Raises:
            InputError: a field is missing, unknown or of a wrong value.
        """
        names = {field.name for field in fields(cls)}
        if set(values) != names:
            odd = sorted(names.symmetric_difference(values))
            raise InputError(f"FeatureSpec has missing or unknown fields: {', '.join(map(quote, odd[: len(names)]))}")
        for name, kind in _JSON_TYPES.items():
            value_type = type(values[name])
            if value_type is not kind and not (kind is list and value_type is tuple):
                raise InputError(f"{name}: must be of type {kind.__name__}, got {value_type.__name__}")
        if len(values["orders"]) > MAX_ORDER or len(values["normalization"]) > MAX_RULES:
            raise InputError(f"there are at most {MAX_ORDER} orders, and {MAX_RULES} rules of normalization")
        if len(values["unicode"]) > LONGEST_VERSION:
            raise InputError(f"unicode {quote(values['unicode'])} is no version")
        return cls(**values)

    @property
    def digest(self) -> str:
        """SHA-256 (64 hex digits) of the canonical JSON: sorted keys, no spaces, UTF-8."""
        text = json.dumps(self.to_dict(), sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        return hashlib.sha256(text.encode()).hexdigest()


def _show(value: object) -> str:
    if isinstance(value, tuple):
        return f"[{', '.join(map(quote, value))}]"
    return f"'{quote(value)}'" if isinstance(value, str) else quote(value)


_JSON_TYPES: dict[str, type] = {
    "orders": list,
    "words": bool,
    "unknown_words": str,
    "lowercase": bool,
    "normalization": list,
    "padding": str,
    "boundary": str,
    "word_rule": str,
    "unicode": str,
    "version": int,
}

PLAIN = "plain/1"
_KNOWN_RULES: dict[str, tuple[object, ...]] = {
    "normalization": (("nfc/1", "spaces/1"), (PLAIN, "nfc/1", "spaces/1")),
    "padding": (" ",),
    "boundary": ("cross-words/1",),
    "word_rule": get_args(WordRule),
}
