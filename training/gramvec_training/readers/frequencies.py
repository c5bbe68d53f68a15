"""Unigram frequencies from the files that people have."""

from __future__ import annotations

import math
from pathlib import Path

from gramvec.errors import InputError
from gramvec_training.readers.rows import numbered_lines


def read_frequencies(path: Path) -> dict[str, float]:
    """p(w), in (0, 1), of lower-cased words; words that fall together by lower-casing are added.

    Two formats: `word count` a line, where p is the count over the sum of all counts (SIF's own file), and
    `word<TAB>centibels`, where no value is above zero and p = 10^(centibels / 100) (wordfreq's file). Raises
    InputError naming the line that is neither.
    """
    values: list[tuple[str, float]] = []
    for number, raw in numbered_lines(path):
        if not raw.strip():
            continue
        try:
            word, value = raw.decode("utf-8").rsplit(None, 1)
            values.append((word.strip().lower(), float(value)))
        except ValueError:
            raise InputError(
                f'{path} line {number} is not "word count"; each line is a word, a space or tab, and a number.'
            ) from None
        if not math.isfinite(values[-1][1]):
            raise InputError(f"{path} line {number} has a count that is not finite; remove the line.")
    if not values:
        raise InputError(f"{path} holds no word; each line is a word, a space or tab, and a number.")

    if all(value <= 0 for _, value in values):
        return _added([(word, 10.0 ** (value / 100)) for word, value in values])
    if any(value < 0 for _, value in values):
        raise InputError(f"{path} mixes counts with negative numbers; give counts alone or centibels alone.")
    total = sum(value for _, value in values)
    return _added([(word, value / total) for word, value in values if value > 0])


def _added(values: list[tuple[str, float]]) -> dict[str, float]:
    frequencies: dict[str, float] = {}
    for word, value in values:
        frequencies[word] = frequencies.get(word, 0.0) + value
    return frequencies
