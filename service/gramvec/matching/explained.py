"""What two texts share and what differs, word by word."""

from __future__ import annotations

from typing import NamedTuple

from gramvec.text.characters import lower

ORDER = 3


class Parts(NamedTuple):
    """Words, what stands between white space, each once and in order: in both texts (as the left has them), in one."""

    shared: list[str]
    only_left: list[str]
    only_right: list[str]


def explained(left: str, right: str) -> Parts:
    """The words of two texts in lower case, in time linear in their characters.

    A word is shared if at least half of its n-grams of three characters, a space on each side, are in the other text:
    "dvd-3800bdci" is in "denon dvd3800bdci".
    """
    a, b = _words(left), _words(right)
    known_a, known_b = (_ngrams(f" {' '.join(words)} ") for words in (a, b))
    in_right = {word: _is_in(word, known_b) for word in a}
    in_left = {word: _is_in(word, known_a) for word in b}
    return Parts(
        [word for word, there in in_right.items() if there],
        [word for word, there in in_right.items() if not there],
        [word for word, there in in_left.items() if not there],
    )


def _words(text: str) -> list[str]:
    return "".join(map(lower, text)).split()


def _ngrams(text: str) -> set[str]:
    return {text[at : at + ORDER] for at in range(len(text) - ORDER + 1)}


def _is_in(word: str, known: set[str]) -> bool:
    own = _ngrams(f" {word} ")
    return 2 * len(own & known) >= len(own)
