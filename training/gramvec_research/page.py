"""What an experiment was made of, and by which commit: so that a result can be trusted, or made again."""

from __future__ import annotations

import functools
import itertools
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import orjson

from gramvec.errors import InputError
from gramvec_research.catalog import EXPERIMENTS, PAPERS, experiment_named
from gramvec_research.shared import (
    Experiment,
    ExperimentInputs,
    Finding,
    Item,
    ResultTable,
    find_raw_texts,
    write_packed,
)
from gramvec_research.vectors import save_vectors
from gramvec_training.evaluation.report import format_markdown_table, plot_curves
from gramvec_training.readers.lines import number_lines
from gramvec_training.readers.vectors import find_vectors, read_vectors
from gramvec_training.shared import digest, write_atomically

_SHOWN = 16  # hex digits of a SHA-256
_BUNDLES = ("charagram-phrase", "paragram-phrase")


def digests_of(experiment: Experiment, inputs: ExperimentInputs) -> dict[str, str]:
    """Return the first 16 hex digits of the SHA-256 of what an experiment reads, by name.

    Of a folder they are those of its files' names and contents. What is not there is left out: the experiment that
    needs it raises an error.
    """
    if experiment.tags:
        return _show({"treebank": inputs.tagged})
    named: dict[str, Path | None] = {
        "vectors": find_vectors(inputs.vectors),
        "norms": inputs.norms,
        **{f"frequencies {path.name}": path for path in inputs.frequencies},
        **{f"set {path.name}": path for path in (*inputs.sets, *inputs.word_sets)},
        **{f"model {name}": inputs.models / name for name in _BUNDLES},
    }
    if experiment.raw:
        named |= {f"raw {path.name}": path for path in find_raw_texts(inputs)}
    elif experiment.learns:
        named |= {"pairs of phrases": inputs.in_domain}
        if inputs.data is not None:
            named |= {f"data {path.name}": path for path in sorted(inputs.data.glob("*.tsv.gz"))}
    if experiment.labels:
        named |= {"labeled texts": inputs.labeled}
    return _show(named)


def _show(named: Mapping[str, Path | None]) -> dict[str, str]:
    return {name: digest(path.resolve())[:_SHOWN] for name, path in named.items() if path is not None and path.exists()}


@functools.cache  # what runs is what was there when it began
def describe_commit() -> str | None:
    """Return the commit of this code, with "-dirty" where it was changed since; None where it is no checkout."""
    command = ["git", "describe", "--always", "--dirty", "--abbrev=12", "--match="]
    try:
        done = subprocess.run(  # noqa: S603 (a fixed command)
            command, cwd=Path(__file__).parent, capture_output=True, text=True, check=False
        )
    except OSError:
        return None
    return done.stdout.strip() or None


_PAIRS, _LEARNED, _WORDS = 100, 2_000, 20_000  # rows of a set, of a training file, of the vectors
_LABELED = 200  # rows of a file of labeled texts
_TAGGED = 100  # sentences of a part of a treebank


def cut_inputs(inputs: ExperimentInputs, folder: Path) -> ExperimentInputs:
    """Copy a little of the inputs below `folder`: of sets and training files rows from all over, of vectors the
    first words. One seed.
    """
    sets = tuple(_folder(path, folder / "sets" / path.name) for path in inputs.sets)
    words = tuple(_folder(path, folder / "words" / path.name) for path in inputs.word_sets)
    data, in_domain, labeled = inputs.data, inputs.in_domain, inputs.labeled
    if labeled is not None:
        for file in sorted(labeled.glob("*/*.tsv*")):
            _rows(file, folder / "labeled" / file.relative_to(labeled), _LABELED)
        # SICK's scores, which lie beside the labeled texts as they are.
        trial = labeled.parent / "sick" / "trial.tsv"
        if trial.is_file():
            _rows(trial, folder / "sick" / "trial.tsv", _LABELED)
        labeled = folder / "labeled"
    if data is not None:
        for file in sorted(data.glob("*.tsv.gz")):
            _rows(file, folder / "train" / file.name, _LEARNED)
        for file in find_raw_texts(inputs):
            _rows(file, folder / "train" / "raw" / file.name, _LEARNED)
        data = folder / "train"
    if in_domain is not None:
        in_domain = _rows(in_domain, folder / "phrases" / in_domain.name, _PAIRS)
    tagged = inputs.tagged
    if tagged is not None:
        for file in sorted(path for ending in ("conllu", "conllu.gz", "tsv") for path in tagged.glob(f"*.{ending}")):
            _sentences(file, folder / "tagged" / file.name, _TAGGED)
        tagged = folder / "tagged"
    return replace(
        inputs,
        vectors=_vectors(inputs.vectors, folder / "vectors.npy"),
        sets=sets,
        word_sets=words,
        data=data,
        in_domain=in_domain,
        labeled=labeled,
        tagged=tagged,
        work=folder / "models",
        seeds=inputs.seeds[:1],
    )


def _folder(path: Path, out: Path) -> Path:
    if path.is_file():
        return _rows(path, out, _PAIRS)
    for file in sorted(path.glob("*.tsv")):
        _rows(file, out / file.name, _PAIRS)
    return out


def _rows(path: Path, out: Path, number: int) -> Path:
    lines = [line.rstrip("\r").encode() + b"\n" for _, line in number_lines(path)]
    return write_packed(out, _choose_lines(lines, number))


def _sentences(path: Path, out: Path, number: int) -> Path:
    lines = [line.rstrip("\r").encode() for _, line in number_lines(path)]
    sentences = (b"\n".join(part) for empty, part in itertools.groupby(lines, lambda line: not line) if not empty)
    return write_packed(out, _choose_lines([sentence + b"\n\n" for sentence in sentences], number))


def _choose_lines(lines: list[bytes], number: int) -> list[bytes]:
    step = max(1, len(lines) // number)
    return lines[::step][:number]


def _vectors(place: Path, out: Path) -> Path:
    words, vectors = read_vectors(find_vectors(place))
    out.parent.mkdir(parents=True, exist_ok=True)
    save_vectors(out, words[:_WORDS], vectors[:_WORDS])
    return out


ResultCell = str | float | None


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
    outcome: ResultTable


def perform(
    experiment: Experiment, inputs: ExperimentInputs, folder: Path, *, quick: bool, again: bool
) -> tuple[Result, bool]:
    """Return the result of an experiment, and whether it was there already: of the same inputs, seeds and size.

    A new one is written to folder / NAME.json. Raises what the experiment raises, InputError for a damaged file, and
    OSError where nothing can be written.
    """
    digests = digests_of(experiment, inputs)
    seeds = inputs.seeds if experiment.learns else ()
    path = folder / f"{experiment.name}.json"
    if path.is_file() and not again:
        old = _read(path)
        if (old.quick, old.seeds, old.digests) == (quick, seeds, digests):
            return old, True
    begun_at, begin = describe_commit(), time.perf_counter()
    outcome = experiment.run(inputs)
    seconds = round(time.perf_counter() - begin, 1)
    result = Result(experiment.name, quick, begun_at, seeds, seconds, digests, outcome)
    folder.mkdir(parents=True, exist_ok=True)
    data = orjson.dumps(asdict(result), option=orjson.OPT_INDENT_2) + b"\n"
    write_atomically(path, lambda handle: handle.write(data))
    return result, False


def read_results(folder: Path) -> dict[str, Result]:
    """Read the results in a folder by their experiment, in the catalog's order, but those of a cut of the data.

    Raises InputError for a damaged file, or where there is no result.
    """
    paths = {experiment.name: folder / f"{experiment.name}.json" for experiment in EXPERIMENTS}
    stored = {name: _read(path) for name, path in paths.items() if path.is_file()}
    results = {name: result for name, result in stored.items() if not result.quick}
    if not results:
        raise InputError(f"{folder}: no result; make some: python -m gramvec_research run all --out {folder}")
    return results


def as_text(experiment: Experiment, outcome: ResultTable) -> str:
    """Return the table and the findings, for a terminal and for the page."""
    findings = "\n".join(
        f"- {'yes' if finding.holds else '**no**'}: {finding.claim} ({finding.seen})" for finding in outcome.findings
    )
    return f"{table_of(outcome.rows)}\n\n{findings}"


def table_of(rows: Sequence[Mapping[str, ResultCell]]) -> str:
    """Return rows of the same columns as Markdown; where most are words they stand to the left."""
    columns = list(rows[0])
    words = sum(isinstance(value, str) for value in rows[0].values()) > 1 + len(columns) // 2
    cells = [[_show_results(row[column]) for column in columns] for row in rows]
    return format_markdown_table([columns, *cells], left=words)


def _show_results(value: ResultCell) -> str:
    if value is None:
        return "-"
    return f"{value:,}" if isinstance(value, int) else str(value)


def _read(path: Path) -> Result:
    try:
        values = orjson.loads(path.read_bytes())
        outcome = values["outcome"]
        findings = tuple(Finding(**values) for values in outcome["findings"])
        rows = tuple(outcome["rows"])
        return Result(**{**values, "seeds": tuple(values["seeds"]), "outcome": ResultTable(rows, findings)})
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(f"{path}: not a result of python -m gramvec_research run ({error}); remove it") from error


RESULTS = Path(__file__).parent / "results"
_IMAGES = "images"  # beside the page
_HEAD = """\
# The papers on one page

Every table and figure of the papers that gramvec implements, the papers' values beside ours, and whether what the paper
found holds here. Made by `python -m gramvec_research page` from the results in `results/`; a result is made by

```sh
python -m gramvec_research run NAME --out training/gramvec_research/results    # or all, for NAME
```

Ours are over other data than the papers', named at each table, and mostly from 50 dimensions where they have 300:
orders can be compared, values cannot. In place of PPDB's phrases (XL, XXL) stand 121,000 open pairs of phrases and
sentences, in place of PARAGRAM-SL999 of 300 dimensions GloVe 6B of 50; the counts of words are the SIF paper's own.
[Training data](../../docs/training-data.md) says which of these data can be fetched,
and from where. The shipped models of the papers' names are no reproduction either: `charagram-phrase`,
`paragram-phrase` and the words of `sif` have the papers' architectures and 300 dimensions, and are learned from a
transformer's vectors of open texts, not from PPDB by the margin loss. Scores are Pearson's r times 100 unless said
otherwise, and means over seeds where something is learned. A finding is a yes or a **no**; a no is a finding too.
"""


def make_page(results: Mapping[str, Result]) -> str:
    """Return the whole page as Markdown."""
    parts = [_HEAD, _numbers(results)]
    for paper in PAPERS:
        rows = [["", "what", "the paper's values", "here", "holds"], *(_row(item, results) for item in paper.items)]
        parts.append(f"## {paper.name}\n\n{paper.reference}.\n\n{format_markdown_table(rows, left=True)}\n")
    parts.append("## Ours\n")
    parts += [
        _section(experiment, results[experiment.name]) for experiment in EXPERIMENTS if experiment.name in results
    ]
    return "\n".join(parts)


def draw_page(results: Mapping[str, Result], path: Path) -> list[Path]:
    """Draw the figures of the results that have one, beside a page that is at `path`; return their files."""
    folder = path.parent / _IMAGES
    drawn = []
    for name, (x, curves) in list_drawings(results).items():
        folder.mkdir(parents=True, exist_ok=True)
        drawing = experiment_named(name).drawing
        drawn.append(folder / f"{name}.png")
        plot_curves(curves, drawn[-1], x=x, y="", logarithmic=drawing is not None and drawing.logarithmic)
    return drawn


def list_drawings(results: Mapping[str, Result]) -> dict[str, tuple[str, dict[str, list[tuple[float, float]]]]]:
    """Return each experiment's axis and curves; a row without a number on the axis is a level, named by its text."""
    drawings: dict[str, tuple[str, dict[str, list[tuple[float, float]]]]] = {}
    for name, result in results.items():
        drawing = experiment_named(name).drawing
        if drawing is None:
            continue
        curves: dict[str, list[tuple[float, float]]] = {}
        for row in result.outcome.rows:
            place = row[drawing.x]
            values = {column: float(cell) for column in drawing.y if isinstance(cell := row.get(column), (int, float))}
            if isinstance(place, (int, float)):
                for column, value in values.items():
                    curves.setdefault(column, []).append((float(place), value))
            elif len({*values.values()}) == 1:
                curves[str(place)] = [(0.0, values.popitem()[1])]
            else:
                curves |= {f"{column}, {place}": [(0.0, value)] for column, value in values.items()}
        drawings[name] = (drawing.x, curves)
    return drawings


def _numbers(results: Mapping[str, Result]) -> str:
    items = [item for paper in PAPERS for item in paper.items]
    made = [item for item in items if any(name in results for name in item.experiments)]
    whole = [item for item in made if not item.missing and all(name in results for name in item.experiments)]
    findings = [finding for result in results.values() for finding in result.outcome.findings]
    holding = sum(finding.holds for finding in findings)
    return (
        f"Of {len(items)} tables, figures and analyses {len(whole)} are made here, {len(made) - len(whole)} in part "
        f"and {len(items) - len(made)} not. Of {len(findings)} findings {holding} hold.\n"
    )


def _row(item: Item, results: Mapping[str, Result]) -> list[str]:
    there = [results[name] for name in item.experiments if name in results]
    links = [f"[{result.experiment}](#{result.experiment})" for result in there]
    links += [f"{name}: not run yet" for name in item.experiments if name not in results]
    if item.missing:
        links.append(f"in part: {item.missing}" if item.experiments else item.missing)
    return [item.where, item.what, item.paper, "; ".join(links), _holds(item, there)]


def _holds(item: Item, results: list[Result]) -> str:
    findings = [
        finding for result in results for finding in result.outcome.findings if finding.claim.startswith(item.about)
    ]
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
        f"`python -m gramvec_research run {experiment.name}`{seeds}; commit {result.commit or 'unknown'}; "
        f"[result with digests of the data](results/{experiment.name}.json).\n"
    )
