"""Conversion of texts: an iterable of str to a list, and a list to one flat array of code points."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from numbers import Integral
from os import PathLike
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gramvec.errors import InputError
from gramvec.text.characters import compose

# How arrays and columns of other libraries become lists: pyarrow's, then numpy's and pandas', then polars'.
TO_LIST = ("to_pylist", "tolist", "to_list")
# What only a frame has that is not computed yet, and the method that computes it: polars' LazyFrame, and dask.
LAZY = {"collect_async": "collect", "npartitions": "compute"}
ONE_TEXT = "texts: must be an iterable of str, got one text; wrap it in a list"


def list_texts(texts: Iterable[str]) -> list[str]:
    """Return texts as a list: of a list, generator, open file, array, or column of pandas, polars or pyarrow.

    The types of the items are checked later, by `Embedder.prepare`.

    Raises:
        InputError: it is one text, a mapping, a set, or not an iterable.
    """
    if isinstance(texts, list):
        return texts
    _check(texts)
    for name in TO_LIST:
        if (convert := getattr(texts, name, None)) is not None:
            converted: list[str] = convert()
            return converted
    return list(texts)


def iterate_texts(texts: Iterable[str]) -> Iterator[str]:
    """Return a lazy iterator over the texts that `list_texts` accepts. Raises InputError at once."""
    _check(texts)
    return iter(list_texts(texts) if any(hasattr(texts, name) for name in TO_LIST) else texts)


def not_a_text(index: int, value: Any) -> InputError:
    """Return the error for a value that is not a str."""
    kind = type(value).__name__
    if value is None or kind in ("NAType", "NaTType") or (isinstance(value, float) and np.isnan(value)):
        sentence = f"text {index} is missing ({value}); leave it out (pandas: dropna) or give '' for it (fillna)"
    else:
        sentence = f"text {index} is of type {kind}; give str"
    return InputError(sentence, index=index)


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
    refuse_lazy(texts)
    if isinstance(texts, PathLike):
        raise InputError("texts: must be an iterable of str, got a path; read the file first", field="texts")
    if not isinstance(texts, Iterable):
        raise InputError(f"texts: must be an iterable of str, got {type(texts).__name__}", field="texts")


def refuse_lazy(table: object) -> None:
    """Raise InputError for a frame of polars or dask that is not computed yet."""
    for name, method in LAZY.items():
        if hasattr(type(table), name):
            raise InputError(f"a {type(table).__name__} of {type(table).__module__.partition('.')[0]} has no rows yet; "
                             f"call {method}() first", field="texts")  # fmt: skip


def is_whole(value: object) -> bool:
    """Return True for a whole number of Python or numpy; not for a truth value."""
    return isinstance(value, Integral) and not isinstance(value, bool)


class CodePoints(NamedTuple):
    """Flat code points uint32[total] of n texts and their starts int64[n + 1]."""

    points: NDArray[np.uint32]
    starts: NDArray[np.int64]


def code_points(texts: Sequence[str], read: Callable[[str], str] = compose) -> CodePoints:
    """Return the code points of each text as `read` gives it, in Unicode normalization form C (UAX #15).

    A text in ASCII is read as it is.
    Raises InputError with the text's index for anything but str and for a lone surrogate, which is no character.
    """
    try:
        composed = [text if text.isascii() else read(text) for text in texts]
        encoded = "".join(composed).encode("utf-32-le")
    except UnicodeEncodeError:
        index = next(i for i, text in enumerate(texts) if has_surrogate(text))
        raise InputError(
            f"text {index} has a lone surrogate, which is no character; remove it or decode the text properly",
            index=index,
        ) from None
    except (AttributeError, TypeError):  # bytes come as far as to be joined
        index = next(i for i, text in enumerate(texts) if not isinstance(text, str))
        raise InputError(f"text {index} is of type {type(texts[index]).__name__}; give str", index=index) from None
    # Built in Python: for one text three numpy calls took 6 us, a third of the featurizer's time.
    starts = np.array([0, *accumulate(map(len, composed))], np.int64)
    return CodePoints(np.frombuffer(encoded, np.uint32), starts)


def blocks(texts: Sequence[str], max_texts: int, max_characters: int) -> Iterator[tuple[int, int]]:
    """Yield (first, end) of runs of texts within both limits; a text of more characters is a run of its own."""
    first = size = 0
    for at, text in enumerate(texts):
        if at > first and (at - first == max_texts or size + len(text) > max_characters):
            yield first, at
            first, size = at, 0
        size += len(text)
    if first < len(texts):
        yield first, len(texts)


def has_surrogate(text: str) -> bool:
    """Return True if the text holds a code point from U+D800 to U+DFFF."""
    try:
        text.encode()
    except UnicodeEncodeError:  # UTF-8 encodes every code point except surrogates
        return True
    return False
