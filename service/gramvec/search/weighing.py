"""What an index weighs n-grams by: the texts that it holds, counted once before they are embedded."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Literal, get_args

from gramvec.embed.embedder import Embedder
from gramvec.lexical.sketch import LexicalSketch
from gramvec.tables.inputs import STDIN, Form, Source, form_of
from gramvec.tables.readers import open_reader

Weights = Literal["texts", "model"]
WEIGHTS: tuple[Weights, ...] = get_args(Weights)

# More than where pairs are to be told apart: what is searched ranks better (training/gramvec_research/log.md).
SEARCH_A = 0.03
# Of fewer texts, in which every n-gram is common, the model knows better.
LEAST_TEXTS = 100
# Shares of so many texts are known well enough; of longer ones so much is looked at.
MOST_TEXTS, MOST_CHARACTERS = 65_536, 4_096


def weighed(embedder: Embedder, source: Path, form: Form | None, column: str) -> LexicalSketch | None:
    """The model's lexical sketch weighed by the texts of a file; None where it has none, for under a hundred texts, and
    for texts that can be read once alone.

    Of over 65,536 texts every second, fourth, ... is counted, so that they are of the whole file. Rows without a text
    are left out. Raises InputError for a file that cannot be read.
    """
    known = embedder.bundle.lexical
    if known is None or source == STDIN or not source.is_file():
        return None
    texts = sampled(_texts(source, form, column))
    return LexicalSketch.of_texts(texts, **known.shape, a=SEARCH_A) if len(texts) >= LEAST_TEXTS else None


def weighed_by(embedder: Embedder, texts: Sequence[str]) -> Embedder:
    """The model with its lexical sketch weighed by these texts as an index's is; itself for under a hundred."""
    known = embedder.bundle.lexical
    kept = sampled(iter(texts))
    if known is None or len(kept) < LEAST_TEXTS:
        return embedder
    return embedder.with_lexical(LexicalSketch.of_texts(kept, **known.shape, a=SEARCH_A), embedder.space)


def sampled(texts: Iterator[str]) -> list[str]:
    """At most 65,536 of the texts, evenly spread, cut to 4,096 characters; in memory that does not grow with them."""
    kept: list[str] = []
    step = 1
    for place, text in enumerate(texts):
        if place % step:
            continue
        if len(kept) == MOST_TEXTS:
            kept, step = kept[::2], 2 * step
            if place % step:
                continue
        kept.append(text[:MOST_CHARACTERS])
    return kept


def _texts(path: Path, form: Form | None, column: str) -> Iterator[str]:
    with closing(Source(path)) as source:
        for block in open_reader(source, form or form_of(path), column, keep=False).blocks():
            for place, text in enumerate(block.texts):
                if place not in block.bad and _is_unicode(text):
                    yield text


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
