"""Reports: text and Markdown tables, JSON, and plots of scores and runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import orjson

from gramvec.errors import InputError
from gramvec_training.sections import Measure

TaskScores = Mapping[str, Any]
CellText = Callable[[TaskScores], str]


def format_score(value: float | None) -> str:
    """Return a score times 100 with one digit, or "-" where it is undefined."""
    return "-" if value is None else f"{value:.1f}"


def _format_spelling(scores: TaskScores) -> str:
    share, unseen = scores["found_at"]["3"], scores["found_unseen_at"].get("3")
    return format_score(share) if unseen is None else f"{format_score(share)} ({format_score(unseen)})"


# (family, title, cell)
_TABLES: tuple[tuple[str, str, CellText], ...] = (
    (
        "matching",
        "Matching: F1 x 100 on test, at the threshold best on train and valid",
        lambda scores: format_score(scores["f1"]),
    ),
    (
        "matching",
        "Matching: matches that are the nearest / among the 10 nearest of the whole right table, %",
        lambda scores: "/".join(map(format_score, scores["recall_at"].values())),
    ),
    ("retrieval", "Retrieval: nDCG@10 x 100", lambda scores: format_score(scores["ndcg_at_10"])),
    (
        "classification",
        "Classification: accuracy x 100 of nearest neighbor / centroid of 5 / logistic regression",
        lambda scores: "/".join(format_score(scores[key]) for key in ("nearest", "centroid", "logistic")),
    ),
    (
        "spelling",
        "Spelling: misspelt words whose word is among the 3 nearest, % (in brackets without those of --seen)",
        _format_spelling,
    ),
    (
        "translations",
        "Translations: texts whose translation is the nearest, %",
        lambda scores: format_score(scores["found_first"]),
    ),
)


def list_family_tables(reports: Mapping[str, Mapping[str, Any]]) -> list[tuple[str, list[list[str]]]]:
    """Return (title, rows) of each table that the reports' `families` fill; the first row is the header."""
    families = {label: report["families"] for label, report in reports.items() if "families" in report}
    first: Mapping[str, Any] = next(iter(families.values()), {})
    return [(title, _rows(families, family, cell)) for family, title, cell in _TABLES if family in first]


def _rows(reports: Mapping[str, Mapping[str, Any]], family: str, cell: CellText) -> list[list[str]]:
    rows = [["", *reports]]
    for name, first in next(iter(reports.values()))[family].items():
        models = [report[family][name] for report in reports.values()]
        rows.append([name, *map(cell, models)])
        for percentage in first.get("typos", ()):
            rows.append([f"{name}, {percentage} % misspelt", *(cell(scores["typos"][percentage]) for scores in models)])
    return rows


ModelReport = Mapping[str, Any]
ReportRows = list[list[str]]

_SCORES = "Pearson/Spearman x 100"
_WINS = "On how many of {} sets a row's model has a higher Pearson than a column's"
_TYPOS = "Mean Pearson x 100 of each task, by the share of words misspelt"
COVERAGE = "Known n-grams / known words, and texts of which nothing is known"


def to_json(reports: Mapping[str, ModelReport]) -> bytes:
    """Return the reports as indented JSON, the same bytes for the same scores."""
    return orjson.dumps(dict(reports), option=orjson.OPT_INDENT_2) + b"\n"


def format_table(reports: Mapping[str, ModelReport]) -> str:
    """Return a text table: `pearson/spearman` of each set, mean and pooled; typos and coverage where measured."""
    return "\n\n".join(f"{title}\n{align(rows)}" for title, rows in list_score_tables(reports))


def format_markdown(reports: Mapping[str, ModelReport]) -> str:
    """Return the same tables as Markdown, each under its heading."""
    return (
        "\n\n".join(f"## {title}\n\n{format_markdown_table(rows)}" for title, rows in list_score_tables(reports)) + "\n"
    )


def format_markdown_table(rows: Sequence[Sequence[str]], *, left: bool = False) -> str:
    """Return rows of cells as Markdown, the first row as header; the first column is left-aligned."""
    ruler = ["---", *["---" if left else "---:"] * (len(rows[0]) - 1)]
    cells = [[cell.replace("|", "\\|") for cell in row] for row in rows]
    return "\n".join(f"| {' | '.join(row)} |" for row in [cells[0], ruler, *cells[1:]])


def list_mean_rows(reports: Mapping[str, ModelReport]) -> ReportRows:
    """Return rows of each task's mean Pearson x 100, clean and misspelled; the first row is the header."""
    first = next(iter(reports.values()))
    rows: ReportRows = [["", *reports]]
    for task in first["tasks"]:
        rows.append(
            [f"{task} clean", *(format_score(report["tasks"][task]["mean"]["pearson"]) for report in reports.values())]
        )
        for percentage, tasks in first.get("typos", {}).items():
            if task in tasks:
                cells = [
                    format_score(report["typos"][percentage][task]["mean"]["pearson"]) for report in reports.values()
                ]
                rows.append([f"{task} {percentage} %", *cells])
    return rows


def list_win_rows(reports: Mapping[str, ModelReport]) -> ReportRows:
    """Return on how many sets each model is above each other model, as the papers count; the first row is the header.

    Equal scores count for neither model, and a missing score counts for no model.
    """
    scores = {
        label: [scores["pearson"] for task in report["tasks"].values() for scores in task["sets"].values()]
        for label, report in reports.items()
    }

    def count_higher(own: Sequence[float | None], other: Sequence[float | None]) -> int:
        return sum(a is not None and b is not None and a > b for a, b in zip(own, other, strict=True))

    return [
        ["", *reports],
        *(
            [label, *("-" if label == other else str(count_higher(own, scores[other])) for other in reports)]
            for label, own in scores.items()
        ),
    ]


def format_share(value: float | None) -> str:
    """Return a share in [0, 1] as a percentage, or "-" for None."""
    return "-" if value is None else f"{value:.1%}"


def list_score_tables(reports: Mapping[str, ModelReport]) -> list[tuple[str, ReportRows]]:
    """Return (title, rows) of each table that the reports fill; the first row is the header."""
    parts = []
    if any(report["tasks"] for report in reports.values()):
        parts.append((_SCORES, _list_score_rows(reports)))
        sets = sum(len(task["sets"]) for task in next(iter(reports.values()))["tasks"].values())
        if len(reports) > 1 and sets > 1:
            parts.append((_WINS.format(sets), list_win_rows(reports)))
        if all("typos" in report for report in reports.values()):
            parts.append((_TYPOS, list_mean_rows(reports)))
        counted = {label: report for label, report in reports.items() if "coverage" in report}
        if counted:
            parts.append((COVERAGE, _list_coverage_rows(counted)))
    return parts + list_family_tables(reports)


def _list_score_rows(reports: Mapping[str, ModelReport]) -> ReportRows:
    rows: ReportRows = [["", *reports]]
    for task, first in next(iter(reports.values()))["tasks"].items():
        for name in first["sets"]:
            rows.append(
                [f"{task}/{name}", *(_format_cell(report["tasks"][task]["sets"][name]) for report in reports.values())]
            )
        for kind in ("mean", "pooled"):
            rows.append([f"{task} {kind}", *(_format_cell(report["tasks"][task][kind]) for report in reports.values())])
    return rows


def _list_coverage_rows(reports: Mapping[str, ModelReport]) -> ReportRows:
    rows: ReportRows = [["", *reports]]
    for task in next(iter(reports.values()))["coverage"]:
        cells = []
        for report in reports.values():
            known = report["coverage"][task]
            ngrams, words = format_share(known["ngrams_known"]), format_share(known["words_known"])
            cells.append(f"{ngrams} / {words}, {known['texts_unknown']:,}")
        rows.append([task, *cells])
    return rows


def align(rows: ReportRows) -> str:
    """Return rows as a text table, whose first column stands to the left."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = [
        "  ".join([row[0].ljust(widths[0]), *(c.rjust(w) for c, w in zip(row[1:], widths[1:], strict=True))])
        for row in rows
    ]
    return "\n".join(line.rstrip() for line in lines)


def _format_cell(result: ModelReport) -> str:
    return f"{format_score(result['pearson'])}/{format_score(result['spearman'])}"


def read_record(folder: Path) -> dict[str, Any]:
    """Read the record of a finished run.

    Raises:
        InputError: The record is missing or damaged.
    """
    path = folder / "run.json"
    try:
        record = orjson.loads(path.read_bytes())
        return {"name": folder.name, **record}
    except FileNotFoundError:
        raise InputError(
            f"{folder}: no finished run here; give a run folder of gramvec-train, or continue it with --resume"
        ) from None
    except (OSError, ValueError, TypeError) as error:
        raise InputError(f"{path}: damaged ({error}); run it again") from error


def list_scores_over_steps(
    record: Mapping[str, Any], measure: Measure = "pearson"
) -> dict[str, list[tuple[int, float]]]:
    """Return task, and task/set -> (step, score x 100) from the log of a record's development scores."""
    curves: dict[str, list[tuple[int, float]]] = {}
    for step, tasks in record.get("dev") or []:
        for task, result in tasks.items():
            sets = (
                {f"{task}/{name}": scores for name, scores in result["sets"].items()} if len(result["sets"]) > 1 else {}
            )
            for name, scores in {task: result["mean"], **sets}.items():
                if scores[measure] is not None:
                    curves.setdefault(name, []).append((step, scores[measure]))
    return curves


def summarize_run(record: dict[str, Any], measure: Measure = "pearson") -> str:
    """Return the run's size, time and loss (first, last, lowest), and each task's best and last score.

    The best is the papers' oracle: it was chosen on the set itself.
    """
    losses: list[tuple[int, float]] = [(step, loss) for step, loss in record.get("loss") or []]
    scores = {task: curve for task, curve in list_scores_over_steps(record, measure).items() if "/" not in task}
    facts = [f"{record['rows']:,} rows"] if "rows" in record else []
    facts += [f"{record[key]:,} {key}" for key in ("steps", "pairs", "examples") if record.get(key)]
    if counts := record.get("parameters"):
        facts += [f"{sum(counts.values()):,} parameters ({sum(counts.values()) - counts['table']:,} without the table)"]
    facts += [f"{record['seconds']:,.0f} s"] if "seconds" in record else []
    lines = [f"{record['name']}: {', '.join(facts)}"]
    if losses:
        (first, begun), (last, ended) = losses[0], losses[-1]
        at, lowest = min(losses, key=lambda point: point[1])
        lines.append(f"loss: {begun:.4f} at step {first:,}, {ended:.4f} at {last:,}; lowest {lowest:.4f} at {at:,}")
    for task, known in scores.items():
        at, best = max(known, key=lambda point: point[1])
        lines.append(f"{task}: best {best:.1f} at step {at:,}, {known[-1][1]:.1f} at {known[-1][0]:,}")
    selected = record.get("selection") or {}
    if selected.get("scores"):
        kept = dict((step, score) for step, score in selected["scores"])[selected["kept"]]
        shown = "no score" if kept is None else f"{kept:.1f}"
        lines.append(f"kept: the model after step {selected['kept']:,}, {shown} on what it was chosen by")
    if not scores:
        ended_with = (record.get("scores") or {}).get("tasks") or {}
        lines += [f"{task}: {scores['mean'][measure]:.1f} at the end" for task, scores in ended_with.items()]
    return "\n".join(lines)


_INCHES = 3.6  # the height of every panel


def check_matplotlib() -> None:
    """Raise InputError, saying what to install, where matplotlib is missing."""
    _figure(1)


def plot_scores(reports: Mapping[str, Mapping[str, Any]], path: Path) -> None:
    """Plot bars of each task's mean Pearson x 100, one color a model; below, against the share misspelled."""
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
    """Plot the loss and the development scores over steps.

    Raises:
        InputError: The record has neither.
    """
    losses = record.get("loss") or []
    scores = {task: curve for task, curve in list_scores_over_steps(record, measure).items() if "/" not in task}
    if not losses and not scores:
        raise InputError("the run has no loss and no scores over steps to draw; it was built, not trained")
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
    """Plot the development scores over steps of several runs, one curve a run and task.

    Raises:
        InputError: At them: some have none.
    """
    labels = dict(zip(records, _short(records), strict=True))
    curves_of_runs = {label: list_scores_over_steps(record, measure) for label, record in records.items()}
    if without := [label for label, scores in curves_of_runs.items() if not scores]:
        raise InputError(f"{', '.join(without)}: no scores over steps to draw; train with [dev] sets and every")
    curves = {
        f"{labels[label]}, {task}": [(float(step), score) for step, score in curve]
        for label, scores in curves_of_runs.items()
        for task, curve in scores.items()
        if "/" not in task
    }
    plot_curves(curves, path, x="step", y=f"{measure.capitalize()} x 100")


def plot_curves(
    curves: Mapping[str, Sequence[tuple[float, float]]], path: Path, *, x: str, y: str, logarithmic: bool = False
) -> None:
    """Plot a curve of (x, y) points for each name; a curve of one point is a horizontal line."""
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
        percentages = [0, *(int(percentage) for percentage in report["typos"])]
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
    """Return the last part of each path, where these are distinct."""
    listed = list(labels)
    names = [Path(label).name for label in listed]
    return names if len(set(names)) == len(names) and all(names) else listed


def _figure(panels: int, *, width: float = 8.0) -> Any:
    try:
        from matplotlib.figure import Figure  # type: ignore[import-not-found, unused-ignore]
    except ImportError:
        raise InputError("drawing needs matplotlib: pip install 'gramvec[train]', or pip install matplotlib") from None
    figure = Figure(figsize=(width, _INCHES * panels), layout="constrained")
    figure.subplots(panels, 1)
    return figure


def _save(figure: Any, path: Path) -> None:
    # The name of the software would make the bytes change with its version.
    try:
        figure.savefig(path, format="png", dpi=120, metadata={"Software": None})
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({error.strerror or error}); give another file") from error
