"""Public functions: matches of tables in memory, and a matcher that learns from labeled pairs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np

from gramvec.errors import InputError
from gramvec.jobs.common.engines import EngineName, open_engine
from gramvec.jobs.matching.features import TablePair
from gramvec.jobs.matching.fields import Blocks, Field, check_number, choose
from gramvec.jobs.matching.fit_matcher import fit_matcher
from gramvec.jobs.matching.inputs import labels_of
from gramvec.jobs.matching.match_rows import words_of_one
from gramvec.jobs.matching.match_tables import check_unweighted, match_fields, score_fields
from gramvec.jobs.matching.matcher import LabelReport, LearnedMatcher, score_candidates
from gramvec.jobs.matching.matcher_file import load_matcher, save_matcher
from gramvec.jobs.matching.on import TEXT, ComparedColumn, On, pair_on, parse_on, split_both
from gramvec.jobs.matching.report import name_columns
from gramvec.jobs.matching.result import MatchResult
from gramvec.jobs.pairs.given_pairs import score_given
from gramvec.jobs.pairs.reasons import PairReasons
from gramvec.text.arrays import Floats
from gramvec.text.frames import refuse_file, table_of, texts_of_column, texts_or_empty
from gramvec.text.inputs import is_whole

# Columns of one table.
OneSide = str | Sequence[str]
Top = int | Literal["all"] | None
LabelTriples = Iterable[Sequence[Any]]


def match(
    left: Any,
    right: Any,
    *,
    on: On | None = None,
    left_on: OneSide | None = None,
    right_on: OneSide | None = None,
    top: Top = None,
    threshold: float | None = None,
    precision: float | None = None,
    one_to_one: bool = False,
    block: str | None = None,
    labels: LabelTriples | None = None,
    threads: int = 1,
    engine: EngineName | None = None,
) -> MatchResult:
    """Return the rows of `right` that match each row of `left`.

    Args:
        left: texts, any iterable of str, without `on`; else a table: a list of dicts, a dict of lists, or a frame of
            pandas, polars or pyarrow, or what else has columns as left[name]. None, NaN and pandas.NA are "".
        right: likewise. Of `left` itself, no row is compared with itself.
        on: the compared columns, as the command has them: "name", or "name=customer" where `right` calls it customer;
            a list of these and of (left, right); or with labels a mapping of columns to weights.
        left_on: the compared columns of `left`, in the place of `on`.
        right_on: what `right` calls these, in the same order.
        top: right rows for a left row at most; "all" for all above the threshold, as None is without labels. With
            labels None is what they say: 1, or "all" where many left rows have several labeled matches.
        threshold: the lowest score, a probability from 0 to 1; None for that of the highest expected F1, and at least
            0.35, one to one for 0.35 (0.4 within one table), or with labels for the matcher's own.
        precision: without labels, take the lowest threshold from which on, in nine of ten tables, at least this share
            of the matches is right, above 0 and below 1; there are no matches where none is so sure.
        one_to_one: whether no row is in two matches. Pairs are taken from the highest score down.
        block: compare only rows with the same value in this column, "city" or "city=town", except for case and
            surrounding spaces. Rows without a value are not compared.
        labels: (left row, right row, whether they match) for some pairs, rows from 0. Scores are then the probabilities
            of a matcher that learns from them.
        threads: threads of the sparse product.
        engine: "ray" or "spark" to compare rows and pairs on the machines of a cluster, with the same matches; this
            process reads both tables.

    Returns:
        `left` and `right` (rows from 0, int64) and `scores` (float32), by left row, then descending score; `threshold`,
        and the share that is `expected` to be right. `to_pandas()`, `to_polars()` and `to_arrow()` have the texts, too.

    Raises:
        InputError: tables, options or labels are not valid, or a library is not installed.
    """
    if engine is not None and labels is not None:
        raise InputError(
            "engine: a matcher that learns from labels works in this process; leave it out", field="engine"
        )
    machines = open_engine(engine)
    same, compared = left is right, _compared(on, left_on, right_on)
    left, right = _tables(left, right, compared)
    fields, columns = _fields(left, right, compared)
    keys = _keys(left, right, block, compared)
    if labels is None:
        highest = None if top is None else _top(top)
        options: dict[str, Any] = {
            "threshold": threshold,
            "precision": precision,
            "one_to_one": one_to_one,
            "threads": threads,
            "engine": machines,
        }
        return MatchResult.of(match_fields(fields, keys, top=highest, same=same, **options), fields, columns)
    if precision is not None:
        raise InputError("precision: is promised without labels only; give threshold", field="precision")
    row_labels = labels_of(labels)
    pair = TablePair(fields, keys, same=same, threads=threads)
    return _matches_by(fit_matcher(pair, columns, row_labels), pair, fields, top, threshold, one_to_one=one_to_one)


def explain_pairs(
    left: Any,
    right: Any,
    pairs: Any,
    *,
    on: On | None = None,
    left_on: OneSide | None = None,
    right_on: OneSide | None = None,
    block: str | None = None,
    threads: int = 1,
) -> list[PairReasons]:
    """Return why pairs of rows have the scores that `match` gives them, and `dedupe` where both tables are one.

    Args:
        left: the table, as of `match`; other arguments likewise.
        right: the other table, or `left` itself.
        pairs: (left row, right row) each, rows from 0; or what `match` returned, or the `pairs` of `dedupe`.
        on: the compared columns; None for texts.
        left_on: those of `left`, in the place of `on`.
        right_on: what `right` calls these.
        block: as of `match`.
        threads: threads of the sparse product.

    Returns:
        Of each pair `reasons`: what it is about, what was seen, and what that `adds` to the log odds of the score; with
        `start` they sum to these. A pair that was no candidate has no reasons.

    Raises:
        InputError: tables or options are not valid, a pair names no rows, or a library is not installed.
    """
    same, compared = left is right, _compared(on, left_on, right_on)
    left, right = _tables(left, right, compared)
    fields, columns = _fields(left, right, compared)
    scored = score_fields(fields, _keys(left, right, block, compared), same=same, explain=True, threads=threads)
    sides = (pairs.left, pairs.right) if hasattr(pairs, "left") else tuple(zip(*pairs, strict=True)) or ((), ())
    rows = [np.asarray(side, np.int64) for side in sides]
    for side, texts in zip(rows, fields[0][:2], strict=False):
        if len(side) and not 0 <= side.min() <= side.max() < len(texts):
            raise InputError(f"pairs: rows are from 0 to {len(texts) - 1:,}", field="pairs")
    assert scored.reasons is not None
    return list(scored.reasons.of(rows[0], rows[1], name_columns(columns), partial(words_of_one, fields)))


def pair_scores(
    left: Any, right: Any, *, on: On | None = None, left_on: OneSide | None = None, right_on: OneSide | None = None
) -> Floats:
    """Return the probability that the left and the right row of each pair are the same thing, float32[n].

    Args:
        left: n texts, or with `on` a table of n rows; as of `match`.
        right: n texts or rows, the partners of the left ones.
        on: the compared columns, as of `match`.
        left_on: those of `left`, in the place of `on`.
        right_on: what `right` calls these.

    Raises:
        InputError: texts or tables are not valid, or have different lengths.
    """
    compared = _compared(on, left_on, right_on)
    fields, _ = _fields(*_tables(left, right, compared), compared)
    check_unweighted(fields)
    check_number(fields)
    return score_given([field.left for field in fields], [field.right for field in fields])


class Matcher:
    """A matcher of the columns of two tables, learned from labeled pairs; for these tables, and for others."""

    def __init__(self, learned: LearnedMatcher) -> None:
        self._learned = learned

    @classmethod
    def fit(
        cls,
        left: Any,
        right: Any,
        labels: LabelTriples,
        *,
        on: On | None = None,
        left_on: OneSide | None = None,
        right_on: OneSide | None = None,
        block: str | None = None,
        threads: int = 1,
    ) -> Matcher:
        """Learn from labels, (left row, right row, whether they match) each; other arguments as in `match`.

        Raises:
            InputError: tables or labels are not valid, labels contradict, or there are fewer than 5 of either kind.
        """
        compared = _compared(on, left_on, right_on)
        tables = _tables(left, right, compared)
        fields, columns = _fields(*tables, compared)
        given = labels_of(labels)
        pair = TablePair(fields, _keys(*tables, block, compared), same=left is right, threads=threads)
        return cls(fit_matcher(pair, columns, given))

    @classmethod
    def load(cls, path: str | Path) -> Matcher:
        """Read a matcher that `save` wrote. Raises InputError for an invalid file."""
        return cls(load_matcher(Path(path)))

    def save(self, path: str | Path) -> None:
        """Write the matcher to a file of JSON: numbers and names, no code."""
        save_matcher(self._learned, Path(path))

    @property
    def learned(self) -> LearnedMatcher:
        """What was learned: a classifier, its threshold, and what it compares."""
        return self._learned

    @property
    def columns(self) -> list[str]:
        """The compared columns of the left table."""
        return [left for left, _ in self._learned.columns]

    @property
    def report(self) -> LabelReport:
        """Its quality on labels that were held out."""
        return self._learned.report

    @property
    def threshold(self) -> float:
        """The lowest probability of a match, 0 to 1."""
        return self._learned.threshold

    def match(
        self,
        left: Any,
        right: Any,
        *,
        top: Top = None,
        threshold: float | None = None,
        one_to_one: bool = False,
        block: str | None = None,
        threads: int = 1,
    ) -> MatchResult:
        """Return the matches of two tables that have the learned columns; arguments and result as of `match`.

        A list of texts is the only column. Scores are probabilities.
        """
        known = self._learned
        given = _with_columns(left), _with_columns(right)
        if len(known.columns) > 1 and any(isinstance(table, list) for table in given):
            raise InputError(f"this matcher compares {len(known.columns)} columns; give tables", field="on")
        tables = [{name: table} if isinstance(table, list) else table
                  for table, name in zip(given, known.columns[0], strict=True)]  # fmt: skip
        fields = [
            Field(texts_of_column(tables[0], name), texts_of_column(tables[1], other), weight)
            for (name, other), weight in zip(known.columns, known.weights, strict=True)
        ]
        pair = TablePair(
            fields, _key_columns(tables[0], tables[1], block), ngrams=known.ngrams, same=left is right, threads=threads
        )
        return _matches_by(known, pair, fields, top, threshold, one_to_one=one_to_one)


def _matches_by(
    known: LearnedMatcher,
    pair: TablePair,
    fields: Sequence[Field],
    top: Top,
    threshold: float | None,
    *,
    one_to_one: bool,
) -> MatchResult:
    highest = known.top if top is None else _top(top)
    lowest = known.threshold if threshold is None else threshold
    chosen = choose(score_candidates(known, pair), pair.ranks, highest, lowest, one_to_one=one_to_one, same=pair.same)
    return MatchResult.of(chosen, fields, known.columns, known)


def _top(top: Top) -> int | None:
    """Return the number of right rows for a left row, None for all."""
    if top == "all":
        return None
    if is_whole(top):
        return int(top)  # type: ignore[arg-type]
    raise InputError(f"top: must be a number of at least 1 or 'all', got {top!r}", field="top")


def _with_columns(rows: Any) -> Any:
    """Return rows that come one after the other as a list of texts or a dict of columns, and a table as it is."""
    return table_of(rows) if isinstance(rows, list | tuple | Iterator) else rows


def _compared(on: On | None, left_on: OneSide | None, right_on: OneSide | None) -> Sequence[ComparedColumn] | None:
    """Return the compared columns, each once; None for texts. Raises InputError where both ways name columns."""
    if left_on is None and right_on is None:
        return None if on is None else [*dict.fromkeys(parse_on(on))]
    if on is not None:
        raise InputError("on: names the columns of both tables; leave it out, or left_on and right_on", field="on")
    return [*dict.fromkeys(pair_on(left_on, right_on))]


def _tables(left: Any, right: Any, compared: Sequence[ComparedColumn] | None) -> tuple[Any, Any]:
    """Return both tables with columns, or where none are compared the texts. Raises InputError for texts with columns.

    No rows have any column.
    """
    if compared is None:
        return left, right
    for table in (left, right):
        refuse_file(table, "gramvec.jobs.MatchJob")
    tables = _with_columns(left), _with_columns(right)
    if any(isinstance(table, list) and table for table in tables):
        raise InputError("on names columns, and these rows are texts; leave it out", field="on")
    return tuple(defaultdict(list) if isinstance(table, list) else table for table in tables)


def _fields(
    left: Any, right: Any, compared: Sequence[ComparedColumn] | None
) -> tuple[list[Field], list[tuple[str, str]]]:
    if compared is None:
        if any(isinstance(table, Mapping) or len(getattr(table, "shape", ())) == 2 for table in (left, right)):
            raise InputError("these are tables; name the columns to compare with on", field="on")
        return [Field(texts_or_empty(left), texts_or_empty(right), 1.0)], [(TEXT, TEXT)]
    fields = [
        Field(texts_of_column(left, column.left), texts_of_column(right, column.right), column.weight)
        for column in compared
    ]
    return fields, [(column.left, column.right) for column in compared]


def _keys(left: Any, right: Any, block: str | None, compared: Sequence[ComparedColumn] | None) -> Blocks | None:
    if block is not None and compared is None:
        raise InputError("block names a column, so the tables need columns: give on=", field="block")
    return _key_columns(left, right, block)


def _key_columns(left: Any, right: Any, block: str | None) -> Blocks | None:
    left_name, right_name = split_both("block", block)
    if left_name is None or right_name is None:
        return None
    return texts_of_column(left, left_name), texts_of_column(right, right_name)
