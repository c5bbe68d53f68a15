"""The golden texts of a bundle: what whoever opens it computes again, to see that nothing is damaged there."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, zip_longest
from pathlib import Path

from gramvec.bundle.bundle import CPU_GRAPH, GRAPH, Golden, Graph
from gramvec.runtime.onnx import OnnxRuntime
from gramvec.text.featurizer import Featurizer

GOLDEN_TEXTS = (
    "vehicles",
    "a man is playing the guitar",
    "Where can I buy a second-hand bicycle?",
    "the talks were broken off on Tuesday, two officials said",
    "definately recieved teh pacakge",
    "",
    "x",
    "don't stop, (e.g.) 3.14% of #1!!",
    "\t many \n\n kinds\u00a0of\u3000space ",
    "CAF\u00c9 na\u00efve e\u0301te\u0301 Stra\u00dfe \u0130stanbul",
    "\u03a3\u03bf\u03c6\u03cc\u03c2 \u041c\u043e\u0441\u043a\u0432\u0430",
    "\u65e5\u672c\u8a9e \U0001f642\U0001f642 emoji",
)
# More rows than one exact sum in float32 has (gramvec.runtime.int8), so that a text that is cut is among them.
LONG_ROWS = 1_100
FREQUENT, FAR = 16, 4


def golden_texts(featurizer: Featurizer, texts: Sequence[str] = GOLDEN_TEXTS) -> list[str]:
    """These texts, and a long one from the whole of the vocabulary and the memo, which has rows of every kind.

    featurizer: as the model is served, with its memo.
    """
    long = _long_text(featurizer)
    return [*texts, *({long} - set(texts) - {""})]


def runtime_of(folder: Path, graph: Graph, dimension: int) -> OnnxRuntime:
    """ONNX Runtime over the graphs that were written into a folder."""
    integers = graph.cpu and graph.beyond_rows is None
    return OnnxRuntime(folder / GRAPH, dimension, cpu_graph=folder / CPU_GRAPH if integers else None)


def made_golden(
    runtime: OnnxRuntime, featurizer: Featurizer, memoised: Featurizer, texts: Sequence[str]
) -> list[Golden]:
    """The texts with the rows of their features, each by itself, and the vectors that the runtime makes of them."""
    batch, vectors = featurizer(texts), runtime.run(memoised(texts))
    rows = [batch.ids[first:last].tolist() for first, last in zip(batch.offsets[:-1], batch.offsets[1:], strict=True)]
    return [
        Golden(text=text, ids=ids, vector=vector.tolist())
        for text, ids, vector in zip(texts, rows, vectors, strict=True)
    ]


def _long_text(featurizer: Featurizer) -> str:
    """Words, n-grams, chunks and edges by turns, again and again until there are LONG_ROWS rows."""
    vocabulary, memo = featurizer.vocabulary, featurizer.memo
    kinds: list[Sequence[str]] = [vocabulary.word_texts, vocabulary.ngram_texts]
    kinds += [] if memo is None else memo.decoded(vocabulary)
    pieces = chain.from_iterable(zip_longest(*map(_some, kinds), fillvalue=""))
    text = " ".join(filter(None, map(str.strip, pieces)))
    rows = int(featurizer([text]).counts[0])
    return " ".join([text] * -(-LONG_ROWS // rows)) if rows else text


def _some(entries: Sequence[str]) -> Sequence[str]:
    """The most frequent, and a few from all of the table: each of those brings 64 KB of it into memory."""
    rest = entries[FREQUENT:]
    return [*entries[:FREQUENT], *rest[:: max(1, len(rest) // FAR)][:FAR], *rest[-1:]]
