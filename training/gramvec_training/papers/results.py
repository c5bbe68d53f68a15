"""Results as JSON files, one an experiment, with what they were made of: what is done is not done again."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import orjson

from gramvec.errors import InputError
from gramvec_training.experiments import EXPERIMENTS, Experiment, Finding, Inputs, Outcome
from gramvec_training.files import write_atomically
from gramvec_training.papers.digests import commit, digests_of
from gramvec_training.reporting import markdown_table

Cell = str | float | None


@dataclass(frozen=True)
class Result:
    """An outcome, and where it comes from. seeds: of what was learned. quick: of a cut of the data, no result to show.

    digests: see digests_of. commit: of the code. seconds: what it took, less what had been learned before.
    """

    experiment: str
    quick: bool
    commit: str | None
    seeds: tuple[int, ...]
    seconds: float
    digests: Mapping[str, str]
    outcome: Outcome


def perform(experiment: Experiment, inputs: Inputs, folder: Path, *, quick: bool, again: bool) -> tuple[Result, bool]:
    """The result of an experiment, and whether it was there already: of the same inputs, seeds and size.

    A new one is written to folder / NAME.json. Raises what the experiment raises, InputError for a damaged file, and
    OSError where nothing can be written.
    """
    digests = digests_of(
        inputs, learns=experiment.learns, labels=experiment.labels, tags=experiment.tags, raw=experiment.raw
    )
    seeds = inputs.seeds if experiment.learns else ()
    path = folder / f"{experiment.name}.json"
    if path.is_file() and not again:
        old = _read(path)
        if (old.quick, old.seeds, old.digests) == (quick, seeds, digests):
            return old, True
    begun_at, begin = commit(), time.perf_counter()
    outcome = experiment.run(inputs)
    seconds = round(time.perf_counter() - begin, 1)
    result = Result(experiment.name, quick, begun_at, seeds, seconds, digests, outcome)
    folder.mkdir(parents=True, exist_ok=True)
    values = {**asdict(result), "outcome": outcome.to_dict()}
    data = orjson.dumps(values, option=orjson.OPT_INDENT_2) + b"\n"
    write_atomically(path, lambda handle: handle.write(data))
    return result, False


def read_results(folder: Path) -> dict[str, Result]:
    """The results in a folder by their experiment, in the catalogue's order; those of a cut of the data are left out.

    Raises InputError for a damaged file, or where there is no result.
    """
    paths = {one.name: folder / f"{one.name}.json" for one in EXPERIMENTS}
    found = {name: _read(path) for name, path in paths.items() if path.is_file()}
    found = {name: one for name, one in found.items() if not one.quick}
    if not found:
        raise InputError(f"{folder} holds no result; make some: gramvec-train papers run all --out {folder}")
    return found


def as_text(experiment: Experiment, outcome: Outcome) -> str:
    """The table and the findings, for a terminal and for the page."""
    findings = "\n".join(f"- {'yes' if one.holds else '**no**'}: {one.claim} ({one.seen})" for one in outcome.findings)
    return f"{table_of(outcome.rows)}\n\n{findings}"


def table_of(rows: Sequence[Mapping[str, Cell]]) -> str:
    """Rows of the same columns as Markdown; where most are words they stand to the left."""
    columns = list(rows[0])
    words = sum(isinstance(value, str) for value in rows[0].values()) > 1 + len(columns) // 2
    cells = [[_shown(row[column]) for column in columns] for row in rows]
    return markdown_table([columns, *cells], left=words)


def _shown(value: Cell) -> str:
    if value is None:
        return "-"
    return f"{value:,}" if isinstance(value, int) else str(value)


def _read(path: Path) -> Result:
    try:
        values = orjson.loads(path.read_bytes())
        outcome = values["outcome"]
        findings = tuple(Finding(**one) for one in outcome["findings"])
        rows = tuple(outcome["rows"])
        return Result(**{**values, "seeds": tuple(values["seeds"]), "outcome": Outcome(rows, findings)})
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(f"{path} is no result of gramvec-train papers run ({error}); remove it.") from error
