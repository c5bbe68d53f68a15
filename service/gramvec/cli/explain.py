"""The commands `gramvec explain` and `gramvec neighbors`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, BinaryIO
from unicodedata import name

import click
import numpy as np
import orjson

from gramvec.cli.options import POSITIVE, device_option, json_option, model_option
from gramvec.embed.loading import load
from gramvec.errors import InputError, printable
from gramvec.explain.contributions import MAX_PAIRS, TOP_K, Explanation, Feature, explain
from gramvec.explain.neighbors import NEAREST, nearest_ngrams, nearest_words
from gramvec.jobs.tables.inputs import read_lines
from gramvec.runtime.base import Device
from gramvec.text.confusables import list_differences, look_alike


@click.command("explain", short_help="Show which features made a score.")
@click.argument("source")
@click.argument("target")
@click.option(
    "--top-k", type=click.IntRange(1, MAX_PAIRS), default=TOP_K, show_default=True, help="Number of pairs to list."
)
@click.option("--by-word", is_flag=True, help="List pairs of words instead of pairs of features.")
@click.option(
    "--confusables", is_flag=True, help="Say, too, whether the texts look alike in letters of different scripts."
)
@json_option
@model_option
@device_option
def explain_command(
    source: str,
    target: str,
    top_k: int,
    by_word: bool,
    confusables: bool,
    as_json: bool,
    model: str,
    device: Device,
) -> None:
    """Print the cosine of SOURCE and TARGET and the pairs of features that made it, largest first.

    The contributions add up to the score. A space at the start or end of a word is shown as "␣".

    \b
    Examples:
      gramvec explain vehicals vehicles --top-k 5
      gramvec explain 'cheap flihgts' 'low-cost air fares' --by-word
      gramvec explain paypal раураl --confusables
    """  # noqa: D301 - click takes the character, not its escape
    embedder = load(model, device=device)
    found = explain(embedder, source, target, top_k=top_k)
    if as_json:
        looks = _looks(source, target) if confusables else {}
        click.echo(_json(found.to_dict() | looks))
    else:
        click.echo("\n".join([*_table(found, by_word), *(_look_lines(source, target) if confusables else ())]))
    embedder.close()


@click.command("neighbors", short_help="Find the words nearest to a text.")
@click.argument("text", required=False)
@click.option("--ngram", help="An n-gram of the model instead of a text; a space stands for the end of a word.")
@click.option(
    "--words", type=click.File("rb"), metavar="FILE", help="Words, one a line (-: stdin). [the model's own words]"
)
@click.option("--top-k", type=POSITIVE, default=NEAREST, show_default=True, help="Number of neighbors to list.")
@json_option
@model_option
@device_option
def neighbors_command(
    text: str | None, ngram: str | None, words: BinaryIO | None, top_k: int, as_json: bool, model: str, device: Device
) -> None:
    """Print the words nearest to TEXT, one line each: cosine, tab, word; or the n-grams nearest to --ngram.

    \b
    Examples:
      gramvec neighbors vehicals
      gramvec neighbors 'not able' --words /usr/share/dict/words
      gramvec neighbors --ngram ' un'
    """  # noqa: D301 - click takes the character, not its escape
    if (text is None) == (ngram is None):
        raise click.UsageError("nothing to explain; give a TEXT, or --ngram NGRAM")
    if ngram is not None and words is not None:
        raise click.UsageError(
            "--words: goes with a TEXT only; leave it out with --ngram, whose neighbors are n-grams of the model"
        )
    embedder = load(model, device=device)
    if ngram is not None:
        neighbors = nearest_ngrams(embedder, ngram, k=top_k)
    else:
        assert text is not None
        try:
            candidates = filter(None, map(str.strip, read_lines(words))) if words else None
            neighbors = nearest_words(embedder, text, candidates, k=top_k)
        except InputError as error:
            if error.field != "words":
                raise
            raise InputError(f"{embedder.name}: has no words of its own; give some with --words FILE") from error
    if as_json:
        click.echo(_json([{"text": neighbor.text, "score": np.float32(neighbor.score)} for neighbor in neighbors]))
    else:
        for neighbor in neighbors:
            click.echo(f"{neighbor.score:.4f}\t{_show(neighbor.text) if ngram is not None else neighbor.text}")
    embedder.close()


def _json(value: Any) -> str:
    return orjson.dumps(value, option=orjson.OPT_SERIALIZE_NUMPY).decode()


def _table(found: Explanation, by_word: bool) -> Iterator[str]:
    yield f"score {found.score:.4f}"
    if by_word:
        rows = [(pair.contribution, printable(pair.source.text), printable(pair.target.text)) for pair in found.words]
    else:
        rows = [(pair.contribution, _describe(pair.source), _describe(pair.target)) for pair in found.pairs]
    width = max((len(source) for _, source, _ in rows), default=0)
    for contribution, source, target in rows:
        yield f"{_format_signed(contribution)}  {source:<{width}}  {target}"
    yield f"{_format_signed(found.words_rest if by_word else found.rest)}  all other pairs"
    rest = "the effect of single features" if found.by_occlusion else "the model's bias and rounding"
    yield f"{_format_signed(found.residual)}  no pair: {rest}"
    yield f"known features cover {found.source.coverage:.0%} of the source's characters, " + (
        f"{found.target.coverage:.0%} of the target's"
    )


def _looks(source: str, target: str) -> dict[str, Any]:
    return {
        "look_alike": look_alike(source, target),
        "confusables": [pair._asdict() for pair in list_differences(source, target)],
    }


def _look_lines(source: str, target: str) -> Iterator[str]:
    if not look_alike(source, target):
        yield "the texts do not look alike in different letters"
        return
    yield "the texts look alike, but their letters differ:"
    for place, *both in list_differences(source, target):
        yield f"  character {place + 1}: " + " and ".join(
            f"{printable(character)} {name(character, '')}".strip() for character in both
        )


def _format_signed(value: float) -> str:
    return f"{round(value, 4) + 0.0:+9.4f}"  # adding 0 makes -0 a 0


def _describe(feature: Feature) -> str:
    kind = "" if feature.kind == "ngram" else f" ({feature.kind})"
    times = f" x{feature.times}" if feature.times > 1 else ""
    return f"{_show(feature.text)}{kind}{times}"


def _show(text: str) -> str:
    return printable(text.replace(" ", "␣"))
