"""Letters that look or sound the same, folded into one, for all that compares letters (docs/design/features.md).

What each character becomes is a table, folds.txt, which fold_rules.py writes from the Unicode Character Database; so a
text folds alike whichever Python serves. Search, match, dedupe, classify and rerank read texts in this way.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from gramvec import native
from gramvec.text.characters import CODE_POINTS, PAGE, compose

TABLE = Path(__file__).with_name("folds.txt")
# Characters of a text's fold for each of its own, at most: U+FDFA is a sentence of 18 letters.
MAX_FOLDED = 18
# What German, Danish, Norwegian and Swedish write where a letter is missing.
_SPELT_OUT = str.maketrans({
    "ä": "ae", "ö": "oe", "ü": "ue", "å": "aa", "ø": "oe", "Ä": "Ae", "Ö": "Oe", "Ü": "Ue", "Å": "Aa", "Ø": "Oe",
})  # fmt: skip
_has_second = re.compile(f"[{''.join(map(chr, _SPELT_OUT))}]").search


def fold_letters(text: str) -> str:
    """Return a text as letters are compared: "Ｃａｆé Łódź" is "cafe lodz".

    Normalization form KC without what is invisible, without marks where a script writes them optionally, and case
    folded; quotation marks, apostrophes, dashes and slashes are ASCII's. White space stays. The result is in
    normalization form C, folds to itself, and is at most 18 times as long.
    """
    if text.isascii():
        return text.lower()
    made = _folder("letters")(compose(text))
    return made if made.isascii() else compose(made)


def fold_texts(texts: Sequence[str]) -> list[str]:
    """Return the fold of each text."""
    return [text.lower() if text.isascii() else fold_letters(text) for text in texts]


def second_reading(text: str) -> str:
    """Return the words of a text that have another spelling in ASCII, spelt so and folded: ü is ue; "" for none.

    Of "Jürgen Müller, Köln" it is "juergen mueller, koeln". A text's fold has u for ü, which is how most people write
    it who lack the letter; so a text that may be either is compared with both.
    """
    if text.isascii() or not _has_second(composed := compose(text)):
        return ""
    return " ".join(fold_letters(word.translate(_SPELT_OUT)) for word in composed.split() if _has_second(word))


def readings(text: str) -> list[str]:
    """Return the fold of a text, and where it has a second reading the fold of the text in that spelling."""
    folds = [fold_letters(text)]
    if not text.isascii() and _has_second(composed := compose(text)):
        folds.append(fold_letters(composed.translate(_SPELT_OUT)))
    return folds


def plain_forms(text: str) -> str:
    """Return a text whose characters of full or half width, ligatures and curly quotes are plain, without what is
    invisible. Letters keep their marks and case. At most 3 times as long.
    """  # fmt: skip
    return text if text.isascii() else _folder("plain")(text)


def read_plain(text: str) -> str:
    """Return the plain forms of a text in normalization form C: the rule plain/1 of a FeatureSpec, and nfc/1."""
    return compose(plain_forms(text))


def read_folds(section: str) -> Mapping[int, str]:
    """Return what the characters become that a section of the table changes, "letters" or "plain", by code point."""
    lines = TABLE.read_text(encoding="ascii").partition(f"\n[{section}]\n")[2].partition("\n[")[0].splitlines()
    folds: dict[int, str] = {}
    for line in lines:
        point, *text = line.split(" ")
        if text:
            folds[int(point, 16)] = "".join(chr(int(number, 16)) for number in text)
        else:
            ends = [int(end, 16) for end in point.split("-")]
            folds.update(dict.fromkeys(range(ends[0], ends[-1] + 1), ""))
    return folds


@lru_cache(maxsize=2)
def _folder(section: str) -> Callable[[str], str]:
    folds = read_folds(section)
    loops: Any = native.loops
    if loops is None:
        return lambda text: text.translate(folds)
    table = np.zeros(CODE_POINTS, np.uint32)
    targets: list[int] = []
    for point, text in folds.items():
        value = ord(text) if len(text) == 1 else len(targets)
        table[point] = (len(text) + 1) << 24 | value
        targets += map(ord, text) if len(text) > 1 else ()
    numbers: dict[bytes, int] = {}
    pages = [numbers.setdefault(page.tobytes(), len(numbers)) for page in table.reshape(-1, PAGE)]
    entries = np.frombuffer(b"".join(numbers), np.uint32)
    arrays = np.array(pages, np.uint16), entries, np.array(targets, np.uint32)
    folder: Callable[[str], str] = loops.Folder(*arrays)
    return folder
