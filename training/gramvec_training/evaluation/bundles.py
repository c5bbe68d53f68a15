"""Scores of finished bundles, clean and misspelt, computed through the bundle as it is served."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from gramvec.embedder import Embedder
from gramvec_training.evaluation.coverage import coverage
from gramvec_training.evaluation.robustness import misspelt_sets, of_sentences
from gramvec_training.evaluation.sets import SimilaritySet, score_sets


@dataclass(frozen=True)
class Typos:
    """Which noise to add: the percentages of words that are misspelt, real misspellings of words, and the seed."""

    percentages: tuple[int, ...] = ()
    known: Mapping[str, Sequence[str]] = field(default_factory=dict)
    seed: int = 1


def evaluate_bundles(
    embedders: Sequence[Embedder], labels: Sequence[str], sets: Sequence[SimilaritySet], typos: Typos | None = None
) -> dict[str, dict[str, Any]]:
    """The report of each bundle, by its label.

    `name`, `digest`, `device`; `tasks` and `notes` of sets.score_sets; `coverage` of coverage.coverage; and with
    `typos`, percentage -> the tasks with so many of their words misspelt. Sets of single words are never misspelt.
    """
    typos = typos or Typos()
    noisy = {
        str(percentage): misspelt_sets(of_sentences(sets), percentage / 100, typos.known, seed=typos.seed)
        for percentage in typos.percentages
    }
    reports: dict[str, dict[str, Any]] = {}
    for embedder, label in zip(embedders, labels, strict=True):
        report: dict[str, Any] = {
            "name": embedder.name,
            "digest": embedder.digest,
            "device": embedder.device,
            **score_sets(sets, embedder.pair_similarity),
            "coverage": coverage(sets, embedder.bundle.featuriser),
        }
        if noisy:
            report["typos"] = {
                key: score_sets(members, embedder.pair_similarity)["tasks"] for key, members in noisy.items()
            }
        reports[label] = report
    return reports
