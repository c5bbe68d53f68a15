"""What a finished run did, as a few lines and a figure."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson

from gramvec.errors import InputError


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


def summary(record: dict[str, Any]) -> str:
    """The run's size and time, its loss at the beginning, the end and the lowest, and each task's best and last."""
    losses: list[tuple[int, float]] = [(step, loss) for step, loss in record.get("loss") or []]
    scores: list[tuple[int, dict[str, float]]] = [(step, one) for step, one in record.get("dev") or []]
    facts = [f"{record['rows']:,} rows"] if "rows" in record else []
    facts += [f"{record[key]:,} {key}" for key in ("steps", "pairs", "examples") if record.get(key)]
    facts += [f"{record['seconds']:,.0f} s"] if "seconds" in record else []
    lines = [f"{record['name']}: {', '.join(facts)}"]
    if losses:
        (first, begun), (last, ended) = losses[0], losses[-1]
        at, lowest = min(losses, key=lambda one: one[1])
        lines.append(f"loss: {begun:.4f} at step {first:,}, {ended:.4f} at {last:,}; lowest {lowest:.4f} at {at:,}")
    for task in scores[0][1] if scores else []:
        known = [(step, one[task]) for step, one in scores if one.get(task) is not None]
        at, best = max(known, key=lambda one: one[1])
        lines.append(f"{task}: best {best:.1f} at step {at:,}, {known[-1][1]:.1f} at {known[-1][0]:,}")
    if not scores:
        ended_with = (record.get("scores") or {}).get("tasks") or {}
        lines += [f"{task}: {one['mean']['pearson']:.1f} at the end" for task, one in ended_with.items()]
    return "\n".join(lines)
