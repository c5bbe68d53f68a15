"""What a finished run did, as a few lines and a figure."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import orjson

from gramvec.errors import InputError
from gramvec_training.configuration import Measure


def read_record(folder: Path) -> dict[str, Any]:
    """The record of a finished run. Raises InputError where there is none or it is damaged."""
    path = folder / "run.json"
    try:
        record = orjson.loads(path.read_bytes())
        return {"name": folder.name, **record}
    except FileNotFoundError:
        raise InputError(
            f"There is no finished run in {folder}; give a run folder of gramvec-train, or continue it with --resume."
        ) from None
    except (OSError, ValueError, TypeError) as error:
        raise InputError(f"{path} is damaged ({error}); run it anew.") from error


def scores_over_steps(record: Mapping[str, Any], measure: Measure = "pearson") -> dict[str, list[tuple[int, float]]]:
    """The log of a record's development scores x 100: task, and task/set -> (step, score), where it is defined."""
    curves: dict[str, list[tuple[int, float]]] = {}
    for step, tasks in record.get("dev") or []:
        for task, found in tasks.items():
            sets = {f"{task}/{name}": one for name, one in found["sets"].items()} if len(found["sets"]) > 1 else {}
            for name, one in {task: found["mean"], **sets}.items():
                if one[measure] is not None:
                    curves.setdefault(name, []).append((step, one[measure]))
    return curves


def summary(record: dict[str, Any], measure: Measure = "pearson") -> str:
    """The run's size and time, its loss at the beginning, the end and the lowest, and each task's best and last.

    The best is the papers' oracle: it was chosen on the set itself.
    """
    losses: list[tuple[int, float]] = [(step, loss) for step, loss in record.get("loss") or []]
    scores = {task: curve for task, curve in scores_over_steps(record, measure).items() if "/" not in task}
    facts = [f"{record['rows']:,} rows"] if "rows" in record else []
    facts += [f"{record[key]:,} {key}" for key in ("steps", "pairs", "examples") if record.get(key)]
    if counts := record.get("parameters"):
        facts += [f"{sum(counts.values()):,} parameters ({sum(counts.values()) - counts['table']:,} without the table)"]
    facts += [f"{record['seconds']:,.0f} s"] if "seconds" in record else []
    lines = [f"{record['name']}: {', '.join(facts)}"]
    if losses:
        (first, begun), (last, ended) = losses[0], losses[-1]
        at, lowest = min(losses, key=lambda one: one[1])
        lines.append(f"loss: {begun:.4f} at step {first:,}, {ended:.4f} at {last:,}; lowest {lowest:.4f} at {at:,}")
    for task, known in scores.items():
        at, best = max(known, key=lambda one: one[1])
        lines.append(f"{task}: best {best:.1f} at step {at:,}, {known[-1][1]:.1f} at {known[-1][0]:,}")
    selected = record.get("selection") or {}
    if selected.get("scores"):
        kept = dict((step, score) for step, score in selected["scores"])[selected["kept"]]
        shown = "no score" if kept is None else f"{kept:.1f}"
        lines.append(f"kept: the model after step {selected['kept']:,}, {shown} on what it was chosen by")
    if not scores:
        ended_with = (record.get("scores") or {}).get("tasks") or {}
        lines += [f"{task}: {one['mean'][measure]:.1f} at the end" for task, one in ended_with.items()]
    return "\n".join(lines)
