"""The page of all tables and figures, from the results and from nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from gramvec_training.experiments import EXPERIMENTS, Experiment, experiment_named
from gramvec_training.papers.outline import PAPERS, Item
from gramvec_training.papers.results import Result, as_text
from gramvec_training.reporting import markdown_table, plot_curves

RESULTS = Path("docs/papers")
_IMAGES = "images/papers"  # beside the page
_HEAD = """\
# The papers on one page

Every table and figure of the papers that gramvec implements, the papers' values beside ours, and whether what the paper
found holds here. Made by `gramvec-train papers page` from the results in [papers/](papers); a result is made by

```sh
gramvec-train papers run NAME --out docs/papers    # or all, for NAME: what is done is not done again
```

Ours are over other data than the papers', named at each table, and mostly from 50 dimensions where they have 300:
orders can be compared, values cannot. Scores are Pearson's r times 100 unless said otherwise, and means over seeds
where something is learned. A finding is a yes or a **no**; a no is a finding too.
"""


def page(results: Mapping[str, Result]) -> str:
    """The whole page as Markdown."""
    parts = [_HEAD, _numbers(results)]
    for paper in PAPERS:
        rows = [["", "what", "the paper's values", "here", "holds"], *(_row(item, results) for item in paper.items)]
        parts.append(f"## {paper.name}\n\n{paper.reference}.\n\n{markdown_table(rows, left=True)}\n")
    parts.append("## Ours\n")
    parts += [_section(one, results[one.name]) for one in EXPERIMENTS if one.name in results]
    return "\n".join(parts)


def draw_page(results: Mapping[str, Result], path: Path) -> list[Path]:
    """Draw the figures of the results that have one, beside a page that is at `path`; gives their files."""
    folder = path.parent / _IMAGES
    drawn = []
    for name, (x, curves) in drawings(results).items():
        folder.mkdir(parents=True, exist_ok=True)
        drawing = experiment_named(name).drawing
        drawn.append(folder / f"{name}.png")
        plot_curves(curves, drawn[-1], x=x, y="", logarithmic=drawing is not None and drawing.logarithmic)
    return drawn


def drawings(results: Mapping[str, Result]) -> dict[str, tuple[str, dict[str, list[tuple[float, float]]]]]:
    """Experiment -> its axis and curves of points; a row without a number on the axis is a level, named by its text."""
    found: dict[str, tuple[str, dict[str, list[tuple[float, float]]]]] = {}
    for name, result in results.items():
        drawing = experiment_named(name).drawing
        if drawing is None:
            continue
        curves: dict[str, list[tuple[float, float]]] = {}
        for row in result.outcome.rows:
            place = row[drawing.x]
            values = {column: float(one) for column in drawing.y if isinstance(one := row.get(column), (int, float))}
            if isinstance(place, (int, float)):
                for column, value in values.items():
                    curves.setdefault(column, []).append((float(place), value))
            elif len({*values.values()}) == 1:
                curves[str(place)] = [(0.0, values.popitem()[1])]
            else:
                curves |= {f"{column}, {place}": [(0.0, value)] for column, value in values.items()}
        found[name] = (drawing.x, curves)
    return found


def _numbers(results: Mapping[str, Result]) -> str:
    items = [item for paper in PAPERS for item in paper.items]
    made = [item for item in items if any(name in results for name in item.experiments)]
    whole = [item for item in made if not item.missing and all(name in results for name in item.experiments)]
    findings = [finding for one in results.values() for finding in one.outcome.findings]
    holding = sum(finding.holds for finding in findings)
    return (
        f"Of {len(items)} tables, figures and analyses {len(whole)} are made here, {len(made) - len(whole)} in part "
        f"and {len(items) - len(made)} not. Of {len(findings)} findings {holding} hold.\n"
    )


def _row(item: Item, results: Mapping[str, Result]) -> list[str]:
    there = [results[name] for name in item.experiments if name in results]
    links = [f"[{one.experiment}](#{one.experiment})" for one in there]
    links += [f"{name}: not run yet" for name in item.experiments if name not in results]
    if item.missing:
        links.append(f"in part: {item.missing}" if item.experiments else item.missing)
    return [item.where, item.what, item.paper, "; ".join(links), _holds(item, there)]


def _holds(item: Item, results: list[Result]) -> str:
    findings = [finding for one in results for finding in one.outcome.findings if finding.claim.startswith(item.about)]
    if not findings:
        return "-"
    holding = sum(finding.holds for finding in findings)
    if holding == len(findings):
        return "yes"
    return f"{'no' if not holding else 'partly'}: {holding} of {len(findings)}"


def _section(experiment: Experiment, result: Result) -> str:
    seeds = f"; seeds {', '.join(map(str, result.seeds))}" if result.seeds else ""
    note = f" {experiment.note}" if experiment.note else ""
    picture = f"![{experiment.title}]({_IMAGES}/{experiment.name}.png)\n\n" if experiment.drawing is not None else ""
    return (
        f"### {experiment.name}\n\n{experiment.title} ({experiment.table}). In place of the paper's data: "
        f"{experiment.stands_in}.{note}\n\n{as_text(experiment, result.outcome)}\n\n{picture}"
        f"`gramvec-train papers run {experiment.name}`{seeds}; commit {result.commit or 'unknown'}; "
        f"[result with digests of the data](papers/{experiment.name}.json).\n"
    )
