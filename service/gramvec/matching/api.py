"""Tables in memory, frames of any library, into matches; and a matcher of such tables that learns from labels."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from gramvec.errors import InputError
from gramvec.matching.features import Compared
from gramvec.matching.fields import Blocks, Field, match_fields
from gramvec.matching.fit_matcher import Report
from gramvec.matching.labels import labels_of
from gramvec.matching.matcher import Learned, candidates, chosen, learned
from gramvec.matching.matcher_file import load_matcher, save_matcher
from gramvec.matching.nearest import Matches
from gramvec.text.inputs import listed

On = str | Sequence[str] | Mapping[str, float]
Triples = Iterable[Sequence[Any]]
# What a column of texts that are in no table is called.
TEXT = "text"


def match(
    left: Any,
    right: Any,
    *,
    on: On | None = None,
    top: int = 1,
    threshold: float | None = None,
    one_to_one: bool = False,
    block: str | None = None,
    labels: Triples | None = None,
    threads: int = 1,
) -> Matches:
    """The rows of `right` that are most alike to each row of `left`.

    left, right: texts (any iterable of str) if `on` is None; else tables, whose columns are left[name]: a dict of
    lists, or a frame of pandas, polars or pyarrow. None and NaN are "".
    on: the columns that are compared, with their weights. top: so many right rows for a left one at most.
    threshold: the least score, a probability from 0 to 1; without one, that of the highest expected F1.
    one_to_one: no row is in two matches: pairs are taken
    from the highest score down among each left row's 10 (or `top`) nearest. block: only rows with the same value in
    this column, but for case and spaces around it, are compared; rows without one are compared with nothing.
    labels: (left row, right row, whether they match) each, rows from 0; scores are then the probabilities of a matcher
    that learns from them, of pairs of which one is among the other's 10 nearest, and the threshold is its own.
    Returns rows from 0 and scores float32, by left row and then the highest score. Raises InputError for what cannot
    be matched.
    """
    fields, columns = _fields(left, right, on)
    keys = _keys(left, right, block, on)
    if labels is None:
        found = match_fields(fields, keys, top=top, threshold=threshold, one_to_one=one_to_one, threads=threads)
        return found.matches
    given = labels_of(labels)
    compared = Compared(fields, keys, threads=threads)
    return _matched(learned(compared, columns, given), compared, top, threshold, one_to_one=one_to_one)


class Matcher:
    """What labelled pairs of two tables teach about matches of their columns; for these tables, and for others."""

    def __init__(self, learned: Learned) -> None:
        self._learned = learned

    @classmethod
    def fit(
        cls, left: Any, right: Any, labels: Triples, *, on: On | None = None, block: str | None = None, threads: int = 1
    ) -> Matcher:
        """Learn from labels, (left row, right row, whether they match) each, rows from 0. Else as `match`.

        Raises InputError for what cannot be matched, for labels that contradict, and for fewer than 10 of either kind.
        """
        fields, columns = _fields(left, right, on)
        given = labels_of(labels)
        compared = Compared(fields, _keys(left, right, block, on), threads=threads)
        return cls(learned(compared, columns, given))

    @classmethod
    def load(cls, path: str | Path) -> Matcher:
        """A matcher that `save` wrote. Raises InputError for a file that is no whole one."""
        return cls(load_matcher(Path(path)))

    def save(self, path: str | Path) -> None:
        """Write it to a file of JSON: numbers and names, no code."""
        save_matcher(self._learned, Path(path))

    @property
    def report(self) -> Report:
        """How good it was on labels that were held out."""
        return self._learned.report

    @property
    def threshold(self) -> float:
        """The least probability of a match, from 0 to 1."""
        return self._learned.threshold

    def match(
        self,
        left: Any,
        right: Any,
        *,
        top: int = 1,
        threshold: float | None = None,
        one_to_one: bool = False,
        block: str | None = None,
        threads: int = 1,
    ) -> Matches:
        """The matches of two tables that have the columns it has learned from; arguments as of `match`.

        A list or tuple is the texts of the one column. scores: probabilities.
        """
        known = self._learned
        if len(known.columns) > 1 and any(isinstance(table, list | tuple) for table in (left, right)):
            raise InputError(f"this matcher compares {len(known.columns)} columns; give tables", field="on")
        tables = [{name: table} if isinstance(table, list | tuple) else table
                  for table, name in zip((left, right), known.columns[0], strict=True)]  # fmt: skip
        fields = [
            Field(_column(tables[0], name), _column(tables[1], other), weight)
            for (name, other), weight in zip(known.columns, known.weights, strict=True)
        ]
        keys = None if block is None else (_column(tables[0], block), _column(tables[1], block))
        compared = Compared(fields, keys, ngrams=known.ngrams, threads=threads)
        return _matched(known, compared, top, threshold, one_to_one=one_to_one)


def _matched(known: Learned, compared: Compared, top: int, threshold: float | None, *, one_to_one: bool) -> Matches:
    least = known.threshold if threshold is None else threshold
    return chosen(candidates(known, compared), top, least, one_to_one=one_to_one)


def _fields(left: Any, right: Any, on: On | None) -> tuple[list[Field], list[tuple[str, str]]]:
    if on is None:
        return [Field(_texts(left), _texts(right), 1.0)], [(TEXT, TEXT)]
    weights = dict(on) if isinstance(on, Mapping) else dict.fromkeys([on] if isinstance(on, str) else on, 1.0)
    fields = [Field(_column(left, name), _column(right, name), weight) for name, weight in weights.items()]
    return fields, [(name, name) for name in weights]


def _keys(left: Any, right: Any, block: str | None, on: On | None) -> Blocks | None:
    if block is not None and on is None:
        raise InputError("block names a column, so the tables need columns: give on=", field="block")
    return (_column(left, block), _column(right, block)) if block is not None else None


def _texts(values: Any) -> list[str]:
    return ["" if value is None or value != value else value for value in listed(values)]


def _column(table: Any, name: str) -> list[str]:
    try:
        column = table[name]
    except (KeyError, IndexError, TypeError, ValueError) as error:
        raise InputError(f"a table has no column {name!r}; columns are read as table[name]", field="on") from error
    except Exception as error:  # polars has an exception of its own
        raise InputError(f"a table has no column {name!r} ({error})", field="on") from error
    return [value if isinstance(value, str) else str(value) for value in _texts(column)]
