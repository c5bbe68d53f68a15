"""Labels and matchers in dedupe: what a person said holds up to the file without repeats."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

import gramvec
from gramvec.errors import InputError
from gramvec.jobs import DedupeJob, Matcher, MatchJob
from gramvec.jobs.common.file_job import OptionError
from gramvec.jobs.common.watch import JobWatch
from gramvec.jobs.duplicates.labeled import labels_of_texts, with_implied
from gramvec.jobs.matching.inputs import labels_of
from support.errors import refused

for module in ("sparse_dot_topn", "sklearn"):
    pytest.importorskip(module, reason="learning from labels needs scikit-learn: pip install 'gramvec[labels]'")

# Names in two spellings, one below the other; rows 2n and 2n + 1 are the same.
WORDS = ["Harbor", "Golden", "Mill", "Oak", "River", "Stone", "Maple", "Cedar", "Summit", "Valley", "Forest", "Lake"]
NAMES = [f"{a} {b} {end}" for a, b in zip(WORDS, WORDS[3:] + WORDS[:3], strict=True) for end in ("School", "Schol")]
LABELS = [(row, row + 1, True) for row in range(0, 16, 2)] + [(row, row + 3, False) for row in range(0, 16, 2)]


class Told(JobWatch):
    """Watcher that keeps the messages."""

    def __init__(self) -> None:
        self.messages: list[str] = []

    def report(self, message: str) -> None:
        """Keep a message."""
        self.messages.append(message)


def pairs_of(found: gramvec.jobs.duplicates.distinct.DuplicateRows) -> dict[tuple[int, int], float]:
    return {(a, b): score for a, b, score in zip(*(part.tolist() for part in found.pairs), strict=True)}


def test_labels_hold_and_teach() -> None:
    labels = [*LABELS, (20, 21, False), (1, 18, True)]
    found = gramvec.dedupe(NAMES, labels=labels)
    pairs = pairs_of(found)
    for left, right, match in labels:
        key = min(left, right), max(left, right)
        assert (pairs.get(key) == 1.0) if match else (key not in pairs)
    assert found.expected is None and (18, 19) in pairs
    # What is labeled to be the same goes, and what is labeled to be another stays.
    assert found.stays[18] == found.stays[1] == 0 and found.stays[21] == 21 and pairs[0, 18] == 1.0
    assert gramvec.dedupe(NAMES, labels=reversed(labels)).pairs.scores.tobytes() == found.pairs.scores.tobytes()
    turned = [(right, left, match) for left, right, match in labels]
    assert pairs_of(gramvec.dedupe(NAMES, labels=turned)) == pairs


def test_too_few_labels_hold_beside_the_pair_model() -> None:
    plain = pairs_of(gramvec.dedupe(NAMES, threshold=0.5))
    wrong, missing = next(iter(plain)), (0, 9)
    assert missing not in plain
    labels = [(*wrong, False), (*missing, True)]
    found = pairs_of(gramvec.dedupe(NAMES, threshold=0.5, labels=labels))
    assert found == {pair: score for pair, score in plain.items() if pair != wrong} | {missing: 1.0}
    assert pairs_of(gramvec.dedupe(NAMES, threshold=0.5, labels=[])) == plain


def test_each_pair_has_its_reasons(tmp_path: Path) -> None:
    path, taught, pairs = tmp_path / "names.csv", tmp_path / "labels.csv", tmp_path / "pairs.csv"
    path.write_text("".join(f"{line}\n" for line in ["id,name", *(f"n{row},{name}" for row, name in enumerate(NAMES))]))
    for labels in (LABELS, LABELS[:3]):  # enough to learn from, and too few
        taught.write_text("".join(["left,right,match\n", *(f"n{a},n{b},{match:d}\n" for a, b, match in labels)]))
        job = DedupeJob(source=path, on=["name"], labels=[taught], explain=True, output=pairs, overwrite=True)
        job.run()
        with pairs.open(newline="") as file:
            told = {(row["id"], row["other_id"]): row["counts_for"] for row in csv.DictReader(file)}
        assert told["n0", "n1"].startswith("labels: these two are one")
        assert told["n16", "n17"] and "labels" not in told["n16", "n17"]


def test_a_matcher_scores() -> None:
    table = {"name": NAMES, "no": [str(row) for row in range(len(NAMES))]}
    matcher = Matcher.fit(table, table, LABELS, on="name")
    found = gramvec.dedupe(table, matcher=matcher)
    assert found.threshold == matcher.threshold and found.names.columns == ["name"]
    rows = [dict(zip(table, row, strict=True)) for row in zip(*table.values(), strict=True)]
    assert pairs_of(gramvec.dedupe(rows, matcher=matcher)) == pairs_of(found)
    with refused(InputError, "on", "name", field="on"):
        gramvec.dedupe(table, on="no", matcher=matcher)
    for options, field in (
        ({"labels": [], "matcher": matcher}, "matcher"),
        ({"labels": [], "by": "meaning"}, "labels"),
        ({"labels": [], "precision": 0.9}, "precision"),
        ({"matcher": matcher, "precision": 0.9}, "precision"),
    ):
        with refused(InputError, field, field=field):
            gramvec.dedupe(NAMES, **options)


def test_labels_of_rows_are_labels_of_texts_by_hand() -> None:
    of_row = np.array([0, 1, 0, -1, 2, 3])
    labels = labels_of([(0, 1, 1), (1, 2, 1), (0, 2, 0), (3, 4, 1), (4, 5, 0), (5, 4, 1), (1, 5, 0), (0, 0, 0)])
    found = labels_of_texts(labels, of_row)
    assert [part.tolist() for part in found.labels] == [[0, 1], [1, 3], [True, False]]
    assert (found.equal, found.empty, found.both) == (1, 1, 1) and len(found.sentences()) == 3
    assert labels_of_texts(labels_of([]), of_row).sentences() == []
    with refused(InputError, "row 9", field="labels"):
        labels_of_texts(labels_of([(0, 9, 1)]), of_row)
    with refused(InputError, "labels", field="labels"):
        gramvec.dedupe(["a", "a"], labels=[(0, 1, False)])


def test_what_labels_imply_by_hand() -> None:
    labels = labels_of([(0, 1, 1), (1, 4, 1), (4, 6, 1), (0, 6, 0), (2, 3, 1), (3, 5, 0)])
    found = with_implied(labels)
    every = set(zip(*(part.tolist() for part in found), strict=True))
    assert every - set(zip(*(part.tolist() for part in labels), strict=True)) == {(0, 4, True), (1, 6, True)}
    assert len(every) == len(found.left) == 8
    assert len(with_implied(labels_of([])).left) == 0


def test_answers_reach_the_clean_file(tmp_path: Path) -> None:
    path, labels, unique = tmp_path / "people.csv", tmp_path / "labels.csv", tmp_path / "unique.csv"
    path.write_text("id,name\n" + "".join(f"p{row},{name}\n" for row, name in enumerate(NAMES)))
    labels.write_text("left,right,match\n" + "".join(f"p{a},p{b},{int(m)}\n" for a, b, m in [*LABELS, (20, 21, False)]))
    watch = Told()
    result = DedupeJob(source=path, on=["name"], labels=[labels], unique=unique, map=tmp_path / "map.csv",
                       report=tmp_path / "a.html").run(watch)  # fmt: skip
    assert result.duplicates is not None and any("learned from 17 labeled pairs" in said for said in watch.messages)
    with unique.open(newline="") as file:
        kept = [row["id"] for row in csv.DictReader(file)]
    assert {"p20", "p21"} <= {*kept} and not {f"p{row}" for row in range(1, 16, 2)} & {*kept}
    assert "matcher learned from" in (tmp_path / "a.html").read_text()
    # A matcher of match on the same table scores the same, but for what was labeled.
    MatchJob(left=path, right=path, on="name", labels=[labels], save_matcher=tmp_path / "m.json").run()
    by_matcher = DedupeJob(source=path, matcher=tmp_path / "m.json").run()
    assert by_matcher.duplicates is not None and by_matcher.duplicates.names.columns == ["name"]
    few = tmp_path / "few.csv"
    few.write_text("left,right,match\np20,p21,0\n")
    watch = Told()
    result = DedupeJob(source=path, on=["name"], labels=[few]).run(watch)
    assert result.duplicates is not None and (20, 21) not in pairs_of(result.duplicates)
    assert any("too few" in said and "the labels hold" in said for said in watch.messages)


def test_labels_of_a_changed_table_and_of_ids_that_repeat_are_refused(tmp_path: Path) -> None:
    path, labels = tmp_path / "people.csv", tmp_path / "labels.csv"
    labels.write_text("left,right,match\n7,8,1\n")
    path.write_text("id,name\n7,a\n7,b\n")
    with refused(InputError, "lines 2 and 3", "7"):
        DedupeJob(source=path, on=["name"], labels=[labels]).run()
    path.write_text("id,name\n7,a\n9,b\n")
    with refused(InputError, "labels.csv", "8"):
        DedupeJob(source=path, on=["name"], labels=[labels]).run()
    labels.write_text("left,right,texts_digest,match\n7,9,0123456789abcdef,1\n")
    DedupeJob(source=path, on=["name"], labels=[labels]).run()  # of other columns: nothing is known
    for options, field in (
        ({"labels": [labels], "matcher": labels}, "matcher"),
        ({"labels": [labels], "by": "meaning", "threshold": 0.5}, "labels"),
        ({"matcher": labels, "against": tmp_path}, "matcher"),
        ({"labels": [labels], "precision": 0.9}, "precision"),
        ({"matcher": labels, "precision": 0.9}, "precision"),
    ):
        with refused(OptionError, field, field=field):
            DedupeJob(source=path, **options)
