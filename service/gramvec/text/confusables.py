"""Letters that look like letters of another script: what a reader takes for one word, and no rule of comparison does.

The list is short and made here: letters whose usual shapes are the same. Unicode's (UTS #39) has thousands more.
"""

from __future__ import annotations

import unicodedata
from typing import NamedTuple

from gramvec.text.characters import compose
from gramvec.text.folding import fold_letters

# Characters, and at the same place what each looks like.
_PAIRS = (
    ("аеорсухіјѕһԛԝԁӏАВЕКМНОРСТУХІЈЅԚԜӀЗЬкг", "aeopcyxijshqwdlABEKMHOPCTYXlJSQWl3bkr"),
    ("οναιρυκγχωΑΒΕΖΗΙΚΜΝΟΡΤΥΧϲϹ", "ovaipukyxwABEZHlKMNOPTYXcC"),
    ("օսհոցզԼՕՏՍ", "ouhngqLOSU"),
    ("ɑɡıI1|0", "agilllO"),
    ("エニハロカタトーヘへり", "工二八口力夕卜一へヘリ"),
)
_LOOKS = {ord(character): other for written, seen in _PAIRS for character, other in zip(written, seen, strict=True)}
_PAIRS_OF_LETTERS = (("rn", "m"), ("vv", "w"))


class LookAlike(NamedTuple):
    """A place, from 0, at which two texts that look alike have different characters."""

    place: int
    source: str
    target: str


def skeleton(text: str) -> str:
    """Return what a text looks like: folded, with letters of other scripts as the Latin ones of their shape.

    Texts with one skeleton look alike, as paypal does in Cyrillic letters; 0 is O there, 1 and I are l, rn is m. It is
    for comparing only, and is no spelling.
    """
    folded = fold_letters(unicodedata.normalize("NFD", compose(text)).translate(_LOOKS))
    for letters, alike in _PAIRS_OF_LETTERS:
        folded = folded.replace(letters, alike)
    return folded


def look_alike(source: str, target: str) -> bool:
    """Return True if two texts look alike and are not read as the same letters."""
    return fold_letters(source) != fold_letters(target) and skeleton(source) == skeleton(target)


def list_differences(source: str, target: str) -> list[LookAlike]:
    """Return where two texts that look alike differ; nothing where they do not, or where their lengths differ."""
    source_text, target_text = compose(source), compose(target)
    if not look_alike(source, target) or len(source_text) != len(target_text):
        return []
    both = enumerate(zip(source_text, target_text, strict=True))
    return [LookAlike(at, a, b) for at, (a, b) in both if fold_letters(a) != fold_letters(b)]
