# ruff: noqa: D301  (click takes a real backspace as "do not wrap")
"""The commands about what training begins with: word counts of text, tokens, and the size of a model."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gramvec_training.cli.support import PATH, one_sentence

if TYPE_CHECKING:
    from gramvec_training.sections import WordRule


@click.command()
@click.argument("texts", nargs=-1, type=PATH, required=True)
@click.option("-o", "--out", type=PATH, required=True, help="File to write; packed where its name ends in .gz.")
@click.option("--min-count", type=click.IntRange(min=1), default=1, show_default=True, help="Leave out rarer words.")
@click.option("--word-rule", type=click.Choice(["runs-and-symbols/1", "white-space/1"]), default="runs-and-symbols/1",
              show_default=True, help="The second for texts that are cut into tokens already.")  # fmt: skip
@one_sentence
def count(texts: tuple[Path, ...], out: Path, min_count: int, word_rule: WordRule) -> None:
    """Count the words of TEXTS, one text a line, plain or compressed, into a file of frequencies.

    Words are cut and lower-cased as the models do it. Each line of the file is a word, a space and its count, the most
    frequent first: what --freq of sif and `frequencies` of a [sif] config read.

    \b
    python -m gramvec_research count data/train/raw/*.txt.gz -o counts.txt.gz --min-count 5
    """
    from gramvec.features.spec import FeatureSpec
    from gramvec_training.data.vocabulary import count_words
    from gramvec_training.readers.lines import read_texts

    spec = FeatureSpec(orders=(), words=True, word_rule=word_rule)
    counts = count_words((line for path in texts for line in read_texts(path)), spec)
    kept = sorted((-number, word) for word, number in counts.items() if number >= min_count)
    if not kept:
        from gramvec.errors import InputError

        raise InputError(f"no word stands {min_count} times in these texts; lower --min-count or give more text")
    _write(out, "".join(f"{word} {-number}\n" for number, word in kept))
    click.echo(f"{out}: {len(kept):,} words, {-sum(number for number, _ in kept):,} counted")


@click.command()
@click.argument("texts", type=PATH)
@click.option("-o", "--out", type=PATH, required=True, help="File to write; packed where its name ends in .gz.")
@one_sentence
def tokens(texts: Path, out: Path) -> None:
    """Cut TEXTS into Treebank tokens with spaces between them ("do n't", "mid-1990s", "word ,").

    Published word vectors are of such tokens. Texts are cut once, here, and a model with features.word_rule =
    "white-space/1" then takes what stands between white space; whoever asks it cuts texts alike. Each line is a row of
    columns with tabs between them; columns that are numbers, such as scores, stay.

    \b
    python -m gramvec_research tokens data/dev/sts16/headlines.tsv -o tokens/sts16/headlines.tsv
    """
    from gramvec_research.vectors import treebank_tokens
    from gramvec_training.readers.lines import number_lines

    rows = [
        "\t".join(column if _is_number(column) else treebank_tokens(column) for column in line.split("\t"))
        for _, line in number_lines(texts)
    ]
    _write(out, "".join(f"{row}\n" for row in rows))
    click.echo(f"{out}: {len(rows):,} lines")


def _is_number(column: str) -> bool:
    try:
        float(column)
    except ValueError:
        return False
    return True


def _write(out: Path, text: str) -> None:
    from gramvec_training.shared import write_atomically

    # Without a time stamp the same texts give the same bytes.
    data = gzip.compress(text.encode(), mtime=0) if out.suffix == ".gz" else text.encode()
    write_atomically(out, lambda handle: handle.write(data))


@click.command()
@click.argument("config", type=PATH)
@click.option("--rows", type=click.IntRange(min=0), default=0, show_default=True,
              help="Rows of the table: n-grams, words or characters.")  # fmt: skip
@one_sentence
def parameters(config: Path, rows: int) -> None:
    """Print the number of parameters of the model that CONFIG describes, of each by name and of all.

    The rows of a table are decided by the training texts, so their number is given here; a finished run's parameters
    are in its report.

    \b
    python -m gramvec_research parameters training/configs/papers/charcnn-phrase-paper.toml --rows 134
    """
    import torch

    from gramvec_training.config import load_config
    from gramvec_training.encoders.build import build_encoder

    wanted = load_config(config)
    table = torch.zeros(rows, wanted.model.table_width)
    encoder = build_encoder(wanted.composition, table, wanted.model.dimension, torch.Generator())
    counts = encoder.parameter_counts()
    for name, number in counts.items():
        click.echo(f"{name:<24}{number:>12,}  {list(encoder.get_parameter(name).shape)}")
    total = sum(counts.values())
    click.echo(f"{'without the table':<24}{total - counts['table']:>12,}")
    click.echo(f"{'in all':<24}{total:>12,}")


_MAX_WORDS = 30_000  # as MAX_WORDS of vectors.py, which imports torch


@click.command()
@click.argument("texts", nargs=-1, type=PATH, required=True)
@click.option("-o", "--out", type=PATH, required=True, help="File to write, ending in .npy; its words beside, in .txt.")
@click.option("--dimension", type=click.IntRange(2, 1000), default=100, show_default=True, help="Of the vectors.")
@click.option("--window", type=click.IntRange(1, 100), default=10, show_default=True,
              help="How many places apart words count as near.")  # fmt: skip
@click.option("--min-count", type=click.IntRange(min=1), default=20, show_default=True, help="Leave out rarer words.")
@click.option("--max-words", type=click.IntRange(2, _MAX_WORDS), default=10_000, show_default=True,
              help="Only the most frequent; memory is 4 bytes for each two of them.")  # fmt: skip
@click.option("--epochs", type=click.IntRange(1, 10_000), default=30, show_default=True, help="Over the counts.")
@click.option("--rate", type=click.FloatRange(0, 10, min_open=True), default=0.05, show_default=True, help="AdaGrad's.")
@click.option("--seed", type=click.IntRange(min=0), default=1, show_default=True, help="Of first values and order.")
@click.option("--tokenised", is_flag=True, help="TEXTS are tokens with spaces between them already, see tokens.")
@one_sentence
def vectors(
    texts: tuple[Path, ...], out: Path, dimension: int, window: int, min_count: int, max_words: int, epochs: int,
    rate: float, seed: int, tokenised: bool,
) -> None:  # fmt: skip
    """Learn word vectors from TEXTS, one text a line, plain or compressed.

    The squared norm objective of Arora et al. (2016) over how often words stand near each other. Texts are cut into
    Treebank tokens and lower-cased. What is written is what --vectors of sif and papers, and model.vectors of a config,
    read. The same texts and options give the same bytes.

    \b
    python -m gramvec_research vectors data/train/raw/more_wikipedia_*.txt.gz -o runs/vectors.npy
    python -m gramvec_research count data/train/raw/more_wikipedia_*.txt.gz -o runs/counts.txt
    python -m gramvec_research sif --vectors runs/vectors.npy --freq runs/counts.txt --components 0 --out runs/sif
    """
    if out.suffix != ".npy":
        raise click.UsageError(f"--out ends in .npy: {out.with_suffix('.npy')}")
    from gramvec_research.vectors import Counting, SquaredNorm, learn_word_vectors, save_vectors

    learned = learn_word_vectors(
        texts,
        Counting(window, min_count, max_words, tokenised),
        SquaredNorm(dimension=dimension, epochs=epochs, rate=rate, seed=seed),
    )
    out.parent.mkdir(parents=True, exist_ok=True)
    save_vectors(out, learned.words, learned.vectors)
    click.echo(
        f"{out}: {len(learned.words):,} words of {dimension} dimensions, {int(learned.counts.sum()):,} counted, "
        f"loss {learned.losses[0]:.3f} -> {learned.losses[-1]:.3f}"
    )
