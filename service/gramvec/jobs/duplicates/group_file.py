"""Groups that keep their ids from run to run, and the file that they are kept in.

The file is JSON lines. The first says which columns were compared and how rows are named; the others say of an id into
which it was merged or from which it split, and of a row its group, a digest of its compared texts, and the last run in
whose table it was. A file is untrusted: every line, size and number is checked.

What the file says of two rows stays as long as their texts do, though scores change with the table around them. Pairs
count where one of both rows is new or changed, or was not in the last table of the other.
"""

from __future__ import annotations

import os
import stat
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import orjson

from gramvec.errors import InputError, quote
from gramvec.jobs.duplicates.distinct import DistinctRows
from gramvec.jobs.duplicates.pairs import groups
from gramvec.jobs.matching.nearest import Matches
from gramvec.jobs.tables.staging import check_place, whole
from gramvec.text import json_bounds
from gramvec.text.arrays import Int64s
from gramvec.text.inputs import has_surrogate

FORMAT, VERSION = "gramvec groups", 1
MAX_BYTES = 1 << 30
MAX_ROWS = 4_000_000
MAX_LINE_BYTES = 1 << 16
MAX_ID = 1_000  # characters
# Ids below this are the same number in any reader of JSON.
MAX_GROUP = 1 << 53
MAX_NAMED = 5
DIGEST_DIGITS = 24
_DIGITS = frozenset("0123456789abcdef")

# What names a row: its id, with its source where there are several; where rows have no ids the digest of its texts.
RowKey = str | tuple[str, str]


class GroupedRow(NamedTuple):
    """What a file says of a row: the digest of its texts, its group, and the last run in whose table it was."""

    texts: str
    group: int
    run: int


class GroupChanges(NamedTuple):
    """What a run did.

    Attributes:
        ids: int64[n], the id of each row's group; 0 for a row without a text, which is in none.
        total: groups of the table.
        new: how many of them are new.
        merged: the ids that this run retired, with those that they were merged into.
        split: the new ids of rows that left a group, with its id.
    """

    ids: Int64s
    total: int
    new: int
    merged: dict[int, int]
    split: dict[int, int]

    def __str__(self) -> str:
        """Return what was done, as a part of a sentence."""
        told = [f"{self.total:,} group{'s' * (self.total != 1)}, {self.new:,} of them new"]
        for pairs, done in ((self.merged, "merged into"), (self.split, "split from")):
            if pairs:
                named = ", ".join(f"{one} {done} {other}" for one, other in [*pairs.items()][:MAX_NAMED])
                more = f" and {len(pairs) - MAX_NAMED:,} more" if len(pairs) > MAX_NAMED else ""
                told.append(named + more)
        return "; ".join(told)


@dataclass
class GroupState:
    """Contents of a file.

    Attributes:
        next: the next id; no group has had it or a higher one.
        run: the number of the last run.
        rows: what is known of each row.
        merged: the ids that were retired, each with the one that its rows have now.
        split: ids whose rows left another group when they were new, each with the id of that one.
    """

    next: int = 1
    run: int = 0
    rows: dict[RowKey, GroupedRow] = field(default_factory=dict)
    merged: dict[int, int] = field(default_factory=dict)
    split: dict[int, int] = field(default_factory=dict)

    def assign(
        self, keys: Sequence[RowKey | None], texts: Sequence[str], of_row: Int64s, pairs: Matches
    ) -> GroupChanges:
        """Give each row of a table its group, and remember it.

        Args:
            keys: what names each of n rows; None for a row without a text.
            texts: the digests of m different texts.
            of_row: int64[n], which of them each row has; -1 for none.
            pairs: texts that are the same thing.
        """
        self.run += 1
        known = [None if key is None else self.rows.get(key) for key in keys]
        place = of_row.tolist()
        # The rows of each group that are as they were, and the last run that had each text.
        same: dict[int, list[int]] = {}
        seen: Int64s = np.full(len(texts), -1, np.int64)
        for row, former in enumerate(known):
            if former is not None and former.texts == texts[place[row]]:
                same.setdefault(former.group, []).append(place[row])
                seen[place[row]] = max(seen[place[row]], former.run)
        counts = (seen[pairs.left] < 0) | (seen[pairs.left] != seen[pairs.right])
        chains = [(members[0], other) for members in same.values() for other in members[1:]]
        left, right = np.array(chains, np.int64).reshape(-1, 2).T
        of_text = groups(
            len(texts), np.concatenate([pairs.left[counts], left]), np.concatenate([pairs.right[counts], right])
        ).tolist()  # fmt: skip
        names, merged = self._name(known, place, of_text, {group: of_text[rows[0]] for group, rows in same.items()})
        self.merged = {old: merged.get(into, into) for old, into in self.merged.items()} | merged
        if merged:
            self.rows = {key: row._replace(group=merged.get(row.group, row.group)) for key, row in self.rows.items()}
        first, ids = self.next, np.zeros(len(keys), np.int64)
        split: dict[int, int] = {}
        for row, (key, former) in enumerate(zip(keys, known, strict=True)):
            if key is None:
                continue
            root = of_text[place[row]]
            if root not in names:
                names[root] = self.next
                self.next += 1
            ids[row] = group = names[root]
            if former is not None and group >= first and former.group not in merged:
                split[group] = min(split.get(group, former.group), former.group)
            self.rows[key] = GroupedRow(texts[place[row]], group, self.run)
        self.split |= split
        return GroupChanges(ids, len(names), self.next - first, merged, split)

    @staticmethod
    def _name(
        known: Sequence[GroupedRow | None], place: Sequence[int], of_text: Sequence[int], homes: dict[int, int]
    ) -> tuple[dict[int, int], dict[int, int]]:
        """Return the old id of each group of today that has one, by its first text, and the ids that are retired.

        An old group goes where its rows are that are as they were, else where the most of its rows are, of as many
        where the first of them is. Of several in one group the oldest id stays.

        Args:
            known: what is known of each row.
            place: the text of each row.
            of_text: the first text of each text's group.
            homes: the first text of the groups that have rows as they were.
        """
        moved: dict[int, Counter[int]] = {}
        for row, former in enumerate(known):
            if former is not None and former.group not in homes:
                moved.setdefault(former.group, Counter())[of_text[place[row]]] += 1
        homes = homes | {group: roots.most_common(1)[0][0] for group, roots in moved.items()}
        names: dict[int, int] = {}
        for group, root in homes.items():
            names[root] = min(names.get(root, group), group)
        return names, {group: names[root] for group, root in sorted(homes.items()) if names[root] != group}


class GroupFile:
    """A file of groups, for tables of the same columns whose rows are named in the same way.

    Args:
        path: the file; it is made by the first run.
        columns: the names of the compared columns, in any order.
        id_column: the column of the ids; None where rows are known by their texts alone.
        has_sources: whether an id is one row of each source.

    Raises:
        InputError: the file cannot be used, or is of other columns or ids.
    """

    def __init__(self, path: Path, columns: Sequence[str], id_column: str | None, *, has_sources: bool = False) -> None:
        self.path = path
        self._head = {
            "format": FORMAT, "version": VERSION, "columns": sorted(columns), "id": id_column, "sources": has_sources,
        }  # fmt: skip
        self._order = sorted(range(len(columns)), key=columns.__getitem__)
        check_place(path)
        self._load()

    def update(
        self,
        distinct: DistinctRows,
        pairs: Matches,
        ids: Sequence[str] | None,
        sources: Sequence[str] | None = None,
        name_row: Callable[[int], str] = "row {}".format,
    ) -> GroupChanges:
        """Give each row its group, and write the file; it takes the place of the former one when it is whole.

        Args:
            distinct: the different rows by the compared columns, in the order of `columns`.
            pairs: the pairs of those that are the same thing.
            ids: the ids of the n rows, if a column has them.
            sources: the sources of the n rows, if there are several.
            name_row: returns what a row is called in messages.

        Raises:
            InputError: an id is missing, too long, or names two rows; there are too many rows; the file was changed
                meanwhile, and cannot be used; or it cannot be written.
        """
        ordered = [distinct.columns[at] for at in self._order]
        texts = [_digest(row) for row in zip(*ordered, strict=True)]
        place = distinct.of_row.tolist()
        keys: list[RowKey | None]
        if ids is None:
            keys = [texts[at] if at >= 0 else None for at in place]
        else:
            named = _check_ids(ids, sources, name_row)
            keys = [key if at >= 0 else None for key, at in zip(named, place, strict=True)]
        try:
            # Another run waits no longer than this one writes, and goes on with its groups.
            with whole(self.path) as file:
                state = self._load()
                changes = state.assign(keys, texts, distinct.of_row, pairs)
                left = MAX_BYTES
                for line in self._lines(state):
                    left -= len(line)
                    if left < 0 or len(line) > MAX_LINE_BYTES or len(state.rows) > MAX_ROWS:
                        raise InputError(
                            f"{self.path}: would have more than {MAX_ROWS:,} rows, {MAX_BYTES:,} bytes, or"
                            f" {MAX_LINE_BYTES:,} in a line; give `groups_file` another name"
                        )
                    file.write(line)
        except OSError as error:
            raise InputError(f"{self.path}: cannot be written ({error.strerror or error})") from error
        return changes

    def _lines(self, state: GroupState) -> Iterator[bytes]:
        yield _line(self._head | {"next": state.next, "run": state.run})
        for pairs, word in ((state.merged, "merged_into"), (state.split, "split_from")):
            for group, other in pairs.items():
                yield _line({"group": group, word: other})
        for key, (texts, group, run) in state.rows.items():
            names = (
                {} if self._head["id"] is None
                else {"row": key} if isinstance(key, str) else {"source": key[0], "row": key[1]}
            )  # fmt: skip
            yield _line({**names, "texts": texts, "group": group, "run": run})

    def _load(self) -> GroupState:
        """Read the file. Raises InputError for one that is not valid, or of other columns or ids."""
        try:
            # A FIFO without a writer opens at once, and is refused below.
            with open(self.path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as file:
                status = os.fstat(file.fileno())
                if not stat.S_ISREG(status.st_mode):
                    raise InputError(f"{self.path}: is not a regular file; give `groups_file` another name")
                if status.st_size > MAX_BYTES:
                    raise InputError(
                        f"{self.path}: has {status.st_size:,} bytes, a file of groups at most {MAX_BYTES:,}"
                    )
                head = file.readline(MAX_LINE_BYTES + 1)
                self._check_head(head)
                return self._read(_parse(head, 1), iter(lambda: file.readline(MAX_LINE_BYTES + 1), b""))
        except FileNotFoundError:
            return GroupState()
        except OSError as error:
            raise InputError(f"{self.path}: cannot be read ({error.strerror or error})") from error
        except _InvalidGroups as error:
            raise InputError(
                f"{self.path}: is not a valid file of groups ({error}); give `groups_file` another name"
            ) from error

    def _check_head(self, line: bytes) -> None:
        head = _parse(line, 1)
        if head.get("format") != FORMAT or head.get("version") != VERSION:
            raise _InvalidGroups(f"its first line does not say {FORMAT!r}, version {VERSION}")
        for name, what in (("columns", "compares the columns"), ("id", "has the ids of"), ("sources", "has sources:")):
            if head.get(name) != self._head[name]:
                was = head.get(name)
                values = ", ".join(map(quote, was)) if isinstance(was, list) else "none" if was is None else quote(was)
                raise InputError(f"{self.path}: {what} {values}; do the same, or give `groups_file` another name")

    def _read(self, head: Mapping[str, Any], lines: Iterable[bytes]) -> GroupState:
        state = GroupState(_whole(head, "next", 1, 1), _whole(head, "run", 1, 0))
        names = [] if head["id"] is None else ["source", "row"] if head["sources"] else ["row"]
        for number, line in enumerate(lines, start=2):
            record = _parse(line, number)
            group = _whole(record, "group", number, 1, state.next - 1)
            for pairs, word in ((state.merged, "merged_into"), (state.split, "split_from")):
                if record.keys() == {"group", word} and group not in pairs:
                    pairs[group] = _whole(record, word, number, 1, group - 1)
                    break
            else:
                if record.keys() != {*names, "texts", "group", "run"}:
                    raise _InvalidGroups(f"line {number} has not the values of this file")
                texts = _text(record, "texts", number)
                if len(texts) != DIGEST_DIGITS or not _DIGITS.issuperset(texts):
                    raise _InvalidGroups(f"line {number}: texts is no digest")
                given = [_text(record, name, number) for name in names]
                key: RowKey = texts if not given else given[0] if len(given) == 1 else (given[0], given[1])
                if key in state.rows:
                    raise _InvalidGroups(f"line {number} names a row twice")
                if len(state.rows) >= MAX_ROWS:
                    raise _InvalidGroups(f"it has more than {MAX_ROWS:,} rows")
                state.rows[key] = GroupedRow(texts, group, _whole(record, "run", number, 1, state.run))
        retired = state.merged.keys()
        if any(into in retired for into in state.merged.values()) or any(
            row.group in retired for row in state.rows.values()
        ):
            raise _InvalidGroups("a row or a merged group has an id that was retired")
        return state


class _InvalidGroups(Exception):
    """A file is not a valid file of groups."""


def _digest(texts: Sequence[str]) -> str:
    return sha256(repr([*texts]).encode("utf-8", "surrogatepass")).hexdigest()[:DIGEST_DIGITS]


def _check_ids(ids: Sequence[str], sources: Sequence[str] | None, name_row: Callable[[int], str]) -> Sequence[RowKey]:
    """Return the keys of rows. Raises InputError for an id that is missing, too long or no text, or names two rows."""
    keys: Sequence[RowKey] = ids if sources is None else [*zip(sources, ids, strict=True)]
    first: dict[RowKey, int] = {}
    for row, key in enumerate(keys):
        for part in [key] if isinstance(key, str) else key:
            if not part or len(part) > MAX_ID or has_surrogate(part):
                raise InputError(
                    f"{name_row(row)} has no id, or one that is no text of at most {MAX_ID:,} characters; name another"
                    " column with `id`, or none, so that rows are known by their texts",
                    index=row,
                )
        if first.setdefault(key, row) != row:
            raise InputError(
                f"{name_row(first[key])} and {name_row(row)} have the same id {quote(ids[row])}; make them different,"
                " or name another column with `id`, or none",
                index=row,
            )
    return keys


def _line(record: Mapping[str, Any]) -> bytes:
    return orjson.dumps(record, option=orjson.OPT_APPEND_NEWLINE)


def _parse(line: bytes, number: int) -> dict[str, Any]:
    if len(line) > MAX_LINE_BYTES or not line.endswith(b"\n"):
        raise _InvalidGroups(f"line {number} is cut off or too long")
    try:
        record = json_bounds.parse(line)
    except ValueError:
        raise _InvalidGroups(f"line {number} is not JSON") from None
    if not isinstance(record, dict):
        raise _InvalidGroups(f"line {number} is not an object")
    return record


def _whole(record: Mapping[str, Any], name: str, line: int, lowest: int, highest: int = MAX_GROUP) -> int:
    value = record.get(name)
    if type(value) is not int or not lowest <= value <= highest:
        raise _InvalidGroups(f"line {line}: {name} is not a whole number from {lowest:,} to {highest:,}")
    return value


def _text(record: Mapping[str, Any], name: str, line: int) -> str:
    value = record.get(name)
    if not isinstance(value, str) or not 0 < len(value) <= MAX_ID:
        raise _InvalidGroups(f"line {line}: {name} is not a text of 1 to {MAX_ID:,} characters")
    return value
