"""What learning a head is made of: support vector machines, near copies, thresholds, what is new in a text."""

from __future__ import annotations

import zlib
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from conftest import KeptProgress
from gramvec.jobs.classify import copies
from gramvec.jobs.classify.copies import LONGEST, near_copies, parts_held_out
from gramvec.jobs.classify.fit import fit_head
from gramvec.jobs.classify.ngrams import NgramColumns
from gramvec.jobs.classify.svm import learn_svm
from gramvec.jobs.classify.targets import Targets
from gramvec.jobs.classify.threshold import best_threshold, own_thresholds, threshold_that_keeps

DIGEST = "ab" * 32


def targets(own: Any, labels: int) -> Targets:
    return Targets(np.arange(len(own)), np.asarray(own, np.int64), len(own), labels)


def some_rows(n: int, d: int, seed: int) -> Any:
    return sparse.random(n, d, 0.2, format="csr", dtype=np.float32, random_state=seed)


def test_a_support_vector_machine_is_scikit_learns() -> None:
    from sklearn.svm import LinearSVC

    rows, own = some_rows(300, 80, 1), np.random.default_rng(1).integers(0, 20, 300)
    weights = learn_svm(rows, targets(own, 20), 1.0)
    theirs = LinearSVC(tol=1e-6, max_iter=10_000).fit(rows, own)
    assert np.abs(weights[:-1].T - theirs.coef_).max() < 0.05 * np.abs(theirs.coef_).max()
    assert np.abs(weights[-1] - theirs.intercept_).max() < 0.05


def test_labels_of_no_text_and_of_every_text() -> None:
    rows = sparse.csr_matrix(np.eye(6, dtype=np.float32))
    several = Targets(np.array([0, 0, 1, 1, 2, 3, 4, 5]), np.array([0, 1, 0, 1, 1, 1, 1, 1]), 6, 3)
    weights = learn_svm(rows, several, 1.0)
    assert (weights.dtype, weights.shape) == (np.float32, (7, 3))
    assert (weights[:, 2] == 0).all() and weights[:, 1].tolist() == [0, 0, 0, 0, 0, 0, 1]
    scores = rows @ weights[:-1, 0] + weights[-1, 0]
    assert scores[:2].min() > scores[2:].max()


@given(words=st.lists(st.sampled_from(["a", "b", "über", "no", "long" * 9]), min_size=LONGEST + 1, max_size=40))
def test_digests_of_longer_texts_are_the_least_seeded_checksums_of_pairs_of_words(words: list[str]) -> None:
    pairs = {f"{first} {second}".encode() for first, second in pairwise(words)}
    expected = [(seed, *sorted({zlib.crc32(pair, seed) for pair in pairs})[:3]) for seed in range(4)]
    assert list(copies._keys(" ".join(words)))[1:] == expected


def test_near_copies_by_hand() -> None:
    texts = [
        "why was I charged twice this month", "Why was i charged twice this week!",
        "order 12 is late", "ORDER 7 is late", "where is my card", "where is my parcel", "a", "b",
    ]  # fmt: skip
    groups = near_copies(texts, np.eye(8, dtype=np.float32))
    assert groups.tolist() == [0, 0, 1, 1, 2, 3, 4, 5]  # of four words another one is another text
    assert near_copies(["x", "y"], np.ones((2, 3), np.float32)).tolist() == [0, 0]
    long = " ".join(f"word{letter} other{letter}" for letter in "abcdefghijklmnop")
    several = near_copies([long, long.replace("otherc", "else"), long[::-1]], np.eye(3, dtype=np.float32))
    assert several.tolist() == [0, 0, 1]


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 3)), min_size=1, max_size=40), st.integers(2, 5))
def test_a_group_is_held_out_together_and_never_a_label_that_has_no_other(
    rows: list[tuple[int, int]], parts: int
) -> None:
    labels = np.array([label for label, _ in rows], np.int64)
    groups = np.unique(np.array([7 * group + label for label, group in rows]), return_inverse=True)[1].astype(np.int64)
    folds = parts_held_out(groups, labels, parts)
    for group in np.unique(groups):
        assert len(np.unique(folds[groups == group])) == 1
    for label in np.unique(labels):
        own = np.unique(groups[labels == label])
        assert (folds[labels == label] >= 0).all() == (len(own) > 1)
        assert folds[labels == label].max() < parts


def test_a_threshold_loses_at_most_one_in_a_hundred_of_new_right_answers() -> None:
    rng = np.random.default_rng(1)
    lost = {}
    for many in (20, 100, 500, 5000):
        shares = []
        for _ in range(200):
            scores = 1 / (1 + np.exp(-rng.normal(3, 1.5, 2 * many)))
            threshold = threshold_that_keeps(scores[:many].astype(np.float32), np.ones(many))
            shares.append(float((scores[many:] < threshold).mean()))
        lost[many] = np.mean(shares)
    assert max(lost.values()) <= 0.01, lost
    assert lost[5000] > 0.002  # and no more is given away than needed


def test_other_greetings_and_misspellings_make_near_copies() -> None:
    greetings, endings = (
        ("hello team, ", "hi! ", "good morning, ", ""),
        (" thanks", " kind regards anna", "", " cheers"),
    )
    cores = ["i was charged twice for one order", "my parcel never arrived at home", "the app closes when i open it",
             "how do i change my delivery address"]  # fmt: skip
    texts, labels = [], []
    for label, core in enumerate(cores):
        for at, (greeting, ending) in enumerate(zip(greetings, endings, strict=True)):
            word = core.split()[2]
            texts.append(greeting + (core.replace(word, word[:-1]) if at == 2 else core) + ending)
            labels.append(label)
    vectors, given = np.eye(len(texts), dtype=np.float32), np.array(labels, np.int64)
    groups = near_copies(texts, vectors, given)
    assert groups.tolist() == [label for label in range(4) for _ in range(4)]
    different = ["book a flight to rome", "cancel the hotel in oslo", "what is the weather", "play some jazz music"]
    assert len(set(near_copies(different, np.eye(4, dtype=np.float32), np.array([0, 0, 1, 1])).tolist())) == 4
    assert near_copies(["", "  "], np.eye(2, dtype=np.float32), np.array([0, 1])).tolist() == [0, 1]


def test_near_copies_count_as_one_text_in_a_threshold() -> None:
    scores = np.array([0.99] * 1000 + [0.3] * 12, np.float32)
    assert threshold_that_keeps(scores, np.ones(1012)) == pytest.approx(0.3)
    weights = np.array([0.001] * 1000 + [1.0] * 12)
    assert threshold_that_keeps(scores, weights) < 0.3


def test_no_label_loses_one_in_twenty_by_the_threshold_of_all() -> None:
    scores = np.array([0.9] * 200 + [0.3, 0.4, 0.8], np.float32)
    labels = np.array([0] * 200 + [1] * 3)
    assert own_thresholds(0.5, scores, labels) == {1: pytest.approx(0.3)}
    assert own_thresholds(0.2, scores, labels) == {}


def test_the_best_threshold_of_several_labels_by_hand() -> None:
    scores = np.array([[0.9, 0.6], [0.2, 0.8], [0.5, 0.1]], np.float32)
    true = Targets(np.array([0, 0, 1, 2]), np.array([0, 1, 1, 0]), 3, 2)
    assert best_threshold(scores, true) == pytest.approx(0.35)  # the four of 0.5 and more are right


def test_targets_of_several_labels() -> None:
    found = Targets.of([("a", "b"), ("b",), ("c", "c")], ["a", "b", "c"])
    assert (found.text.tolist(), found.label.tolist()) == ([0, 0, 1, 2], [0, 1, 1, 2])
    assert found.counts.tolist() == [1, 2, 1]
    assert found.rarest.tolist() == [0, 1, 2]
    assert found.shares.tolist() == [0.5, 0.5, 1, 1]
    some = found.select(np.array([0, 2]))
    assert (some.text.tolist(), some.label.tolist(), some.texts) == ([0, 0, 1], [0, 1, 2], 2)
    assert found.hold(np.array([0, 1]), np.array([1, 0])).tolist() == [True, False]


def test_what_is_new_in_a_text_by_hand() -> None:
    vocabulary = NgramColumns.of_texts(["aa bb", "aa cc"], min_texts=1, max_columns=100)
    assert vocabulary.unseen == pytest.approx(np.log(3) + 1)
    known = vocabulary.weigh(["aa bb", "aa zz", "zz", ""]).known
    assert known[0] == pytest.approx([1, 1])
    # Words: aa, whose idf is 1, beside zz and the pair "aa zz".
    assert known[1, 1] == pytest.approx((1 / (1 + 2 * vocabulary.unseen**2)) ** 0.5)
    assert known[2:].tolist() == [[0, 0], [0, 0]]


def intents(rng: np.random.Generator, n: int, words: list[list[str]]) -> tuple[list[str], Any, list[str]]:
    own = rng.integers(0, len(words), n).tolist()
    texts = [" ".join([*rng.choice(words[one], 3), *rng.choice(["my", "the", "now", "so", "is"], 2)]) for one in own]
    vectors = rng.normal(size=(n, 10)).astype(np.float32)
    return texts, vectors / np.linalg.norm(vectors, axis=1, keepdims=True), [f"intent {one}" for one in own]


WORDS = [[f"{stem}{ending}" for ending in ("a", "b", "c", "d", "e", "f")] for stem in ("card", "rate", "close")]


@pytest.mark.parametrize("n", [150, 900])
def test_what_no_learned_text_had_lowers_every_score(n: int) -> None:
    texts, vectors, labels = intents(np.random.default_rng(1), n, WORDS)
    progress = KeptProgress()
    head, report = fit_head(texts, vectors, labels, model="m", digest=DIGEST, progress=progress)
    assert progress.tasks == [("learning", sum(progress.steps))]
    assert report.accuracy > 0.95 and report.lost <= 0.01
    known, new = head.predict(["carda cardb my the cardc", "carda pizza on monday with cheese"], vectors[:2])
    assert known.max() > new.max() + 0.1
    assert new.sum() < 0.9  # the rest is "none of them"


@pytest.mark.parametrize("n", [150, 900])
def test_several_labels_are_found_in_one_text(n: int) -> None:
    rng = np.random.default_rng(2)
    first, vectors, of_first = intents(rng, n, WORDS)
    second, _, of_second = intents(rng, n, WORDS)
    both = rng.random(n) < 0.5
    texts = [f"{one} {two}" if more else one for one, two, more in zip(first, second, both.tolist(), strict=True)]
    labels = [
        tuple(dict.fromkeys([one, two])) if more else (one,)
        for one, two, more in zip(of_first, of_second, both.tolist(), strict=True)
    ]
    head, report = fit_head(texts, vectors, labels, model="m", digest=DIGEST)
    assert head.several and report.several and report.f1 > 0.9
    answers = head.answers(head.predict(["carda cardb ratec rated", "closea closeb my"], np.zeros((2, 10), np.float32)))
    assert [set(answer.labels) for answer in answers] == [{"intent 0", "intent 1"}, {"intent 2"}]


def test_one_frequent_class_of_near_copies_does_not_make_all_others_unknown() -> None:
    texts = [f"why was i charged twice please {number}" for number in range(200)]
    labels = ["billing"] * 200
    for label, some in {
        "login": ["cannot log in", "forgot my password", "reset my password", "account is locked", "login page error"],
        "shipping": ["where is my parcel", "package not delivered", "the parcel is late", "track my package"],
        "billing": ["my bill is wrong", "charged too much", "the invoice has two charges"],
    }.items():
        texts += some
        labels += [label] * len(some)
    vectors = np.zeros((len(texts), 4), np.float32)
    vectors[np.arange(len(texts)), np.arange(len(texts)) % 4] = 1
    vectors += np.random.default_rng(1).normal(0, 0.01, vectors.shape).astype(np.float32)
    head, report = fit_head(texts, vectors, labels, model="m", digest=DIGEST)
    assert report.groups <= 15
    answers = head.answers(head.predict(["forgot pasword", "where is the parcel"], np.zeros((2, 4), np.float32)))
    assert [(answer.labels, answer.known) for answer in answers] == [(("login",), True), (("shipping",), True)]
