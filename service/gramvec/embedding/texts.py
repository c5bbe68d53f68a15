"""What callers have their texts in: any iterable of str, read once, or one sentence that says what it is instead."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Literal, get_args

import numpy as np

from gramvec.embedding.postprocess import Vectors
from gramvec.errors import InputError
from gramvec.features import has_surrogate

TruncationDirection = Literal["left", "right"]
DIRECTIONS = get_args(TruncationDirection)

# How arrays and columns of other libraries become lists: pyarrow's, then numpy's and pandas', then polars'.
TO_LIST = ("to_pylist", "tolist", "to_list")
ONE_TEXT = "texts must be an iterable of str, not one text: wrap it in a list"


def listed(texts: Iterable[str]) -> list[str]:
    """The texts as a list: of a list, a generator, an open file, an array, or a column of pandas, polars or pyarrow.

    What they are is looked at later, see `Embedder.prepare`. Raises InputError for what has no texts in an order.
    """
    if isinstance(texts, list):
        return texts
    _check(texts)
    for name in TO_LIST:
        if (convert := getattr(texts, name, None)) is not None:
            found: list[str] = convert()
            return found
    return list(texts)


def iterated(texts: Iterable[str]) -> Iterator[str]:
    """The same, one after the other, lazily. Raises InputError at once."""
    _check(texts)
    return iter(listed(texts) if any(hasattr(texts, name) for name in TO_LIST) else texts)


def prepared(
    texts: Iterable[str],
    max_characters: int,
    *,
    truncate: bool = False,
    truncation_direction: TruncationDirection = "right",
) -> list[str]:
    """See Embedder.prepare."""
    given = listed(texts)
    if truncation_direction not in DIRECTIONS:
        raise InputError("truncation_direction must be 'left' or 'right'", field="truncation_direction")
    if _as_they_are(given, max_characters):
        return list(given)
    return [_text(index, text, max_characters, truncate, truncation_direction) for index, text in enumerate(given)]


def in_batches(texts: Iterable[str], batch_size: int, embed: Callable[[list[str]], Vectors]) -> Iterator[Vectors]:
    """What `embed` gives of so many texts at a time, lazily; an InputError tells the place among all of them.

    Raises InputError at once for what holds no texts, and for a batch_size below 1.
    """
    if batch_size < 1:
        raise InputError(f"batch_size must be at least 1, not {batch_size}", field="batch_size")
    iterator = iterated(texts)

    def blocks() -> Iterator[Vectors]:
        first = 0
        while batch := list(islice(iterator, batch_size)):
            try:
                vectors = embed(batch)
            except InputError as error:
                if error.index is None or not first:
                    raise
                said = f"of the texts from number {first} on (the first is 0), {error}"
                raise InputError(said, index=first + error.index) from error
            yield vectors
            first += len(batch)

    return blocks()


def no_text(index: int, value: Any) -> InputError:
    """What is wrong with a value that is no str."""
    kind = type(value).__name__
    if value is None or kind in ("NAType", "NaTType") or (isinstance(value, float) and np.isnan(value)):
        said = f"text {index} is missing ({value}); leave it out (pandas: dropna) or give '' for it (fillna)"
    else:
        said = f"text {index} is of type {kind}; give str"
    return InputError(said, index=index)


def _as_they_are(texts: Sequence[str], max_characters: int) -> bool:
    """Whether it is plain that no text has to be refused or cut; to look at 256 one by one takes 60 us."""
    try:
        return all(map(str.isascii, texts)) and max(map(len, texts), default=0) <= max_characters
    except TypeError:
        return False


def _text(index: int, text: str, max_characters: int, truncate: bool, direction: TruncationDirection) -> str:
    if not isinstance(text, str):
        raise no_text(index, text)
    if len(text) > max_characters:
        if not truncate:
            raise InputError(
                f"text {index} has {len(text)} characters, the limit is {max_characters}: "
                "shorten it or pass truncate=true",
                index=index,
            )
        text = text[:max_characters] if direction == "right" else text[-max_characters:]
    if not text.isascii() and has_surrogate(text):
        raise InputError(
            f"text {index} has a lone surrogate, which is no character; remove it or decode it properly",
            index=index,
        )
    return text


def _check(texts: object) -> None:
    if isinstance(texts, str | bytes | bytearray):
        raise InputError(ONE_TEXT, field="texts")
    if isinstance(texts, Mapping):
        raise InputError("texts are a mapping; give its keys or its values, as a list", field="texts")
    if isinstance(texts, set | frozenset):
        raise InputError("texts are a set, which has no order for vectors to be in; give a list", field="texts")
    shape = getattr(texts, "shape", None)
    if shape is not None and len(shape) != 1:
        raise InputError(f"texts have the shape {tuple(shape)}; give one column", field="texts")
    if not isinstance(texts, Iterable):
        raise InputError(f"texts must be an iterable of str, not {type(texts).__name__}", field="texts")
