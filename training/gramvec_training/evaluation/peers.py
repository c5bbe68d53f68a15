"""The simplest rivals, each in a few lines of what people already use: TF-IDF, RapidFuzz, the teacher, model2vec.

What is measured is what such a user would write. The libraries are not needed for anything else, so each is imported
when its peer is made; an InputError says what to install.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from gramvec.errors import InputError
from gramvec_training.evaluation.comparison import (
    SCORES_A_BLOCK,
    Comparison,
    Cosines,
    Floats,
    Ints,
    Model,
    fixed,
    most_alike,
    unit,
)


def tfidf_of_ngrams(shortest: int = 2, longest: int = 4) -> Model:
    """Character n-grams inside of words, 1 + log of their count, times the inverse document frequency at hand."""
    return _tfidf(analyzer="char_wb", ngram_range=(shortest, longest), sublinear_tf=True)


def tfidf_of_words() -> Model:
    """scikit-learn's TF-IDF as it comes."""
    return _tfidf()


def token_set_ratio() -> Model:
    """RapidFuzz: the edit distance of what two texts have and have not in common, as sorted words."""
    comparison = _TokenSetRatio(_installed("rapidfuzz", "rapidfuzz"))
    return lambda texts: comparison


def sentence_transformer(folder: Path, *, threads: int = 1) -> Model:
    """A sentence-transformers model in a folder; nothing is fetched."""
    torch = _installed("torch", "torch")
    torch.set_num_threads(threads)
    model = _installed("sentence_transformers", "sentence-transformers").SentenceTransformer(
        str(folder), device="cpu", local_files_only=True
    )
    return fixed(
        lambda texts: np.asarray(model.encode(list(texts), normalize_embeddings=True, show_progress_bar=False))
    )


def model2vec(folder: Path) -> Model:
    """A model2vec model in a folder, such as one that its `distill` made of a teacher."""
    model = _installed("model2vec", "model2vec").StaticModel.from_pretrained(str(folder))
    return fixed(lambda texts: unit(np.asarray(model.encode(list(texts), use_multiprocessing=False), np.float32)))


class _TokenSetRatio:
    def __init__(self, rapidfuzz: Any) -> None:
        self._fuzz = import_module(f"{rapidfuzz.__name__}.fuzz")
        self._process = import_module(f"{rapidfuzz.__name__}.process")

    def pairs(self, left: Sequence[str], right: Sequence[str]) -> Floats:
        return np.array([self._fuzz.token_set_ratio(a, b) for a, b in zip(left, right, strict=True)], np.float64)

    def nearest(self, queries: Sequence[str], texts: Sequence[str], k: int) -> Ints:
        size = max(1, SCORES_A_BLOCK // max(len(texts), 1))

        def blocks() -> Iterator[Floats]:
            for start in range(0, len(queries), size):
                block = queries[start : start + size]
                yield self._process.cdist(block, texts, scorer=self._fuzz.token_set_ratio).astype(np.float64)

        return most_alike(blocks(), k)


def _tfidf(**settings: Any) -> Model:
    text = _installed("sklearn.feature_extraction.text", "scikit-learn")

    def model(texts: Sequence[str]) -> Comparison:
        vectorizer = text.TfidfVectorizer(**settings).fit(texts)
        return Cosines(lambda some: vectorizer.transform(some))

    return model


def _installed(module: str, package: str) -> Any:
    try:
        return import_module(module)
    except ImportError as error:
        raise InputError(f"The peer needs {package}, which is not installed: pip install {package}.") from error
