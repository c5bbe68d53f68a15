"""Texts to code points: NFC, one flat array."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gramvec.errors import InputError
from gramvec.text.nfc import compose


class CodePoints(NamedTuple):
    """Flat code points uint32[total] of n texts and their starts int64[n + 1]."""

    points: NDArray[np.uint32]
    starts: NDArray[np.int64]


def code_points(texts: Sequence[str]) -> CodePoints:
    """The code points of each text in Unicode normalization form C (UAX #15).

    Raises InputError with the text's index for anything but str and for a lone surrogate, which is no character.
    """
    try:
        composed = [text if text.isascii() else compose(text) for text in texts]
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


def has_surrogate(text: str) -> bool:
    """Return True if the text holds a code point from U+D800 to U+DFFF."""
    try:
        text.encode()
    except UnicodeEncodeError:  # UTF-8 has a form for every code point but these
        return True
    return False
