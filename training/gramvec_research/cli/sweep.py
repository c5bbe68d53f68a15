# ruff: noqa: D301  (click takes a real backspace as "do not wrap")
"""python -m gramvec_research sweep: one config, some of its settings varied, from one command."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gramvec.errors import GramvecError
from gramvec_training.cli.records import record_options
from gramvec_training.cli.support import DATA, NO_DATA, PATH, one_sentence, run
from gramvec_training.options import RunOptions

if TYPE_CHECKING:
    from gramvec_research.sweep import SweepCell
    from gramvec_training.config import Config


class _Numbers(click.ParamType):  # type: ignore[type-arg]
    """Positive numbers separated by commas, each once."""

    name = "numbers"

    def __init__(self, kind: type[int] | type[float]) -> None:
        self._kind = kind

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the numbers as a tuple, in the order given."""
        try:
            numbers = tuple(dict.fromkeys(self._kind(number) for number in value.split(",")))
        except ValueError:
            numbers = ()
        if not numbers or not all(0 < number < float("inf") for number in numbers):
            self.fail(f"{value!r} is not a list of positive numbers such as 2,3,4.", param, ctx)
        return numbers


@click.command()
@click.argument("config", type=PATH)
@click.option("--orders", type=_Numbers(int), multiple=True,
              help="A set of n-gram orders; repeatable.  [default: 2 / 2,3 / 2,3,4 / 2,3,4,5 / 2,3,4,5,6]")  # fmt: skip
@click.option("--sizes", type=_Numbers(int), help="Numbers of n-grams of each order.  [default: 100,1000,50000]")
@click.option("-a", "values", type=_Numbers(float),
              help="Of a [sif] config.  [default: 3 and 1 times 10^-1 to 10^-5]")  # fmt: skip
@click.option("--mean-of", multiple=True, metavar="TASK",
              help="Mean over the sets of this task, or this task/set; repeatable.  [default: all]")  # fmt: skip
@click.option("--out", type=PATH, help="Folder of the runs.  [default: runs/NAME-sweep]")
@click.option("--json", "json_path", type=click.Path(path_type=Path, allow_dash=True),
              help="Write the results here too; - for stdout, instead of the tables.")  # fmt: skip
@DATA
@record_options("options", RunOptions)
@one_sentence
def sweep(
    config: Path, orders: tuple[tuple[int, ...], ...], sizes: tuple[int, ...] | None, values: tuple[float, ...] | None,
    mean_of: tuple[str, ...], out: Path | None, json_path: Path | None, data: Path | None, options: RunOptions,
) -> None:  # fmt: skip
    """Train CONFIG once for each of several settings and compare the scores on its development sets.

    A config with [training] varies the orders of n-grams and how many of each order have a row (CHARAGRAM, Table 5),
    one with [sif] varies a (SIF, Figure 2a). Each setting is a run folder in --out, as fit would write it; sweep.json
    beside them holds the results. Stopped, the sweep continues with --resume: finished settings are not repeated.

    \b
    python -m gramvec_research sweep training/configs/papers/charagram-research.toml --orders 2 --orders 2,3,4
    python -m gramvec_research sweep training/configs/shipped/sif.toml --out runs/sif-sweep
    python -m gramvec_research sweep training/configs/papers/charagram-table-5-words.toml --mean-of words/simlex999
    """
    if options.resume and options.overwrite:
        raise click.UsageError("give --resume or --overwrite, not both")
    if data is None:
        raise click.UsageError(NO_DATA)
    if values and (orders or sizes):
        raise click.UsageError("-a belongs to a [sif] config, --orders and --sizes to a [training] one")
    from gramvec_research.sweep import check_mean, make_tables, read_result, to_json
    from gramvec_training.config import load_config
    from gramvec_training.runs.adhoc_config import format_command, show_path
    from gramvec_training.shared import write_atomically

    wanted = load_config(config)
    cells = _cells(wanted, orders, sizes, values)
    check_mean(mean_of, wanted, data)
    folder = out or Path("runs") / f"{wanted.model.name}-sweep"
    _check_way(folder, cells, options)

    results = []
    for number, cell in enumerate(cells, start=1):
        click.echo(f"{number} of {len(cells)}: {cell.folder}", err=True)
        command = format_command("sweep", show_path(config))
        record = _record(folder / cell.folder, cell.config, data, command, options)
        results.append(read_result(cell, record, mean_of))
        write_atomically(folder / "sweep.json", lambda handle: handle.write(to_json(results)))
    if json_path is not None and str(json_path) != "-":
        json_path.write_bytes(to_json(results))
    click.echo(to_json(results).decode().rstrip() if str(json_path) == "-" else make_tables(results))


def _cells(
    config: Config,
    orders: tuple[tuple[int, ...], ...],
    sizes: tuple[int, ...] | None,
    values: tuple[float, ...] | None,
) -> list[SweepCell]:
    from gramvec_research.sweep import FIGURE_2A, TABLE_5_ORDERS, TABLE_5_SIZES, list_ngram_cells, list_sif_cells

    if values or (config.sif is not None and not (orders or sizes)):
        return list_sif_cells(config, values or FIGURE_2A)
    return list_ngram_cells(config, tuple(dict.fromkeys(orders)) or TABLE_5_ORDERS, sizes or TABLE_5_SIZES)


def _check_way(folder: Path, cells: list[SweepCell], options: RunOptions) -> None:
    if folder.exists() and not folder.is_dir():
        raise GramvecError(f"{folder}: not a folder but a file; give --out a folder")
    if not (options.resume or options.overwrite) and any((folder / cell.folder).exists() for cell in cells):
        raise GramvecError(
            f"{folder}: holds runs of this sweep already; give another --out, --overwrite to start over, or --resume"
        )


def _record(folder: Path, config: Config, data: Path, command: str, options: RunOptions) -> dict[str, Any]:
    """Return the record of a cell's run, which is begun, continued, or finished already."""
    from gramvec_training.runs import run_dir

    if options.overwrite or not folder.exists() or not any(folder.iterdir()):
        run_dir.make_way(folder, overwrite=options.overwrite)
        begun = run_dir.begin_run(folder, config, data, command=command)
    else:
        begun = run_dir.read_begun(folder)
        if begun.config != config:
            raise GramvecError(f"{folder}: the run has another config; give another --out, or --overwrite")
    if run_dir.is_finished(folder):
        return run_dir.load_run(folder).record
    resume = (folder / run_dir.CHECKPOINT).exists()
    return run(
        begun, folder, options.model_copy(update={"resume": resume}), again="with the same command and --resume."
    )
