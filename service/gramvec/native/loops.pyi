"""What module.c gives to Python. Arrays are C-contiguous, of the dtypes named, and held as long as the object lives.

Objects are immutable, calls pure: several threads may use one object. Long calls let go of the interpreter's lock.
"""

from collections.abc import Callable, Sequence
from typing import Any

Array = Any  # anything with the buffer protocol
WordArrays = tuple[Array, Array, Array]  # starts uint32[n + 1], chars uint16, rows int32[n]

BLOCK: int
"""Rows with weights are read this many bytes at a time, the last time beyond the row's end."""

class Featurizer:
    """Texts to rows. Made in linear time, without the interpreter's lock, whatever the keys and words are.

    Raises ValueError for arrays that do not fit together, on which a search could run wild; for an entry that is there
    twice; and for entries of which too many share a slot.
    """

    def __new__(
        cls,
        compose: Callable[[str], str],  # to normalization form C; called for texts that are not ASCII
        pages: Array,  # uint16[0x1100], see gramvec.text.characters
        entries: Array,  # uint32
        orders: tuple[int, ...],
        bits: int,
        ngram_keys: Array,  # uint64, not 0; used while the object is made
        ngram_rows: Array,  # int32
        has_words: bool,
        words: WordArrays,
        longest_word: int,
        unknown_row: int,  # -1: unknown words have none; -2: they have their n-grams, and nothing else has any
        chunks: WordArrays,
        longest_chunk: int,
        reach: int,
        edge_keys: Array,
        edge_rows: Array,
        /,
    ) -> Featurizer: ...
    def __call__(self, texts: Sequence[str], sums: bool, /) -> tuple[bytearray, bytearray, int]:
        """ids int32[rows], offsets int64[n + 1], and how much was unknown: see FeatureBatch.

        sums: rows that stand for sums, see gramvec.text.suffixes and gramvec.text.memo; else each feature's own.
        Raises TypeError for anything but str, ValueError for a lone surrogate and for sums without n-grams,
        OverflowError for a text of more than 2^28 characters: places in it are int32.
        """

class Table:
    """A table whose rows are summed.

    Either each row has a float32 scale (None: 1) and rows are added in order as float32; or int8 rows or rows of four
    bits (see gramvec.bundle.four_bits) have weights, are added as exact integers, and the sum is taken times `step`.
    Then `rows` must have a block after its last row.
    """

    def __new__(
        cls,
        rows: Array,  # bytes
        n_rows: int,
        dimension: int,
        stride: int,  # bytes from one row to the next
        item: int,  # 1: int8, 2: float16, 4: float32, 0: four bits, which have weights
        scales: Array | None,  # float32[n_rows]
        weights: Array | None,  # uint8[n_rows], 1 to 128, of four bits 0 to 127
        step: float,
        mean: bool,  # divide by the number of rows
        columns: Array | None,  # float32[d], then times this
        bias: Array | None,  # float32[d], then plus this
        width: int,  # the most bits of a vector that the loops may use: 512, 256, or 0; the results are equal
        /,
    ) -> Table: ...
    def __call__(self, ids: Array, offsets: Array, vectors: Array, /) -> int:
        """Fill float32[n, d] vectors; return the first position found of an id that is no row, or -1.

        ids int32, offsets int64[n + 1] ascending. Raises ValueError if they do not fit together.
        """

    def embed(
        self, featurizer: Featurizer, texts: Sequence[str], sums: bool, vectors: Array, /
    ) -> tuple[bytearray, int, float, int | None]:
        """Fill float32[n, d] vectors with the sums of the rows that the featurizer gives for each text.

        Returns how many rows each text has, int64[n]; how much was unknown; the share of the time that went into
        features; and None, or a row that is not in the table, at whose text the sums stop.
        Raises TypeError and ValueError as the featurizer does, and if texts and vectors do not fit together.
        """

class LexicalSketch:
    """Sketches of texts, see gramvec.lexical. Made and called in bounded time, whatever the arrays are.

    Raises ValueError for arrays that do not fit together.
    """

    def __new__(
        cls,
        compose: Callable[[str], str],
        pages: Array,  # uint16[0x1100]
        shifts: Array,  # uint32: what is added to a code point
        weights: Array,  # uint8[2^18]: by a hash's highest bits
        orders: tuple[int, ...],  # 1 to 6
        columns: int,  # 8 to 1,024, a power of 2
        scale: float,
        /,
    ) -> LexicalSketch: ...
    def join(self, texts: Sequence[str], vectors: Array, joined: Array, counts: Array, /) -> None:
        """Fill joined float32[n, d + columns] with vectors float32[n, d] and sketches, counts int64[n] with n-grams.

        Raises TypeError, ValueError and OverflowError as a Featurizer does, and ValueError if they do not fit together.
        """

class Folder:
    """A text to what its characters are read as, see gramvec.text.folding. Linear, and bounded by the table.

    Raises ValueError for arrays that do not fit together.
    """

    def __new__(
        cls,
        pages: Array,  # uint16[0x1100]
        entries: Array,  # uint32: 0, or (how many characters + 1) << 24 | the character, or their place in `targets`
        targets: Array,  # uint32
        /,
    ) -> Folder: ...
    def __call__(self, text: str, /) -> str:
        """Fold a text. Raises OverflowError for one of more than 2^28 characters."""

def unit(rows: Array, units: Array, /) -> None:
    """Fill units with the rows, float32[n, d], at length 1; a zero row stays zero."""

def word_ngrams(text: str, /) -> str:
    """Return the n-grams of the words and runs of a text, with spaces between; see gramvec.lexical.letters.

    Raises OverflowError for a text of more than 2^28 characters.
    """

def turn(values: Array, flips: Array, size: int, length: int, shift: int, /) -> None:
    """Turn int32[n, d] values in place; see gramvec.jobs.search.signs.

    flips: int32[4, d] of 1 and -1. size: a power of 2 up to d, whose root is about `length` and 2^shift.
    Raises ValueError if they do not fit together.
    """

def scan(
    blocks: Array,  # uint8[blocks, columns, 64]
    n: int,  # rows in the blocks
    tables: Array,  # uint8[q, columns, 2, 16]
    q: int,
    allowed: Array | None,  # uint64[blocks], a bit for each row that may be found
    most: int,  # rows that are wanted for each query
    rows: Array,  # int32[q, 2 * most]
    sums: Array,  # uint16[q, 2 * most]
    /,
) -> tuple[int, ...]:
    """Write the rows of the largest sums of each query, ascending, and the sums; return how many each query has.

    Raises ValueError if the arrays do not fit together.
    """

def multiply(
    table: Array,  # int8[n, stride]
    stride: int,
    rows: Array | None,  # int64[m]; None for the first m
    query: Array,  # int16[d] of numbers of int8, 1 to 65,536
    products: Array,  # int32[m]
    /,
) -> None:
    """Write the products of a query with the first d numbers of rows of a table.

    Raises ValueError if the arrays do not fit together.
    """

def pair_figures(
    vocabulary: tuple[Array, Array, Array, Array, Array],  # uint32, int32[v + 1], int32[v], uint8[v], float32[v]
    heaviest: float,
    left: tuple[Array, Array, Array, Array],  # int64[rows * columns + 1], and int32 each: see TokenRows
    right: tuple[Array, Array, Array, Array],
    columns: int,
    left_rows: Array,  # int64[p]
    right_rows: Array,  # int64[p]
    out: Array,  # float32[p, 59], is written
    facts: tuple[Array, tuple[Array, Array], Array, Array, tuple[Array, Array], float],  # kinds uint8[columns], cells
    # int32[rows * columns] of both tables, equal float32[v], levels float32[columns * 5], weights float32[tokens], rows
    levels: Array | None,  # uint8[p, columns]
    /,
) -> None:
    """Write the figures of pairs of rows: see gramvec.jobs.pairs.

    Raises ValueError for arrays that do not fit together.
    """

def column_levels(
    vocabulary: tuple[Array, Array, Array, Array, Array],
    heaviest: float,
    left: tuple[Array, Array, Array, Array],
    right: tuple[Array, Array, Array, Array],
    columns: int,
    left_rows: Array,
    right_rows: Array,
    out: Array,  # uint8[p, columns], is written
    facts: tuple[Array, tuple[Array, Array], Array, Array, tuple[Array, Array], float],
    levels: Array | None,
    /,
) -> None:
    """Write the level of each column of pairs of rows. Arguments and errors are those of pair_figures."""

def boosted_sums(
    figures: Array,  # float32[p, f]
    trees: tuple[Array, Array, Array, Array, Array, Array, Array],  # arrays of gramvec.jobs.pairs.trees.Trees, in order
    base: float,
    sums: Array,  # float64[p], is written
    /,
) -> None:
    """Write the sums of boosted trees. Raises ValueError for trees in which a walk would not end."""

def jaro_winkler(
    left: tuple[Array, Array],  # uint32, code points of texts one after the other; int32[n + 1], where each begins
    right: tuple[Array, Array],
    left_texts: Array,  # int64[p]
    right_texts: Array,  # int64[p]
    out: Array,  # float32[p], is written
    /,
) -> None:
    """Write the likeness of the first 64 characters of texts: see gramvec.jobs.pairs.jaro.

    Raises ValueError for arrays that do not fit together.
    """
