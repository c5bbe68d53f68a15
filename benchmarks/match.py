"""`gramvec match`, without labels and with them, beside RapidFuzz's cdist and scikit-learn's TF-IDF and neighbours.

On each set of the folder BENCH_MATCHING (see docs/choosing.md), or where none is named on sentences and the same ones
with characters left out. All have one thread, and its CPU time is told, from texts to each left row's nearest right
row, learning from labels included. F1 is on the test pairs, at the threshold that is best on the train and valid pairs
that are not test pairs as well, nor labelled both ways. Recall at 1: of left rows with a match among the test pairs,
the share whose nearest row of the whole right table is a match.
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

import numpy as np
from numpy.typing import NDArray

from benchmarks.measure import Setting
from benchmarks.results import Group, Part, Row
from gramvec.matching.features import Compared
from gramvec.matching.fields import Field, match_fields, vectors_of
from gramvec.matching.fit_matcher import Labels
from gramvec.matching.matcher import candidates, chosen, learned
from gramvec.matching.nearest import Matches
from gramvec_training.evaluate.matching import MatchingSet, PairPlaces, best_threshold, f1_at, find_matching_sets

Ids = NDArray[np.int64]
Scores = Callable[[Ids, Ids], NDArray[np.float64]]
TABLES = ("left.csv", "right.csv")


@dataclass(frozen=True)
class Tables:
    """A set; those of its columns that name the thing, joined; all of them; and what may be learned from."""

    one: MatchingSet
    named: list[Field]
    every: list[Field]
    known: Labels


@dataclass(frozen=True)
class Found:
    """The nearest right row of each left one, -1 for none; scores of any pairs; the threshold, if it was learned."""

    nearest: Ids
    scores: Scores
    threshold: float | None = None


def run(setting: Setting) -> Part:
    part = Part()
    ways: dict[str, Callable[[Tables], Found]] = {"gramvec match": _match, "gramvec match, labels": _labelled}
    peers = {
        "RapidFuzz, cdist": ("rapidfuzz.process", _rapidfuzz),
        "scikit-learn, TF-IDF": ("sklearn.neighbors", _tfidf),
    }
    for name, (module, way) in peers.items():
        try:
            import_module(module)
            ways[name] = way
        except ImportError:
            part.note(f"{name} is left out: not installed")
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


def _sets(setting: Setting) -> Iterator[Tables]:
    folder = os.environ.get("BENCH_MATCHING")
    if folder is None or not Path(folder).is_dir():
        yield _made_up(setting.texts)
        return
    for one in find_matching_sets(Path(folder)):
        path = Path(folder, one.name) if Path(folder, one.name).is_dir() else Path(folder)
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


def _known(one: MatchingSet) -> Labels:
    """The pairs of train and valid that are no test pairs, each once, without those that are labelled both ways."""
    tested = set(zip(one.test.left.tolist(), one.test.right.tolist(), strict=True))
    both = one.train + one.valid
    said: dict[tuple[int, int], set[bool]] = {}
    for left, right, match in zip(both.left.tolist(), both.right.tolist(), both.match.tolist(), strict=True):
        said.setdefault((left, right), set()).add(match)
    kept = [(*pair, *match) for pair, match in sorted(said.items()) if len(match) == 1 and pair not in tested]
    left, right, match = np.array(kept, np.int64).T
    return Labels(left, right, match.astype(np.bool_))


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
    found = match_fields(tables.named, threshold=0).matches

    def scores(left: Ids, right: Ids) -> NDArray[np.float64]:
        vectors = vectors_of(tables.named)
        return vectors[0].dots(left, vectors[1], right).astype(np.float64)

    return Found(_nearest(found, len(tables.one.left)), scores)


def _labelled(tables: Tables) -> Found:
    compared = Compared(tables.every)
    known = learned(compared, [("", str(number)) for number in range(len(tables.every))], tables.known)
    found = chosen(candidates(known, compared), 1, 0, one_to_one=False)
    return Found(
        _nearest(found, len(tables.one.left)),
        lambda left, right: compared.judged(left, right, known.classifier),
        known.threshold,
    )


def _rapidfuzz(tables: Tables) -> Found:
    scorer = import_module("rapidfuzz.fuzz").token_set_ratio
    all_pairs = import_module("rapidfuzz.process").cdist(tables.one.left, tables.one.right, scorer=scorer, workers=1)
    return Found(all_pairs.argmax(axis=1), lambda left, right: all_pairs[left, right].astype(np.float64))


def _tfidf(tables: Tables) -> Found:
    text = import_module("sklearn.feature_extraction.text")
    made = text.TfidfVectorizer(analyzer="char_wb", ngram_range=(2, 4))
    made.fit([*tables.one.left, *tables.one.right])
    left_vectors, right_vectors = made.transform(tables.one.left), made.transform(tables.one.right)
    neighbours = import_module("sklearn.neighbors").NearestNeighbors(n_neighbors=1, metric="cosine", algorithm="brute")
    nearest = neighbours.fit(right_vectors).kneighbors(left_vectors, return_distance=False)[:, 0]

    def scores(left: Ids, right: Ids) -> NDArray[np.float64]:
        return np.asarray(left_vectors[left].multiply(right_vectors[right]).sum(axis=1), np.float64).ravel()

    return Found(nearest, scores)
