"""Models under evaluation: vectors, cosines, nearest texts; and the report of similarity scores."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Protocol

import numpy as np
import numpy.typing as npt

from gramvec.embed.embedder import Embedder
from gramvec.errors import InputError
from gramvec.features.featurizer import Featurizer
from gramvec_training.evaluation.similarity import (
    SimilaritySet,
    keep_sentence_sets,
    measure_coverage,
    misspell_sets,
    score_sets,
)
from gramvec_training.fitting.sif import find_common_components, remove_components
from gramvec_training.shared import Doubles, Encode, Floats, Ints, Similarity

ComponentSides = Literal["both", "each"]


@dataclass(frozen=True)
class ScoredModel:
    """A model to score.

    `encode` returns zero vectors for texts without a known feature; `facts` go to the report.
    """

    name: str
    featurizer: Featurizer
    encode: Encode
    similarity: Similarity
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Typos:
    """Noise to add: percentages of misspelled words, real misspellings of words, and the seed."""

    percentages: tuple[int, ...] = ()
    known: Mapping[str, Sequence[str]] = field(default_factory=dict)
    seed: int = 1


def serve_model(embedder: Embedder) -> ScoredModel:
    """Return a bundle as it is served."""

    def encode(texts: Sequence[str]) -> Floats:
        return embedder.raw(embedder.prepare(texts, truncate=True)).vectors

    facts = {"digest": embedder.digest, "device": embedder.device}
    return ScoredModel(embedder.name, embedder.bundle.featurizer, encode, embedder.pair_similarity, facts)


def remove_components_of_sets(model: ScoredModel, components: int, sides: ComponentSides) -> ScoredModel:
    """Return the model with the first components of each set removed from that set's vectors.

    SIF's paper scores this way.

    sides: "both" takes them from the left and the right texts together (Algorithm 1), "each" from either by themselves
    (the authors' code). The vector of a text then depends on its set: for figures only, never served.
    """

    def remove(vectors: Floats, of: Floats) -> npt.NDArray[np.float64]:
        rest = remove_components(vectors, find_common_components(of, components)).astype(np.float64)
        rest[~vectors.any(axis=1)] = 0
        unit: npt.NDArray[np.float64] = rest / np.maximum(np.linalg.norm(rest, axis=1, keepdims=True), 1e-12)
        return unit

    def similarity(left: Sequence[str], right: Sequence[str]) -> npt.NDArray[np.float64]:
        encoded = model.encode(left), model.encode(right)
        both = np.concatenate(encoded)
        lefts, rights = (remove(side, side if sides == "each" else both) for side in encoded)
        cosines: npt.NDArray[np.float64] = np.einsum("nd,nd->n", lefts, rights)
        return cosines

    facts = {**model.facts, "components_of_sets": components, "of_sides": sides}
    return replace(model, similarity=similarity, facts=facts)


def evaluate_models(
    models: Sequence[ScoredModel], labels: Sequence[str], sets: Sequence[SimilaritySet], typos: Typos | None = None
) -> dict[str, dict[str, Any]]:
    """Return the report of each model, by its label.

    `name` and the model's facts; `tasks` and `notes` of sets.score_sets; `coverage` of coverage.coverage; and with
    `typos`, percentage of misspelt words -> the tasks. Sets of single words are never misspelt.
    """
    typos = typos or Typos()
    noisy = {
        str(percentage): misspell_sets(keep_sentence_sets(sets), percentage / 100, typos.known, seed=typos.seed)
        for percentage in typos.percentages
    }
    reports: dict[str, dict[str, Any]] = {}
    for model, label in zip(models, labels, strict=True):
        report: dict[str, Any] = {
            "name": model.name,
            **model.facts,
            **score_sets(sets, model.similarity),
            "coverage": measure_coverage(sets, model.featurizer),
        }
        if noisy:
            report["typos"] = {key: score_sets(members, model.similarity)["tasks"] for key, members in noisy.items()}
        reports[label] = report
    return reports


# float[n, d] as an array, or as a scipy.sparse matrix of rows; each row of length 1, or all zeros.
UnitRows = Any
EncodeRows = Callable[[Sequence[str]], UnitRows]

SCORES_A_BLOCK = 8_000_000  # 64 MB of float64: queries times texts that are held at a time


class TextComparison(Protocol):
    """A similarity measure between texts; higher is more alike.

    `encode` gives the vectors that it compares, or is None where it compares the texts themselves.
    """

    @property
    def encode(self) -> EncodeRows | None: ...  # noqa: D102

    def pairs(self, left: Sequence[str], right: Sequence[str]) -> Doubles:
        """Return float64[n]: the similarity of left[i] and right[i]."""
        ...

    def nearest(self, queries: Sequence[str], texts: Sequence[str], k: int) -> Ints:
        """Return int64[queries, min(k, texts)]: positions of the most similar texts, best first, ties by position."""
        ...


ModelForTexts = Callable[[Sequence[str]], TextComparison]


class Cosines:
    """TextComparison by the cosine of vectors; `encode` returns rows of length 1 or zero."""

    def __init__(self, encode: EncodeRows) -> None:
        self.encode = encode

    def pairs(self, left: Sequence[str], right: Sequence[str]) -> Doubles:
        """Return float64[n]: the cosines; each distinct text is encoded once."""
        places = {text: place for place, text in enumerate(dict.fromkeys([*left, *right]))}
        vectors = self.encode(list(places))
        a, b = (vectors[[places[text] for text in side]] for side in (left, right))
        if _is_sparse(a):
            return np.asarray(a.multiply(b).sum(axis=1), np.float64).ravel()
        return np.asarray(np.einsum("ij,ij->i", a, b, dtype=np.float64))

    def nearest(self, queries: Sequence[str], texts: Sequence[str], k: int) -> Ints:
        """Return int64[queries, min(k, texts)] by cosine, best first."""
        return find_nearest_rows(self.encode(queries), self.encode(texts), k)


def fix_model(encode: EncodeRows) -> ModelForTexts:
    """Return a model that does not depend on the texts at hand."""
    comparison = Cosines(encode)
    return lambda texts: comparison


def find_nearest_rows(asked: UnitRows, known: UnitRows, k: int) -> Ints:
    """Return int64[asked, min(k, known)]: the places of the nearest known vectors of each asked one."""
    columns = known.T.tocsr() if _is_sparse(known) else np.ascontiguousarray(known.T)
    size = max(1, SCORES_A_BLOCK // max(columns.shape[1], 1))

    def blocks() -> Iterator[Doubles]:
        for start in range(0, asked.shape[0], size):
            scores = asked[start : start + size] @ columns
            yield np.asarray(scores.toarray() if _is_sparse(scores) else scores, np.float64)

    return find_most_alike(blocks(), k)


def find_most_alike(blocks: Iterator[Doubles], k: int) -> Ints:
    """Return int64[rows, min(k, columns)]: the places of each row's highest scores, best first, ties by place.

    blocks: float64[some rows, columns] one after another.

    Raises:
        InputError: A score is not a number.
    """
    places = []
    for block in blocks:
        if np.isnan(block).any():
            raise InputError("a score is not a number, so nothing can be ranked by it; look for NaN in the vectors")
        places.append(_highest(block, min(k, block.shape[1])))
    return np.concatenate(places) if places else np.zeros((0, k), np.int64)


def _highest(scores: Doubles, k: int) -> Ints:
    places = np.zeros((len(scores), k), np.int64)
    if k == 0:
        return places
    least = np.partition(scores, scores.shape[1] - k, axis=1)[:, -k]
    for row, (values, bound) in enumerate(zip(scores, least, strict=True)):
        candidates = np.flatnonzero(values >= bound)  # more than k where several are equal to the last
        order = np.lexsort((candidates, -values[candidates]))[:k]
        places[row] = candidates[order]
    return places


def normalize_rows(vectors: UnitRows) -> UnitRows:
    """Return the rows at length 1, zero rows unchanged; an array or a scipy.sparse matrix."""
    if _is_sparse(vectors):
        from scipy import sparse

        rows = vectors.tocsr()
        squares = np.asarray(rows.multiply(rows).sum(axis=1), np.float64).ravel()
        return (sparse.diags(1 / np.sqrt(np.where(squares > 0, squares, 1))) @ rows).tocsr()
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors / np.where(lengths > 0, lengths, 1)


def _is_sparse(vectors: UnitRows) -> bool:
    return not isinstance(vectors, np.ndarray)  # scipy takes half a second to import
