"""Tokens of static embedding models: texts to rows of a table through the `tokenizers` library.

The tokenizer's file is untrusted, so what could be slow or random in it is refused first: only
known components, patterns that are known to be linear, pieces of bounded length. A memo keeps the tokens of the chunks
between spaces, where the tokenizer splits there itself (WordPiece over BERT's splitting, Unigram over Metaspace); it is
bounded, and its tokens are the library's.
"""

from __future__ import annotations

import os
from base64 import b64decode
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from pathlib import Path
from typing import Any, Literal

import numpy as np
import orjson

from gramvec.errors import BundleError, InputError, import_extra, quote
from gramvec.features.featurizer import Featurizer
from gramvec.features.spans import FeaturePlaces
from gramvec.features.spec import FeatureSpec
from gramvec.text.arrays import FeatureBatch
from gramvec.text.inputs import code_points
from gramvec.text.vocabulary import Entry, Vocabulary

RULE = "tokenizers/1"
MAX_CONTAINERS = 2_000_000
MAX_LIMIT = 2**31 - 1
MAX_PARTS, DEEPEST_SEQUENCE = 64, 4
# The library's trees of pieces take 0.4 KB for a character of Unigram's, and 4 us to build for one of added tokens.
MAX_PIECE_CHARACTERS, MAX_ADDED_CHARACTERS = 2**23, 2**20
LONGEST_PIECE, LONGEST_WORDPIECE_WORD, LONGEST_PREFIX, LONGEST_REPLACEMENT = 256, 200, 4, 64
# Bytes that a model writes before or behind each piece of a word, as "##".
LONGEST_AFFIX = 64
# How many times as long a text may become, and with a map of characters, of which published ones write up to
# 18 for one.
MAX_LENGTHENING, MAX_LENGTHENING_BY_MAP = 16, 64
# Chunks whose tokens are kept, and the longest of them in characters: at most some 40 MB.
MAX_CHUNKS, LONGEST_CHUNK = 100_000, 40

NORMALIZERS = frozenset({
    "BertNormalizer", "Lowercase", "NFC", "NFD", "NFKC", "NFKD", "Nmt", "Precompiled", "Prepend", "Replace",
    "Strip", "StripAccents", "ByteLevel",
})  # fmt: skip
PRE_TOKENIZERS = frozenset({
    "BertPreTokenizer", "ByteLevel", "Digits", "Metaspace", "Punctuation", "Split", "UnicodeScripts",
    "Whitespace", "WhitespaceSplit",
})  # fmt: skip
MODELS = frozenset({"BPE", "Unigram", "WordLevel", "WordPiece"})
# Patterns of published tokenizers, which take time linear in a text: of spaces, and of GPT-2, GPT-4, Llama 3 and Qwen.
PATTERNS = frozenset({
    r"\s+", r" {2,}", r"\n", r"[\r\n]", r"\d", r"\p{N}", r"\p{N}{1,3}", r"\s",
    r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
})  # fmt: skip
# What passes through; a panic of the library is a BaseException, too.
_NOT_FAILURES = (KeyboardInterrupt, SystemExit, GeneratorExit, MemoryError)
# What sees nothing past a space: normalizers, pre-tokenizers that leave spaces out, and those that write them.
_LOCAL = frozenset({"BertNormalizer", "Lowercase", "NFC", "NFD", "StripAccents"})
_LEAVING = frozenset({"BertPreTokenizer", "Digits", "Punctuation", "Whitespace", "WhitespaceSplit"})
_WRITING = (["Metaspace"], ["WhitespaceSplit", "Metaspace"])


@dataclass(frozen=True)
class TokenSpec(FeatureSpec):
    """Rules that turn a text into tokens, in addition to the tokenizer's file.

    Attributes:
        max_characters: a longer text is cut before it is read; None for no limit.
        max_tokens: tokens of a text that are read; None for all.
        dropped: token that has no row in the sum, or None.
    """

    orders: tuple[int, ...] = ()
    words: bool = True
    max_characters: int | None = None
    max_tokens: int | None = None
    dropped: int | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the rule's name and its limits as JSON types."""
        return {"tokenizer": RULE, **{name: getattr(self, name) for name in _LIMITS}}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> TokenSpec:
        """Return the spec of what to_dict gave. Raises InputError for a missing, unknown or wrong field."""
        limits = dict(values)
        if limits.pop("tokenizer", None) != RULE or limits.keys() != {*_LIMITS}:
            raise InputError(f"features are not those that this gramvec reads, {RULE} with {', '.join(_LIMITS)}")
        for name, value in limits.items():
            if value is not None and (type(value) is not int or not 0 <= value <= MAX_LIMIT):
                raise InputError(f"{name}: must be a whole number from 0 or null, got {quote(value)}")
        return cls(**limits)


_LIMITS = ("max_characters", "max_tokens", "dropped")


class TokenVocabulary(Vocabulary):
    """Tokens of a tokenizer's file, each of which owns the row of its id.

    Args:
        path: the file's name, for messages.
        data: the file.
        rows: of the table; an id beyond it is refused.

    Raises:
        BundleError: the file is not a tokenizer that gramvec serves, or the library is not installed.
    """

    def __init__(self, path: Path, data: bytes, rows: int) -> None:
        os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")  # threads are the embedder's, and workers fork
        library = import_extra("tokenizers", "static", str(path))
        try:
            values, self.longest = _check_tokenizer(data)
            self.tokenizer: Any = library.Tokenizer.from_str(orjson.dumps(values).decode())
            self.tokens: dict[str, int] = self.tokenizer.get_vocab(with_added_tokens=True)
            model = values["model"]
            self.unknown: int | None = model.get("unk_id", self.tokens.get(model.get("unk_token")))
            self.split_at_spaces = _split_at_spaces(values, self.tokenizer)
            self.chunks = _ChunkMemo(self) if self.split_at_spaces else None
        except _NOT_FAILURES:
            raise
        except BaseException as error:
            raise BundleError(f"{path}: not a tokenizer that gramvec serves: {quote(error)}") from error
        if not 0 <= (last := max(self.tokens.values(), default=-1)) < rows:
            raise BundleError(f"{path}: it has token {last}, and the table {rows} rows")
        self.rows, self.unknown_row, self.longest_word, self.lowercase, self.symbols = rows, -1, 0, False, True
        self.ngram_keys, self.ngram_rows = np.zeros(0, np.uint64), np.zeros(0, np.int32)
        self.word_rows = np.arange(rows, dtype=np.int32)

    @cached_property
    def word_texts(self) -> tuple[str, ...]:
        """Tokens by row; "" for a row without one."""
        token_of_row = {row: token for token, row in self.tokens.items()}
        return tuple(token_of_row.get(row, "") for row in range(self.rows))

    @cached_property
    def _entries(self) -> list[Entry]:
        return [Entry("word", token, 0) for token in self.word_texts]

    def locate(self, text: str, spec: TokenSpec) -> FeaturePlaces:
        """Return the tokens of a text with their places in it."""
        encoding = self.tokenizer.encode(text[: spec.max_characters], add_special_tokens=False)
        places = zip(encoding.ids[: spec.max_tokens], encoding.offsets, strict=False)
        kept = np.array([(row, *place) for row, place in places if row != spec.dropped], np.int64)
        rows, first, last = kept.reshape(-1, 3).T
        return FeaturePlaces(rows.astype(np.int32), first, last, text, first, last, np.ones(len(rows), np.bool_))


class TokenFeaturizer(Featurizer):
    """Texts to the rows of their tokens. Calls may run in several threads."""

    spec: TokenSpec
    vocabulary: TokenVocabulary

    def __init__(self, spec: TokenSpec, vocabulary: TokenVocabulary) -> None:
        self.spec, self.vocabulary, self.memo = spec, vocabulary, None
        self.compiled, self.loops = False, None

    def __call__(self, texts: Sequence[str]) -> FeatureBatch:
        """Return the tokens of each text. Raises InputError with the index of a text that is not valid."""
        spec, chunks = self.spec, self.vocabulary.chunks
        try:
            cut = [text[: spec.max_characters] for text in texts]
            if chunks is None:
                encodings = self.vocabulary.tokenizer.encode_batch_fast(cut, add_special_tokens=False)
                parts = [np.array(encoding.ids, np.int32).tobytes() for encoding in encodings]
            else:
                parts = [*map(chunks.tokens, cut)]
        except _NOT_FAILURES:
            raise
        except BaseException as error:
            code_points(texts)  # raises with the index of the invalid text
            raise InputError(f"the tokenizer failed on a text ({quote(error)})") from error
        # Lists up to the last step: for one text each call of numpy costs as much as a word.
        if spec.max_tokens is not None:
            parts = [part[: 4 * spec.max_tokens] for part in parts]
        unknown = 0
        ids = np.frombuffer(b"".join(parts), np.int32)
        counts = [len(part) // 4 for part in parts]
        if spec.dropped is not None and (unknown := int(np.count_nonzero(dropped := ids == spec.dropped))):
            owners = np.repeat(np.arange(len(parts)), counts)
            counts, ids = np.bincount(owners[~dropped], minlength=len(parts)).tolist(), ids[~dropped]
        return FeatureBatch(ids, np.array([0, *accumulate(counts)], np.int64), unknown)


class _ChunkMemo(dict[str, Any]):
    """Tokens of chunks between spaces as int32, made when first asked for; emptied when full, which bounds its memory.

    A chunk that reads differently beside others has None, and its text is tokenized as a whole.
    """

    def __init__(self, vocabulary: TokenVocabulary) -> None:
        super().__init__()
        self._encode = vocabulary.tokenizer.encode
        self._each = vocabulary.split_at_spaces == "each"
        self._normalize: Callable[[str], str] = getattr(vocabulary.tokenizer.normalizer, "normalize_str", str)
        self._cut = vocabulary.tokenizer.pre_tokenizer.pre_tokenize_str
        self._x = self._pieces("x")
        added = vocabulary.tokenizer.get_added_tokens_decoder()
        # Its id does not tell an unknown piece from an unknown token that a text spells out.
        spelt = [token.content for row, token in added.items() if row == vocabulary.unknown]
        self._added, self._unknown = added.keys() - {vocabulary.unknown}, [*spelt, *map(self._normalize, spelt)]

    def tokens(self, text: str) -> bytes:
        """Return the tokens of a text as the bytes of int32."""
        try:
            return b"".join(map(self.__getitem__, text.split(" ")))
        except TypeError:  # of the None of a chunk
            return np.array(self._encode(text, add_special_tokens=False).ids, np.int32).tobytes()

    def __missing__(self, chunk: str) -> bytes | None:
        kept = len(chunk) <= LONGEST_CHUNK
        if not (kept or self._each):
            return None
        ids = self._encode(chunk, add_special_tokens=False).ids
        encoded = np.array(ids, np.int32).tobytes() if self._each or self._is_independent(chunk, ids) else None
        if kept:
            if len(self) >= MAX_CHUNKS:
                self.clear()
            self[chunk] = encoded
        return encoded

    def _is_independent(self, chunk: str, ids: list[int]) -> bool:
        """Return True if the chunk holds no added token, and is cut into the same pieces at every place in a text."""
        normalized = self._normalize(chunk)
        if not self._added.isdisjoint(ids) or any(
            piece in text for piece in self._unknown for text in (chunk, normalized)
        ):
            return False
        # Normalizers read ASCII a character at a time: one word stays one.
        if chunk.isascii() and normalized.split() == [normalized] and "\u2581" not in normalized:
            return True
        own, x = self._pieces(chunk), self._x
        return self._pieces(f"{chunk} x {chunk} x {chunk}") == [*own, *x, *own, *x, *own]

    def _pieces(self, text: str) -> list[str]:
        return [piece for piece, _ in self._cut(self._normalize(text))]


def _check_tokenizer(data: bytes) -> tuple[dict[str, Any], Any]:
    """Return what makes tokens in a tokenizer's file, and its `max_length`.

    Raises:
        ValueError: a part of it is not served; of a file that is not a tokenizer's, also another exception.
    """
    if data.count(b"[") + data.count(b"{") > MAX_CONTAINERS:
        raise ValueError(f"it has over {MAX_CONTAINERS} lists and objects")
    values = orjson.loads(data)
    if not isinstance(values, dict) or not isinstance(model := values.get("model"), dict):
        raise ValueError("it has no model")
    truncation = values.get("truncation") or {}
    if truncation.get("direction", "Right") != "Right":
        raise ValueError("it cuts texts at their beginning")
    _check_parts("normalizer", _parts(values.get("normalizer"), "normalizers"), NORMALIZERS)
    _check_parts("pre_tokenizer", _parts(values.get("pre_tokenizer"), "pretokenizers"), PRE_TOKENIZERS)
    _check_model(model)
    added = [token["content"] for token in values.get("added_tokens") or []]
    _check_pieces("added tokens", added, MAX_ADDED_CHARACTERS)
    if not all(added):
        raise ValueError("an added token is empty")
    rest = dict.fromkeys(("truncation", "padding", "post_processor", "decoder"))
    return values | rest, truncation.get("max_length")


def _parts(part: Any, inner: str, depth: int = DEEPEST_SEQUENCE) -> list[Any]:
    """Return the components of a normalizer or pre-tokenizer in their order, without the sequences that they are in."""
    if depth and isinstance(part, dict) and part.get("type") == "Sequence":
        return [leaf for component in part[inner] for leaf in _parts(component, inner, depth - 1)]
    return [] if part is None else [part]


def _check_parts(name: str, parts: list[Any], known: frozenset[str]) -> None:
    kinds = [part.get("type") if isinstance(part, dict) else None for part in parts]
    if odd := [kind for kind in kinds if kind not in known]:
        raise ValueError(f"{name} {quote(odd[0])} is not known")
    # Two of these make a text longer by a factor each.
    if len(kinds) > MAX_PARTS or kinds.count("ByteLevel") > 1 or kinds.count("Precompiled") > 1:
        raise ValueError(f"{name} has more than {MAX_PARTS} parts, or two of one kind that lengthens texts")
    for part in parts:
        pattern = part.get("pattern") or {}
        if "Regex" in pattern and pattern["Regex"] not in PATTERNS:
            raise ValueError(f"{name} has the pattern {quote(pattern['Regex'])}, which is not known to be linear")
        replaced, content = pattern.get("String", " "), part.get("content", "")
        if len(content) > len(replaced) and (content.strip(" ") != replaced or len(content) > len(replaced) + 2):
            raise ValueError(f"{name} puts {quote(content)} in place of {quote(replaced)}, which lengthens texts")
        if max(len(part.get(field) or "") for field in ("prepend", "replacement")) > LONGEST_PREFIX:
            raise ValueError(f"{name} puts more than {LONGEST_PREFIX} characters before a text")
    times, by_map = _bound_growth(parts), max([_longest_of_map(name, part) for part in parts], default=1)
    if times > MAX_LENGTHENING or times * by_map > MAX_LENGTHENING_BY_MAP:
        raise ValueError(f"{name} makes a text up to {times * by_map} times as long")


def _longest_of_map(name: str, part: dict[str, Any]) -> int:
    """Return the most characters that a map writes in place of one; 1 for another part."""
    if part["type"] != "Precompiled":
        return 1
    blob = b64decode(part.get("precompiled_charsmap") or "")
    replacements = blob[4 + int.from_bytes(blob[:4], "little") :].split(b"\0")
    if max(map(len, replacements)) > LONGEST_REPLACEMENT:
        raise ValueError(f"{name} writes more than {LONGEST_REPLACEMENT} bytes in place of a character")
    return max(1, *(len(replacement.decode(errors="replace")) for replacement in replacements))


def _bound_growth(parts: list[Any]) -> int:
    """Return an upper bound of how many times as long a text becomes by spaces that replacements put around a piece.

    Two spaces are added for each match, and a match holds one character at least that is no space. So what counts is
    how many replacements can match one character, or what other replacements write in its place.
    """
    matches: Counter[str] = Counter()
    written: list[str] = []
    for part in parts:
        replaced, content = (part.get("pattern") or {}).get("String", ""), part.get("content", "")
        if replaced and len(content) > len(replaced):
            matches.update({*replaced.lower()} - {" "})
        elif part.get("pattern"):
            written.append(content.lower())
    growth = max(matches.values(), default=0) + sum(
        max((matches[character] for character in text), default=0) for text in written
    )
    return 1 + 2 * growth


def _check_model(model: dict[str, Any]) -> None:
    if (kind := model.get("type")) and kind not in MODELS:  # earlier files have none, for the library to guess
        raise ValueError(f"model {quote(kind)} is not known")
    if model.get("dropout"):
        raise ValueError("its model leaves out merges at random")
    longest = model.get("max_input_chars_per_word", 100)
    if type(longest) is not int or longest > LONGEST_WORDPIECE_WORD:
        raise ValueError(f"max_input_chars_per_word is {quote(longest)}, and may be {LONGEST_WORDPIECE_WORD}")
    for name in ("continuing_subword_prefix", "end_of_word_suffix"):
        affix = model.get(name) or ""
        if not isinstance(affix, str) or len(affix.encode()) > LONGEST_AFFIX:
            raise ValueError(f"{name} is not a text of at most {LONGEST_AFFIX} bytes")
    vocabulary = model.get("vocab")
    pieces = [piece[0] for piece in vocabulary] if isinstance(vocabulary, list) else [*(vocabulary or {})]
    if not pieces:
        raise ValueError("its vocabulary is empty")
    _check_pieces("vocabulary", pieces, MAX_PIECE_CHARACTERS)


def _check_pieces(name: str, pieces: list[Any], max_characters: int) -> None:
    if not all(isinstance(piece, str) and len(piece) <= LONGEST_PIECE for piece in pieces):
        raise ValueError(f"its {name} are not pieces of at most {LONGEST_PIECE} characters")
    if sum(map(len, pieces)) > max_characters:
        raise ValueError(f"its {name} have over {max_characters} characters together")


def _split_at_spaces(values: Mapping[str, Any], tokenizer: Any) -> Literal["each", "some"] | None:
    """Return which chunks between spaces have the same tokens in every text: "each", "some" or, for no chunk, None."""
    kinds = [part["type"] for part in _parts(values.get("pre_tokenizer"), "pretokenizers")]
    if not kinds or not (kinds in _WRITING or _LEAVING.issuperset(kinds)):
        return None
    normalizers = _parts(values.get("normalizer"), "normalizers")
    added = tokenizer.get_added_tokens_decoder().values()
    cut, normalize = tokenizer.pre_tokenizer.pre_tokenize_str, getattr(tokenizer.normalizer, "normalize_str", str)
    once, twice, apart = ([piece for piece, _ in cut(normalize(text))] for text in ("x", "x x", "x  x"))
    # What spans a space and other characters: a token, or a pattern.
    patterns = [part.get("pattern") or {} for part in normalizers]
    spelt = [normalize(token.content) if token.normalized else token.content for token in added]
    spelt += [literal for pattern in patterns if (literal := pattern.get("String", "")).strip(" ")]
    if (
        twice != 2 * once
        or any(" " in piece for piece in spelt)
        or any("|" in pattern.get("Regex", "") for pattern in patterns)
    ):
        return None
    plain = _LOCAL.issuperset(part["type"] for part in normalizers) and not any(
        token.lstrip or token.rstrip or not token.content.isascii() for token in added
    )
    return "each" if plain and apart == twice else "some"
