"""Figures as PNG files. matplotlib is imported when one is drawn, and no window is ever opened."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from gramvec.errors import InputError
from gramvec_training.configuration import Measure
from gramvec_training.reporting.run import scores_over_steps

_INCHES = 3.6  # the height of every panel


def check_matplotlib() -> None:
    """Raise InputError, saying what to install, where figures cannot be drawn."""
    _figure(1)


def plot_scores(reports: Mapping[str, Mapping[str, Any]], path: Path) -> None:
    """Bars of each task's mean Pearson x 100, a colour a model; below, the same against the share misspelt."""
    reports = dict(zip(_short(reports), reports.values(), strict=True))
    tasks = list(next(iter(reports.values()))["tasks"])
    noisy = [list(report["typos"].values()) for report in reports.values() if report.get("typos")]
    sentence_tasks = list(noisy[0][0]) if noisy else []
    figure = _figure(2 if sentence_tasks else 1, width=max(8.0, 1.2 * len(tasks) + 2))
    bars = figure.axes[0]
    width = 0.8 / len(reports)
    for index, (label, report) in enumerate(reports.items()):
        places = [place + (index - (len(reports) - 1) / 2) * width for place in range(len(tasks))]
        bars.bar(places, [report["tasks"][task]["mean"]["pearson"] for task in tasks], width, label=label)
    bars.set_xticks(range(len(tasks)), tasks)
    bars.set_ylabel("Pearson x 100, mean of sets")
    _legend(bars)
    if sentence_tasks:
        _plot_typos(figure.axes[1], reports, sentence_tasks)
    _save(figure, path)


def plot_run(record: Mapping[str, Any], path: Path, measure: Measure = "pearson") -> None:
    """The loss over steps and, where it was measured, each development task's score over steps.

    Raises InputError where the record has neither.
    """
    losses = record.get("loss") or []
    scores = {task: curve for task, curve in scores_over_steps(record, measure).items() if "/" not in task}
    if not losses and not scores:
        raise InputError("The run has no loss and no scores over steps to draw; it was built, not trained.")
    figure = _figure(2 if scores and losses else 1)
    if losses:
        axes = figure.axes[0]
        axes.plot([step for step, _ in losses], [loss for _, loss in losses])
        axes.set_ylabel("loss")
        axes.set_xlabel("step")
    if scores:
        axes = figure.axes[-1]
        for task, curve in scores.items():
            axes.plot(*zip(*curve, strict=True), marker=".", label=task)
        axes.set_ylabel(f"{measure.capitalize()} x 100")
        axes.set_xlabel("step")
        _legend(axes)
    figure.axes[0].set_title(record["name"])
    _save(figure, path)


def plot_runs(records: Mapping[str, Mapping[str, Any]], path: Path, measure: Measure = "pearson") -> None:
    """The development scores over steps of several runs, by their labels, in one panel: a curve a run and task.

    Raises InputError, naming them, where some have none.
    """
    labels = dict(zip(records, _short(records), strict=True))
    found = {label: scores_over_steps(record, measure) for label, record in records.items()}
    if without := [label for label, scores in found.items() if not scores]:
        raise InputError(f"{', '.join(without)}: no scores over steps to draw; train with [dev] sets and every.")
    curves = {
        f"{labels[label]}, {task}": [(float(step), score) for step, score in curve]
        for label, scores in found.items()
        for task, curve in scores.items()
        if "/" not in task
    }
    plot_curves(curves, path, x="step", y=f"{measure.capitalize()} x 100")


def plot_curves(
    curves: Mapping[str, Sequence[tuple[float, float]]], path: Path, *, x: str, y: str, logarithmic: bool = False
) -> None:
    """A curve of (x, y) points for each name; a curve of one point is drawn as a level."""
    figure = _figure(1)
    axes = figure.axes[0]
    for number, (name, points) in enumerate(curves.items()):
        if len(points) == 1:
            axes.axhline(points[0][1], linestyle="--", color=f"C{number % 10}", label=name)
        else:
            axes.plot(*zip(*points, strict=True), marker=".", color=f"C{number % 10}", label=name)
    if logarithmic:
        axes.set_xscale("log")
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    _legend(axes)
    _save(figure, path)


def _plot_typos(axes: Any, reports: Mapping[str, Mapping[str, Any]], tasks: list[str]) -> None:
    for number, (label, report) in enumerate(reports.items()):
        percentages = [0, *(int(one) for one in report["typos"])]
        for style, task in zip(_styles(len(tasks)), tasks, strict=True):
            scores = [report["tasks"][task]["mean"]["pearson"]]
            scores += [noisy[task]["mean"]["pearson"] for noisy in report["typos"].values()]
            points = sorted(zip(percentages, scores, strict=True))
            axes.plot(*zip(*points, strict=True), style, color=f"C{number % 10}", label=f"{label}, {task}")
    axes.set_xlabel("words misspelt, %")
    axes.set_ylabel("Pearson x 100, mean of sets")
    _legend(axes)


def _styles(count: int) -> list[str]:
    return [f"{marker}-" for marker, _ in zip("os^vDPX*<>" * (count // 10 + 1), range(count), strict=False)]


def _legend(axes: Any) -> None:
    axes.legend(loc="upper left", bbox_to_anchor=(1, 1), fontsize="small")


def _short(labels: Iterable[str]) -> list[str]:
    """The last part of each path, where these are distinct."""
    given = list(labels)
    names = [Path(label).name for label in given]
    return names if len(set(names)) == len(names) and all(names) else given


def _figure(panels: int, *, width: float = 8.0) -> Any:
    try:
        from matplotlib.figure import Figure  # type: ignore[import-not-found, unused-ignore]
    except ImportError:
        raise InputError("Drawing needs matplotlib: pip install 'gramvec[train]', or pip install matplotlib.") from None
    figure = Figure(figsize=(width, _INCHES * panels), layout="constrained")
    figure.subplots(panels, 1)
    return figure


def _save(figure: Any, path: Path) -> None:
    # The name of the software would make the bytes change with its version.
    try:
        figure.savefig(path, format="png", dpi=120, metadata={"Software": None})
    except OSError as error:
        raise InputError(f"{path} cannot be written ({error.strerror or error}); give another file.") from error
