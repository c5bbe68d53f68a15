"""`gramvec classify` beside what a user would write: scikit-learn's linear SVM over TF-IDF, over meaning, over all.

On each set under classification/ and supervised/ of the data folder, with 5, 20 and all examples of each label. Another
draw of few examples changes a figure by two points, so figures of up to 100 examples are means of five draws. CPU
seconds are of one thread, of one draw, and of everything from texts on: features, vectors, fitting. "As they come" are
the right labels at or above the default threshold, which only `gramvec classify` has, and "lost" are the others of its
right labels. Out of scope: labels that are left out of the training texts; the area under the ROC curve of the best
score, over test texts of known and of left-out labels.
"""

from __future__ import annotations

import gzip
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import gramvec
from benchmarks.measure import Setting
from benchmarks.results import Group, Part, Row
from gramvec.jobs.classify.fit import fit_head

SETS = {
    "hwu64": ("classification/hwu64/train.tsv", "classification/hwu64/test.tsv", (5, 20, None)),
    "snips": ("classification/snips/train.tsv", "classification/snips/test.tsv", (5, 20, 100)),
    "sst2": ("supervised/sst2/binary.train.tsv.gz", "supervised/sst2/binary.test.tsv", (20, 1000, 10_000)),
    "imdb": ("supervised/imdb/train.tsv", "supervised/imdb/test.tsv", (20, 100, None)),
}
OUT_OF_SCOPE, EVERY = "hwu64", 4  # every fourth label is left out
OUT_OF_SCOPE_SIZES = {None: 1, 20: 5}  # of each label, and the draws
DEFAULT = "gramvec classify"
DRAWS, MAX_DRAWN = 5, 100  # where there are up to so many examples of each label

Scores = NDArray[np.float64]
Known = NDArray[np.bool_]  # of each text asked, whether its best label is sure enough to be given
Asks = Callable[[], tuple[Scores, Known | None]]
Way = Callable[["Split"], Asks]


@dataclass(frozen=True)
class Split:
    """Texts to learn from with their labels from 0, and texts to ask."""

    texts: list[str]
    labels: NDArray[np.int64]
    asked: list[str]


def run(setting: Setting) -> Part:
    part = Part()
    embedder = gramvec.load(setting.model, device="cpu", threads=1)
    try:
        from sklearn.svm import LinearSVC  # noqa: F401
        from threadpoolctl import threadpool_limits
    except ImportError:
        part.note("classify is left out: scikit-learn is not installed")
        return part
    ways = _ways(embedder)
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, (learned, asked, sizes) in SETS.items():
            if not (setting.data / learned).is_file():
                part.note(f"{name} is left out: there is no {setting.data / learned}")
                continue
            texts, labels = _read(setting.data / learned)
            asked_texts, true = _read(setting.data / asked)
            names = sorted({*labels})
            own, right = ([names.index(one) for one in some] for some in (labels, true))
            for size in sizes:
                draws = DRAWS if size and size <= MAX_DRAWN else 1
                splits = [Split(*_chosen(texts, own, size, draw), asked_texts) for draw in range(draws)]
                learned_texts = f"{len(splits[0].texts):,} texts" + (f", {draws} draws" if draws > 1 else "")
                title = f"classify: {name}, {size or 'all'} of each of {len(names)} labels, {learned_texts}"
                rows = list(_rows(ways, splits, np.array(right)))
                part.add(f"classify_{name}_{size or 'all'}", Group(title, "accuracy, %", rows, None))
            if name == OUT_OF_SCOPE:
                for size, draws in OUT_OF_SCOPE_SIZES.items():
                    group = _out_of_scope(ways, texts, own, asked_texts, right, names, size, draws)
                    part.add(f"classify_out_of_scope_{size or 'all'}", group)
    embedder.close()
    return part


def _read(path: Path) -> tuple[list[str], list[str]]:
    opened: Any = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rt", encoding="utf-8") as file:
        rows = [line.rstrip("\n").split("\t", 1) for line in file]
    return [row[1] for row in rows], [row[0] for row in rows]


def _chosen(texts: list[str], labels: list[int], size: int | None, draw: int) -> tuple[list[str], NDArray[np.int64]]:
    order = np.random.default_rng(draw).permutation(len(texts))
    own = np.array(labels)
    kept = np.concatenate([order[own[order] == label][:size] for label in np.unique(own)])
    return [texts[row] for row in kept.tolist()], own[kept]


def _rows(ways: dict[str, Way], splits: list[Split], true: NDArray[np.int64]) -> Iterator[Row]:
    for name, way in ways.items():
        right, come, fit, ask = [], [], 0.0, 0.0
        for split in splits:
            began = time.process_time()
            asks = way(split)
            learned = time.process_time()
            scores, known = asks()
            fit, ask = fit + learned - began, ask + time.process_time() - learned
            found = scores.argmax(axis=1) == true
            right.append(float(found.mean()))
            come.append(float((found if known is None else found & known).mean()))
        yield {
            "name": name,
            "accuracy": round(100 * float(np.mean(right)), 1),
            "as_they_come": round(100 * float(np.mean(come)), 1),
            "lost": round(100 * float(1 - np.mean(come) / np.mean(right)), 1),
            "fit_cpu_seconds": round(fit / len(splits), 2),
            "per_cpu_second": round(len(true) * len(splits) / ask),
        }


def _out_of_scope(
    ways: dict[str, Way],
    texts: list[str],
    own: list[int],
    asked: list[str],
    true: list[int],
    names: list[str],
    size: int | None,
    draws: int,
) -> Group:
    from sklearn.metrics import roc_auc_score

    known = [label for label in range(len(names)) if label % EVERY]
    kept = [row for row, label in enumerate(own) if label in known]
    some, labels = [texts[row] for row in kept], [known.index(own[row]) for row in kept]
    splits = [Split(*_chosen(some, labels, size, draw), asked) for draw in range(draws)]
    inside = [label in known for label in true]
    rows = []
    for name, way in ways.items():
        areas = [float(roc_auc_score(inside, way(split)()[0].max(axis=1))) for split in splits]
        rows.append({"name": name, "auroc": round(float(np.mean(areas)), 3)})
    left_out = len(names) - len(known)
    title = f"classify: {OUT_OF_SCOPE}, {left_out} labels left out of {len(names)}, {size or 'all'} of each"
    return Group(title + (f", {draws} draws" if draws > 1 else ""), "AUROC", rows)


def _ways(embedder: gramvec.Embedder) -> dict[str, Way]:
    from scipy import sparse
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.svm import LinearSVC

    def default(split: Split) -> Asks:
        names = [f"{label:06}" for label in split.labels.tolist()]
        head, _ = fit_head(split.texts, embedder.embed(split.texts), names, model="", digest="0" * 64)

        def asks() -> tuple[Scores, Known]:
            scores = head.predict(split.asked, embedder.embed(split.asked))
            return scores.astype(np.float64), np.array([answer.known for answer in head.answers(scores)])

        return asks

    def svm(*kinds: str) -> Way:
        makers = {
            "characters": lambda: TfidfVectorizer(analyzer="char_wb", ngram_range=(2, 4), sublinear_tf=True),
            "words": lambda: TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True),
        }

        def way(split: Split) -> Asks:
            vectorizers = [makers[kind]() for kind in kinds if kind in makers]

            def features(texts: list[str], method: str) -> Any:
                found = [getattr(one, method)(texts) for one in vectorizers]
                return sparse.hstack([*found, *([embedder.embed(texts)] if "meaning" in kinds else [])]).tocsr()

            classifier = LinearSVC().fit(features(split.texts, "fit_transform"), split.labels)
            return lambda: (_columns(classifier.decision_function(features(split.asked, "transform"))), None)

        return way

    def meaning(split: Split) -> Asks:
        classifier = LogisticRegression(C=10, max_iter=300).fit(embedder.embed(split.texts), split.labels)
        return lambda: (np.asarray(classifier.predict_proba(embedder.embed(split.asked))), None)

    return {
        DEFAULT: default,
        "logistic regression, meaning": meaning,
        "linear SVM, characters": svm("characters"),
        "linear SVM, words": svm("words"),
        "linear SVM, characters and words": svm("characters", "words"),
        "linear SVM, all three": svm("characters", "words", "meaning"),
    }


def _columns(scores: Sequence[Any] | NDArray[Any]) -> Scores:
    found = np.asarray(scores, np.float64)
    return np.stack([-found, found], axis=1) if found.ndim == 1 else found
