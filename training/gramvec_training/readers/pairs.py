"""Paraphrases: pairs and groups as TSV, and PPDB's own format.

A group is the wordings of one meaning; a pair is a group of two.
"""

from __future__ import annotations

from pathlib import Path

from gramvec.errors import InputError
from gramvec_training.configuration import Layout, OnBad
from gramvec_training.readers.rows import BadRows, near, numbered_lines

Group = tuple[str, ...]

_REMEDY = "write one text, a tab and the other text on each line"
_PPDB_REMEDY = "write LHS ||| phrase ||| paraphrase ||| features on each line"
_REMEDIES = {"pairs": _REMEDY, "groups": _REMEDY, "ppdb": _PPDB_REMEDY}
_PPDB_SEPARATOR = " ||| "


def read_pairs(path: Path, *, on_bad: OnBad = "skip") -> tuple[list[Group], BadRows]:
    """Groups of two from `a<TAB>b` rows; columns after the second are not read.

    Bad rows (one column, an empty side, identical sides, not UTF-8) are skipped and counted, or refused with
    InputError.
    """
    return _read_columns(path, limit=2, on_bad=on_bad)


def read_groups(path: Path, *, on_bad: OnBad = "skip") -> tuple[list[Group], BadRows]:
    """Groups of two or more wordings, one group a row, separated by tabs; repeated wordings count once.

    Bad rows as in `read_pairs`; an empty column between others is left out without making the row bad.
    """
    return _read_columns(path, limit=None, on_bad=on_bad)


def read_ppdb(path: Path, *, on_bad: OnBad = "skip") -> tuple[list[Group], BadRows]:
    """Groups of two from PPDB rows `LHS ||| phrase ||| paraphrase ||| features ||| alignment ||| entailment`.

    Three fields are enough (PPDB 1.0 has no entailment). Bad rows as in `read_pairs`.
    """
    groups: list[Group] = []
    bad = BadRows(path)
    for number, raw in numbered_lines(path):
        fields = _decode(raw, number, bad, on_bad, _PPDB_REMEDY, _PPDB_SEPARATOR)
        if fields is None:
            continue
        if len(fields) < 3:
            bad.note(number, "fewer than three fields", on_bad=on_bad, remedy=_PPDB_REMEDY)
            continue
        _keep(fields[1:3], number, groups, bad, on_bad, _PPDB_REMEDY)
    return groups, bad


def read_paraphrases(
    path: Path, *, layout: Layout | None = None, on_bad: OnBad = "skip"
) -> tuple[list[Group], BadRows]:
    """Groups from any of the three layouts; without `layout`, `*.groups.tsv[.gz]` is groups and all else pairs.

    Raises InputError where the file is missing or holds no usable row.
    """
    if layout is None:
        layout = "groups" if path.name.removesuffix(".gz").endswith(".groups.tsv") else "pairs"
    groups, bad = _READERS[layout](path, on_bad=on_bad)
    if not groups:
        found = f" ({bad.summary(of_file=False)})" if bad.total else ""
        raise InputError(f"{near(path)} holds no usable row when read as {layout}{found}; {_REMEDIES[layout]}.")
    return groups, bad


def _read_columns(path: Path, *, limit: int | None, on_bad: OnBad) -> tuple[list[Group], BadRows]:
    groups: list[Group] = []
    bad = BadRows(path)
    for number, raw in numbered_lines(path):
        columns = _decode(raw, number, bad, on_bad, _REMEDY, "\t")
        if columns is None:
            continue
        if len(columns) == 1:
            bad.note(number, "one column", on_bad=on_bad, remedy=_REMEDY)
            continue
        if limit is None:
            columns = [column for column in columns if column]
        _keep(columns[:limit], number, groups, bad, on_bad, _REMEDY)
    return groups, bad


def _decode(raw: bytes, number: int, bad: BadRows, on_bad: OnBad, remedy: str, separator: str) -> list[str] | None:
    try:
        return [column.strip() for column in raw.decode("utf-8").split(separator)]
    except UnicodeDecodeError:
        bad.note(number, "not UTF-8", on_bad=on_bad, remedy=remedy)
        return None


def _keep(columns: list[str], number: int, groups: list[Group], bad: BadRows, on_bad: OnBad, remedy: str) -> None:
    if not columns or "" in columns:
        bad.note(number, "an empty side", on_bad=on_bad, remedy=remedy)
        return
    wordings = tuple(dict.fromkeys(columns))
    if len(wordings) < 2:
        bad.note(number, "identical sides", on_bad=on_bad, remedy=remedy)
        return
    groups.append(wordings)


_READERS = {"pairs": read_pairs, "groups": read_groups, "ppdb": read_ppdb}
