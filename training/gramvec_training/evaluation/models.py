"""Scores of finished models, clean and misspelt: bundles as they are served, runs as their trainer computes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from gramvec.embed.embedder import Embedder
from gramvec.text.featurizer import Featurizer
from gramvec_training.evaluation.coverage import coverage
from gramvec_training.evaluation.robustness import misspelt_sets, of_sentences
from gramvec_training.evaluation.sets import SimilaritySet, score_sets
from gramvec_training.fitting import common_components, remove_components
from gramvec_training.types import Encode, Floats, Similarity

Sides = Literal["both", "each"]


@dataclass(frozen=True)
class ScoredModel:
    """What can be scored. encode: vectors, zero where nothing of a text is known; facts: for its report."""

    name: str
    featurizer: Featurizer
    encode: Encode
    similarity: Similarity
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Typos:
    """Which noise to add: the percentages of words that are misspelt, real misspellings of words, and the seed."""

    percentages: tuple[int, ...] = ()
    known: Mapping[str, Sequence[str]] = field(default_factory=dict)
    seed: int = 1


def served_model(embedder: Embedder) -> ScoredModel:
    """A bundle as it is served."""

    def encode(texts: Sequence[str]) -> Floats:
        return embedder.raw(embedder.prepare(texts, truncate=True)).vectors

    facts = {"digest": embedder.digest, "device": embedder.device}
    return ScoredModel(embedder.name, embedder.bundle.featurizer, encode, embedder.pair_similarity, facts)


def without_components_of_sets(model: ScoredModel, components: int, sides: Sides) -> ScoredModel:
    """The model with the first components of each set taken out of that set's vectors, as SIF is scored in the paper.

    sides: "both" takes them from the left and the right texts together (Algorithm 1), "each" from either by themselves
    (the authors' code). What a text's vector is then depends on the set it stands in: for figures alone, never served.
    """

    def removed(vectors: Floats, of: Floats) -> npt.NDArray[np.float64]:
        found = remove_components(vectors, common_components(of, components)).astype(np.float64)
        found[~vectors.any(axis=1)] = 0
        unit: npt.NDArray[np.float64] = found / np.maximum(np.linalg.norm(found, axis=1, keepdims=True), 1e-12)
        return unit

    def similarity(left: Sequence[str], right: Sequence[str]) -> npt.NDArray[np.float64]:
        one, other = model.encode(left), model.encode(right)
        both = np.concatenate([one, other])
        a, b = (removed(side, side if sides == "each" else both) for side in (one, other))
        cosines: npt.NDArray[np.float64] = np.einsum("nd,nd->n", a, b)
        return cosines

    facts = {**model.facts, "components_of_sets": components, "of_sides": sides}
    return replace(model, similarity=similarity, facts=facts)


def evaluate_models(
    models: Sequence[ScoredModel], labels: Sequence[str], sets: Sequence[SimilaritySet], typos: Typos | None = None
) -> dict[str, dict[str, Any]]:
    """The report of each model, by its label.

    `name` and the model's facts; `tasks` and `notes` of sets.score_sets; `coverage` of coverage.coverage; and with
    `typos`, percentage -> the tasks with so many of their words misspelt. Sets of single words are never misspelt.
    """
    typos = typos or Typos()
    noisy = {
        str(percentage): misspelt_sets(of_sentences(sets), percentage / 100, typos.known, seed=typos.seed)
        for percentage in typos.percentages
    }
    reports: dict[str, dict[str, Any]] = {}
    for model, label in zip(models, labels, strict=True):
        report: dict[str, Any] = {
            "name": model.name,
            **model.facts,
            **score_sets(sets, model.similarity),
            "coverage": coverage(sets, model.featurizer),
        }
        if noisy:
            report["typos"] = {key: score_sets(members, model.similarity)["tasks"] for key, members in noisy.items()}
        reports[label] = report
    return reports
