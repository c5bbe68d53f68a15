"""Records of a program into a file of JSON lines, which is what an index is built from."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import orjson

from gramvec.errors import InputError
from gramvec.text.inputs import iterated, no_text

Record = dict[str, Any]


def rows_of(records: Any) -> Iterable[Any]:
    """Return the rows of one record, an iterable of records, or a frame of pandas, polars or pyarrow.

    Raises InputError for an unordered collection and for any other value.
    """
    if isinstance(records, str | dict):
        return [records]
    if len(getattr(records, "shape", ())) == 2:
        if hasattr(records, "to_pylist"):  # pyarrow's
            return list(records.to_pylist())
        if hasattr(records, "to_dicts"):  # polars'
            return list(records.to_dicts())
        if hasattr(records, "to_dict"):  # pandas'
            return list(records.to_dict("records"))
    return iterated(records)


class spooled:  # noqa: N801 - read as a function
    """A file of JSON lines with these records, which lies beside nothing and is gone afterwards."""

    def __init__(self, records: Any, column: str) -> None:
        self._records = rows_of(records)
        self._column = column

    def __enter__(self) -> Path:
        self._folder = tempfile.TemporaryDirectory(prefix="gramvec-")
        path = Path(self._folder.name) / "records.jsonl"
        try:
            with path.open("wb") as file:
                for place, one in enumerate(self._records):
                    file.write(self._line(place, one))
        except BaseException:
            self._folder.cleanup()
            raise
        return path

    def _line(self, place: int, one: object) -> bytes:
        record = {self._column: str(one)} if isinstance(one, str) else one
        if not isinstance(record, dict):
            said = str(no_text(place, one)).replace("text", "record", 1).replace("give str", "give a text or a dict")
            raise InputError(said, index=place)
        try:
            return orjson.dumps(record, option=orjson.OPT_APPEND_NEWLINE)
        except TypeError as error:
            raise InputError(f"record {place} has no form in JSON ({error})", index=place) from error

    def __exit__(self, *_: object) -> None:
        self._folder.cleanup()
