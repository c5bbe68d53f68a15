"""Tokens of static embedding models: texts to rows of a table through the `tokenizers` library.

The tokenizer's file comes from whoever made the model, so what could be slow or random in it is refused first: only
known components, patterns that are known to be linear, pieces of bounded length. A memo keeps the tokens of the chunks
between spaces, where the tokenizer splits there itself; it is bounded, and its tokens are the library's.
"""

from __future__ import annotations

import os
from base64 import b64decode
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from gramvec.errors import BundleError, InputError, quoted
from gramvec.features.featurizer import Featurizer
from gramvec.features.spans import Located
from gramvec.features.spec import FeatureSpec
from gramvec.text.arrays import FeatureBatch
from gramvec.text.inputs import code_points
from gramvec.text.vocabulary import Entry, Vocabulary

RULE = "tokenizers/1"
MOST_BYTES = 64 * 2**20
MOST_CONTAINERS = 2_000_000
MOST_LIMIT = 2**31 - 1
MOST_PARTS, DEEPEST_SEQUENCE = 64, 4
LONGEST_PIECE, LONGEST_WORDPIECE_WORD, LONGEST_PREFIX, LONGEST_REPLACEMENT = 256, 200, 4, 64
# Chunks whose tokens are kept, and the longest of them in characters: at most some 40 MB.
MOST_CHUNKS, LONGEST_CHUNK = 100_000, 40

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
# Components after which the tokens of a text are those of its chunks between spaces, one after the other.
_SPLITTING = frozenset({"BertPreTokenizer", "Whitespace", "WhitespaceSplit"})
_LOCAL = frozenset({"BertNormalizer", "Lowercase", "NFC", "NFD", "StripAccents", "Punctuation", "Digits"})


@dataclass(frozen=True)
class TokenSpec(FeatureSpec):
    """Rules that turn a text into tokens, in addition to the tokenizer's file.

    Attributes:
        tokenizer: the rule, named and versioned; this version of gramvec knows `tokenizers/1`.
        max_characters: a longer text is cut before it is read; None for no limit.
        max_tokens: tokens of a text that are read; None for all.
        dropped: token that has no row in the sum, or None.
    """

    orders: tuple[int, ...] = ()
    words: bool = True
    tokenizer: str = RULE
    max_characters: int | None = None
    max_tokens: int | None = None
    dropped: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.tokenizer != RULE:
            raise InputError(f"tokenizer {quoted(self.tokenizer)} is not known; this gramvec reads {RULE}")
        for name in _LIMITS:
            value = getattr(self, name)
            if value is not None and (type(value) is not int or not 0 <= value <= MOST_LIMIT):
                raise InputError(f"{name} must be a whole number from 0 or null, not {quoted(value)}")

    def to_dict(self) -> dict[str, Any]:
        """Return the fields of tokens as JSON types."""
        return {"tokenizer": self.tokenizer, **{name: getattr(self, name) for name in _LIMITS}}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> TokenSpec:
        """Return the spec of what to_dict gave. Raises InputError for a missing, unknown or wrong field."""
        if values.keys() != {"tokenizer", *_LIMITS}:
            odd = sorted(values.keys() ^ {"tokenizer", *_LIMITS})
            raise InputError(f"features have missing or unknown fields: {', '.join(map(quoted, odd[:8]))}")
        return cls(**values)


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
        values, longest = _checked(path, data)
        library = _library(path)
        try:
            self.tokenizer: Any = library.Tokenizer.from_str(orjson.dumps(values).decode())
            tokens = self.tokenizer.get_vocab(with_added_tokens=True)
        except _NOT_FAILURES:
            raise
        except BaseException as error:
            raise BundleError(f"{path}: not a tokenizer of this library ({quoted(_said(error))})") from error
        if not tokens or max(tokens.values()) >= rows:
            raise BundleError(f"{path}: it has token {max(tokens.values(), default=-1)}, and the table {rows} rows")
        self._tokens: dict[str, int] = tokens
        self.splits_at_spaces = _splits_at_spaces(values)
        self.longest = longest
        self.rows, self.unknown_row, self.longest_word, self.lowercase, self.symbols = rows, -1, 0, False, True
        self.ngram_keys, self.ngram_rows = np.zeros(0, np.uint64), np.zeros(0, np.int32)
        self.word_rows = np.arange(rows, dtype=np.int32)

    @cached_property
    def word_texts(self) -> tuple[str, ...]:
        """Tokens by row; "" for a row without one."""
        found = [""] * self.rows
        for token, row in self._tokens.items():
            found[row] = token
        return tuple(found)

    @cached_property
    def _entries(self) -> list[Entry]:
        return [Entry("word", token, 0) for token in self.word_texts]

    def located(self, text: str, spec: TokenSpec) -> Located:
        """Return the tokens of a text with their places in it."""
        encoding = self.tokenizer.encode(text[: spec.max_characters], add_special_tokens=False)
        kept = [at for at, row in enumerate(encoding.ids[: spec.max_tokens]) if row != spec.dropped]
        rows = np.array([encoding.ids[at] for at in kept], np.int32)
        spans = np.array([encoding.offsets[at] for at in kept], np.int64).reshape(-1, 2)
        first, last = spans[:, 0], spans[:, 1]
        return Located(rows, first, last, text, first, last, np.ones(len(rows), np.bool_))


class TokenFeaturizer(Featurizer):
    """Texts to the rows of their tokens. Calls may run in several threads."""

    def __init__(self, spec: TokenSpec, vocabulary: TokenVocabulary) -> None:
        self.spec, self.vocabulary, self.memo = spec, vocabulary, None
        self.compiled, self.loops = False, None
        self._spec = spec
        self._tokens_of = self._all_tokens
        if vocabulary.splits_at_spaces:
            chunks = _ChunkMemo(self._one_text)
            if chunks[""] == b"":
                self._chunk: Callable[[str], bytes] = chunks.__getitem__
                self._tokens_of = self._tokens_by_chunk

    def __call__(self, texts: Sequence[str]) -> FeatureBatch:
        """Return the tokens of each text. Raises InputError with the index of a text that is not valid."""
        spec = self._spec
        try:
            parts = list(self._tokens_of([text[: spec.max_characters] for text in texts]))
        except _NOT_FAILURES:
            raise
        except BaseException as error:
            code_points(texts)  # says which text is not valid, and why
            raise InputError(f"the tokenizer failed on a text ({quoted(_said(error))})") from error
        # Lists up to the last step: for one text each call of numpy costs as much as a word.
        if spec.max_tokens is not None and max(map(len, parts), default=0) > 4 * spec.max_tokens:
            parts = [part[: 4 * spec.max_tokens] for part in parts]
        unknown = 0
        ids = np.frombuffer(b"".join(parts), np.int32)
        counts = [len(part) // 4 for part in parts]
        if spec.dropped is not None and (unknown := int(np.count_nonzero(dropped := ids == spec.dropped))):
            owners = np.repeat(np.arange(len(parts)), counts)
            counts, ids = np.bincount(owners[~dropped], minlength=len(parts)).tolist(), ids[~dropped]
        return FeatureBatch(ids, np.array([0, *accumulate(counts)], np.int64), unknown)

    def without_memo(self) -> Featurizer:
        """Return this featurizer: its memo changes no row."""
        return self

    def _one_text(self, text: str) -> bytes:
        tokenizer: Any = self.vocabulary.tokenizer  # type: ignore[attr-defined]
        return np.array(tokenizer.encode(text, add_special_tokens=False).ids, np.int32).tobytes()

    def _all_tokens(self, texts: list[str]) -> Iterator[bytes]:
        tokenizer: Any = self.vocabulary.tokenizer  # type: ignore[attr-defined]
        for encoding in tokenizer.encode_batch_fast(texts, add_special_tokens=False):
            yield np.array(encoding.ids, np.int32).tobytes()

    def _tokens_by_chunk(self, texts: list[str]) -> Iterator[bytes]:
        chunk = self._chunk
        return (b"".join(map(chunk, text.split(" "))) for text in texts)


class _ChunkMemo(dict[str, bytes]):
    """Tokens of chunks as int32, made when first asked for; emptied when full, which bounds its memory."""

    def __init__(self, tokens_of: Callable[[str], bytes]) -> None:
        super().__init__()
        self._tokens_of = tokens_of

    def __missing__(self, chunk: str) -> bytes:
        found = self._tokens_of(chunk)
        if len(chunk) <= LONGEST_CHUNK:
            if len(self) >= MOST_CHUNKS:
                self.clear()
            self[chunk] = found
        return found


def _library(path: Path) -> Any:
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")  # threads are the embedder's, and workers fork
    try:
        return import_module("tokenizers")
    except ImportError as error:
        raise BundleError(
            f"{path}: needs the tokenizers library; install it with: pip install 'gramvec[static]'"
        ) from error


def _said(error: BaseException) -> str:
    return " ".join(str(error).split())


def json_of(path: Path, data: bytes) -> Any:
    """Return the values of a file of JSON whose lists and objects are bounded. Raises BundleError."""
    if len(data) > MOST_BYTES or data.count(b"[") + data.count(b"{") > MOST_CONTAINERS:
        raise BundleError(f"{path}: larger than {MOST_BYTES} bytes, or {MOST_CONTAINERS} lists and objects")
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError as error:
        raise BundleError(f"{path}: not JSON ({error})") from error


def _checked(path: Path, data: bytes) -> tuple[dict[str, Any], Any]:
    """Return what makes tokens in a tokenizer's file, and its `max_length`. Raises BundleError."""
    values = json_of(path, data)
    try:
        if not isinstance(values, dict) or not isinstance(model := values.get("model"), dict):
            raise ValueError("it has no model")
        truncation = values.get("truncation") or {}
        if not isinstance(truncation, dict) or truncation.get("direction", "Right") != "Right":
            raise ValueError("it cuts texts at their beginning")
        _check_parts("normalizer", _parts(values, "normalizer"), NORMALIZERS)
        _check_parts("pre_tokenizer", _parts(values, "pre_tokenizer"), PRE_TOKENIZERS)
        _check_model(model)
        _check_added(values.get("added_tokens") or [])
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise BundleError(f"{path}: a tokenizer that is not served: {error}") from error
    rest = dict.fromkeys(("truncation", "padding", "post_processor", "decoder"))
    return values | rest, truncation.get("max_length")


def _parts(values: Mapping[str, Any], name: str) -> list[Any]:
    """Return the components of a normalizer or pre-tokenizer in their order, without the sequences that they are in."""
    found, inner = [values.get(name)], {"normalizer": "normalizers", "pre_tokenizer": "pretokenizers"}[name]
    for _ in range(DEEPEST_SEQUENCE):
        found = [
            one
            for part in found
            for one in (part[inner] if isinstance(part, dict) and part.get("type") == "Sequence" else [part])
        ]
    return [part for part in found if part is not None]


def _check_parts(name: str, parts: list[Any], known: frozenset[str]) -> None:
    kinds = [part.get("type") if isinstance(part, dict) else None for part in parts]
    if odd := [kind for kind in kinds if kind not in known]:
        raise ValueError(f"{name} {quoted(odd[0])} is not known")
    # Two of these make a text longer by a factor each.
    if len(kinds) > MOST_PARTS or kinds.count("ByteLevel") > 1 or kinds.count("Precompiled") > 1:
        raise ValueError(f"{name} has more than {MOST_PARTS} parts, or two of one kind that lengthens texts")
    for part in parts:
        pattern = part.get("pattern") or {}
        if "Regex" in pattern and pattern["Regex"] not in PATTERNS:
            raise ValueError(f"{name} has the pattern {quoted(pattern['Regex'])}, which is not known to be linear")
        replaced, content = pattern.get("String", " "), part.get("content", "")
        if len(content) > len(replaced) and (content.strip(" ") != replaced or len(content) > len(replaced) + 2):
            raise ValueError(f"{name} puts {quoted(content)} in place of {quoted(replaced)}, which lengthens texts")
        if max(len(part.get(field) or "") for field in ("prepend", "replacement")) > LONGEST_PREFIX:
            raise ValueError(f"{name} puts more than {LONGEST_PREFIX} characters before a text")
        if part["type"] == "Precompiled":
            blob = b64decode(part.get("precompiled_charsmap") or "")
            replacements = blob[4 + int.from_bytes(blob[:4], "little") :].split(b"\0")
            if max(map(len, replacements)) > LONGEST_REPLACEMENT:
                raise ValueError(f"{name} writes more than {LONGEST_REPLACEMENT} bytes in place of a character")


def _check_model(model: dict[str, Any]) -> None:
    kind = model.get("type") or ("BPE" if "merges" in model else "WordPiece")
    if kind not in MODELS:
        raise ValueError(f"model {quoted(kind)} is not known")
    if model.get("dropout"):
        raise ValueError("its model leaves out merges at random")
    longest = model.get("max_input_chars_per_word", 100)
    if type(longest) is not int or longest > LONGEST_WORDPIECE_WORD:
        raise ValueError(f"max_input_chars_per_word is {quoted(longest)}, and may be {LONGEST_WORDPIECE_WORD}")
    vocabulary = model.get("vocab")
    pieces: Any = vocabulary if isinstance(vocabulary, dict) else []
    if isinstance(vocabulary, list):
        pieces = [one[0] if isinstance(one, list) and one else "" for one in vocabulary]
    if not pieces or not all(isinstance(one, str) for one in pieces) or max(map(len, pieces)) > LONGEST_PIECE:
        raise ValueError(f"its vocabulary is not a list of pieces of at most {LONGEST_PIECE} characters")


def _check_added(added: Any) -> None:
    if not isinstance(added, list) or not all(
        isinstance(one, dict) and isinstance(one.get("content"), str) and 0 < len(one["content"]) <= LONGEST_PIECE
        for one in added
    ):
        raise ValueError("its added tokens are not a list of pieces")


def _splits_at_spaces(values: Mapping[str, Any]) -> bool:
    """Return whether a text's tokens are those of its chunks between spaces: no component sees past a space."""
    normalizers, splitters = (
        {part["type"] for part in _parts(values, name)} for name in ("normalizer", "pre_tokenizer")
    )
    if not normalizers <= _LOCAL or not splitters <= _LOCAL | _SPLITTING or not splitters & _SPLITTING:
        return False
    return all(
        one["content"].isascii() and " " not in one["content"] and not (one.get("lstrip") or one.get("rstrip"))
        for one in values.get("added_tokens") or []
    )
