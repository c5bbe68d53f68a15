# ruff: noqa: D301  (click takes a real backspace as "do not wrap")
"""The command `gramvec-train languages`, which makes a model of many languages."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import click

from gramvec.jobs.common.bars import TerminalWatch
from gramvec_training.api import may_replace
from gramvec_training.cli.support import DATA, NO_DATA, PATH, one_sentence
from gramvec_training.options import TEACHER_CACHE


@click.command()
@click.argument("config", type=PATH)
@click.option("-o", "--out", type=PATH, required=True, help="Bundle folder to write; replaced where it exists.")
@DATA
@click.option("--cache", type=PATH, default=TEACHER_CACHE, show_default=True,
              help="Where the teacher's vectors are kept; a word is computed once.")  # fmt: skip
@click.option("--threads", type=click.IntRange(min=1), default=1, show_default=True, help="Of the teacher on a CPU.")
@click.option("--name", help="Name of the model.  [default: the config's]")
@one_sentence
def languages(config: Path, out: Path, data: Path | None, cache: Path, threads: int, name: str | None) -> None:
    """Make the model of many languages of CONFIG: words with a teacher's vectors, and n-grams that are fitted to them.

    The teacher's vectors are computed once and cached, block by block, so a run that is stopped goes on where it was;
    the rest takes minutes.

    \b
    gramvec-train languages training/configs/gramvec-multi.toml -o models/gramvec-multi
    """
    if data is None:
        raise click.UsageError(NO_DATA)
    may_replace(out)
    from gramvec_training.fitting.trainer import choose_device
    from gramvec_training.runs.adhoc_config import format_command, show_path
    from gramvec_training.runs.languages import build_table, export_languages, load_languages
    from gramvec_training.teachers import open_teacher

    wanted = load_languages(config)
    taught = wanted.teacher
    teacher = open_teacher(
        taught.model, cache, device=choose_device("auto"), threads=threads, precision=taught.precision
    )
    with closing(TerminalWatch()) as watch:
        table = build_table(wanted, data, teacher, progress=watch)
    command = format_command("languages", show_path(config))
    manifest = export_languages(table, wanted, out, name=name or wanted.name, command=command)
    size = sum(file.stat().st_size for file in out.iterdir())
    click.echo(
        f"{out}: {manifest.words:,} words and {manifest.ngrams:,} n-grams of {manifest.dimension} columns, "
        f"{manifest.graph.precision}, {size / 1e6:.1f} MB"
    )
