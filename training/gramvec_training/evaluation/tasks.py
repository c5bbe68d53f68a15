"""All tasks of one model as nested JSON values in percent, clean and misspelled; and a run's held-out pairs."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

import numpy as np

from gramvec.errors import InputError
from gramvec.progress import NO_PROGRESS, Progress
from gramvec_training.data.sampling import HeldOut
from gramvec_training.evaluation.backend import ModelForTexts, Typos
from gramvec_training.evaluation.classification import ClassificationSet, learn_classes
from gramvec_training.evaluation.matching import MatchingSet, score_matching
from gramvec_training.evaluation.ranking import (
    DEPTH,
    RetrievalSet,
    SpellingSet,
    TranslationSet,
    score_retrieval,
    score_spelling,
    score_translations,
)
from gramvec_training.evaluation.similarity import (
    SimilaritySet,
    keep_sentence_sets,
    misspell_sets,
    misspell_text,
    score_sets,
)
from gramvec_training.shared import Doubles, Encode

TaskReport = dict[str, Any]
T = TypeVar("T")


@dataclass(frozen=True)
class Families:
    """Sets of the tasks beside similarity.

    Raises:
        InputError: Two sets of one task have the same name.
    """

    matching: Sequence[MatchingSet] = ()
    retrieval: Sequence[RetrievalSet] = ()
    classification: Sequence[ClassificationSet] = ()
    spelling: Sequence[SpellingSet] = ()
    translations: Sequence[TranslationSet] = ()

    def __post_init__(self) -> None:
        named = [(task.family, task.name) for task in _list_tasks(self)]
        for place, (family, name) in enumerate(named):
            if (family, name) in named[:place]:
                raise InputError(f"two sets for {family} are called {name!r}; rename the file or the folder of one")

    def __len__(self) -> int:
        return sum(1 for _ in _list_tasks(self))


@dataclass(frozen=True)
class _Task:
    """A set to score: `open` takes a model and returns a function that scores it, clean or misspelled."""

    family: str
    name: str
    texts: Sequence[str]
    open: Callable[[ModelForTexts], Callable[[Sequence[str]], TaskReport]]


def score_families(
    families: Families,
    model: ModelForTexts,
    typos: Typos | None = None,
    *,
    progress: Progress = NO_PROGRESS,
) -> TaskReport:
    """Return task -> set -> scores, in percent except thresholds.

    `typos` of a set: percentage -> the scores with that share of words misspelt in the left table, the queries, or the
    scored texts; the other side is spelt as it was. `progress` advances by each set, which is named before it is
    scored.
    """
    typos = typos or Typos()
    report: TaskReport = {}
    for task in _list_tasks(families):
        progress.advance(1, f"{task.family}/{task.name}")
        score = task.open(model)
        scores = score(task.texts)
        if task.texts and typos.percentages:
            scores["typos"] = {
                str(percentage): score(_misspell_texts(task, percentage, typos)) for percentage in typos.percentages
            }
        report.setdefault(task.family, {})[task.name] = scores
    return report


def score_similarity(sets: Sequence[SimilaritySet], model: ModelForTexts, typos: Typos | None = None) -> TaskReport:
    """Return `tasks`, `notes` and, with typos, `typos` of a model made for each set's texts."""

    def alike(left: Sequence[str], right: Sequence[str]) -> Any:
        return model([*left, *right]).pairs(left, right)

    typos = typos or Typos()
    report = score_sets(sets, alike)
    if typos.percentages:
        sentences = keep_sentence_sets(sets)
        report["typos"] = {
            str(percentage): score_sets(
                misspell_sets(sentences, percentage / 100, typos.known, seed=typos.seed), alike
            )["tasks"]
            for percentage in typos.percentages
        }
    return report


def _list_tasks(families: Families) -> Iterator[_Task]:
    for pairs in families.matching:
        yield _Task("matching", pairs.name, pairs.left, _open_with_model(_report_matching, pairs))
    for queries in families.retrieval:
        yield _Task("retrieval", queries.name, queries.queries, _open_with_model(_report_retrieval, queries))
    for labeled in families.classification:
        yield _Task("classification", labeled.name, labeled.test.texts, partial(_report_classification, labeled))
    for words in families.spelling:
        yield _Task("spelling", words.name, (), _open_with_model(_report_spelling, words))
    for translated in families.translations:
        scorer = _open_with_model(_report_translations, translated)
        yield _Task("translations", translated.name, translated.texts, scorer)


def _open_with_model(
    score: Callable[[T, ModelForTexts, Sequence[str]], TaskReport], scored_set: T
) -> Callable[[ModelForTexts], Any]:
    return lambda model: partial(score, scored_set, model)


def _misspell_texts(task: _Task, percentage: int, typos: Typos) -> list[str]:
    rng = np.random.default_rng([typos.seed, percentage, zlib.crc32(f"{task.family}/{task.name}".encode())])
    return [misspell_text(text, percentage / 100, typos.known, rng) for text in task.texts]


def _report_matching(matching_set: MatchingSet, model: ModelForTexts, left: Sequence[str]) -> TaskReport:
    scores = score_matching(matching_set, model, left=left)
    return {
        "pairs": len(matching_set.test),
        "f1": 100 * scores.f1,
        "precision": 100 * scores.precision,
        "recall": 100 * scores.recall,
        "threshold": scores.threshold,
        "fitted_f1": 100 * scores.fitted_f1,
        "recall_at": _to_percent(scores.recalls),
    }


def _report_retrieval(retrieval_set: RetrievalSet, model: ModelForTexts, queries: Sequence[str]) -> TaskReport:
    return {
        "queries": len(queries),
        f"ndcg_at_{DEPTH}": 100 * score_retrieval(replace(retrieval_set, queries=list(queries)), model),
    }


def _report_classification(
    classification_set: ClassificationSet, model: ModelForTexts
) -> Callable[[Sequence[str]], TaskReport]:
    learned = learn_classes(classification_set, model)

    def score(texts: Sequence[str]) -> TaskReport:
        accuracies = learned(texts)
        return {
            "texts": len(classification_set.test),
            "classes": len(classification_set.classes),
            "nearest": 100 * accuracies.nearest,
            "centroid": None if accuracies.centroid is None else 100 * accuracies.centroid,
            "logistic": None if accuracies.logistic is None else 100 * accuracies.logistic,
        }

    return score


def _report_spelling(spelling_set: SpellingSet, model: ModelForTexts, _: Sequence[str]) -> TaskReport:
    scores = score_spelling(spelling_set, model)
    return {
        "misspelt": len(spelling_set.misspelt),
        "unseen": len(spelling_set.seen) - sum(spelling_set.seen),
        "words": len(spelling_set.words),
        "found_at": _to_percent(scores.found),
        "found_unseen_at": _to_percent(scores.found_unseen),
    }


def _report_translations(translation_set: TranslationSet, model: ModelForTexts, texts: Sequence[str]) -> TaskReport:
    share = score_translations(replace(translation_set, texts=list(texts)), model)
    return {"texts": len(texts), "found_first": 100 * share}


def _to_percent(shares: Mapping[int, float]) -> dict[str, float]:
    return {str(k): 100 * value for k, value in shares.items()}


def measure_retrieval(pairs: HeldOut, unit: Encode) -> dict[str, float]:
    """Return how well a model finds each left text's right side among all right sides.

    unit: n texts to float32[n, d], each of length 1 or zero. Right sides of the same meaning do not compete.

    top1: percentage found first; mrr: mean of 1 / rank, times 100 (a tie counts against the model); cosine: mean of
    the pairs; margin: mean of that cosine less the highest one with another right side.
    """
    scores = unit(pairs.left) @ unit(pairs.right).T  # [n, n]
    own = scores.diagonal().copy()
    scores[pairs.meanings[:, None] == pairs.meanings] = -np.inf
    ranks = 1 + (scores >= own[:, None]).sum(axis=1)
    return {
        "top1": float(100 * (ranks == 1).mean()),
        "mrr": float(100 * (1 / ranks).mean()),
        "cosine": float(own.mean()),
        "margin": float((own - scores.max(axis=1)).mean()),
    }


_MAX_OTHERS = 20_000  # right sides beside the held-out ones
_CHUNK = 256  # left texts at a time


def list_reciprocal_ranks(pairs: HeldOut, others: Sequence[str], unit: Encode) -> Doubles:
    """Return 1 / rank of each left text's right side among all right sides and `others`, float64[n].

    As in use, where a text looks for its other side among all that there are. At most 20,000 of `others` count.
    """
    left, right = unit(pairs.left), unit(pairs.right)
    beside = unit(list(others[:_MAX_OTHERS])) if others else np.zeros((0, right.shape[1]), np.float32)
    reciprocal_ranks = np.empty(len(pairs))
    for at in range(0, len(pairs), _CHUNK):
        chunk = slice(at, at + _CHUNK)
        scores = left[chunk] @ right.T
        own = scores[np.arange(len(scores)), np.arange(at, at + len(scores))]
        scores[pairs.meanings[chunk, None] == pairs.meanings] = -np.inf
        ahead = (scores >= own[:, None]).sum(axis=1) + (left[chunk] @ beside.T >= own[:, None]).sum(axis=1)
        reciprocal_ranks[chunk] = 1 / (1 + ahead)
    return reciprocal_ranks


def show_retrieval(result: dict[str, Any]) -> str:
    """Return a text table of a record's `held_out`: `pairs`, and `retrieval` of the model `before` (or None) and
    `after`.
    """
    columns = {name: result[name] for name in ("before", "after") if result[name] is not None}
    rows = [
        ("right side found first, %", "top1", ".1f"),
        ("mean reciprocal rank x 100", "mrr", ".1f"),
        ("cosine of a pair", "cosine", ".3f"),
        ("margin to the best other", "margin", ".3f"),
    ]
    lines = [f"{result['pairs']:,} held-out pairs".ljust(26) + "".join(f"{name:>9}" for name in columns)]
    lines += [
        label.ljust(26) + "".join(f"{values[key]:9{form}}" for values in columns.values()) for label, key, form in rows
    ]
    return "\n".join(lines)
