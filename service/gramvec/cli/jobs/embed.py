"""`gramvec embed`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from gramvec.cli.jobs.run import make_job, show_job
from gramvec.cli.options import POSITIVE, THREADS, device_option, model_option, space_option
from gramvec.embed.embedder import MAX_CHARACTERS
from gramvec.jobs.bulk.embed_file import COLUMN, EMBEDDING, OUTPUT_FORMS
from gramvec.jobs.bulk.job import EmbedJob
from gramvec.jobs.tables.batches import BLOCK_ROWS
from gramvec.jobs.tables.inputs import FORMS, STDIN, UTF_8


def _there(context: click.Context, parameter: click.Parameter, path: Path) -> Path:
    if path != STDIN and not path.exists():
        is_text = " " in str(path) and not path.suffix
        remedy = "; a text is read from a pipe: write echo TEXT | before the command" if is_text else ""
        raise click.BadParameter(f"'{path}': No such file or directory{remedy}")
    return path


source_argument = click.argument(
    "source",
    metavar="[INPUT]",
    type=click.Path(path_type=Path, dir_okay=False, allow_dash=True),
    default="-",
    callback=_there,
)


def input_format_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add --input-format, --delimiter, --encoding and --sheet, which are fields of `InputFile`."""
    for option in reversed(_INPUT_FORMAT_OPTIONS):
        command = option(command)
    return command


_INPUT_FORMAT_OPTIONS = (
    click.option("--input-format", type=click.Choice(FORMS), help="[by INPUT's ending, or txt]"),
    click.option("--delimiter", help="Character between the columns of CSV, such as ';' or tab.  [by the header]"),
    click.option("--encoding", default=UTF_8, show_default=True, help="Encoding of INPUT, such as cp1252."),
    click.option("--sheet", metavar="NAME", help="Sheet of .xlsx or .ods.  [the first]"),
)


column_option = click.option("--column", default=COLUMN, show_default=True, help="Which column or member is the text.")
on_error_option = click.option(
    "--on-error", type=click.Choice(["stop", "skip"]), default="stop", show_default=True,
    help="Stop at a bad row, or skip it and report it.",
)  # fmt: skip
max_characters_option = click.option("--max-characters", type=POSITIVE, default=MAX_CHARACTERS, show_default=True)
truncate_option = click.option(
    "--truncate", is_flag=True, help="Cut a text at --max-characters instead of refusing it."
)
overwrite_option = click.option(
    "--overwrite", is_flag=True, help="Replace an output that gramvec did not write, or that was changed since."
)
safe_cells_option = click.option(
    "--safe-cells",
    is_flag=True,
    help="Write cells of CSV that a spreadsheet takes for formulas as texts, with ' before.",
)
bom_option = click.option(
    "--bom", is_flag=True, help="Begin CSV and TSV with a byte order mark, by which Excel knows UTF-8."
)
threads_option = click.option("--threads", type=THREADS, help="How many cores work. [all]")


@click.command("embed", short_help="Embed the lines of a file.")
@source_argument
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    default="-",
    help="A .jsonl, .npy, .csv, .tsv or .parquet file. [stdout]",
)
@click.option("--format", type=click.Choice(OUTPUT_FORMS), help="[by OUTPUT's ending, or jsonl]")
@input_format_options
@column_option
@click.option("--embedding-column", default=EMBEDDING, show_default=True, help="What the vectors' column is called.")
@model_option
@device_option
@space_option
@click.option("--normalize/--no-normalize", default=True, show_default=True, help="Vectors of length 1.")
@click.option("--dimensions", type=POSITIVE, help="Keep only the first N columns.")
@click.option(
    "--precision",
    type=click.Choice(["float32", "int8", "uint8", "binary", "ubinary"]),
    default="float32",
    show_default=True,
)
@truncate_option
@max_characters_option
@on_error_option
@click.option("--resume", is_flag=True, help="Continue where a run with the same options was stopped.")
@overwrite_option
@safe_cells_option
@click.option(
    "--batch-size",
    type=POSITIVE,
    help=f"Lines that a core takes at a time.  [{BLOCK_ROWS}, on a GPU more]",
)
@threads_option
def embed(**options: Any) -> None:
    """Embed the texts of INPUT (stdin without it), an empty one too: lines of .txt, or the column "text" of .csv,
    .tsv (with a header), .jsonl, .json, .parquet, .xlsx and .ods; also .gz and .zst.

    JSONL and Parquet keep the other columns and add "embedding"; CSV and TSV add a column for each dimension,
    "embedding_0" and so on; NPY is an array of shape (texts, d). A column with dots, such as doc.title, is a member of
    a member. Parquet wants pyarrow, pip install 'gramvec[bulk]', and
    spreadsheets python-calamine, pip install 'gramvec[sheets]'.

    \b
    Examples:
      printf 'cheap flights\\nlow-cost air fares\\n' | gramvec embed
      gramvec embed titles.txt -o titles.npy
      gramvec embed tickets.csv --column subject -o tickets.parquet --resume
    """  # noqa: D301 - click takes the character, not its escape
    job = make_job(EmbedJob, **options)
    with show_job() as watch:
        job.run(watch)
