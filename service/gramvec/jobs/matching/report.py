"""Reports of matching: all candidates' scores, and the pairs that a person should look at."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from hashlib import sha256

import numpy as np

from gramvec.jobs.matching.fields import ChosenMatches, Field
from gramvec.jobs.matching.match_rows import words_of_one
from gramvec.jobs.matching.nearest import Matches, select_pairs
from gramvec.jobs.matching.reasons import TellsReasons
from gramvec.jobs.pairs.figures import OF_PAIR, pair_figures, read_rows
from gramvec.jobs.pairs.model import FOLDER
from gramvec.jobs.pairs.reasons import PairReasons
from gramvec.jobs.pairs.telling_columns import telling_columns
from gramvec.jobs.report import JobReport, Pair, PairList, ScoreHistogram, ValuePair
from gramvec.text.arrays import Bools, Doubles, Floats, Int64s

MAX_PAIRS = 60
# Written pairs that are looked at for signs that they are wrong: those of the lowest scores.
MAX_DOUBTED = 20_000
# A rival is close if its score is at most so much lower.
CLOSE = 0.1
# Scores so far from the threshold or nearer are doubtful.
NEAR = 0.1
# From here on a given pair is more probably the same thing than not.
HALF = 0.5
EQUAL_ROWS = "Rows that are equal except for case and punctuation count once here."
PLACES = {name: at for at, (name, _) in enumerate(OF_PAIR)}

RowName = Callable[[int], str]


def match_report(
    matched: ChosenMatches,
    fields: Sequence[Field],
    columns: Sequence[tuple[str, str]],
    ids: tuple[Sequence[str], Sequence[str]],
    *,
    title: str,
    summary: str,
    facts: Sequence[tuple[str, str]],
    same: bool = False,
) -> JobReport:
    """Return the report of a match.

    Args:
        matched: the matches with their candidates.
        fields: the compared columns.
        columns: their names in both tables.
        ids: what names the rows of both tables.
        title: the heading.
        summary: what came out, in a sentence.
        facts: what was done and with what.
        same: whether both tables are one, of which each pair is shown once.
    """
    candidates, written = matched.candidates, matched.matches
    if same:
        candidates, written = _show_once(candidates), _show_once(written)
    names = ids[0].__getitem__, ids[1].__getitem__
    return JobReport(
        title, summary, [*facts],
        scores=ScoreHistogram.from_scores(candidates.scores, matched.threshold, unit="candidate pairs",
                                          note=EQUAL_ROWS),
        pairs=list_pairs(candidates, written, matched.threshold, fields, columns, names, matched.reasons,
                         groups=same),
    )  # fmt: skip


def given_report(
    scores: Floats,
    left: Sequence[str],
    right: Sequence[str],
    columns: tuple[str, str],
    names: Sequence[str],
    *,
    facts: Sequence[tuple[str, str]],
) -> JobReport:
    """Return the report of pairs that were given, each a left and a right text.

    Args:
        scores: float32[n], the probability that both texts are the same thing.
        left: n texts.
        right: n texts.
        columns: the names of both columns.
        names: what names each pair.
        facts: what was done and with what.
    """
    rows = np.arange(len(scores))
    every = Matches(rows, rows, scores)
    likely = select_pairs(every, scores >= np.float32(HALF))
    return JobReport(
        f"Pairs of {columns[0]} and {columns[1]}",
        f"{len(likely.left):,} of {len(scores):,} pairs are more probably the same thing than not.", [*facts],
        scores=ScoreHistogram.from_scores(scores, HALF),
        pairs=list_pairs(every, likely, HALF, [Field(left, right, 1.0)], [columns],
                         (names.__getitem__, names.__getitem__)),
    )  # fmt: skip


def _show_once(pairs: Matches) -> Matches:
    """Return each pair of two rows of one table once, the first row on the left."""
    low, high = np.minimum(pairs.left, pairs.right), np.maximum(pairs.left, pairs.right)
    _, first = np.unique(np.stack([low, high]), axis=1, return_index=True)
    first = first[low[first] != high[first]]
    return Matches(low[first], high[first], pairs.scores[first])


def pair_model_fact(*, same: bool) -> tuple[str, str]:
    """Return the name of the shipped pair model with its digest; `same` for rows of one table."""
    name = "one_table" if same else "two_tables"
    digest = sha256((FOLDER / f"{name}.json").read_bytes()).hexdigest()
    return "model", f"pair model {name}, SHA-256 {digest}"


def list_pairs(
    candidates: Matches,
    written: Matches,
    threshold: float,
    fields: Sequence[Field],
    columns: Sequence[tuple[str, str]],
    names: tuple[RowName, RowName],
    reasons: TellsReasons | None = None,
    *,
    groups: bool = False,
) -> list[PairList]:
    """Return the pairs nearest the threshold, the surest, and the written ones that are likeliest wrong.

    Args:
        candidates: all scored pairs.
        written: the pairs that are written.
        threshold: the lowest score of those.
        fields: the compared columns.
        columns: their names in both tables.
        names: functions that name a left and a right row.
        reasons: what tells why pairs have their scores.
        groups: whether a row may well have several right partners, so that a close rival is no reason to doubt.
    """
    titles = name_columns(columns)

    def show(found: Matches, notes: Sequence[str]) -> list[Pair]:
        if reasons is not None:
            told = reasons.of(found.left, found.right, titles, partial(words_of_one, fields))
            notes = [" ".join(filter(None, (note, *_sentences(why)))) for note, why in zip(notes, told, strict=True)]
        rows = zip(found.left.tolist(), found.right.tolist(), found.scores.tolist(), notes, strict=True)
        return [
            Pair(score, names[0](a), names[1](b),
                 [ValuePair.mark(title, field.left[a], field.right[b])
                  for title, field in zip(titles, fields, strict=True)], note)
            for a, b, score, note in rows
        ]  # fmt: skip

    near = np.argsort(np.abs(candidates.scores - np.float32(threshold)), kind="stable")[:MAX_PAIRS]
    around = select_pairs(candidates, near)
    surest = select_pairs(written, np.argsort(-written.scores, kind="stable")[:MAX_PAIRS])
    wrong, notes, numbers, close_rivals = likeliest_wrong(candidates, written, fields)
    doubtful = int(np.count_nonzero(numbers if groups else numbers | close_rivals))
    reason = "other numbers" if groups else "other numbers or a close rival"
    close = int(np.count_nonzero(np.abs(candidates.scores - np.float32(threshold)) <= NEAR))
    return [
        PairList("Around the threshold", f"The candidates nearest to {threshold:.3f}, the nearest first.",
                 show(around, [""] * len(around.left)),
                 f"{close:,} candidate{'s' * (close != 1)} within {NEAR:g} of the threshold" if close else ""),
        PairList("Likeliest wrong", "Written pairs with what speaks against them: other numbers, a rival that is "
                 "nearly as probable, or rare words that a row lacks.", show(wrong, notes),
                 f"{doubtful:,} written pair{'s' * (doubtful != 1)} with {reason}" if doubtful else ""),
        PairList("Surest", "The written pairs of the highest scores.", show(surest, [""] * len(surest.left))),
    ]  # fmt: skip


def _sentences(why: PairReasons) -> list[str]:
    """Return what counted for and against a pair as sentences."""
    sides = ("For", why.tell(against=False)), ("Against", why.tell(against=True))
    return [f"{side}: {told}." for side, told in sides if told]


def likeliest_wrong(
    candidates: Matches, written: Matches, fields: Sequence[Field]
) -> tuple[Matches, list[str], Bools, Bools]:
    """Return the written pairs that most speaks against, worst first, with what does.

    Arguments as of `list_pairs`. The last two are bool[n], of the written pairs that were looked at: which
    have other numbers, and which have a close rival.
    """
    doubted = select_pairs(written, np.argsort(written.scores, kind="stable")[:MAX_DOUBTED])
    if not len(doubted.left):
        return doubted, [], np.zeros(0, np.bool_), np.zeros(0, np.bool_)
    sides = [
        [[field.left[row] for row in doubted.left.tolist()] for field in fields],
        [[field.right[row] for row in doubted.right.tolist()] for field in fields],
    ]
    rows = np.arange(len(doubted.left))
    figures = np.nan_to_num(pair_figures(read_rows(telling_columns(sides, paired=True).tables), rows, rows))
    numbers: Bools = figures[:, PLACES["numbers_left_over_min"]] > 0
    left_over = figures[:, PLACES["heaviest_left_over_max"]]
    rivals = np.maximum(
        _rivals(candidates.left, candidates.right, candidates.scores, doubted.left, doubted.right),
        _rivals(candidates.right, candidates.left, candidates.scores, doubted.right, doubted.left),
    )
    close = (rivals > 0) & (rivals >= doubted.scores - CLOSE)
    against = numbers | close | (left_over > 0)
    order = np.lexsort((doubted.scores, -left_over, -(numbers.astype(np.int64) + close)))
    worst = order[against[order]][:MAX_PAIRS]
    notes = []
    for at in worst.tolist():
        reasons = ["the numbers differ"] if numbers[at] else []
        reasons += [f"another row has {rivals[at]:.3f}"] if close[at] else []
        reasons += ["a row has words that the other lacks"] if left_over[at] > 0 else []
        notes.append("; ".join(reasons) + "." if reasons else "")
    return select_pairs(doubted, worst), notes, numbers, close


def show_pair(
    candidates: Matches, at: int, fields: Sequence[Field], columns: Sequence[tuple[str, str]],
    ids: tuple[Sequence[str], Sequence[str]],
) -> Pair:  # fmt: skip
    """Return a candidate as a page shows it, with its differences marked and the best rival that its rows have.

    Args:
        candidates: all scored pairs.
        at: the place of the pair among them.
        fields: the compared columns.
        columns: their names in both tables.
        ids: what names the rows of both tables.
    """
    left, right, score = int(candidates.left[at]), int(candidates.right[at]), float(candidates.scores[at])
    of_row = (candidates.left == left) | (candidates.right == right)
    of_row[at] = False
    rival = float(candidates.scores[of_row].max(initial=0.0))
    note = (
        f"The best other candidate of these rows has {rival:.3f}." if rival else "These rows have no other candidate."
    )
    titles = name_columns(columns)
    values = [ValuePair.mark(title, field.left[left], field.right[right])
              for title, field in zip(titles, fields, strict=True)]  # fmt: skip
    return Pair(score, ids[0][left], ids[1][right], values, note)


def name_columns(columns: Sequence[tuple[str, str]]) -> list[str]:
    """Return a title for each compared column: its name, or both where they differ."""
    return [left if left == right else f"{left} = {right}" for left, right in columns]


def _rivals(rows: Int64s, others: Int64s, scores: Floats, wanted: Int64s, partners: Int64s) -> Doubles:
    """Return the best score that each wanted row has with another row than its partner, float64[w]; 0 for none."""
    order = np.lexsort((-scores, rows))
    row, other, score = rows[order], others[order], scores[order].astype(np.float64)
    if not len(row):
        return np.zeros(len(wanted))
    first = np.searchsorted(row, wanted)
    best = np.zeros(len(wanted))
    # At most one of a row's two best candidates is its partner.
    for step in (1, 0):
        at = np.minimum(first + step, len(row) - 1)
        there = (first + step < len(row)) & (row[at] == wanted) & (other[at] != partners)
        best = np.where(there, score[at], best)
    return best
