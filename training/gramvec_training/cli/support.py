"""Shared parts of the commands: options, log lines and errors on stderr, and running a config."""

from __future__ import annotations

import functools
import logging
import os
import shlex
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

import click

from gramvec.cli.flags import explain_error
from gramvec.errors import GramvecError, InputError
from gramvec.jobs.common.bars import TerminalWatch
from gramvec.jobs.tables.inputs import why_not_written
from gramvec_training.api import begin
from gramvec_training.cli.records import PATH as PATH
from gramvec_training.cli.records import field_option
from gramvec_training.options import RunOptions

# torch, scipy and onnx are imported inside the functions, so that --help answers at once.
if TYPE_CHECKING:
    from gramvec_training.config import Config
    from gramvec_training.readers.lines import RowsRead
    from gramvec_training.runs.run_dir import StartedRun

P = ParamSpec("P")
R = TypeVar("R")

_BEGAN = "gramvec_training.began"
TRAIN_EXTRA = {"torch", "onnx", "scipy", "matplotlib"}  # what the extra of that name brings

NO_DATA = (
    "give --data FOLDER, which the paths in a config are relative to, or set GRAMVEC_DATA to the folder that holds it "
    "as train; docs/training-data.md lists what it has"
)


def _train_folder() -> Path | None:
    folder = os.environ.get("GRAMVEC_DATA")
    return Path(folder) / "train" if folder else None


DATA = click.option(
    "--data",
    type=PATH,
    default=_train_folder,
    show_default="$GRAMVEC_DATA/train",
    help="Folder that the paths in a config are relative to.",
)
OVERWRITE = field_option(RunOptions, "overwrite")


class Notes(logging.Handler):
    """Log handler that prints plain lines to stderr."""

    def emit(self, record: logging.LogRecord) -> None:
        """Print one record."""
        click.echo(self.format(record), err=True)


def one_sentence(command: Callable[P, R]) -> Callable[P, R]:
    """End the command with one line on stderr and exit code 1 for errors that gramvec raises on purpose."""

    @functools.wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return command(*args, **kwargs)
        except ModuleNotFoundError as error:
            if error.name not in TRAIN_EXTRA:
                raise
            click.echo(f"gramvec-train: {error.name} is not installed; install gramvec[train]", err=True)
            raise SystemExit(1) from error
        except GramvecError as error:
            context = click.get_current_context(silent=True)
            sentence = explain_error(error, context.command if context is not None else None)
            click.echo(f"gramvec-train: {sentence}", err=True)
            raise SystemExit(1) from error
        except BrokenPipeError:
            raise  # click ends quietly: the reader has closed the pipe
        except OSError as error:
            click.echo(f"gramvec-train: {why_not_written(error)}", err=True)
            raise SystemExit(1) from error

    return run


def list_given(*names: str) -> list[str]:
    """Return those of the named parameters that the caller gave, as options with their values."""
    context = click.get_current_context()
    words: list[str] = []
    for parameter in context.command.params:
        source = context.get_parameter_source(parameter.name or "")
        if parameter.name in names and source is not None and source.name != "DEFAULT":
            words += [parameter.opts[0], str(context.params[parameter.name])]
    return words


def start_clock() -> None:
    """Record the start of the command for `measure_seconds`."""
    click.get_current_context().find_root().meta[_BEGAN] = time.monotonic()


def measure_seconds() -> float:
    """Return the wall seconds since the command began."""
    began: float = click.get_current_context().find_root().meta[_BEGAN]
    return time.monotonic() - began


ANYWAY = click.option("--anyway", is_flag=True, help="Write the model although it is no better than before.")


def describe_not_written(bundle: Path, instead: str) -> str:
    """Return why a bundle was not written."""
    return f"{bundle}: not written, because the new model is no better for sure; {instead}, or give --anyway"


def write_bundle(
    run: Path, out: Path, *, precision: str | None = None, name: str | None = None, config: Path | None = None
) -> None:
    """Export the finished run and report the bundle's size and parity; by default its name is the folder's.

    config: whose [export] holds instead of the run's own.
    """
    from gramvec_training.config import load_config
    from gramvec_training.runs.run_dir import export_run, load_run

    export = load_config(config).export if config else None
    name = name or out.resolve().name
    manifest = export_run(load_run(run), out, export=export, precision=precision, name=name)  # type: ignore[arg-type]
    size = sum(file.stat().st_size for file in out.iterdir())
    parity = manifest.provenance["parity"]
    click.echo(
        f"{out}: {manifest.rows:,} rows of {manifest.dimension}, {manifest.graph.precision}, {size / 1e6:.1f} MB; "
        f"1 - cosine on {parity['texts']:,} texts: onnxruntime against torch "
        f"{parity['float32_vs_trainer']:.1e}, as stored {parity['stored_vs_float32']:.1e}"
    )


def run_and_report(
    folder: Path,
    wanted: Config | None,
    data: Path | None,
    command: str,
    *,
    options: RunOptions,
    bundle: Path | None = None,
    anyway: bool = True,
    read: RowsRead | None = None,
) -> None:
    """Start or continue the run in `folder` and report it, then write its bundle if one is wanted.

    Without `wanted` the config is the begun run's. read: the rows of the config's one file, if they were read already.

    Raises:
        InputError: The model is no better than the one it started from, and not `anyway`.
    """
    from gramvec_training.runs import run_dir

    if options.resume and options.overwrite and bundle is None:
        raise click.UsageError("give --resume or --overwrite, not both")
    begun = begin(folder, wanted, data or Path(), command=command, options=options, read=read)
    if run_dir.is_finished(folder):
        click.echo(f"{folder}: the run is finished already", err=True)
    else:
        what = "distill" if begun.config.distillation is not None else "fit"
        words = ["gramvec-train", what, "--out", str(folder), "--resume"]
        words += ["--export", str(bundle)] if bundle is not None else []
        words += ["--overwrite"] if bundle is not None and options.overwrite else []
        words += ["--anyway"] if bundle is not None and anyway else []
        _report(run(begun, folder, options, again=f"with: {shlex.join(words)}"), folder)
    if bundle is not None:
        if not anyway and not run_dir.is_better(run_dir.load_run(folder).record):
            raise InputError(describe_not_written(bundle, "keep the model that it started from"))
        write_bundle(folder, bundle)


def run(begun: StartedRun, folder: Path, options: RunOptions, *, again: str) -> dict[str, Any]:
    """Carry out a run and return its record; when stopped, print how to continue, which `again` completes."""
    from gramvec_training.fitting.loop import TrainingInterrupted
    from gramvec_training.runs.train import train

    try:
        with closing(TerminalWatch()) as watch:
            return train(begun, folder, options, watch=watch)
    except TrainingInterrupted as stop:
        click.echo(f"{stop}; continue {again}", err=True)
        raise SystemExit(128 + stop.signal_number) from None


def _report(record: dict[str, Any], folder: Path) -> None:
    from gramvec_training.evaluation.report import format_table

    if record["scores"]["tasks"]:
        click.echo(format_table({record["name"]: record["scores"]}))
    report_held_out(record)
    new = f" ({record['rows'] - record['start']['rows']:,} new)" if "start" in record else ""
    taken = f"{measure_seconds():.0f} s, of which training {record['seconds']:.0f} s"
    click.echo(f"{folder}: {record['rows']:,} rows{new}, {taken}")


def report_held_out(record: dict[str, Any]) -> None:
    """Print the tables of a record's held-out texts and pairs, with a note where the model has become worse."""
    from gramvec_training.evaluation.classification import show_label_report
    from gramvec_training.evaluation.tasks import show_retrieval
    from gramvec_training.evaluation.verdict import describe_verdict

    if (labels := record.get("labels")) is not None:
        click.echo(show_label_report(labels))
        if labels["after"]["logistic"] is None:
            click.echo("logistic regression is left out: texts x labels x columns are too many", err=True)
        if "verdict" in labels:
            click.echo(describe_verdict(labels["verdict"]))
            if labels["verdict"]["after"] < labels["verdict"]["before"]:
                click.echo("labels are found less well than before; try fewer --epochs or a lower --rate", err=True)
    held_out = record.get("held_out")
    if held_out is None:
        return
    click.echo(show_retrieval(held_out))
    if "verdict" in held_out:
        click.echo(describe_verdict(held_out["verdict"]))
    if "verdict" in held_out and held_out["verdict"]["after"] < held_out["verdict"]["before"]:
        click.echo("the held-out pairs are found less well than before; try fewer --epochs or a lower --rate", err=True)
