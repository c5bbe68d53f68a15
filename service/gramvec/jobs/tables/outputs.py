"""Outputs of commands: the form that an ending names, and rows as CSV, TSV, JSON lines, Parquet or a spreadsheet."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, Literal, TypeVar, get_args

from gramvec.errors import InputError
from gramvec.jobs.tables.decoding import UTF_8_MARK
from gramvec.jobs.tables.inputs import STDIN
from gramvec.jobs.tables.staging import is_stream, output_file
from gramvec.jobs.tables.writers import encoder, header_line

TableForm = Literal["csv", "tsv", "jsonl", "parquet", "xlsx"]
TABLE_FORMS: tuple[TableForm, ...] = get_args(TableForm)
ALIASES = {"ndjson": "jsonl", "pq": "parquet"}
# Forms whose beginning or end is written last, which a pipe cannot be.
NEED_A_FILE = ("npy", "parquet", "xlsx")
# Forms that may begin with a byte order mark, by which Excel knows UTF-8.
MARKED_FORMS = ("csv", "tsv")
# Rows that become a row group of Parquet, or are encoded at a time.
GROUP_ROWS = 16_384

AnyForm = TypeVar("AnyForm", bound=str)


def form_to_write(
    output: Path | None,
    forms: Sequence[AnyForm],
    given: AnyForm | None = None,
    default: AnyForm | None = None,
    option: str = "format",
) -> AnyForm:
    """Return the form of an output: the given one, else what its ending names.

    Args:
        output: the file; None or - is standard output.
        forms: what the command writes.
        given: the value of the option.
        default: of standard output, pipes and devices; None for the first of `forms`.
        option: what names the form, for messages; "" where nothing does.

    Raises:
        InputError: no form has this ending, or a pipe was asked for a form that needs a file.
    """
    is_pipe = output is None or output == STDIN or is_stream(output)
    if given is None:
        if is_pipe:
            return default or forms[0]
        assert output is not None
        ending = output.suffix.lower().removeprefix(".")
        found = next((form for form in forms if form == ALIASES.get(ending, ending)), None)
        if found is None:
            endings = ", ".join(f".{form}" for form in forms)
            has = f"nothing is written as .{ending}" if ending else "the name has no ending"
            more = f", or give `{option}`" if option else ""
            raise InputError(f"{output}: {has}; name a file with one of {endings}{more}")
        return found
    if is_pipe and given in NEED_A_FILE:
        raise InputError(
            f"format: {given} needs a file, its header or footer is written last; name one as `output`", field="format"
        )
    return given


def check_mark(form: str, *, bom: bool) -> None:
    """Raise InputError where a byte order mark is wanted of a form that has none."""
    if bom and form not in MARKED_FORMS:
        raise InputError(f"bom: begins .csv and .tsv with a byte order mark, and this is {form}; leave it out",
                         field="bom")  # fmt: skip


def free_names(names: Iterable[str], prefix: str, taken: Iterable[str]) -> dict[str, str]:
    """Return the name that each column is written with: its own, with `prefix` as often as `taken` has it.

    Args:
        names: columns of a table, each once.
        prefix: such as "left_".
        taken: names of other columns.
    """
    found: dict[str, str] = {}
    used = {*taken}
    for name in names:
        free = name
        while free in used:
            free = prefix + free
        used.add(free)
        found[name] = free
    return found


def write_table(
    output: Path | None,
    form: TableForm,
    names: Sequence[str],
    records: Iterable[dict[str, Any]],
    *,
    header: bool = True,
    safe_cells: bool = False,
    bom: bool = False,
) -> None:
    """Write rows to standard output, a pipe, or a file that appears when it is whole.

    Args:
        output: the file; None or - for standard output.
        form: how the rows are written.
        names: the columns, in order; a row without one has nothing there.
        records: the rows. Lists are joined with " | " in CSV and TSV; TSV has spaces for tabs and line feeds.
        header: whether the first line of CSV and TSV names the columns.
        safe_cells: whether cells and names of CSV and TSV that a spreadsheet would take for formulas are made texts.
        bom: whether CSV and TSV begin with a byte order mark.

    Raises:
        InputError: a value has no place in the form; the message has the number of the row.
    """
    with output_file(output) as file:
        write_records(file, form, names, records, header=header, safe_cells=safe_cells, bom=bom)


def write_records(
    file: BinaryIO,
    form: TableForm,
    names: Sequence[str],
    records: Iterable[dict[str, Any]],
    *,
    header: bool = True,
    safe_cells: bool = False,
    bom: bool = False,
) -> None:
    """Write rows to an open file. Arguments and errors as of `write_table`."""
    if form == "parquet":
        _write_parquet(file, names, iter(records))
        return
    if form == "xlsx":
        from gramvec.jobs.tables.xlsx import write_xlsx

        write_xlsx(file, names, records)
        return
    if bom and form in MARKED_FORMS:
        file.write(UTF_8_MARK)
    if form != "jsonl" and header:
        file.write(header_line(form, names, safe_cells=safe_cells).encode())
    encode = encoder(form, names, safe_cells=safe_cells)
    file.writelines(encode(number, record) for number, record in enumerate(records, start=1))


def _write_parquet(file: BinaryIO, names: Sequence[str], records: Any) -> None:
    from gramvec.jobs.tables.parquet import pyarrow

    pa, pq = pyarrow(), pyarrow(module="pyarrow.parquet")
    first = list(islice(records, GROUP_ROWS))
    fields = [pa.field(name, _type_of(pa, name, first)) for name in names]
    schema = pa.schema(fields)
    with pq.ParquetWriter(file, schema) as writer:
        row, group = 0, first
        while group:
            writer.write_table(pa.table([_column(pa, field, group, row) for field in fields], schema=schema))
            row += len(group)
            group = list(islice(records, GROUP_ROWS))


def _type_of(pa: Any, name: str, records: Sequence[dict[str, Any]]) -> Any:
    try:
        found = pa.array([record.get(name) for record in records]).type
    except (pa.ArrowException, TypeError, OverflowError) as error:
        raise InputError(
            f"column {name!r}: its values have no common type ({error}); give one type, or write .jsonl"
        ) from error
    return pa.string() if pa.types.is_null(found) else found


def _column(pa: Any, field: Any, records: Sequence[dict[str, Any]], before: int) -> Any:
    try:
        return pa.array([record.get(field.name) for record in records], type=field.type)
    except (pa.ArrowException, TypeError, OverflowError) as error:
        raise InputError(
            f"rows {before + 1} to {before + len(records)}: column {field.name!r} has a value of another type than in"
            f" the first rows ({error}); give one type, or write .jsonl"
        ) from error
