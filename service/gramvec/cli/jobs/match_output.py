"""Matches as rows of a table, and the words that explain them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from gramvec.matching.fields import Field
from gramvec.matching.inputs import MatchTable
from gramvec.matching.nearest import Matches
from gramvec.text.characters import lower

NAMES = ("left_id", "right_id", "score", "left", "right")
EXPLAINED = ("shared", "only_left", "only_right")
REVIEWED = ("left_id", "right_id", "match", "score", "left", "right")
# Words are compared by n-grams of this order.
ORDER = 3


class SharedWords(NamedTuple):
    """Words of two texts, in order and each once: those in both, as the left text has them, and those in one."""

    shared: list[str]
    only_left: list[str]
    only_right: list[str]


def shared_words(left: str, right: str) -> SharedWords:
    """Compare the words of two texts in lower case, in time linear in their characters.

    A word is shared if at least half of its n-grams of three characters, with a space on each side, are in the other
    text: "dvd-3800bdci" is in "denon dvd3800bdci".
    """
    a, b = _words(left), _words(right)
    known_a, known_b = (_ngrams(f" {' '.join(words)} ") for words in (a, b))
    in_right = {word: _is_in(word, known_b) for word in a}
    in_left = {word: _is_in(word, known_a) for word in b}
    return SharedWords(
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


def records_of(
    found: Matches, left: MatchTable, right: MatchTable, fields: Sequence[Field], *, explain: bool
) -> Iterator[dict[str, Any]]:
    """Yield the columns of each match: ids, score and texts, and with `explain` the words they share."""
    for a, b, score in zip(found.left.tolist(), found.right.tolist(), found.scores.tolist(), strict=True):
        columns = [[field[:2][side][row] for field in fields] for side, row in enumerate((a, b))]
        texts = [" | ".join(values) for values in columns]
        record = {
            "left_id": left.ids[a], "right_id": right.ids[b], "score": round(score, 4),
            "left": texts[0], "right": texts[1],
        }  # fmt: skip
        yield record | (shared_words(*map(" ".join, columns))._asdict() if explain else {})
