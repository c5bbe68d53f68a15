"""How fast each system of docs/evaluation.md makes vectors: the other axis of the README's picture, in one run.

TF-IDF is fitted on the texts beforehand, and only transforms them here; it gives sparse vectors.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Any

import gramvec
from benchmarks.measure import Setting, interleaved, rates
from benchmarks.peers import MODEL2VEC, peers
from benchmarks.results import Part

MODELS = ("gramvec-en", "charagram-phrase", "paragram-phrase", "sif")
# Their settings are those of gramvec_training.families.peers, by whose names they are scored.
TFIDF: dict[str, dict[str, Any]] = {
    "tfidf": {"analyzer": "char_wb", "ngram_range": (2, 4), "sublinear_tf": True},
    "tfidf-words": {},
}
TEXTS_A_CALL = 512


def run(setting: Setting) -> Part:
    part = Part()
    with ExitStack() as stack:
        systems: dict[str, Callable[[Sequence[str]], object]] = {}
        for name in MODELS:
            embedder = gramvec.load(name, device="cpu", threads=1)
            stack.callback(embedder.close)
            systems[name] = embedder.embed
            if name == MODELS[0]:
                static = peers(embedder, setting.texts, lambda _: None).get(MODEL2VEC)
        if static is not None:
            systems[MODEL2VEC] = static
        else:
            part.note("model2vec is left out: it is not installed; 'make bench-peers' installs it")
        systems |= _tfidf(setting.texts, part)
        tasks = {name: _called(embed, setting.texts) for name, embed in systems.items()}
        timings = interleaved(tasks, len(setting.texts), setting.rounds)
        title = f"systems of docs/evaluation.md, {TEXTS_A_CALL} texts a call, one thread"
        part.add("tradeoff", rates(title, "texts", timings, MODELS[0]))
    return part


def _tfidf(texts: Sequence[str], part: Part) -> dict[str, Callable[[Sequence[str]], object]]:
    try:
        from sklearn.feature_extraction.text import TfidfVectorizer
    except ImportError as error:
        part.note(f"TF-IDF is left out: {error}; 'make bench-peers' installs it")
        return {}
    return {name: TfidfVectorizer(**settings).fit(texts).transform for name, settings in TFIDF.items()}


def _called(embed: Callable[[Sequence[str]], object], texts: Sequence[str]) -> Callable[[], None]:
    def call() -> None:
        for start in range(0, len(texts), TEXTS_A_CALL):
            embed(texts[start : start + TEXTS_A_CALL])

    return call
