# ruff: noqa: D301  (click takes a real backspace as "do not wrap")
"""The command `gramvec-train vectors`."""

from __future__ import annotations

from pathlib import Path

import click

from gramvec_training.cli.support import PATH, one_sentence

_MOST_WORDS = 30_000  # as in data/cooccurrence.py, which imports numpy


@click.command()
@click.argument("texts", nargs=-1, type=PATH, required=True)
@click.option("-o", "--out", type=PATH, required=True, help="File to write, ending in .npy; its words beside, in .txt.")
@click.option("--dimension", type=click.IntRange(2, 1000), default=100, show_default=True, help="Of the vectors.")
@click.option("--window", type=click.IntRange(1, 100), default=10, show_default=True,
              help="How many places apart words count as near.")  # fmt: skip
@click.option("--min-count", type=click.IntRange(min=1), default=20, show_default=True, help="Leave out rarer words.")
@click.option("--max-words", type=click.IntRange(2, _MOST_WORDS), default=10_000, show_default=True,
              help="The most frequent alone; memory is 4 bytes for each two of them.")  # fmt: skip
@click.option("--epochs", type=click.IntRange(1, 10_000), default=30, show_default=True, help="Over the counts.")
@click.option("--rate", type=click.FloatRange(0, 10, min_open=True), default=0.05, show_default=True, help="AdaGrad's.")
@click.option("--seed", type=click.IntRange(min=0), default=1, show_default=True, help="Of first values and order.")
@click.option("--tokenised", is_flag=True, help="TEXTS are tokens with spaces between them already, see tokens.")
@one_sentence
def vectors(
    texts: tuple[Path, ...], out: Path, dimension: int, window: int, min_count: int, max_words: int, epochs: int,
    rate: float, seed: int, tokenised: bool,
) -> None:  # fmt: skip
    """Learn word vectors from TEXTS, one text a line, plain or gzip.

    The squared norm objective of Arora et al. (2016) over how often words stand near each other. Texts are cut into
    Treebank tokens and lower-cased. What is written is what --vectors of sif and papers, and model.vectors of a config,
    read. The same texts and options give the same bytes.

    \b
    gramvec-train vectors ../shared/data/train/raw/more_wikipedia_*.txt.gz -o runs/vectors.npy
    gramvec-train count ../shared/data/train/raw/more_wikipedia_*.txt.gz -o runs/counts.txt
    gramvec-train sif --vectors runs/vectors.npy --freq runs/counts.txt --components 0 --out runs/sif
    """
    if out.suffix != ".npy":
        raise click.UsageError(f"--out ends in .npy: {out.with_suffix('.npy')}")
    from gramvec_training.fitting import SquaredNorm
    from gramvec_training.runs import Counting, learn_word_vectors

    found = learn_word_vectors(
        texts,
        Counting(window, min_count, max_words, tokenised),
        SquaredNorm(dimension=dimension, epochs=epochs, rate=rate, seed=seed),
    )
    out.parent.mkdir(parents=True, exist_ok=True)
    found.save(out)
    click.echo(
        f"{out}: {len(found.words):,} words of {dimension} dimensions, {int(found.counts.sum()):,} counted, "
        f"loss {found.losses[0]:.3f} -> {found.losses[-1]:.3f}"
    )
