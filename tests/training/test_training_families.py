"""Matching, retrieval, classification and spelling: by hand, against slow references, and as the command."""

from __future__ import annotations

import itertools
import math
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

import gramvec
from gramvec.errors import InputError
from gramvec_training.evaluation import backend as comparison
from gramvec_training.evaluation.backend import (
    Cosines,
    ModelForTexts,
    Typos,
    find_nearest_rows,
    fix_model,
    normalize_rows,
    serve_model,
)
from gramvec_training.evaluation.baselines import find_installed_peers, open_peer, wrap_scored
from gramvec_training.evaluation.classification import fit_logistic_regression, learn_classes, read_classification_set
from gramvec_training.evaluation.matching import (
    f1_at,
    find_best_threshold,
    find_matching_sets,
    read_matching_set,
    score_matching,
)
from gramvec_training.evaluation.ranking import (
    find_retrieval_sets,
    find_translation_sets,
    ndcg,
    read_retrieval_set,
    read_spelling_set,
    read_words,
    score_retrieval,
    score_spelling,
    score_translations,
)
from gramvec_training.evaluation.tasks import Families, score_families
from support.errors import assert_names
from support.families import LEFT, LETTERS, RIGHT, matching, put, retrieval


def counts(texts: Sequence[str]) -> np.ndarray:
    """Letters counted: the cosine is 1 for the same letters and 0 where none is shared."""
    return normalize_rows(
        np.array([[text.count(letter) for letter in LETTERS] for text in texts], np.float64).reshape(-1, 26)
    )


BY_LETTERS = fix_model(counts)


# Comparison


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize("k", [1, 3, 40])
def test_the_nearest_are_those_of_a_full_sort_equals_by_position(
    monkeypatch: pytest.MonkeyPatch, kind: Callable[[Any], Any], k: int
) -> None:
    monkeypatch.setattr(comparison, "SCORES_A_BLOCK", 70)  # two rows at a time
    rng = np.random.default_rng(1)
    asked, known = rng.integers(0, 3, (9, 3)).astype(float), rng.integers(0, 3, (30, 3)).astype(float)
    expected = np.argsort(-(asked @ known.T), axis=1, kind="stable")[:, :k]
    np.testing.assert_array_equal(find_nearest_rows(kind(asked), kind(known), k), expected)


def test_a_score_that_is_not_a_number_is_refused() -> None:
    with pytest.raises(InputError, match="not a number"):
        find_nearest_rows(np.array([[np.nan]]), np.ones((2, 1)), 1)


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_matrix])
def test_pairs_are_cosines_and_a_text_is_encoded_once(kind: Callable[[Any], Any]) -> None:
    asked: list[str] = []

    def encode(texts: Sequence[str]) -> Any:
        asked.extend(texts)
        return kind(counts(texts))

    found = Cosines(encode).pairs(["ab", "ab", ""], ["b", "cd", "ab"])
    assert found == pytest.approx([1 / math.sqrt(2), 0, 0])
    assert sorted(asked) == ["", "ab", "b", "cd"]


# Matching


def f1_by_definition(said: Sequence[bool], match: Sequence[bool]) -> float:
    true = sum(a and b for a, b in zip(said, match, strict=True))
    return 2 * true / (sum(said) + sum(match))


def test_the_threshold_is_the_highest_of_those_that_an_exhaustive_search_finds_best() -> None:
    rng = np.random.default_rng(2)
    for _ in range(300):
        scores = rng.integers(0, 6, int(rng.integers(1, 12))) / 5  # with equal ones
        match = rng.random(len(scores)) < 0.4
        match[rng.integers(len(scores))] = True
        of_threshold = {t: f1_by_definition((scores >= t).tolist(), match.tolist()) for t in scores.tolist()}
        threshold, f1 = find_best_threshold(scores, match)
        assert f1 == pytest.approx(max(of_threshold.values()))
        assert f1_at(threshold, scores, match)[0] == pytest.approx(f1)
        highest = max(t for t, value in of_threshold.items() if value == pytest.approx(f1))
        assert ((scores >= threshold) == (scores >= highest)).all()


def test_a_threshold_between_two_scores_lies_in_their_middle_even_where_floats_have_none() -> None:
    assert find_best_threshold(np.array([0.2, 0.8, 0.4]), np.array([False, True, False]))[0] == pytest.approx(0.6)
    above = float(np.nextafter(1.0, 2.0))
    assert find_best_threshold(np.array([1.0, above]), np.array([False, True])) == (above, 1.0)


@pytest.mark.parametrize("scores", [[0.5, np.nan], [0.5, np.inf]])
def test_a_threshold_needs_numbers(scores: list[float]) -> None:
    with pytest.raises(InputError, match="needs at least one pair"):
        find_best_threshold(np.array(scores), np.array([True, False]))


def test_precision_and_recall_by_hand() -> None:
    scores, match = np.array([0.9, 0.8, 0.7, 0.1]), np.array([True, False, True, True])
    assert f1_at(0.75, scores, match) == (pytest.approx(0.4), pytest.approx(0.5), pytest.approx(1 / 3))
    assert f1_at(0.95, scores, match) == (0.0, 0.0, 0.0)


def test_a_matching_set_by_hand(tmp_path: Path) -> None:
    test = "left,right,match\n8,3,1\n8,5,0\n9,5,1\n"
    one = read_matching_set(matching(tmp_path / "m", test=test), ["name"])
    assert (one.name, one.left, one.right[:2]) == ("m", ["abc", "def", "ghi"], ["ghi", "bca"])
    found = score_matching(one, BY_LETTERS, recalls=(1, 2))
    # Cosines: train 1 and 0, so the threshold is 0.5; test 1, 0 and, for a match, 0.
    assert found.threshold == pytest.approx(0.5)
    assert (found.fitted_f1, found.precision, found.recall) == (1.0, 1.0, 0.5)
    assert found.f1 == pytest.approx(2 / 3)
    # abc finds bca first, as the unlabeled row of the very same text does not compete; def finds fed; ghi, with
    # nothing near but its equal, has bca and fed before xyz.
    assert found.recalls == {1: pytest.approx(2 / 3), 2: pytest.approx(2 / 3)}


def test_recall_is_of_the_whole_table_and_all_labeled_matches(tmp_path: Path) -> None:
    right = "id,name\n1,abz\n2,abc\n3,abx\n4,aby\n"
    pairs = "left,right,match\n7,1,1\n7,3,1\n8,1,0\n"
    one = read_matching_set(matching(tmp_path, right=right, train=pairs, test=pairs), ["name"])
    # Row 2 is abc itself, unlabeled; the others are equally near and stand by position: 1, 3, 4.
    assert score_matching(one, BY_LETTERS, recalls=(1, 2)).recalls == {1: 0.5, 2: 1.0}
    # Typed otherwise, it is the same record, so row 2 does not compete either.
    assert score_matching(one, BY_LETTERS, left=["bcaabc", "", ""], recalls=(1, 2)).recalls == {1: 0.5, 2: 1.0}


def test_the_magellan_layout_and_a_folder_of_sets_are_read(tmp_path: Path) -> None:
    matching(tmp_path / "b")
    labeled = "id,ltable_id,rtable_id,label\n0,7,2,1\n1,7,5,0\n"
    for name, rows in {"tableA": LEFT, "tableB": RIGHT, "train": labeled, "valid": labeled, "test": labeled}.items():
        put(tmp_path / "a" / f"{name}.csv", rows)
    first, second = find_matching_sets(tmp_path, {"a": ["price", "name"]})
    assert (first.name, first.left[0], second.name, second.left[0]) == ("a", "1 abc", "b", "abc 1")
    assert first.test.match.tolist() == second.test.match.tolist() == [True, False]
    assert find_matching_sets(tmp_path / "a")[0].columns == ("name", "price")


@pytest.mark.parametrize(
    ("file", "rows", "message"),
    [
        ("left", "id,name\n7,abc\n7,abc\n", "left.csv line 3: the id '7' occurs twice"),
        ("left", "name\nabc\n", "left.csv: .*'id'.* name"),
        ("left", "id,title\n7,abc\n", "share no column but the id"),
        ("left", "id,id\n7,abc\n", "a different name for each column"),
        ("left", "", "a different name for each column"),
        ("right", "id,name\n1,abc,x\n", "right.csv line 2: 3 fields"),
        ("right", 'id,name\n1,"abc\n', "right.csv line 2: not CSV"),
        ("right", b"id,name\n1,\xff\n", "right.csv line 2: not UTF-8"),
        ("train", "left,right,match\n7,2,1\n7,99,0\n", "train.csv line 3: no row of right.csv has the id '99'"),
        ("test", "left,right,match\n7,2,yes\n", "test.csv line 2: match .*'yes'"),
        ("test", "left,right,label\n7,2,1\n", "test.csv: no column 'match'"),
        ("test", "left,right,match\n7,2,1\n", "test.csv must have pairs that match and pairs that do not"),
        ("train", "left,right,match\n", "train.csv and valid.csv must have pairs that match"),
    ],
)
def test_unusable_matching_sets_are_refused(tmp_path: Path, file: str, rows: str | bytes, message: str) -> None:
    put(matching(tmp_path) / f"{file}.csv", rows)
    with pytest.raises(InputError, match=message):
        read_matching_set(tmp_path)


def test_missing_files_of_matching_sets_are_named(tmp_path: Path) -> None:
    (matching(tmp_path) / "valid.csv").unlink()
    with pytest.raises(InputError, match="valid.csv: no such file"):
        find_matching_sets(tmp_path)


# Retrieval


def test_ndcg_by_hand() -> None:
    grades = {2: 2, 7: 1}
    assert ndcg([2, 7, 5], grades, 10) == pytest.approx(1)
    assert ndcg([5, 2, 9], grades, 10) == pytest.approx((2 / math.log2(3)) / (2 + 1 / math.log2(3)))
    assert ndcg([5, 2, 9], grades, 1) == 0
    assert ndcg([7, 2], grades, 1) == pytest.approx(1 / 2)


def test_ndcg_is_the_gain_over_the_best_of_all_rankings() -> None:
    rng = np.random.default_rng(3)

    def gain(ranking: Sequence[int], grades: dict[int, int], depth: int) -> float:
        return sum(grades.get(one, 0) / math.log2(at + 2) for at, one in enumerate(ranking) if at < depth)

    for _ in range(50):
        grades = {int(one): int(rng.integers(1, 4)) for one in rng.permutation(5)[: int(rng.integers(1, 5))]}
        depth = int(rng.integers(1, 6))
        best = max(gain(ranking, grades, depth) for ranking in itertools.permutations(range(5)))
        ranking = rng.permutation(5).tolist()
        assert ndcg(ranking, grades, depth) == pytest.approx(gain(ranking, grades, depth) / best)


def test_translations_by_hand(tmp_path: Path) -> None:
    put(tmp_path / "xyz.tsv", "abc\tabc d\nzzz\tabc\nzzy\tzz\nzz\tzz\n")
    (one,) = find_translation_sets(tmp_path)
    assert (one.name, one.texts, one.translations) == ("xyz", ["abc", "zzz", "zzy", "zz"], ["abc d", "abc", "zz", "zz"])
    # "abc" has "abc", another's translation, nearest, and "zzz" has "zz"; the two others share theirs.
    assert score_translations(one, BY_LETTERS) == pytest.approx(0.5)
    assert find_translation_sets(tmp_path / "xyz.tsv") == [one]
    put(tmp_path / "bad.tsv", "alone\n")
    with pytest.raises(InputError, match="bad"):
        find_translation_sets(tmp_path / "bad.tsv")
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="no translations"):
        find_translation_sets(tmp_path / "empty")


def test_a_retrieval_set_by_hand(tmp_path: Path) -> None:
    (one,) = find_retrieval_sets(retrieval(tmp_path / "r").parent)
    assert (one.name, one.documents[0], one.queries, one.grades) == ("r", "abc def", ["hig", "zz"], [{1: 1}, {0: 2}])
    # "hig" finds d2 first; "zz" finds d3, then d1.
    assert score_retrieval(one, BY_LETTERS) == pytest.approx((1 + 1 / math.log2(3)) / 2)
    assert score_retrieval(one, BY_LETTERS, depth=1) == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("file", "rows", "message"),
    [
        ("corpus", "d1 abc\n", "corpus.tsv line 1: 1 of 2 columns"),
        ("corpus", "d1\tabc\n\nd1\tabc\n", "corpus.tsv line 3: the id 'd1' occurs twice"),
        ("corpus", "", "corpus.tsv: empty"),
        ("queries", b"q1\t\xff\n", "queries.tsv line 1: not UTF-8"),
        ("qrels", "q1\td9\t1\n", "qrels.tsv line 1: not the id of a query"),
        ("qrels", "q9\td1\t1\n", "qrels.tsv line 1: not the id of a query"),
        ("qrels", "q1\td1\t-1\n", "qrels.tsv line 1: not the id of a query"),
        ("qrels", "q1\td1\t0\n", "names no document for any query"),
    ],
)
def test_unusable_retrieval_sets_are_refused(tmp_path: Path, file: str, rows: str | bytes, message: str) -> None:
    put(retrieval(tmp_path) / f"{file}.tsv", rows)
    with pytest.raises(InputError, match=message):
        read_retrieval_set(tmp_path)


# Classification


def test_classes_by_hand(tmp_path: Path) -> None:
    put(tmp_path / "my.train.tsv", "a\taaa\na\taab\nb\tbbb\nb\tbbba\n")
    put(tmp_path / "my.test.tsv", "a\ta\nb\tb\nb\taaaabb\n")
    one = read_classification_set(tmp_path)
    assert (one.classes, one.test.labels.tolist()) == (("a", "b"), [0, 1, 1])
    score = learn_classes(one, BY_LETTERS)
    # The third text leans to a; asked in another spelling, all are right.
    assert vars(score(one.test.texts)) == pytest.approx({"nearest": 2 / 3, "centroid": 2 / 3, "logistic": 2 / 3})
    assert vars(score(["a", "b", "b"])) == {"nearest": 1.0, "centroid": 1.0, "logistic": 1.0}


def test_the_centroid_is_of_five_examples_of_each_class(tmp_path: Path) -> None:
    # Of six letters a centroid has five; the sixth is as far from it as from the other class, which comes first.
    put(tmp_path / "train.tsv", "1\tz\n" + "".join(f"2\t{letter}\n" for letter in "abcdef"))
    put(tmp_path / "test.tsv", "".join(f"2\t{letter}\n" for letter in "abcdef"))
    one = read_classification_set(tmp_path)
    found = learn_classes(one, BY_LETTERS)(one.test.texts)
    assert (found.nearest, found.centroid) == (1.0, pytest.approx(5 / 6))


def test_a_file_alone_has_a_fifth_of_each_class_scored_the_same_for_a_seed(tmp_path: Path) -> None:
    path = put(tmp_path / "s.tsv", "".join(f"{'ab'[i % 3 == 0]}\ttext {i}\n" for i in range(60)))
    one = read_classification_set(path, seed=3)
    assert (one.name, len(one.train), len(one.test)) == ("s", 48, 12)
    assert np.bincount(one.test.labels).tolist() == [8, 4]
    assert not set(one.train.texts) & set(one.test.texts)
    assert read_classification_set(path, seed=3).test.texts == one.test.texts
    assert read_classification_set(path, seed=4).test.texts != one.test.texts


def test_logistic_regression_is_where_its_loss_has_no_slope() -> None:
    rng = np.random.default_rng(4)
    vectors, labels = rng.normal(size=(40, 3)), rng.integers(0, 3, 40)

    def loss(weights: np.ndarray, biases: np.ndarray) -> float:
        total = (weights**2).sum() / 2
        for vector, label in zip(vectors, labels, strict=True):
            logits = [sum(vector * weights[:, k]) + biases[k] for k in range(3)]
            total -= logits[label] - math.log(sum(math.exp(one) for one in logits))
        return float(total)

    weights, biases = fit_logistic_regression(vectors, labels, 3)
    least = loss(weights, biases)
    for place in np.ndindex(3, 3):
        for step in (-0.01, 0.01):
            moved = weights.copy()
            moved[place] += step
            assert least < loss(moved, biases) < least + 0.01
    of_sparse, _ = fit_logistic_regression(sparse.csr_matrix(vectors), labels, 3)
    np.testing.assert_allclose(of_sparse, weights, atol=1e-4)


def test_logistic_regression_is_scikit_learns() -> None:
    linear = pytest.importorskip("sklearn.linear_model")
    rng = np.random.default_rng(5)
    vectors, labels = rng.normal(size=(60, 4)), rng.integers(0, 3, 60)
    theirs = linear.LogisticRegression(tol=1e-8).fit(vectors, labels)
    weights, _ = fit_logistic_regression(vectors, labels, 3)
    np.testing.assert_allclose(weights, theirs.coef_.T, atol=1e-3)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ("a text\n", "line 1: 1 of 2 columns"),
        ("a\tone\na\ttwo\n", "fewer than two classes"),
        ("", "fewer than two classes"),
        ("a\tone\nb\ttwo\n", "no class of 5 texts or more"),
    ],
)
def test_unusable_labeled_files_are_refused(tmp_path: Path, rows: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_classification_set(put(tmp_path / "s.tsv", rows))


def test_unusable_labeled_folders_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no files whose name ends in train\.tsv"):
        read_classification_set(tmp_path)
    put(tmp_path / "train.tsv", "a\tone\nb\ttwo\n")
    put(tmp_path / "test.tsv", "c\tone\n")
    with pytest.raises(InputError, match=r"test\.tsv line 1: the training file has no label 'c'"):
        read_classification_set(tmp_path)
    put(tmp_path / "test.tsv", "")
    with pytest.raises(InputError, match="test.tsv: empty"):
        read_classification_set(tmp_path)
    put(tmp_path / "x.train.tsv.gz", "")
    with pytest.raises(InputError, match="2 files whose name ends in"):
        read_classification_set(tmp_path)


# Spelling


def test_spelling_by_hand(tmp_path: Path) -> None:
    words = read_words(put(tmp_path / "w.txt", "abc 9\nABC 8\ndef 7\nghi\t6\njkl\nxyz 5\n"), 4)
    assert words == ["abc", "def", "ghi", "jkl"]
    path = put(tmp_path / "t.tsv", "Abc\tabb\ndef\txyzghi\nxyz\txyy\nabc\tabc\nghi\tgihh\nghi\tgihh\n")
    one = read_spelling_set(path, words, seen={"abc": ["ABB"]})
    assert (one.misspelt, one.meant, one.seen) == (["abb", "xyzghi", "gihh"], [0, 1, 2], [True, False, False])
    found = score_spelling(one, BY_LETTERS, nearest=(1, 3))
    # "xyzghi" is nearest to ghi; the others, at 0, stand by position: abc, def.
    assert found.found == {1: pytest.approx(2 / 3), 3: 1.0}
    assert found.found_unseen == {1: 0.5, 3: 1.0}


def test_a_sample_is_drawn_by_the_seed(tmp_path: Path) -> None:
    words = ["".join(one) for one in itertools.product("abc", repeat=3)]
    path = put(tmp_path / "t.tsv", "".join(f"{word}\t{word}x\n" for word in words))
    first, again, other = (read_spelling_set(path, words, max_words=9, seed=seed) for seed in (1, 1, 2))
    assert (len(first.misspelt), first.misspelt == again.misspelt, first.misspelt == other.misspelt) == (9, True, False)
    assert not score_spelling(first, BY_LETTERS).found_unseen  # nothing was seen, so there is nothing to tell apart


def test_unusable_words_and_misspellings_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="1 different words, not 2"):
        read_words(put(tmp_path / "w.txt", "abc 9\nabc 8\n"), 2)
    with pytest.raises(InputError, match="line 1: not UTF-8"):
        read_words(put(tmp_path / "w.txt", b"\xff\n"), 2)
    with pytest.raises(InputError, match="no misspelling of one of the 1 words"):
        read_spelling_set(put(tmp_path / "t.tsv", "b\tc\n"), ["a"])
    with pytest.raises(InputError, match="line 1: 1 of 2 columns"):
        read_spelling_set(put(tmp_path / "t.tsv", "b c\n"), ["a"])


# All families, and rivals


class Asked:
    """Compares by letters and remembers what was asked."""

    def __init__(self) -> None:
        self.texts: list[list[str]] = []

    def model(self) -> ModelForTexts:
        def encode(texts: Sequence[str]) -> np.ndarray:
            self.texts.append(list(texts))
            return counts(texts)

        return fix_model(encode)


def test_only_one_side_is_misspelt(tmp_path: Path) -> None:
    put(tmp_path / "c/train.tsv", "a\tlearned one\nb\tlearned two\n")
    put(tmp_path / "c/test.tsv", "a\tasked one\n")
    families = Families(
        matching=find_matching_sets(matching(tmp_path / "m")),
        retrieval=find_retrieval_sets(retrieval(tmp_path / "r")),
        classification=[read_classification_set(tmp_path / "c")],
    )
    asked = Asked()
    report = score_families(families, asked.model(), Typos((100,)))
    for family, name in (("matching", "m"), ("retrieval", "r"), ("classification", "c")):
        assert list(report[family][name]["typos"]) == ["100"]
    seen = {text for texts in asked.texts for text in texts}
    kept = {*families.matching[0].right, *families.retrieval[0].documents, "learned one", "learned two"}
    changed = {"abc 1", "hig", "zz", "asked one"}  # "zz" is too short to be misspelt
    assert kept | changed <= seen
    assert len(seen - kept - changed) == 3


def test_bundles_are_asked_as_they_are_served(embedder: gramvec.Embedder) -> None:
    model = wrap_scored(serve_model(embedder))([])
    texts = ["a dog runs", "the dog is running", "x" * 200_000, ""]  # too long, and empty
    assert model.pairs(texts[:1], texts[1:2]) == pytest.approx(
        embedder.pair_similarity(texts[:1], texts[1:2]), abs=1e-6
    )
    assert model.nearest(texts[:1], texts[1:], 2)[0, 0] == 0


def test_tfidf_is_what_a_user_of_scikit_learn_writes() -> None:
    library = pytest.importorskip("sklearn.feature_extraction.text")
    left, right = ["red shoe 42", "blue hat", ""], ["shoe red", "green hat", "x"]
    vectorizer = library.TfidfVectorizer(analyzer="char_wb", ngram_range=(2, 4), sublinear_tf=True).fit([*left, *right])
    expected = (vectorizer.transform(left) @ vectorizer.transform(right).T).toarray()
    made = open_peer("tfidf")([*left, *right])
    assert made.pairs(left, right) == pytest.approx(expected.diagonal())
    assert made.nearest(left, right, 1)[:2, 0].tolist() == [0, 1]


def test_rapidfuzz_is_its_token_set_ratio() -> None:
    fuzz = pytest.importorskip("rapidfuzz.fuzz")
    made = open_peer("rapidfuzz")([])
    assert made.pairs(["a b"], ["b a c"]).tolist() == [fuzz.token_set_ratio("a b", "b a c")]
    assert made.nearest(["red shoe"], ["hat", "shoe red", "shoe"], 3).tolist() == [[1, 2, 0]]
    assert made.encode is None


def test_rivals_without_their_library_are_refused_by_name_and_left_out_of_all(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("rapidfuzz", "rapidfuzz.fuzz", "sklearn", "sklearn.feature_extraction.text", "scipy.sparse"):
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(InputError, match="pip install rapidfuzz"):
        open_peer("rapidfuzz")
    models, notes = find_installed_peers()
    assert not models
    assert_names(notes[0], "tfidf", "pip install scikit-learn")


@pytest.mark.parametrize("name", ["nobody", "tfidf=x", "model2vec", "transformer=", ""])
def test_unknown_rivals_are_refused(name: str) -> None:
    with pytest.raises(InputError, match=r"--peer .*tfidf, .*transformer=FOLDER"):
        open_peer(name)
