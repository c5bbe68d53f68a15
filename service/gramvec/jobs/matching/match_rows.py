"""Matches as rows of a table, and the words that explain them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Any, NamedTuple

import numpy as np

from gramvec.jobs.matching.fields import Field
from gramvec.jobs.matching.inputs import DIGEST, MatchTable
from gramvec.jobs.matching.nearest import Matches
from gramvec.jobs.pairs.reasons import PairReasons
from gramvec.jobs.tables.columns import value_or_none
from gramvec.jobs.tables.outputs import free_names
from gramvec.text.characters import lower

NAMES = ("left_id", "right_id", "score", "left", "right")
EXPLAINED = ("shared", "only_left", "only_right")
REVIEWED = ("left_id", "right_id", "match", "score", "left", "right", DIGEST)
COUNTED = ("counts_for", "counts_against")
# Words are compared by n-grams of this order.
ORDER = 3
# Words that only one row has of which a reason tells.
MOST_WORDS = 4


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


def words_of_one(fields: Sequence[Field], left: int, right: int) -> str:
    """Return the first words that only one of two rows has."""
    rows = ([field[:2][side][row] for field in fields] for side, row in enumerate((left, right)))
    words = shared_words(*map(" ".join, rows))
    every = [*words.only_left, *words.only_right]
    return " ".join(every[:MOST_WORDS]) + (" ..." if len(every) > MOST_WORDS else "")


def _words(text: str) -> list[str]:
    return "".join(map(lower, text)).split()


def _ngrams(text: str) -> set[str]:
    return {text[at : at + ORDER] for at in range(len(text) - ORDER + 1)}


def _is_in(word: str, known: set[str]) -> bool:
    own = _ngrams(f" {word} ")
    return 2 * len(own & known) >= len(own)


def with_unmatched(found: Matches, rows: tuple[int, int], *, same: bool) -> Matches:
    """Return matches with the rows that are in none: those of the left table in their places, then those of the right.

    Args:
        found: the matches.
        rows: the numbers of rows of both tables.
        same: whether both are one table, whose rows are written once.
    """
    seen = np.concatenate([found.left, found.right]) if same else found.left
    left = np.setdiff1d(np.arange(rows[0]), seen)
    right = np.setdiff1d(np.arange(0 if same else rows[1]), found.right)
    lefts = np.concatenate([found.left, left])
    order = np.argsort(lefts, kind="stable")
    rights = np.concatenate([found.right, np.full(len(left), -1)])
    scores = np.concatenate([found.scores, np.full(len(left), np.nan, np.float32)])
    return Matches(
        np.concatenate([lefts[order], np.full(len(right), -1)]),
        np.concatenate([rights[order], right]),
        np.concatenate([scores[order], np.full(len(right), np.nan, np.float32)]),
    )


def records_of(
    found: Matches,
    left: MatchTable,
    right: MatchTable,
    fields: Sequence[Field],
    *,
    explain: bool,
    reasons: Iterable[PairReasons] = (),
) -> Iterator[dict[str, Any]]:
    """Yield the columns of each match: ids, score and texts, and with `explain` the words they share.

    A row without a match has nothing on the other side. `reasons` of each pair are told, if there are any.
    """
    pairs = zip(found.left.tolist(), found.right.tolist(), found.scores.tolist(), strict=True)
    for (a, b, score), told in zip_longest(pairs, reasons):
        columns = [[field[:2][side][row] for field in fields] if row >= 0 else [] for side, row in enumerate((a, b))]
        texts = [" | ".join(values) if values else None for values in columns]
        pair = a >= 0 and b >= 0
        record = {
            "left_id": left.ids[a] if a >= 0 else None, "right_id": right.ids[b] if b >= 0 else None,
            "score": round(score, 4) if pair else None, "left": texts[0], "right": texts[1],
        }  # fmt: skip
        record |= shared_words(*map(" ".join, columns))._asdict() if explain and pair else {}
        yield record | (tell_reasons(told) if told else {})


def tell_reasons(reasons: PairReasons) -> dict[str, str]:
    """Return the cells that tell why a pair has its score."""
    return dict(zip(COUNTED, (reasons.tell(against=False), reasons.tell(against=True)), strict=True))


def add_columns(
    records: Iterable[dict[str, Any]],
    found: Matches,
    names: Sequence[Sequence[str]],
    sides: Sequence[Mapping[int, dict[str, Any]]],
) -> tuple[list[str], Iterator[dict[str, Any]]]:
    """Return names and records with all columns of both rows in the place of the compared texts.

    A name that both tables have, or that the record has, has "left_" or "right_" before it.

    Args:
        records: what `records_of` gives.
        found: the pairs of rows that it was given.
        names: the columns of both tables but those of the ids.
        sides: the values of the rows of both tables, by row.
    """
    fixed = ("left_id", "right_id", "score", *EXPLAINED, *COUNTED)
    own = free_names(names[0], "left_", [*fixed, *names[1]])
    other = free_names(names[1], "right_", [*fixed, *names[0], *own.values()])

    def join_records() -> Iterator[dict[str, Any]]:
        for record, *rows in zip(records, found.left.tolist(), found.right.tolist(), strict=True):
            for side, row, free in zip(sides, rows, (own, other), strict=True):
                if row >= 0:
                    record |= {free[name]: value_or_none(side[row], name) for name in free}
            yield record

    return ["left_id", "right_id", "score", *own.values(), *other.values()], join_records()
