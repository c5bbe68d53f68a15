"""`gramvec match`, without labels and with them, beside TF-IDF of scikit-learn and RapidFuzz.

On the joins of names of the folder BENCH_JOINS and the pairs of tables of BENCH_MATCHING (see docs/choosing.md), or on
sentences and the same ones with characters left out where there is neither. Each way has one thread, and its CPU time
goes from texts to each left row's nearest right row, learning from labels included.

On joins, F1 of each right row's nearest left row is printed at the best threshold of each join, and at the threshold
that `gramvec match` takes by itself. On tables, F1 is on the test pairs, at the threshold that is best on the train and
valid pairs without test pairs and pairs with both labels. Recall at 1 is the share of left rows with a match among the
test pairs whose nearest row of the whole right table is a match.
"""

from __future__ import annotations

import csv
import os
import random
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.measure import Setting
from benchmarks.results import Group, Part, Row
from gramvec.jobs.matching.features import TablePair
from gramvec.jobs.matching.fields import Field, choose
from gramvec.jobs.matching.fit_matcher import best_threshold, fit_matcher
from gramvec.jobs.matching.match_tables import choose_pairs, match_fields, score_fields, threshold_of
from gramvec.jobs.matching.matcher import PairLabels, score_candidates
from gramvec.jobs.matching.nearest import Matches
from gramvec_training.evaluation.matching import MatchingSet, PairPlaces, f1_at, find_matching_sets

Ids = NDArray[np.int64]
Scores = Callable[[Ids, Ids], NDArray[np.float64]]
TABLES = ("left.csv", "right.csv")
BLOCK_ROWS = 512
# Rows of either table of the large one.
LARGE = 20_000


@dataclass(frozen=True)
class Tables:
    """A set, its naming columns joined, all its columns, and the labels to learn from."""

    one: MatchingSet
    named: list[Field]
    every: list[Field]
    known: PairLabels


@dataclass(frozen=True)
class Join:
    """Rows that look for their partner among the others, whose row it is; -1 for none."""

    rows: list[str]
    others: list[str]
    partner: Ids


@dataclass(frozen=True)
class Found:
    """The nearest right row of each left one (-1 for none), scores of any pairs, and a threshold that was learned."""

    nearest: Ids
    scores: Scores
    threshold: float | None = None


def run(setting: Setting) -> Part:
    """Measure all ways on joins, a large table and pairs of tables."""
    part = Part()
    ways: dict[str, Callable[[Tables], Found]] = {"gramvec match": _match, "gramvec match, labels": _labeled}
    peers = {"TF-IDF, scikit-learn": ("sklearn", _tfidf), "RapidFuzz": ("rapidfuzz", _rapidfuzz)}
    for name, (module, way) in peers.items():
        try:
            import_module(module)
            ways[name] = way
        except ImportError:
            part.note(f"{name} is left out: not installed")
    joins = read_joins()
    if joins:
        _add_joins(part, joins, list(ways))
        _add_large(part, joins, list(ways))
    for tables in _sets(setting):
        rows: list[Row] = []
        for name, way in ways.items():
            began = time.process_time()
            found = way(tables)
            seconds = time.process_time() - began
            rows.append({"name": name, "cpu_seconds": round(seconds, 3), **_quality(tables, found)})
        rows = [row | {"ratio": round(rows[0]["cpu_seconds"] / row["cpu_seconds"], 3)} for row in rows]
        one = tables.one
        title = f"match: {one.name}, {len(one.left):,} and {len(one.right):,} rows, {len(tables.known.left):,} labels"
        part.add(f"match_{one.name}", Group(title, "CPU seconds", rows, rows[0]["name"]))
    return part


def read_joins() -> list[Join]:
    """Return the joins of the folder BENCH_JOINS, none where there is no such folder."""
    folder = os.environ.get("BENCH_JOINS")
    if folder is None or not Path(folder).is_dir():
        return []
    found = []
    for path in sorted(Path(folder).iterdir()):
        left, right, pairs = (
            list(csv.DictReader((path / name).read_text("utf-8").splitlines())) for name in (*TABLES, "gt.csv")
        )
        places = [{row["id"]: number for number, row in enumerate(table)} for table in (left, right)]
        partner = np.full(len(right), -1)
        for pair in pairs:
            partner[places[1][pair["right"]]] = places[0][pair["left"]]
        found.append(Join([row["title"] for row in right], [row["title"] for row in left], partner))
    return found


def _add_joins(part: Part, joins: list[Join], ways: Sequence[str]) -> None:
    rows: list[Row] = []
    for name, nearest in NEAREST.items():
        if name not in ways:
            continue
        began, best, own = time.process_time(), [], []
        for join in joins:
            found, threshold = nearest(join.rows, join.others)
            correct, expected = join.partner[found.left] == found.right, int((join.partner >= 0).sum())
            best.append(best_f1(found.scores, correct, expected)[0])
            taken = found.scores >= np.float32(threshold)
            own.append(2 * float(correct[taken].sum()) / (int(taken.sum()) + expected))
        seconds = round(time.process_time() - began, 2)
        row: Row = {"name": name, "cpu_seconds": seconds, "f1_best": round(100 * float(np.mean(best)), 2)}
        rows.append(row | ({"f1": round(100 * float(np.mean(own)), 2)} if name == "gramvec match" else {}))
    part.add("match_joins", Group(f"match: {len(joins)} joins of names, mean", "CPU seconds, F1 in %", rows))


def best_f1(scores: NDArray[np.floating[Any]], correct: NDArray[np.bool_], expected: int) -> tuple[float, float]:
    """Return (F1, threshold): the highest F1 of the pairs of at least a score, of so many that there are."""
    order = np.argsort(-scores, kind="stable")
    f1 = 2 * np.cumsum(correct[order]) / (np.arange(1, len(order) + 1) + expected)
    best = int(np.argmax(f1))
    return float(f1[best]), float(scores[order[best]])


def _add_large(part: Part, joins: list[Join], ways: Sequence[str]) -> None:
    left = [text for join in joins for text in join.others][:LARGE]
    # Each text without the character in its middle.
    right = [text[: len(text) // 2] + text[len(text) // 2 + 1 :] for text in reversed(left)]
    rows: list[Row] = []
    for name in ("gramvec match", "TF-IDF, scikit-learn"):
        if name in ways:
            began, clock = time.process_time(), time.perf_counter()
            NEAREST[name](left, right)
            used, wall = time.process_time() - began, time.perf_counter() - clock
            rows.append({"name": name, "cpu_seconds": round(used, 2), "seconds": round(wall, 2)})
    part.add("match_large", Group(f"match: {len(left):,} by {len(right):,} names", "CPU seconds, one thread", rows))


def _sets(setting: Setting) -> Iterator[Tables]:
    folder = os.environ.get("BENCH_MATCHING")
    if folder is None or not Path(folder).is_dir():
        yield _made_up(setting.texts)
        return
    yield from find_tables(Path(folder))


def find_tables(folder: Path) -> Iterator[Tables]:
    """Yield the sets of a folder, with all columns that both tables have."""
    for one in find_matching_sets(folder):
        path = folder / one.name if (folder / one.name).is_dir() else folder
        left, right = (list(csv.DictReader((path / name).read_text("utf-8").splitlines())) for name in TABLES)
        shared = [name for name in left[0] if name != "id" and name in right[0]]
        every = {name: Field([row[name] for row in left], [row[name] for row in right], 1.0) for name in shared}
        yield Tables(one, [Field(one.left, one.right, 1.0)], list(every.values()), _known(one))


def _made_up(texts: Sequence[str]) -> Tables:
    rng = random.Random(1)
    other = ["".join(character for character in text if rng.random() < 0.9) for text in texts]
    rows = np.arange(len(texts))
    wrong = PairPlaces(rows, np.roll(rows, 1), np.zeros(len(rows), np.bool_))
    pairs = PairPlaces(rows, rows, np.ones(len(rows), np.bool_)) + wrong
    split = [PairPlaces(*(column[pairs.left % 4 == part] for column in vars(pairs).values())) for part in range(4)]
    one = MatchingSet("sentences", ("text",), list(texts), other, split[0] + split[1], split[2], split[3])
    fields = [Field(one.left, one.right, 1.0)]
    return Tables(one, fields, fields, _known(one))


def _known(one: MatchingSet) -> PairLabels:
    """Return the pairs of train and valid that are no test pairs, each once, without contradictions."""
    tested = set(zip(one.test.left.tolist(), one.test.right.tolist(), strict=True))
    both = one.train + one.valid
    said: dict[tuple[int, int], set[bool]] = {}
    for left, right, match in zip(both.left.tolist(), both.right.tolist(), both.match.tolist(), strict=True):
        said.setdefault((left, right), set()).add(match)
    kept = [(*pair, *match) for pair, match in sorted(said.items()) if len(match) == 1 and pair not in tested]
    left, right, match = np.array(kept, np.int64).T
    return PairLabels(left, right, match.astype(np.bool_))


def _quality(tables: Tables, found: Found) -> Row:
    one, known = tables.one, tables.known
    threshold = found.threshold
    if threshold is None:
        threshold, _ = best_threshold(found.scores(known.left, known.right), known.match)
    f1, _, _ = f1_at(threshold, found.scores(one.test.left, one.test.right), one.test.match)
    everything = one.train + one.valid + one.test
    true = set(
        zip(everything.left[everything.match].tolist(), everything.right[everything.match].tolist(), strict=True)
    )
    asked = np.unique(one.test.left[one.test.match]).tolist()
    hits = [(row, int(found.nearest[row])) in true for row in asked]
    return {"recall": round(float(np.mean(hits)), 4), "f1": round(f1, 4)}


def _nearest(found: Matches, rows: int) -> Ids:
    nearest = np.full(rows, -1, np.int64)
    nearest[found.left] = found.right
    return nearest


def _match(tables: Tables) -> Found:
    scored = score_fields(tables.every)
    found = choose_pairs(scored, 1, 0.0, one_to_one=False).matches

    def scores(left: Ids, right: Ids) -> NDArray[np.float64]:
        pairs, width = scored.pairs, len(scored.right.counts)
        known = dict(zip((pairs.left * width + pairs.right).tolist(), pairs.scores.tolist(), strict=True))
        asked = scored.left.of_row[left] * width + scored.right.of_row[right]
        return np.array([known.get(pair, 0.0) for pair in asked.tolist()])

    return Found(
        _nearest(found, len(tables.one.left)), scores, choose_pairs(scored, None, None, one_to_one=False).threshold
    )


def _labeled(tables: Tables) -> Found:
    pair = TablePair(tables.every)
    known = fit_matcher(pair, [("", str(number)) for number in range(len(tables.every))], tables.known)
    found = choose(score_candidates(known, pair), pair.ranks, 1, 0, one_to_one=False).matches
    return Found(
        _nearest(found, len(tables.one.left)),
        lambda left, right: known.classifier.probabilities(pair.features(left, right)),
        known.threshold,
    )


def _rapidfuzz(tables: Tables) -> Found:
    scorer, plain = import_module("rapidfuzz.fuzz").token_set_ratio, import_module("rapidfuzz.utils").default_process

    def scores(left: Ids, right: Ids) -> NDArray[np.float64]:
        one, other = ([plain(text) for text in side] for side in (tables.one.left, tables.one.right))
        return np.array([scorer(one[a], other[b]) for a, b in zip(left.tolist(), right.tolist(), strict=True)])

    found, _ = _nearest_by_rapidfuzz(tables.one.left, tables.one.right)
    return Found(_nearest(found, len(tables.one.left)), scores)


def _tfidf(tables: Tables) -> Found:
    left_vectors, right_vectors = _tfidf_vectors(tables.one.left, tables.one.right)
    found, _ = _nearest_by_tfidf(tables.one.left, tables.one.right)

    def scores(left: Ids, right: Ids) -> NDArray[np.float64]:
        return np.asarray(left_vectors[left].multiply(right_vectors[right]).sum(axis=1), np.float64).ravel()

    return Found(_nearest(found, len(tables.one.left)), scores)


def _nearest_by_default(left: Sequence[str], right: Sequence[str]) -> tuple[Matches, float]:
    field = [Field(left, right, 1.0)]
    found = match_fields(field, threshold=0.0, top=1).matches
    return found, threshold_of(found.scores)


def _tfidf_vectors(left: Sequence[str], right: Sequence[str]) -> tuple[Any, Any]:
    text = import_module("sklearn.feature_extraction.text")
    made = text.TfidfVectorizer(analyzer="char_wb", ngram_range=(2, 4), sublinear_tf=True, dtype=np.float32)
    made.fit([*left, *right])
    return made.transform(left), made.transform(right)


def _nearest_by_tfidf(left: Sequence[str], right: Sequence[str]) -> tuple[Matches, float]:
    vectors, others = _tfidf_vectors(left, right)
    best, scores = [], []
    for start in range(0, len(left), BLOCK_ROWS):
        cosines = (vectors[start : start + BLOCK_ROWS] @ others.T).toarray()
        best.append(cosines.argmax(axis=1))
        scores.append(cosines.max(axis=1))
    return Matches(np.arange(len(left)), np.concatenate(best), np.concatenate(scores)), 0.0


def _nearest_by_rapidfuzz(left: Sequence[str], right: Sequence[str]) -> tuple[Matches, float]:
    scorer, cdist = import_module("rapidfuzz.fuzz").token_set_ratio, import_module("rapidfuzz.process").cdist
    plain = import_module("rapidfuzz.utils").default_process
    left, right = ([plain(text) for text in side] for side in (left, right))
    best, scores = [], []
    for start in range(0, len(left), BLOCK_ROWS):
        ratios = cdist(left[start : start + BLOCK_ROWS], right, scorer=scorer, workers=1)
        best.append(ratios.argmax(axis=1))
        scores.append(ratios.max(axis=1))
    return Matches(np.arange(len(left)), np.concatenate(best), np.concatenate(scores)), 0.0


NEAREST: dict[str, Callable[[Sequence[str], Sequence[str]], tuple[Matches, float]]] = {
    "gramvec match": _nearest_by_default,
    "TF-IDF, scikit-learn": _nearest_by_tfidf,
    "RapidFuzz": _nearest_by_rapidfuzz,
}
