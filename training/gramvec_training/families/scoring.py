"""All families of one model: nested values for JSON, in percent, clean and misspelt."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

import numpy as np

from gramvec.errors import InputError
from gramvec_training.evaluation import SimilaritySet, Typos, misspelt, misspelt_sets, of_sentences, score_sets
from gramvec_training.families.classification import ClassificationSet, learn_classes
from gramvec_training.families.comparison import Model
from gramvec_training.families.matching import score_matching
from gramvec_training.families.matching_sets import MatchingSet
from gramvec_training.families.retrieval import DEPTH, RetrievalSet, score_retrieval
from gramvec_training.families.spelling import SpellingSet, score_spelling

Report = dict[str, Any]
T = TypeVar("T")


@dataclass(frozen=True)
class Families:
    """What is scored beside similarity. Raises InputError where two sets of one family have the same name."""

    matching: Sequence[MatchingSet] = ()
    retrieval: Sequence[RetrievalSet] = ()
    classification: Sequence[ClassificationSet] = ()
    spelling: Sequence[SpellingSet] = ()

    def __post_init__(self) -> None:
        named = [(task.family, task.name) for task in _tasks(self)]
        for place, (family, name) in enumerate(named):
            if (family, name) in named[:place]:
                raise InputError(f"Two sets for {family} are called {name!r}; rename the file or the folder of one.")

    def __len__(self) -> int:
        return len(self.matching) + len(self.retrieval) + len(self.classification) + len(self.spelling)


@dataclass(frozen=True)
class _Task:
    """A set to score: `open` takes a model and gives what scores it on the texts, as they are or misspelt."""

    family: str
    name: str
    texts: Sequence[str]
    open: Callable[[Model], Callable[[Sequence[str]], Report]]


def score_families(
    families: Families, model: Model, typos: Typos | None = None, *, progress: Callable[[str], object] = lambda at: None
) -> Report:
    """Family -> set -> its scores; every score in percent but a threshold.

    `typos` of a set: percentage -> the scores with so many words misspelt of the left table, of the queries, or of the
    texts that are scored; what is on the other side is spelt as it was. `progress` is told of each set before it is
    scored.
    """
    typos = typos or Typos()
    report: Report = {}
    for task in _tasks(families):
        progress(f"{task.family}/{task.name}")
        score = task.open(model)
        found = score(task.texts)
        if task.texts and typos.percentages:
            found["typos"] = {str(one): score(_misspelt(task, one, typos)) for one in typos.percentages}
        report.setdefault(task.family, {})[task.name] = found
    return report


def score_similarity(sets: Sequence[SimilaritySet], model: Model, typos: Typos | None = None) -> Report:
    """`tasks`, `notes` and, with typos, `typos` of a model that is made for each set's texts."""

    def alike(left: Sequence[str], right: Sequence[str]) -> Any:
        return model([*left, *right]).pairs(left, right)

    typos = typos or Typos()
    report = score_sets(sets, alike)
    if typos.percentages:
        sentences = of_sentences(sets)
        report["typos"] = {
            str(one): score_sets(misspelt_sets(sentences, one / 100, typos.known, seed=typos.seed), alike)["tasks"]
            for one in typos.percentages
        }
    return report


def _tasks(families: Families) -> Iterator[_Task]:
    for pairs in families.matching:
        yield _Task("matching", pairs.name, pairs.left, _with_model(_matching, pairs))
    for queries in families.retrieval:
        yield _Task("retrieval", queries.name, queries.queries, _with_model(_retrieval, queries))
    for labelled in families.classification:
        yield _Task("classification", labelled.name, labelled.test.texts, partial(_classification, labelled))
    for words in families.spelling:
        yield _Task("spelling", words.name, (), _with_model(_spelling, words))


def _with_model(score: Callable[[T, Model, Sequence[str]], Report], one: T) -> Callable[[Model], Any]:
    return lambda model: partial(score, one, model)


def _misspelt(task: _Task, percentage: int, typos: Typos) -> list[str]:
    rng = np.random.default_rng([typos.seed, percentage, zlib.crc32(f"{task.family}/{task.name}".encode())])
    return [misspelt(text, percentage / 100, typos.known, rng) for text in task.texts]


def _matching(one: MatchingSet, model: Model, left: Sequence[str]) -> Report:
    found = score_matching(one, model, left=left)
    return {
        "pairs": len(one.test),
        "f1": 100 * found.f1,
        "precision": 100 * found.precision,
        "recall": 100 * found.recall,
        "threshold": found.threshold,
        "fitted_f1": 100 * found.fitted_f1,
        "recall_at": _percent(found.recalls),
    }


def _retrieval(one: RetrievalSet, model: Model, queries: Sequence[str]) -> Report:
    return {
        "queries": len(queries),
        f"ndcg_at_{DEPTH}": 100 * score_retrieval(replace(one, queries=list(queries)), model),
    }


def _classification(one: ClassificationSet, model: Model) -> Callable[[Sequence[str]], Report]:
    learned = learn_classes(one, model)

    def score(texts: Sequence[str]) -> Report:
        found = learned(texts)
        return {
            "texts": len(one.test),
            "classes": len(one.classes),
            "nearest": 100 * found.nearest,
            "centroid": None if found.centroid is None else 100 * found.centroid,
            "logistic": None if found.logistic is None else 100 * found.logistic,
        }

    return score


def _spelling(one: SpellingSet, model: Model, _: Sequence[str]) -> Report:
    found = score_spelling(one, model)
    return {
        "misspelt": len(one.misspelt),
        "unseen": len(one.seen) - sum(one.seen),
        "words": len(one.words),
        "found_at": _percent(found.found),
        "found_unseen_at": _percent(found.found_unseen),
    }


def _percent(shares: Mapping[int, float]) -> dict[str, float]:
    return {str(k): 100 * value for k, value in shares.items()}
