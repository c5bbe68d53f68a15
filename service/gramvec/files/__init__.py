"""Files into blocks of rows, and blocks into files: text, JSON, CSV, Parquet, plain or compressed, staged, resumable.

May import errors alone. A new format to read is a Reader (`readers`), one to write a Writes (`forms`).
"""

from __future__ import annotations

from gramvec.files.arrow import pyarrow, texts_of, vector_column, with_metadata
from gramvec.files.bad_lines import BadLines
from gramvec.files.blocks import BLOCK_ROWS, START, Block, Position, Reader
from gramvec.files.forms import JsonForm, NpyForm, OutputForm, Writes, json_line, records_of
from gramvec.files.parquet import ParquetForm, ParquetReader
from gramvec.files.readers import CsvReader, open_reader
from gramvec.files.sources import FORMS, MAX_LINE_BYTES, STDIN, Form, Lines, Source, form_of
from gramvec.files.stage import Job, Progress, Stage, open_stage, whole
from gramvec.files.text_lines import read_lines, why_not_written

__all__ = [
    "BLOCK_ROWS",
    "FORMS",
    "MAX_LINE_BYTES",
    "START",
    "STDIN",
    "BadLines",
    "Block",
    "CsvReader",
    "Form",
    "Job",
    "JsonForm",
    "Lines",
    "NpyForm",
    "OutputForm",
    "ParquetForm",
    "ParquetReader",
    "Position",
    "Progress",
    "Reader",
    "Source",
    "Stage",
    "Writes",
    "form_of",
    "json_line",
    "open_reader",
    "open_stage",
    "pyarrow",
    "read_lines",
    "records_of",
    "texts_of",
    "vector_column",
    "whole",
    "why_not_written",
    "with_metadata",
]
