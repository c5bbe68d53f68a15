"""Texts to features: the compiled pass against the numpy pass, 512 texts a call, and one text a call."""

from __future__ import annotations

import gramvec
from benchmarks.measure import interleaved, table
from gramvec.features import Featuriser


def run(embedder: gramvec.Embedder, texts: list[str], rounds: int) -> list[dict[str, object]]:
    spec, vocabulary = embedder.bundle.spec, embedder.bundle.vocabulary
    compiled = Featuriser(spec, vocabulary, compiled=True)
    plain = Featuriser(spec, vocabulary, compiled=False)
    blocks = [texts[start : start + 512] for start in range(0, len(texts), 512)]
    timings = interleaved(
        {
            "numpy": lambda: [plain(block) for block in blocks],
            "compiled": lambda: [compiled(block) for block in blocks],
            "compiled, one text a call": lambda: [compiled([text]) for text in texts],
        },
        len(texts),
        rounds,
    )
    counts = compiled(texts).counts
    mean = sum(map(len, texts)) / len(texts)
    title = f"features: {mean:.0f} characters and {counts.mean():.0f} features a text, one thread"
    return table(title, "texts", timings, "numpy")
