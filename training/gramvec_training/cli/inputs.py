# ruff: noqa: D301  (click takes a real backspace as "do not wrap")
"""The commands about what training begins with: word counts of text, tokens, and the size of a model."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gramvec_training.cli.support import PATH, one_sentence

if TYPE_CHECKING:
    from gramvec_training.configuration import WordRule


@click.command()
@click.argument("texts", nargs=-1, type=PATH, required=True)
@click.option("-o", "--out", type=PATH, required=True, help="File to write; packed where its name ends in .gz.")
@click.option("--min-count", type=click.IntRange(min=1), default=1, show_default=True, help="Leave out rarer words.")
@click.option("--word-rule", type=click.Choice(["runs-and-symbols/1", "white-space/1"]), default="runs-and-symbols/1",
              show_default=True, help="The second for texts that are cut into tokens already.")  # fmt: skip
@one_sentence
def count(texts: tuple[Path, ...], out: Path, min_count: int, word_rule: WordRule) -> None:
    """Count the words of TEXTS, one text a line, plain or gzip, into a file of frequencies.

    Words are cut and lower-cased as the models do it. Each line of the file is a word, a space and its count, the most
    frequent first: what --freq of sif and `frequencies` of a [sif] config read.

    \b
    gramvec-train count ../shared/data/train/raw/*.txt.gz -o counts.txt.gz --min-count 5
    """
    from gramvec.text.spec import FeatureSpec
    from gramvec_training.data import count_words
    from gramvec_training.readers import read_texts

    spec = FeatureSpec(orders=(), words=True, word_rule=word_rule)
    counts = count_words((line for path in texts for line in read_texts(path)), spec)
    kept = sorted((-number, word) for word, number in counts.items() if number >= min_count)
    if not kept:
        from gramvec.errors import InputError

        raise InputError(f"No word stands {min_count} times in these texts; lower --min-count or give more text.")
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
    gramvec-train tokens ../shared/data/dev/sts16/headlines.tsv -o tokens/sts16/headlines.tsv
    """
    from gramvec.errors import InputError
    from gramvec_training.readers import numbered_lines, treebank_tokens

    rows = []
    for number, line in numbered_lines(texts):
        try:
            columns = line.decode("utf-8").split("\t")
        except UnicodeDecodeError as error:
            raise InputError(f"{texts} line {number}: not UTF-8; convert the file first") from error
        rows.append("\t".join(one if _is_number(one) else treebank_tokens(one) for one in columns))
    _write(out, "".join(f"{row}\n" for row in rows))
    click.echo(f"{out}: {len(rows):,} lines")


def _is_number(column: str) -> bool:
    try:
        float(column)
    except ValueError:
        return False
    return True


def _write(out: Path, text: str) -> None:
    from gramvec_training.files import write_atomically

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
    gramvec-train parameters training/configs/charcnn-phrase-paper.toml --rows 134
    """
    import torch

    from gramvec_training.configuration import load_config
    from gramvec_training.encoders import build_encoder

    wanted = load_config(config)
    table = torch.zeros(rows, wanted.model.table_width)
    encoder = build_encoder(wanted.composition, table, wanted.model.dimension, torch.Generator())
    counts = encoder.parameter_counts()
    for name, number in counts.items():
        click.echo(f"{name:<24}{number:>12,}  {list(encoder.get_parameter(name).shape)}")
    total = sum(counts.values())
    click.echo(f"{'without the table':<24}{total - counts['table']:>12,}")
    click.echo(f"{'in all':<24}{total:>12,}")
