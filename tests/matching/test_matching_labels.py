"""`gramvec match --labels`: what is learned, what is refused, what is labeled next; a matcher in a file, attacked."""

from __future__ import annotations

import csv
import json
import os
import random
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_docs import blocks, shell

import gramvec
from conftest import ROOT
from gramvec.errors import InputError
from gramvec.jobs.matching import fit_matcher as learning
from gramvec.jobs.matching.api import Matcher
from gramvec.jobs.matching.features import LIKELY, TablePair, codes_of, feature_names, number_of
from gramvec.jobs.matching.fields import Field
from gramvec.jobs.matching.inputs import labels_of, read_labels
from gramvec.jobs.matching.learned_reasons import HeldReasons, LearnedReasons
from gramvec.jobs.matching.matcher import PairLabels, hold_labels, score_candidates
from gramvec.jobs.matching.matcher_file import load_matcher
from gramvec.jobs.matching.nearest import Matches
from gramvec.jobs.matching.proposals import propose_matches
from support.bulk import gramvec_command
from support.errors import refused

pytestmark = pytest.mark.slow

pytest.importorskip("sklearn", reason="learning from labels needs scikit-learn: pip install 'gramvec[labels]'")

PAGE = (ROOT / "docs" / "matching.md").read_text(encoding="utf-8")
MAKERS, THINGS = ["canon", "nikon", "sony", "denon"], ["camera", "receiver", "tv", "printer", "lens"]
Triples = list[tuple[int, int, int]]


def shop(rows: int = 120) -> tuple[dict[str, list[str]], dict[str, list[str]], Triples]:
    """Two tables whose rows match where their codes and prices do; makers and things alone tell nothing."""
    rng = random.Random(1)
    left: dict[str, list[str]] = {"name": [], "price": []}
    right: dict[str, list[str]] = {"name": [], "price": []}
    for row in range(rows):
        maker, thing, code, price = rng.choice(MAKERS), rng.choice(THINGS), f"{rng.choice('abc')}{row + 100}", row + 7
        left["name"].append(f"{maker} {code} {thing}")
        left["price"].append(f"$ {price}.50" if row % 3 else "")
        right["name"].append(f"{thing} {code.upper()} by {maker} black")
        right["price"].append(f"{price}.50")
    labels = [(row, row, 1) for row in range(rows)]
    labels += [(row, (row + step) % rows, 0) for row in range(rows) for step in (1, 5, 30)]
    return left, right, labels


@pytest.fixture(scope="module")
def tables() -> tuple[dict[str, list[str]], dict[str, list[str]], Triples]:
    return shop()


@pytest.fixture(scope="module")
def matcher(tables: Any) -> Matcher:
    left, right, labels = tables
    return Matcher.fit(left, right, labels[:60] + labels[120:300], on=["name", "price"])


@pytest.fixture(scope="module", params=["logistic", "trees"])
def either(request: pytest.FixtureRequest, tables: Any) -> Matcher:
    """A matcher of each kind."""
    left, right, labels = tables
    with pytest.MonkeyPatch.context() as patch:
        fits = learning._fits(trees=True)
        name = "logistic 5" if request.param == "logistic" else "trees"
        patch.setattr(learning, "_fits", lambda *, trees: {name: fits[name]})
        return Matcher.fit(left, right, labels[:60] + labels[120:300], on=["name", "price"])


def test_what_labels_teach_holds_for_rows_without_labels(tables: Any, either: Matcher) -> None:
    left, right, _ = tables
    found = either.match(left, right)
    pairs = list(zip(found.left.tolist(), found.right.tolist(), strict=True))
    right_ones = sum(one == other for one, other in pairs)
    assert right_ones >= 110 and right_ones / len(pairs) > 0.95
    assert (found.scores >= either.threshold - 1e-6).all() and found.scores.max() <= 1
    unlabeled = [one == other for one, other in pairs if one >= 60]
    assert sum(unlabeled) >= 50


def test_the_report_is_of_labels_that_were_held_out(tables: Any, matcher: Matcher) -> None:
    report = matcher.report
    assert (report.pairs, report.matches) == (240, 60) and 0 < report.held_matches < report.held_pairs < 120
    assert 0.8 < report.f1 <= 1
    left, right, labels = tables
    rng = random.Random(2)
    noise = [(one, other, rng.randrange(2)) for one, other, _ in labels]
    assert Matcher.fit(left, right, noise, on=["name", "price"]).report.precision < 0.8


def test_labels_that_teach_nothing_leave_the_pair_model_as_it_is() -> None:
    drawn = np.random.default_rng(5)
    features = drawn.normal(size=(400, 12)).astype(np.float32)
    match = drawn.random(400) < 1 / (1 + np.exp(-3 * features[:, LIKELY]))
    features[:, LIKELY] *= 3
    labels = PairLabels(np.arange(400), np.arange(400), match)
    classifier, threshold, report = learning.learn(features, labels, features)
    assert np.allclose(classifier.probabilities(features), 1 / (1 + np.exp(-features[:, LIKELY])))
    assert report.kind == "logistic" and 0.2 < threshold < 0.65
    features[:, LIKELY] = 0.0
    classifier, _, _ = learning.learn(features, labels._replace(match=features[:, 5] > 0), features)
    assert (classifier.probabilities(features) > 0.5).tolist() == (features[:, 5] > 0).tolist()


def test_parts_keep_left_rows_whole_and_have_matches_each() -> None:
    rng = np.random.default_rng(3)
    for _ in range(50):
        left = rng.integers(0, 14, 60)
        labels = PairLabels(left, np.arange(60), rng.random(60) < 0.3)
        if min(len(np.unique(left[labels.match])), len(np.unique(left[~labels.match]))) < 5:
            continue
        part = learning._parts(labels)
        assert all(len(set(part[left == row].tolist())) == 1 for row in np.unique(left))
        assert set(part[labels.match].tolist()) == set(range(5))
        assert len(set(part[~labels.match].tolist())) > 1


def test_the_order_of_labels_and_batches_changes_nothing(tables: Any, matcher: Matcher) -> None:
    left, right, labels = tables
    shuffled = labels[:60] + labels[120:300]
    random.Random(4).shuffle(shuffled)
    again = Matcher.fit(left, right, [*shuffled, *shuffled[:9]], on=["name", "price"])
    assert again.threshold == matcher.threshold
    assert (again.match(left, right).scores == matcher.match(left, right).scores).all()
    found = gramvec.match(left, right, on=["name", "price"], labels=shuffled)
    assert (found.scores == matcher.match(left, right).scores).all()
    compared = TablePair([Field(left[name], right[name], 1.0) for name in ("name", "price")])
    pairs = np.arange(40), np.arange(40)[::-1].copy()
    whole = compared.features(*pairs)
    assert (whole[7:8] == compared.features(pairs[0][7:8], pairs[1][7:8])).all()
    classifier = matcher._learned.classifier
    assert classifier.probabilities(whole)[7] == classifier.probabilities(whole[7:8])[0]


@pytest.mark.parametrize("options", [{}, {"one_to_one": True, "threshold": 0.0}, {"top": 3, "threshold": 0.0}])
@pytest.mark.parametrize("same", [False, True])
def test_the_order_of_rows_changes_nothing_that_is_learned_or_chosen(options: dict[str, Any], same: bool) -> None:
    left, right, labels = shop(60)
    # Rows that differ in case and punctuation alone, so that many scores are equal.
    left = {name: [*texts, *(text.upper() + "." for text in texts[:20])] for name, texts in left.items()}
    if same:
        left = right = {name: left[name] + right[name] for name in left}
        labels = [(a, b + 80, match) for a, b, match in labels]
    rng = random.Random(7)
    orders = [rng.sample(range(size), size) for size in (len(left["name"]), len(right["name"]))]
    if same:
        orders[1] = orders[0]
    tables = [{name: [texts[row] for row in order] for name, texts in table.items()}
              for table, order in zip((left, right), orders, strict=True)]  # fmt: skip
    found = gramvec.match(left, right, on=["name", "price"], labels=labels, **options)
    again = gramvec.match(
        tables[0], tables[0] if same else tables[1], on=["name", "price"],
        labels=[(orders[0].index(a), orders[1].index(b), match) for a, b, match in labels], **options,
    )  # fmt: skip
    assert again.threshold == found.threshold and len(found.left)

    def pairs(one: dict[str, list[str]], other: dict[str, list[str]], result: Any) -> list[tuple[Any, ...]]:
        rows = zip(*(side.tolist() for side in result), strict=True)
        texts = [([one[name][a] for name in one], [other[name][b] for name in other], score) for a, b, score in rows]
        # One to one, a pair of one table is given once, with either row left.
        return sorted((*sorted(map(tuple, sides)), score) for *sides, score in texts)

    assert pairs(*tables, again) == pairs(left, right, found)


@pytest.mark.parametrize("same", [False, True])
def test_reasons_of_what_was_learned_sum_to_the_log_odds(tables: Any, either: Matcher, same: bool) -> None:
    left, right, _ = tables
    fields = [Field(left[name], right[name], 1.0) for name in ("name", "price")]
    if same:
        fields = [Field(field.left + field.right, field.left + field.right, 1.0) for field in fields]
    pair = TablePair(fields, ngrams=either.learned.ngrams, same=same, explain=True)
    scored = score_candidates(either.learned, pair)
    rows = np.append(scored.left[:300], -1), np.append(scored.right[:300], 3)
    reasons = LearnedReasons(either.learned, pair)
    told = [*reasons.of(*rows, ["name", "price"], lambda one, other: f"{one} {other}")]
    assert len(told) == len(rows[0]) and told[-1].reasons == []
    sums = np.array([one.start + sum(reason.adds for reason in one.reasons) for one in told[:-1]])
    assert np.allclose(1 / (1 + np.exp(-sums)), scored.scores[:300], atol=1e-4)
    # These trees look at the words of all columns alone.
    if either.report.kind == "logistic":
        price = {reason.says for one in told for reason in one.reasons if reason.about == "price"}
        assert price >= {"different", "empty"} | ({"nearly equal", "contradicts"} if same else set())
        assert price & {"nearly equal", "alike"}
        assert {"name", "words", "rivals"} <= {reason.about for one in told for reason in one.reasons}


def test_a_labeled_pair_has_its_label_for_a_reason() -> None:
    labels = PairLabels(np.array([0, 1]), np.array([2, 3]), np.array([True, False]))
    rows = np.array([2, 1, 1, 0]), np.array([0, 1, 3, 3])
    told = [*HeldReasons(None, labels, same=True).of(*rows, ["name"], lambda one, other: "")]
    assert [[reason.about for reason in one.reasons] for one in told] == [["labels"], ["equal rows"], [], []]


def test_options_hold_for_what_was_learned_too(tables: Any, matcher: Matcher) -> None:
    left, right, _ = tables
    several = matcher.match(left, right, top=3, threshold=0)
    assert np.bincount(several.left).max() == 3
    alone = matcher.match(left, right, threshold=0, one_to_one=True)
    assert len(set(alone.left.tolist())) == len(set(alone.right.tolist())) == len(alone.left)
    keyed = [{**table, "key": [str(row % 2) for row in range(120)]} for table in (left, right)]
    found = matcher.match(*keyed, threshold=0, top=9, block="key")
    assert len(found.left) and (found.left % 2 == found.right % 2).all()
    with pytest.raises(InputError, match="from 0 to 1"):
        matcher.match(left, right, threshold=2)


def test_rows_of_one_table_learn_from_each_other_and_never_from_themselves(tables: Any) -> None:
    left, right, labels = tables
    rows = len(left["name"])
    table = {name: left[name] + right[name] for name in left}
    # Either row of a pair may be called the left one.
    known = [(other + rows, one, match) if one % 2 else (one, other + rows, match) for one, other, match in labels]
    found = gramvec.match(table, table, on=["name", "price"], labels=known[:60] + known[120:300])
    pairs = set(zip(found.left.tolist(), found.right.tolist(), strict=True))
    assert all(one != other and (other, one) in pairs for one, other in pairs)
    assert sum((one, one + rows) in pairs for one in range(60, rows)) >= 50
    once = gramvec.match(table, table, on=["name", "price"], labels=known[:60] + known[120:300], one_to_one=True)
    in_pairs = [*once.left.tolist(), *once.right.tolist()]
    assert len(in_pairs) == len(set(in_pairs)) >= 200


def test_features_say_what_is_shared_and_what_is_not() -> None:
    left = ["canon sd-1100 camera", "", "tv 9.50", "tv 9,50 and 3"]
    right = ["Canon SD1100 camera", "x", "tv 19", "tv 19"]
    made = TablePair([Field(left, right, 1.0)]).features(np.arange(4), np.arange(4))
    names = [name.removeprefix("column 1.") for name in feature_names(1)]
    row = [dict(zip(names, values, strict=True)) for values in made.tolist()]
    assert row[0]["codes_in_right"] == row[0]["codes_in_left"] == 1 and row[0]["words_in_right"] < 1
    assert row[1]["empty_left"] == 1 and row[1]["cosine"] == row[1]["equal"] == row[1]["words_in_left"] == -1
    assert row[2]["number"] == pytest.approx(0.5) and row[3]["number"] == -1
    assert np.isfinite(made).all()
    assert codes_of("dvd-3800 black s8") == "dvd3800 s8"
    assert number_of("$ 1,299.00") == 1299 and np.isnan(number_of("1.2.3")) and np.isnan(number_of("1 2"))
    assert np.isnan(number_of("9" * 400))


def test_a_pair_competes_with_the_nearest_others_of_its_rows() -> None:
    texts = ["alpha beta gamma", "delta epsilon zeta"], ["alpha beta gamma", "alpha beta gamme", "delta epsilon zeta"]
    made = TablePair([Field(*texts, 1.0)]).features(np.array([0, 0, 1]), np.array([0, 1, 2]))
    best, second, alone = made[:, 1].tolist()
    assert best > 0 > second and best == pytest.approx(-second) and alone == pytest.approx(1, abs=1e-6)


def test_pairs_to_label_are_new_and_mostly_near_the_threshold() -> None:
    left, right = np.divmod(np.arange(400), 20)
    scored = Matches(left, right, np.linspace(0, 1, 400, dtype=np.float32))
    known = PairLabels(np.array([10]), np.array([0]), np.array([True]))
    found = propose_matches(scored, 0.5, known, 10)
    assert len(found.left) == len({*found.left.tolist()}) == 10 and (10, 0) not in zip(*found[:2], strict=True)
    # Rows 9 and 10 have the nearest; each row is asked about once before one is asked about again.
    assert {9, 10} <= {*found.left.tolist()} and found.scores.max() > 0.9
    every = propose_matches(scored, 0.5, known, 1000)
    assert len({*zip(every.left.tolist(), every.right.tolist(), strict=True)}) == len(every.left) == 399
    assert len(propose_matches(scored, 0.5, None, 1).left) == 1
    none = Matches(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, np.float32))
    assert not len(propose_matches(none, 0.5, known, 10).left)


@pytest.mark.parametrize(
    ("labels", "said"),
    [
        ([(0, 0, 2)], "label 0"),
        ([(0, 0)], "label 0"),
        ([(0, -1, 1)], "label 0"),
        ([(0, 0.5, 1)], "label 0"),
        ([None], "label 0"),
        ([(0, 0, 1), (0, 0, 0)], r"both ways.* 0 and 0"),
        ([(500, 0, 1)], r"row 500 .*left table.* 120"),
        ([(0, 10**30, 1)], r"label 0|row"),
        ([], r"pairs match \(0\)"),
        ([(row, row, 1) for row in range(50)], r"pairs do not match \(0\)"),
        ([(row, row, 1) for row in range(50)] + [(0, row, 0) for row in range(1, 30)], r"1 rows of the left table"),
    ],
)
def test_labels_that_teach_nothing_are_one_sentence(labels: Any, said: str, tables: Any) -> None:
    with pytest.raises(InputError, match=said):
        Matcher.fit(*tables[:2], labels, on="name")


def test_the_fewest_labels_are_enough(tables: Any) -> None:
    left, right, labels = tables
    few = labels[:5] + labels[120:135:3]
    assert Matcher.fit(left["name"], right["name"], few).match(left["name"], right["name"]).left.size > 50


def test_without_scikit_learn_it_says_what_to_install(tables: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sklearn.ensemble", None)
    with refused(InputError, "gramvec[labels]"):
        gramvec.match(*tables[:2], on="name", labels=tables[2])


def test_a_stored_matcher_matches_the_same(tables: Any, either: Matcher, tmp_path: Path) -> None:
    path = tmp_path / "matcher.json"
    either.save(path)
    again = Matcher.load(path)
    assert (again.report, again.threshold) == (either.report, either.threshold)
    for one, other in zip(either.match(*tables[:2], threshold=0), again.match(*tables[:2], threshold=0), strict=True):
        assert (one == other).all()
    with refused(InputError, "'price'"):
        again.match({"name": ["a"]}, {"name": ["a"]})
    with refused(InputError, "2 columns"):
        again.match(["a"], ["a"])


def change(path: str, value: Any) -> Callable[[dict[str, Any]], None]:
    def changed(record: dict[str, Any]) -> None:
        *parents, last = path.split(".")
        for parent in parents:
            record = record[parent]
        if value is KeyError:
            del record[last]
        elif callable(value):
            value(record[last])
        else:
            record[last] = value

    return changed


def put(place: int, value: Any) -> Callable[[list[Any]], None]:
    return lambda values: values.__setitem__(place, value)


COMMON = [
    ("format", "pickle", "format"), ("version", 1, "format"), ("top", 0, "top"), ("top", "all", "top"),
    ("columns", [], "columns"),
    ("columns", [["name", "name"]] * 2, "distinct"), ("columns", [["name"]] * 2, "a column is list"),
    ("columns", [["a", "b"]] * 17, "columns"), ("columns", [["x" * 2000, "b"], ["a", "b"]], "a column"),
    ("weights", [1.0], "weights"), ("weights", [0, 1], "above 0"), ("weights", [1e300, 1], "weights"),
    ("weights", [True, 1], "weights"), ("features", put(0, "other"), "features"), ("threshold", 1.5, "threshold"),
    ("threshold", None, "threshold"), ("threshold", "0.5", "threshold"), ("ngrams", [], "ngrams"),
    ("ngrams.orders", [3, 3], "n-grams"), ("ngrams.orders", [0], "orders"), ("ngrams.orders", [10**9], "orders"),
    ("ngrams.orders", [3.5], "orders"), ("ngrams.weighting", "os.system", "n-grams"), ("ngrams.a", 0, "a is"),
    ("ngrams.weighting", ["sif"], "n-grams"), ("report", KeyError, "report"), ("report.kind", "svm", "kind"),
    ("report.f1", 7, "f1"), ("classifier", KeyError, "classifier"),
]  # fmt: skip
LOGISTIC = [
    ("classifier.scales", put(0, 0), "scales"), ("classifier.scales", put(3, -1), "scales"),
    ("classifier.means", put(0, 1e200), "means"), ("classifier.coefficients", list.pop, "coefficients"),
    ("classifier.coefficients", put(0, [1]), "coefficients"), ("classifier.intercept", KeyError, "intercept"),
]  # fmt: skip
TREES = [
    ("classifier.feature", put(0, 10_000), "feature"), ("classifier.feature", put(0, -2), "feature"),
    ("classifier.feature", put(0, 1.5), "feature"), ("classifier.feature", [], "feature"),
    ("classifier.below", put(0, 0), "after its parent"), ("classifier.above", put(0, -1), "above"),
    ("classifier.above", lambda values: values.__setitem__(0, len(values) - 1), "after its parent"),
    ("classifier.above", put(0, 10**7), "above"), ("classifier.cut", put(0, 1e13), "cut"),
    ("classifier.value", put(0, None), "value"), ("classifier.value", list.pop, "value"),
    ("classifier.starts", put(0, 1), "starts"), ("classifier.starts", put(1, 0), "starts"),
    ("classifier.starts", list.pop, "starts"), ("classifier.starts", [0], "starts"),
    ("classifier.base", "x", "base"), ("classifier.starts", [0] * 2000, "starts"),
]  # fmt: skip
ATTACKS = {"logistic": COMMON + LOGISTIC, "trees": COMMON + TREES}


def test_a_damaged_matcher_is_one_sentence(either: Matcher, tmp_path: Path) -> None:
    path = tmp_path / "matcher.json"
    either.save(path)
    good = path.read_bytes()
    for where, value, said in ATTACKS[either.report.kind]:
        record = json.loads(good)
        change(where, value)(record)
        path.write_text(json.dumps(record))
        with pytest.raises(InputError, match=rf"matcher\.json.*{said}") as caught:
            load_matcher(path)
        assert "\n" not in str(caught.value)
    whole = len(good)
    for data in (b"", b"[]", b"null", b"\xff", b"[" * 100_000, good[: whole // 2], b" " * (5 << 20), b"\x80\x04K\x01."):
        path.write_bytes(data)
        with refused(InputError, "valid matcher"):
            load_matcher(path)
    for text in (good.replace(b"0.", b"NaN,", 1), good.replace(b'"threshold":', b'"threshold":1e999,"x":', 1)):
        path.write_bytes(text)
        with refused(InputError, "valid matcher"):
            load_matcher(path)


def test_any_number_of_a_matcher_may_be_any(either: Matcher, tables: Any, tmp_path: Path) -> None:
    """What is loaded for all that gives probabilities."""
    path, rng = tmp_path / "matcher.json", random.Random(5)
    either.save(path)
    parts = re.split(r"(-?\d+(?:\.\d+)?(?:e-?\d+)?)", path.read_text())
    left, right, _ = tables
    pairs = np.arange(20)
    features = TablePair([Field(left[name], right[name], 1.0) for name in ("name", "price")]).features(pairs, pairs)
    loaded = 0
    for _ in range(60):
        changed = list(parts)
        for _ in range(rng.choice([1, 1, 5])):
            changed[rng.randrange(len(parts) // 2) * 2 + 1] = rng.choice(
                ["0", "-1", "1", "7", "1e12", "-1e12", "1e-300", "2.5"]
            )
        path.write_text("".join(changed))
        try:
            known = load_matcher(path)
        except InputError:
            continue
        scores = known.classifier.probabilities(features)
        loaded += 1
        assert np.isfinite(scores).all() and (scores >= 0).all() and (scores <= 1).all()
    assert loaded > 5


def test_a_tree_may_not_be_a_chain(either: Matcher, tmp_path: Path) -> None:
    if either.report.kind != "trees":
        return
    path, nodes = tmp_path / "matcher.json", 2001
    either.save(path)
    record = json.loads(path.read_text())
    inner = [place % 2 == 0 and place < nodes - 1 for place in range(nodes)]
    record["classifier"] |= {
        "starts": [0, nodes], "feature": [0 if one else -1 for one in inner], "cut": [0.0] * nodes,
        "below": [place + 1 if one else 0 for place, one in enumerate(inner)],
        "above": [place + 2 if one else 0 for place, one in enumerate(inner)], "value": [0.0] * nodes,
    }  # fmt: skip
    path.write_text(json.dumps(record))
    with refused(InputError, "64 levels"):
        load_matcher(path)


@pytest.fixture
def files(tables: Any, tmp_path: Path) -> Path:
    left, right, labels = tables
    for name, table, mark in (("left", left, "a"), ("right", right, "b")):
        with (tmp_path / f"{name}.csv").open("w", newline="") as file:
            rows = zip([f"{mark}{row}" for row in range(120)], table["name"], table["price"], strict=True)
            csv.writer(file).writerows([("id", "name", "price"), *rows])
    with (tmp_path / "labels.csv").open("w", newline="") as file:
        rows = [(f"a{one}", f"b{other}", match) for one, other, match in labels[:60] + labels[120:300]]
        csv.writer(file).writerows([("left", "right", "match"), *rows])
    return tmp_path


def match(folder: Path, *options: object) -> subprocess.CompletedProcess[bytes]:
    done: subprocess.CompletedProcess[bytes] = gramvec_command(
        "match", folder / "left.csv", folder / "right.csv", *options
    )
    return done


ON = ("--on", "name", "--on", "price:0.5")


def test_the_command_learns_keeps_and_asks(files: Path) -> None:
    kept, review = files / "matcher.json", files / "review.csv"
    done = match(files, *ON, "--labels", files / "labels.csv", "--save-matcher", kept, "--review", review,
                 "--review-pairs", "15", "-o", files / "one.csv")  # fmt: skip
    assert done.returncode == 0, done.stderr
    said = done.stderr.decode()
    assert "learned from 240 labeled pairs, 60 of them matches" in said and re.search(r"F1 \d+\.\d%", said)
    again = match(files, "--matcher", kept, "-o", files / "two.csv")
    assert again.returncode == 0 and (files / "one.csv").read_bytes() == (files / "two.csv").read_bytes()
    found = list(csv.DictReader((files / "one.csv").read_text().splitlines()))
    assert sum(row["left_id"][1:] == row["right_id"][1:] for row in found) > 0.95 * len(found) > 100
    asked = list(csv.DictReader(review.read_text().splitlines()))
    assert len(asked) == 15 and all(row["match"] == "" and row["left"] and row["right"] for row in asked)
    labeled = {(row["left"], row["right"]) for row in csv.DictReader((files / "labels.csv").read_text().splitlines())}
    assert labeled.isdisjoint((row["left_id"], row["right_id"]) for row in asked)
    filled = [row | {"match": "yes" if row["left_id"][1:] == row["right_id"][1:] else "No"} for row in asked[:9]]
    with (files / "filled.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, asked[0].keys())
        writer.writeheader()
        writer.writerows([*filled, *asked[9:]])
    more = match(files, *ON, "--labels", files / "labels.csv", "--labels", files / "filled.csv")
    assert b"learned from 249 labeled pairs" in more.stderr, more.stderr
    lost = match(files, *ON, "--review", review)
    assert lost.returncode == 1 and b"exists already" in lost.stderr
    others = match(files, "--on", "name", "--matcher", kept)
    assert others.returncode == 1 and b"other columns" in others.stderr and b"--on price:0.5" in others.stderr


def test_a_review_without_labels_has_pairs_of_all_scores(files: Path) -> None:
    # A third of the right names lose the code that tells whose they are.
    head, *lines = (files / "right.csv").read_text().splitlines()
    lost = [re.sub(r" [ABC]\d+ ", " ", line) if row % 3 == 0 else line for row, line in enumerate(lines, 1)]
    (files / "right.csv").write_text("\n".join([head, *lost, ""]))
    plain = match(files, "--on", "name")
    done = match(files, "--on", "name", "--review", files / "review.jsonl", "--review-pairs", "20")
    assert done.returncode == 0 and done.stdout == plain.stdout
    scores = [json.loads(line)["score"] for line in (files / "review.jsonl").read_text().splitlines()]
    assert len(scores) == 20 and max(scores) > 0.8 and min(scores) < 0.4


@pytest.mark.parametrize("form", ["tsv", "jsonl", "parquet"])
def test_labels_of_other_forms(form: str, tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [
        {"note": "x", "left": 1, "right": 2, "match": True}, {"note": "", "left": 2, "right": 1, "match": False},
        {"note": "", "left": 2, "right": 2, "match": None},
    ]  # fmt: skip
    path = tmp_path / f"labels.{form}"
    if form == "parquet":
        pa = pytest.importorskip("pyarrow")
        pytest.importorskip("pyarrow.parquet").write_table(pa.Table.from_pylist(rows), path)
    elif form == "jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    else:
        path.write_text("left\tright\tmatch\n1\t2\tTRUE\n2\t1\tno\n2\t2\t\n")
    found = read_labels([path], ["1", "2"], ["1", "2"]).labels
    assert [column.tolist() for column in found] == [[0, 1], [1, 0], [True, False]]


def test_the_options_of_labels_are_their_own(files: Path) -> None:
    text = (files / "labels.csv").read_text()
    wrong = files / "wrong.csv"
    wrong.write_text(text.replace(",", "!"))
    done = match(files, *ON, "--labels", wrong)
    assert done.returncode == 1 and b"--labels-delimiter" in done.stderr
    first, *rows = text.replace(",", "!").splitlines()
    wrong.write_bytes("\n".join([f"{first}!caf\u00e9", *(f"{row}!" for row in rows)]).encode("cp1252"))
    done = match(files, *ON, "--labels", wrong, "--labels-delimiter", "!")
    assert done.returncode == 1 and b"--labels-encoding cp1252" in done.stderr, done.stderr
    done = match(files, *ON, "--labels", wrong, "--labels-delimiter", "!", "--labels-encoding", "cp1252")
    assert b"learned from 240 labeled pairs" in done.stderr, done.stderr


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a,b,label\na1,b1,1\n", "left and right"),
        ("left,right,match\na1,b1,maybe\n", r"line 2.*maybe.* 1 or 0"),
        ("left,right,match\na1,b999,1\n", r"line 2.*right table.*b999"),
        ("left,right,match\nx1,b1,1\n", r"line 2.*left table.*x1"),
        ("left,right,match\na1,b1,1\na1,b1,0\n", r"a1 and b1 .*line 2 .*line 3"),
        ("left,right,match\n", r"pairs match \(0\)"),
    ],
)
def test_what_is_wrong_with_labels_is_one_sentence(text: str, said: str, files: Path) -> None:
    (files / "wrong.csv").write_text(text)
    done = match(files, *ON, "--labels", files / "wrong.csv", "--save-matcher", files / "m.json", "-o", files / "o.csv")
    assert done.returncode == 1, done
    assert re.search(said, done.stderr.decode()) and done.stderr.count(b"\n") == 1, done.stderr
    assert not (files / "m.json").exists() and not (files / "o.csv").exists()


def test_contradictory_labels_are_named_at_once_or_skipped(files: Path) -> None:
    rows = (files / "labels.csv").read_text() + "a1,b1,0\na2,b2,0\na3,b9999,1\na4,b4,maybe\n"
    (files / "wrong.csv").write_text(rows)
    options = (*ON, "--labels", files / "wrong.csv", "-o", files / "o.csv", "--on-error", "skip")
    done = match(files, *options)
    assert done.returncode == 0, done.stderr
    assert b"skipped 4 labels" in done.stderr and b"learned from 238 labeled pairs" in done.stderr
    (files / "wrong.csv").write_text("\n".join(rows.splitlines()[:-2]))
    done = match(files, *options[:-2])
    assert done.returncode == 1 and not (files / "p.csv").exists()
    assert re.search(rb"2 pairs are labeled both ways: a1 and b1 \(.*line \d+ and .*line 242\), a2 and b2", done.stderr)


def test_labels_with_several_matches_of_a_row_ask_for_all(tables: Any, tmp_path: Path) -> None:
    left, right, labels = tables
    assert learning.top_of(labels_of(labels)) == 1
    twice = {name: [*values, *values] for name, values in right.items()}
    both = [*labels, *((one, other + 120, match) for one, other, match in labels)]
    assert learning.top_of(labels_of(both)) is None
    found = gramvec.match(left, twice, on=["name"], labels=both)
    assert np.bincount(found.left).max() > 1
    assert np.bincount(gramvec.match(left, twice, on=["name"], labels=both, top=1).left).max() == 1
    matcher = Matcher.fit(left, twice, both, on=["name"])
    matcher.save(tmp_path / "matcher.json")
    again = Matcher.load(tmp_path / "matcher.json").match(left, twice)
    assert (again.left.tolist(), again.right.tolist()) == (found.left.tolist(), found.right.tolist())


def test_the_command_reports_how_many_labeled_pairs_are_written(files: Path) -> None:
    done = match(files, *ON, "--labels", files / "labels.csv", "-o", files / "o.csv")
    rows = list(csv.DictReader((files / "o.csv").read_text().splitlines()))
    written = {(row["left_id"], row["right_id"]) for row in rows}
    labels = list(csv.DictReader((files / "labels.csv").read_text().splitlines()))
    right = sum((row["left"], row["right"]) in written for row in labels if row["match"] == "1")
    wrong = sum((row["left"], row["right"]) in written for row in labels if row["match"] == "0")
    assert f"of the labeled pairs, {right} of 60 matches and {wrong} of 180 others are written" in done.stderr.decode()


@pytest.mark.parametrize("one_to_one", [(), ("--one-to-one",)])
def test_labeled_pairs_are_written_as_labeled(files: Path, one_to_one: tuple[str, ...]) -> None:
    text = (files / "labels.csv").read_text()
    # Two labels that no score agrees with.
    swapped = text.replace("a1,b1,1", "a1,b1,0").replace("a1,b2,0", "a1,b2,1")
    (files / "labels.csv").write_text(swapped)
    done = match(files, *ON, "--labels", files / "labels.csv", "--keep-labels", "-o", files / "o.csv", *one_to_one)
    assert done.returncode == 0, done.stderr
    written = {(row["left_id"], row["right_id"]): row["score"] for row in
               csv.DictReader((files / "o.csv").read_text().splitlines())}  # fmt: skip
    labels = list(csv.DictReader(swapped.splitlines()))
    found = {(row["left"], row["right"]): row["match"] for row in labels}
    assert not [pair for pair, match in found.items() if match == "0" and pair in written]
    kept = [pair for pair, match in found.items() if match == "1" and pair in written]
    assert {float(written[pair]) for pair in kept} == {1.0}
    assert len(kept) >= len([pair for pair, match in found.items() if match == "1"]) - (2 if one_to_one else 0)


def test_labels_of_pairs_that_are_no_candidates_are_held() -> None:
    scored = Matches(np.array([0, 1]), np.array([0, 1]), np.array([0.9, 0.8], np.float32))
    labels = PairLabels(np.array([0, 2, 2]), np.array([0, 3, 4]), np.array([False, True, False]))
    held = hold_labels(scored, labels)
    assert (held.left.tolist(), held.right.tolist()) == ([1, 2], [1, 3])
    assert held.scores.tolist() == [np.float32(0.8), 1.0]


def test_files_of_matchers_are_neither_planted_links_nor_pipes(either: Matcher, tmp_path: Path) -> None:
    victim, path = tmp_path / "victim", tmp_path / "matcher.json"
    victim.write_text("precious")
    (tmp_path / ".matcher.json.new").symlink_to(victim)
    with refused(InputError, "link"):
        either.save(path)
    assert victim.read_text() == "precious"
    assert not path.exists()
    os.mkfifo(path)
    with refused(InputError, "regular file"):
        Matcher.load(path)


def test_options_that_do_not_go_together(files: Path) -> None:
    labels = files / "labels.csv"
    for options, code, said in [
        (("--labels", labels, "--matcher", labels), 2, b"one of them"),
        (("--save-matcher", "m.json"), 2, b"give --labels"),
        (("--keep-labels",), 2, b"give --labels"),
        (
            ("--review", "m.txt"),
            1,
            b"nothing is written as .txt; name a file with one of .csv, .tsv, .jsonl, .parquet, .xlsx",
        ),
        (("--labels", labels, "--save-matcher", labels), 1, b"is read by this command"),
        (("--labels", labels, "--save-matcher", files / "no" / "m.json"), 1, b"there is no folder"),
        (("--matcher", labels), 1, b"is not a valid matcher"),
        (("--labels", files / "left.txt"), 2, b"does not exist"),
    ]:
        done = match(files, *ON, *options)
        assert done.returncode == code and said in done.stderr, (options, done)


def test_the_page_says_how_labels_are_used(files: Path, tmp_path: Path) -> None:
    (script,) = (block for block in blocks("python", PAGE) if "Matcher" in block)
    done = subprocess.run([sys.executable, "-W", "error", "-c", script], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == re.findall(r"\)  # (.*)$", script, re.MULTILINE)
    (commands,) = (block for block in blocks("sh", PAGE) if "--save-matcher" in block)
    printed = shell(commands, tmp_path)
    lines = printed.splitlines()
    assert lines[0] == "left_id,right_id,match,score,left,right,texts_digest"
    assert lines[3] == "left_id,right_id,score,left,right"
    assert sum(bool(re.match(r"a(\d+),b\1,", line)) for line in lines) > 50
