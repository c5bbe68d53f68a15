"""Options of a job that reads one file: where it is, and how it is written."""

from __future__ import annotations

from pathlib import Path
from typing import Self

from pydantic import model_validator

from gramvec.jobs.common.bad_rows import OnError
from gramvec.jobs.common.file_job import FileJob
from gramvec.jobs.tables.inputs import UTF_8, FileFormat, Form, form_of


class InputFile(FileJob):
    """File that a job reads.

    Attributes:
        source: a table or lines of text, plain or compressed; - is standard input.
        input_format: form of the file; None goes by its ending.
        delimiter: character between the columns of CSV; None recognizes it by the header.
        encoding: of the file.
        sheet: of a spreadsheet; None for the first.
        on_error: "stop" at a bad row, or "skip" it.
    """

    source: Path
    input_format: Form | None = None
    delimiter: str | None = None
    encoding: str = UTF_8
    sheet: str | None = None
    on_error: OnError = "stop"

    @model_validator(mode="after")
    def _check_format(self) -> Self:
        self.file_format()
        return self

    def file_format(self) -> FileFormat:
        """Return the format of the file. Raises InputError for a format that cannot be used."""
        form = self.input_format or form_of(self.source)
        return FileFormat(form, self.delimiter, self.encoding, self.sheet)
