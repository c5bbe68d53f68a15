"""Sketches of a text's n-grams: columns in which two texts are as alike as the n-grams that they share.

Each n-gram adds its weight to one column of each of eight blocks, with a sign; column and sign are bits of its hash, so
that no n-gram is unknown and no row is stored (Charikar, Chen and Farach-Colton 2002; with several blocks, Kane and
Nelson 2014). The sum is divided by the root of the number of n-grams. So a sketch is long where a text's n-grams are
rare, codes and names, and short in running text, and stands beside the semantic vector, of length 1, in that measure.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import Any, NamedTuple, TypedDict

import numpy as np
from numpy.typing import NDArray

from gramvec import native
from gramvec.errors import InputError
from gramvec.features.numpy_reference import characters
from gramvec.features.spans import places
from gramvec.lexical.hashing import hash_features
from gramvec.lexical.sparse import SIF_A
from gramvec.lexical.weights import BLANK, FULL_WEIGHT, NgramWeights
from gramvec.text.arrays import Floats, Int64s
from gramvec.text.characters import CODE_POINTS, PAGE, PAGE_SHIFT, SPACE, CharacterTable, compose
from gramvec.text.inputs import code_points

# Chosen on the development sets (training/gramvec_research/log.md).
COLUMNS, ORDERS = 256, (3,)
MAX_COLUMNS, LONGEST_ORDER = 1_024, 6
# As in lexical.h.
SIGNS, PARTS = 8, 8
TEXTS_A_BLOCK = 256


class Ngrams(NamedTuple):
    """The n-grams of one text.

    text: the normalized text with its padding; first, last: int64[n], offsets into it; start, end: int64[n], code-point
    offsets into the text as it was given. hashes: uint64[n]. vectors: float64[n, columns], what each adds to the sketch
    beside a vector of length 1.
    """

    text: str
    first: Int64s
    last: Int64s
    start: Int64s
    end: Int64s
    hashes: NDArray[np.uint64]
    vectors: NDArray[np.float64]


class Shape(TypedDict):
    """Parameters of a LexicalSketch, described there."""

    orders: tuple[int, ...]
    columns: int
    scale: float
    read: Callable[[str], str]


class LexicalSketch:
    """Sketches of texts. Calls are pure and may run in several threads.

    weights: what n-grams weigh. orders: of the n-grams, ascending, 1 to 6. columns: 8 to 1,024, a power of 2.
    scale: how long a sketch is, beside a vector of length 1, whose n-grams differ and all weigh 1.
    read: what puts a text into form C, see FeatureSpec.
    Raises InputError for invalid orders, columns or scale.
    """

    def __init__(
        self,
        weights: NgramWeights,
        orders: Sequence[int],
        columns: int,
        scale: float,
        read: Callable[[str], str] = compose,
    ) -> None:
        orders = list(orders)
        if not orders or orders != sorted({*orders}) or not 1 <= orders[0] <= orders[-1] <= LONGEST_ORDER:
            raise InputError(f"orders: must ascend from 1 to {LONGEST_ORDER}, got {orders}", field="orders")
        if columns.bit_count() != 1 or not SIGNS <= columns <= MAX_COLUMNS:
            raise InputError(f"columns: must be a power of 2 from 8 to {MAX_COLUMNS}, got {columns}", field="columns")
        if not 0 < scale < float("inf"):
            raise InputError(f"scale: must be above 0, got {scale:g}", field="scale")
        self.weights, self.orders, self.columns, self.scale = weights, tuple(orders), columns, float(scale)
        self.read = read

    @classmethod
    def of_texts(
        cls,
        texts: Iterable[str],
        *,
        orders: Sequence[int] = ORDERS,
        columns: int = COLUMNS,
        scale: float = 1.0,
        read: Callable[[str], str] = compose,
        a: float = SIF_A,
    ) -> LexicalSketch:
        """Weighed by these texts; see NgramWeights.of_texts."""
        return cls(NgramWeights.of_texts(texts, orders, a=a)[0], orders, columns, scale, read)

    def __reduce__(self) -> tuple[object, ...]:
        return LexicalSketch, (self.weights, self.orders, self.columns, self.scale, self.read)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of all that makes a sketch, 64 hex digits."""
        state = hashlib.sha256(f"{self.orders} {self.columns} {self.scale} {self.read.__name__}".encode())
        state.update(self.weights.weights.tobytes())
        state.update(self.weights.letters.tobytes())
        return state.hexdigest()

    @property
    def shape(self) -> Shape:
        """All but the weights."""
        return {"orders": self.orders, "columns": self.columns, "scale": self.scale, "read": self.read}

    def join(self, texts: Sequence[str], vectors: Floats) -> tuple[Floats, Int64s]:
        """Return each text's vector and then its sketch, float32[n, d + columns], and its n-grams, int64[n].

        The sketch is scaled by the length of the vector, or by 1 beside a vector of zeros. A text of only white space
        has no n-grams, and zeros.
        Raises InputError with the text's index for a lone surrogate or anything but str.
        """
        if self._loops is None:
            return self._join_in_numpy(texts, vectors)
        joined = np.empty((len(texts), vectors.shape[1] + self.columns), np.float32)
        counts = np.empty(len(texts), np.int64)
        try:
            self._loops.join(texts, np.ascontiguousarray(vectors), joined, counts)
        except OverflowError as error:
            raise InputError(str(error)) from None
        except (TypeError, ValueError):
            code_points(texts)  # raises an error that names the text
            raise
        return joined, counts

    def ngrams(self, text: str) -> Ngrams:
        """Return the n-grams whose vectors add up to a text's sketch. Raises InputError for a lone surrogate."""
        coded = code_points([text], self.read)
        chars = characters(coded, self.spaces)
        features = hash_features(coded, chars, self.letter, self.orders)
        vectors = np.zeros((len(features.hash), self.columns))
        columns, values = self._sign_columns(features.hash)
        factor = self.scale / (FULL_WEIGHT * np.sqrt(float(SIGNS)) * np.sqrt(float(max(len(features.hash), 1))))
        np.put_along_axis(vectors, columns, values * factor, axis=1)
        letters = np.where(chars.source < 0, BLANK, self.letter(coded.points[np.maximum(chars.source, 0)]))
        # In the order of `hash_features`: all n-grams of an order, then those of the next.
        lengths = np.repeat(self.orders, [max(0, len(letters) - order + 1) for order in self.orders])
        starts, ends = places(text, chars, len(coded.points), self.read)
        first, last = features.place + 1 - lengths, features.place + 1
        spelt = "".join(map(chr, letters.tolist()))
        return Ngrams(spelt, first, last, starts[first], ends[last - 1], features.hash, vectors)

    def _join_in_numpy(self, texts: Sequence[str], vectors: Floats) -> tuple[Floats, Int64s]:
        """Return the bytes of `join`, computed in numpy."""
        joined = np.zeros((len(texts), vectors.shape[1] + self.columns), np.float32)
        counts = np.zeros(len(texts), np.int64)
        code_points(texts)  # raises an error that names the text
        for start in range(0, len(texts), TEXTS_A_BLOCK):
            block = slice(start, start + TEXTS_A_BLOCK)
            own = code_points(texts[block], self.read)
            features = hash_features(own, characters(own, self.spaces), self.letter, self.orders)
            n = len(own.starts) - 1
            columns, values = self._sign_columns(features.hash)
            at = (features.text[:, None] * self.columns + columns).ravel()
            sums = np.bincount(at, values.ravel(), minlength=n * self.columns).reshape(n, self.columns)
            counts[block] = np.bincount(features.text, minlength=n)
            lengths = _lengths(vectors[block])
            factors = np.where(lengths > 0, lengths, 1) * self.scale
            counted = counts[block] > 0
            factors[counted] /= FULL_WEIGHT * np.sqrt(float(SIGNS)) * np.sqrt(counts[block][counted].astype(np.float64))
            joined[block, : vectors.shape[1]] = vectors[block]
            joined[block, vectors.shape[1] :] = sums * factors[:, None]
        return joined, counts

    def _sign_columns(self, hashes: NDArray[np.uint64]) -> tuple[Int64s, NDArray[np.float64]]:
        """Return the columns int64[m, 8] to which each n-gram adds, and what it adds, float64[m, 8]."""
        block = self.columns // SIGNS
        bits = block.bit_length() - 1
        rest = hashes[:, None] >> (np.arange(SIGNS, dtype=np.uint64) * np.uint64(bits + 1))
        columns = (rest & np.uint64(block - 1)).astype(np.int64) + np.arange(SIGNS) * block
        signs = (rest >> np.uint64(bits) & np.uint64(1)).astype(np.float64) * 2 - 1
        return columns, signs * self.weights.look_up(hashes)[:, None]

    def letter(self, points: NDArray[np.uint32]) -> NDArray[np.uint32]:
        """Return the lower-case character that each code point is read as, uint32 in their shape."""
        pages, shifts = self._letters
        at = pages[points >> PAGE_SHIFT].astype(np.intp) << PAGE_SHIFT | points & (PAGE - 1)
        return np.asarray(points + shifts[at], np.uint32)

    @cached_property
    def _letters(self) -> tuple[NDArray[np.uint16], NDArray[np.uint32]]:
        """Pages uint16[0x1100] and their shifts uint32: what is added to a code point. See CharacterTable."""
        known = self.weights.letters
        shifts = np.zeros(CODE_POINTS, np.uint32)
        shifts[known[:, 0]] = known[:, 1] - known[:, 0]
        numbers: dict[bytes, int] = {}
        page_numbers = [numbers.setdefault(page.tobytes(), len(numbers)) for page in shifts.reshape(-1, PAGE)]
        return np.array(page_numbers, np.uint16), np.frombuffer(b"".join(numbers), np.uint32)

    @cached_property
    def _loops(self) -> Any:
        # Made when first used: the tables of characters take 20 ms, and most callers want semantic columns only.
        loops: Any = native.loops
        if loops is None:
            return None
        return loops.LexicalSketch(
            self.read, *self._letters, self.weights.weights, self.orders, self.columns, self.scale
        )

    @cached_property
    def spaces(self) -> CharacterTable:
        """Which code points are spaces; the rest is nothing."""
        points = np.arange(CODE_POINTS, dtype=np.uint32)
        classes = np.where(self.letter(points) == BLANK, SPACE, 0).astype(np.uint8)
        firsts = np.flatnonzero(np.diff(classes, prepend=np.uint8(255))).astype(np.uint32)
        return CharacterTable(np.zeros(0, np.uint32), np.zeros((0, 2), np.uint32), firsts, classes[firsts])


def _lengths(vectors: Floats) -> NDArray[np.float64]:
    """Return the lengths of vectors, float64[n]: squares in doubles, added in eight parts, as lexical.h does."""
    n, d = vectors.shape
    padded = np.zeros((n, -(-d // PARTS) * PARTS))
    padded[:, :d] = vectors
    squares = (padded * padded).reshape(n, -1, PARTS)
    parts = np.zeros((n, PARTS))
    for row in range(squares.shape[1]):
        parts += squares[:, row]
    total = np.zeros(n)
    for part in range(PARTS):
        total += parts[:, part]
    return np.asarray(np.sqrt(total))
