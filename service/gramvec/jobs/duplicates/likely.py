"""Pairs of one list that are probably the same thing, by the pair model, and which texts stay of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple, get_args

import numpy as np

from gramvec.errors import InputError
from gramvec.jobs.common.engines import HERE, Engine
from gramvec.jobs.matching.candidates import PLAIN, count_ngrams
from gramvec.jobs.matching.fields import Field, split
from gramvec.jobs.matching.match_tables import check_precision, own_threshold, score_fields
from gramvec.jobs.matching.nearest import NO_MATCHES, Matches, select_pairs
from gramvec.jobs.matching.reasons import TellsReasons
from gramvec.jobs.pairs.figures import read_rows
from gramvec.jobs.pairs.model import ExpectedShare, one_table_model, two_table_model
from gramvec.jobs.pairs.scores import score_pairs_of_tables
from gramvec.jobs.pairs.telling_columns import telling_columns
from gramvec.progress import NO_PROGRESS, Progress
from gramvec.text.arrays import Bools, Floats, Int64s

Keep = Literal["first", "longest", "complete", "frequent"]
KEEPS: tuple[Keep, ...] = get_args(Keep)


class LikelyPairs(NamedTuple):
    """Pairs of texts with probabilities of at least the threshold.

    expected: the share of them that is expected to be right; None where nothing is known of it.
    sure: the lowest score of the pairs by which rows go: the threshold where it was given, or where most are right.
    sampled, sampled_found: as of `CandidatePairs`.
    candidates: all scored pairs, of texts that are equal without punctuation the first.
    reasons: what tells why pairs of texts have their scores, where it was asked for.
    """

    pairs: Matches
    threshold: float
    expected: ExpectedShare | None
    sure: float = 0.0
    sampled: int = 0
    sampled_found: int = 0
    candidates: Matches = NO_MATCHES
    reasons: TellsReasons | None = None

    def sure_pairs(self) -> Matches:
        """Return the pairs by which rows go."""
        kept = self.pairs.scores >= np.float32(self.sure)
        return select_pairs(self.pairs, kept)


def likely_pairs(
    columns: Sequence[Sequence[str]],
    threshold: float | None = None,
    precision: float | None = None,
    *,
    explain: bool = False,
    threads: int = 1,
    engine: Engine = HERE,
    max_pairs: int | None = None,
    progress: Progress = NO_PROGRESS,
) -> LikelyPairs:
    """Return the pairs of different rows that are probably the same thing, the lower one left.

    Candidates are the twelve nearest of each row by two weightings of its n-grams, of many rows by the rarest of them.

    Args:
        columns: the compared columns, n texts each; a row of white space is in no pair.
        threshold: the lowest probability; None for that of the highest expected F1, and at least 0.4.
        precision: take the lowest threshold from which on, in nine of ten tables, at least this share is right.
        explain: keep what tells why pairs have their scores.
        threads: of the comparison.
        engine: where blocks of rows and pairs are worked on.
        max_pairs: pairs that may be found.
        progress: shows the tasks.

    Raises:
        InputError: the threshold is not valid, there are more than `max_pairs` pairs, or SciPy is missing.
    """
    if threshold is not None and not 0 <= threshold <= 1:
        raise InputError(f"threshold: must be from 0 to 1, got {threshold:g}", field="threshold")
    check_precision(precision, threshold)
    fields = [Field(texts, texts, 1.0) for texts in columns]
    scored = score_fields(fields, same=True, explain=explain, threads=threads, engine=engine, progress=progress)
    floor = 0.01 if threshold is None else threshold
    both = scored.select(scored.pairs.scores >= np.float32(floor)).rows()
    lower = both.left < both.right
    found = select_pairs(both, lower)
    lowest = own_threshold(found.scores, precision, same=True) if threshold is None else threshold
    kept = found.scores >= np.float32(lowest)
    if max_pairs is not None and int(kept.sum()) > max_pairs:
        raise InputError(f"more than {max_pairs:,} pairs; raise `threshold`, or `max_pairs`")
    pairs = select_pairs(found, kept)
    pairs = select_pairs(pairs, np.lexsort((pairs.right, pairs.left)))
    promise = one_table_model().promise
    sure = promise.sure_from(pairs.scores, lowest) if threshold is precision is None else lowest
    return LikelyPairs(
        pairs, lowest, promise.of(pairs.scores), sure, *scored.sampled, scored.first_rows(), scored.reasons
    )


def likely_known(columns: Sequence[Sequence[str]], left: Int64s, others: Sequence[Sequence[str]]) -> Floats:
    """Return the probability that a row of a table and another row are the same thing, float32[p].

    Args:
        columns: the compared columns of the table, n texts each.
        left: int64[p], ascending: rows of the table.
        others: the same columns of the other rows, p texts each.
    """
    sides = telling_columns([columns, others]).tables
    mine, theirs = ([" ".join(filter(None, row)) for row in zip(*side, strict=True)] for side in sides)
    left_ngrams, right_ngrams = split(count_ngrams([*mine, *theirs]).weighted(PLAIN), len(mine))
    right = np.arange(len(theirs))
    pairs = left, right, left_ngrams.dots(left, right_ngrams, right)
    return score_pairs_of_tables(read_rows(sides), pairs, two_table_model(), same=False).scores


def standing_for(rank: Int64s, pairs: Matches) -> Int64s:
    """Return int64[n], the text that stays for each text: itself, or one that it makes a pair with.

    There are no chains: a text goes only if it is in a pair with one that stays.

    Args:
        rank: int64[n], the lowest of which stays; of two that are equal in this, the first.
        pairs: what is the same thing.
    """
    order = np.argsort(rank, kind="stable")
    place = np.empty(len(rank), np.int64)
    place[order] = np.arange(len(rank))
    ahead = place[pairs.left] < place[pairs.right]
    winner, other = np.where(ahead, pairs.left, pairs.right), np.where(ahead, pairs.right, pairs.left)
    # Texts in the order in which they are decided, each with its most probable partner first.
    by = np.lexsort((place[winner], -pairs.scores, place[other]))
    found = np.arange(len(rank))
    gone: Bools = np.zeros(len(rank), np.bool_)
    for row, partner in zip(other[by].tolist(), winner[by].tolist(), strict=True):
        if not gone[row] and not gone[partner]:
            gone[row] = True
            found[row] = partner
    return found
