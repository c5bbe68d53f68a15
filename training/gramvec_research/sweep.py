"""One config with one or two of its settings varied: a finished run for each cell, and their scores side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from gramvec.errors import InputError
from gramvec_training.config import Config, parse_config
from gramvec_training.evaluation.report import align
from gramvec_training.evaluation.similarity import find_sets

# CHARAGRAM, Table 5: n-grams of these orders, and of each order the k most frequent.
TABLE_5_ORDERS = ((2,), (2, 3), (2, 3, 4), (2, 3, 4, 5), (2, 3, 4, 5, 6))
TABLE_5_SIZES = (100, 1_000, 50_000)
# SIF, Figure 2a: 10^-i and 3 * 10^-i for i from 1 to 5.
FIGURE_2A = tuple(float(f"{m}e-{i}") for i in range(1, 6) for m in (3, 1))


def spell_orders(orders: tuple[int, ...]) -> str:
    """Return a set of orders that begins with 2 as a range, "2-4"."""
    return "2" if orders == (2,) else f"2-{orders[-1]}"


@dataclass(frozen=True)
class SweepCell:
    """One run of a sweep: its place in the table, its folder's name, and its config."""

    row: str
    column: str
    folder: str
    config: Config


def list_ngram_cells(config: Config, orders: Sequence[tuple[int, ...]], sizes: Sequence[int]) -> list[SweepCell]:
    """Return a cell for each number of n-grams of each order (rows) and each set of orders (columns), as in Table 5."""
    _check(config)
    if config.training is None or not config.features.orders:
        raise InputError("only a config with [training] and features.orders can vary its n-grams; [sif] varies a")
    cells = []
    for size in sizes:
        for orders_of_cell in orders:
            changes: dict[str, dict[str, Any]] = {
                "features": {"orders": orders_of_cell},
                "vocabulary": {"max_ngrams_each": size},
            }
            name = f"orders-{'-'.join(map(str, orders_of_cell))}_each-{size}"
            cells.append(SweepCell(f"{size:,}", ",".join(map(str, orders_of_cell)), name, _change(config, changes)))
    return cells


def list_sif_cells(config: Config, values: Sequence[float]) -> list[SweepCell]:
    """Return a cell for each value of a. A run that the config names is beside the sweep's folder, not inside."""
    _check(config)
    if config.sif is None:
        raise InputError("only a config with [sif] can vary a; [training] varies its n-grams")
    run = {} if config.sif.run is None else {"run": (Path("..") / config.sif.run).as_posix()}
    return [SweepCell(f"{a:g}", "", f"a-{a:g}", _change(config, {"sif": {"a": a, **run}})) for a in values]


def _check(config: Config) -> None:
    if not config.dev.sets:
        raise InputError("the config names no development sets, so a sweep has nothing to compare; add [dev] sets")


def _change(config: Config, changes: dict[str, dict[str, Any]]) -> Config:
    values = config.model_dump()
    for section, change in changes.items():
        values[section] = {**values[section], **change}
    return parse_config(values, source="the sweep")


def check_mean(names: Sequence[str], config: Config, data: Path) -> None:
    """Raise InputError where a sweep is to take its mean over a task, or a task/set, that the config does not score."""
    sets = find_sets([data / path for path in config.dev.sets])[0]
    known = {similarity_set.task for similarity_set in sets} | {
        f"{similarity_set.task}/{similarity_set.name}" for similarity_set in sets
    }
    for name in names:
        if name not in known:
            raise InputError(f"the config scores no {name}; there are {', '.join(sorted(known))}")


def read_result(cell: SweepCell, record: dict[str, Any], mean_of: Sequence[str] = ()) -> dict[str, Any]:
    """Return the figures of a finished run for its cell, for JSON: rows, seconds, and Pearson and Spearman times 100.

    `tasks`: task -> mean over its sets. `mean`: over all sets of the tasks, or the single task/set, that `mean_of`
    names, by default of all tasks; Table 5 of CHARAGRAM has the sets of sentences, or one set of words, and no other.
    """
    tasks = record["scores"]["tasks"]
    named = set(mean_of) or set(tasks)
    sets = [
        scores
        for task, result in tasks.items()
        for name, scores in result["sets"].items()
        if task in named or f"{task}/{name}" in named
    ]
    measures = ("pearson", "spearman")
    return {
        "row": cell.row,
        "column": cell.column,
        "run": cell.folder,
        "orders": list(cell.config.features.orders),
        "max_ngrams_each": cell.config.vocabulary.max_ngrams_each,
        "a": None if cell.config.sif is None else cell.config.sif.a,
        "rows": record["rows"],
        "seconds": record["seconds"],
        "tasks": {name: task["mean"] for name, task in tasks.items()},
        "mean_of": sorted(named),
        "mean": {measure: float(np.mean([scores[measure] or 0.0 for scores in sets])) for measure in measures},
    }


def to_json(results: Sequence[dict[str, Any]]) -> bytes:
    """Return the results as indented JSON."""
    return orjson.dumps({"results": results}, option=orjson.OPT_INDENT_2) + b"\n"


def make_tables(results: Sequence[dict[str, Any]]) -> str:
    """Return a text table, Pearson/Spearman, of each task and of the mean; a sweep of one setting is a single table."""
    named = results[0]["mean_of"]
    mean = "all" if named == sorted(results[0]["tasks"]) else f"mean of {', '.join(named)}"
    tasks = [*results[0]["tasks"], mean]
    columns = list(dict.fromkeys(result["column"] for result in results))
    rows = list(dict.fromkeys(result["row"] for result in results))
    if columns == [""]:
        by_row = {result["row"]: result for result in results}
        return align([["a", *tasks], *([row, *(_score(by_row[row], task) for task in tasks)] for row in rows)])
    cells = {(result["row"], result["column"]): result for result in results}
    return "\n\n".join(
        align([[task, *columns], *([row, *(_score(cells[row, column], task) for column in columns)] for row in rows)])
        for task in tasks
    )


def _score(result: dict[str, Any], task: str) -> str:
    score = result["tasks"].get(task, result["mean"])
    return f"{score['pearson']:.1f}/{score['spearman']:.1f}"
