"""`fit-weights`: weights of n-grams, learned through the cosine, in a bundle that any runtime serves."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import gramvec
from gramvec.errors import InputError
from gramvec.lexical.sketch import LexicalSketch
from gramvec_training.evaluation.matching import score_pairs, show_pair_report
from gramvec_training.objectives.ngram_weights import (
    NgramCounts,
    TextPairs,
    _Adam,
    learn_weights,
    make_first_weights,
    pair_cosines,
)
from gramvec_training.readers.pairs import read_labeled_pairs
from gramvec_training.runs.ngram_weights import learn_ngram_weights
from support.errors import refused
from support.training import call

BRANDS = ("canon powershot", "nikon coolpix", "sony cyber shot")


def cameras(rows: int = 60) -> list[tuple[str, str, int]]:
    """A number says which camera it is; the words around it are another shop's, and those of other cameras too."""
    found = []
    for row in range(rows):
        brand = BRANDS[row % 3]
        for step in (0, 3):
            other = f"{brand.split()[0]} digital camera {100 + 37 * (row + step)} black"
            found.append((f"{brand} {100 + 37 * row}", other, int(step == 0)))
    return found


def written(path: Path, rows: list[tuple[str, str, int]], head: str = "") -> Path:
    path.write_text(head + "".join(f"{a}\t{b}\t{label}\n" for a, b, label in rows))
    return path


def counted(rows: list[tuple[str, str, int]], *, binary: bool = True) -> tuple[NgramCounts, TextPairs, LexicalSketch]:
    texts = list(dict.fromkeys(text for row in rows for text in row[:2]))
    lexical = LexicalSketch.of_texts(texts, columns=1024)
    left, right = (np.array([texts.index(row[side]) for row in rows]) for side in (0, 1))
    labels = np.array([row[2] for row in rows], np.float64)
    return NgramCounts.from_texts(lexical, texts), TextPairs(left, right, labels, binary), lexical


def test_counts_are_those_of_an_identity() -> None:
    texts = ["sd1100 is", "nikon", "canon sd1100 sd1100", ""]
    lexical = LexicalSketch.of_texts(texts, orders=(2, 3))
    counts = NgramCounts.from_texts(lexical, texts)
    for row, text in enumerate(texts[:3]):
        found: dict[int, int] = {}
        for one in (lexical.ngrams(text).hashes >> np.uint64(64 - 18)).tolist():
            found[one] = found.get(one, 0) + 1
        mine = counts.counts[row]
        assert dict(zip(counts.places[mine.indices].tolist(), mine.data.tolist(), strict=True)) == found
    assert counts.counts[3].nnz == 0
    assert counts.traits.shape == (len(counts.places), 8 + 1 + 3)
    spelt = {int(h >> np.uint64(46)): "".join(lexical.ngrams(texts[2]).text[a:b]) for h, a, b in zip(
        lexical.ngrams(texts[2]).hashes, lexical.ngrams(texts[2]).first, lexical.ngrams(texts[2]).last, strict=True
    )}  # fmt: skip
    traits = {
        spelt[place]: row for place, row in zip(counts.places.tolist(), counts.traits, strict=True) if place in spelt
    }
    assert traits["110"][:4].tolist() == [1, 1, 0, 1]
    np.testing.assert_allclose(traits["d11"][:4], [1, 2 / 3, 1, 0])
    assert traits[" sd"][4:6].tolist() == [1, 0]


def test_the_gradient_of_a_step_is_that_of_the_loss(monkeypatch: pytest.MonkeyPatch) -> None:
    """By finite differences of the loss, at the first step."""
    rows = cameras(8)
    counts, pairs, _ = counted(rows)
    seen: list[np.ndarray] = []  # type: ignore[type-arg]
    step = _Adam.step

    def spied(self: _Adam, values: np.ndarray, gradient: np.ndarray) -> np.ndarray:  # type: ignore[type-arg]
        seen.append(gradient)
        return step(self, values, gradient)

    monkeypatch.setattr(_Adam, "step", spied)
    learn_weights(counts, pairs)
    start = np.log(make_first_weights(counts))

    def loss(logs: np.ndarray) -> float:  # type: ignore[type-arg]
        z = 10 * (pair_cosines(counts, np.exp(logs), pairs) - 0.5)
        return float(np.mean(np.log1p(np.exp(z)) - pairs.labels * z))

    for place in (0, 5, len(start) - 1):
        moved = np.zeros(len(start))
        moved[place] = 1e-5
        slope = (loss(start + moved) - loss(start - moved)) / 2e-5
        np.testing.assert_allclose(seen[0][place], slope, rtol=1e-4, atol=1e-9)


def test_learned_weights_tell_pairs_apart_that_they_have_not_seen() -> None:
    rows = cameras()
    counts, pairs, _ = counted(rows)
    seen, unseen = np.arange(0, 80), np.arange(80, 120)
    learned = learn_weights(counts, pairs.take(seen))
    before, after = (pair_cosines(counts, one, pairs.take(unseen)) for one in (make_first_weights(counts), learned))
    labels = pairs.labels[unseen] == 1

    def margin(cosines: np.ndarray) -> float:  # type: ignore[type-arg]
        return float((cosines[labels].mean() - cosines[~labels].mean()) / cosines.std())

    assert margin(after) > margin(before)
    assert learned.tobytes() == learn_weights(counts, pairs.take(seen)).tobytes()


def test_scores_are_learned_by_their_order() -> None:
    rows = [(a, b, 5 if label else row % 3) for row, (a, b, label) in enumerate(cameras())]
    counts, pairs, _ = counted(rows, binary=False)
    before, after = (
        np.corrcoef(pair_cosines(counts, one, pairs), pairs.labels)[0, 1]
        for one in (make_first_weights(counts), learn_weights(counts, pairs))
    )
    assert after > before
    cosines = pair_cosines(counts, make_first_weights(counts), pairs)
    found = score_pairs(cosines, pairs.labels, pairs.left % 5, binary=False)
    assert found["pearson"] == pytest.approx(100 * before)
    assert "Spearman" in show_pair_report({"pairs": 6, "binary": False, "scores": {"x": found}})


def test_a_threshold_is_not_of_the_pairs_that_it_judges() -> None:
    cosines, labels = np.array([0.9, 0.8, 0.2, 0.1, 0.05, 0.6]), np.array([1.0, 1, 0, 0, 1, 0])
    found = score_pairs(cosines, labels, np.array([0, 0, 0, 1, 1, 1]), binary=True)
    # By the first three 0.5, by the others 0.05: all of the first part, and 0.6 of the second.
    assert found["precision"] == pytest.approx(50)
    assert found["recall"] == pytest.approx(200 / 3)
    assert found["threshold"] == pytest.approx(0.7)
    assert "0.700" in show_pair_report({"pairs": 6, "binary": True, "scores": {"x": found}})


def test_labeled_pairs_are_read(tmp_path: Path) -> None:
    pairs, bad = read_labeled_pairs(written(tmp_path / "e.tsv", [("same", "same", 1), ("a", "", 0), ("b", "c", 0)]))
    assert (pairs.left, pairs.right, pairs.labels.tolist(), pairs.binary) == (
        ["same", "b"],
        ["same", "c"],
        [1, 0],
        True,
    )
    assert bad.count == 1


@pytest.mark.parametrize(("line", "label"), [("a\tb\tyes", "'yes'"), ("a\tb\t2", "'2'"), ("a\tb\tnan", "'nan'")])
def test_a_wrong_label_is_named_with_its_line(tmp_path: Path, line: str, label: str) -> None:
    path = written(tmp_path / "a.tsv", cameras())
    path.write_text(path.read_text() + line + "\n")
    with refused(InputError, "a.tsv", "line 121", label):
        read_labeled_pairs(path)
    if "2" not in line:
        path.write_text(line + "\n" + path.read_text())
        with pytest.raises(InputError, match="line 1: the label is"):
            read_labeled_pairs(path)


def test_too_few_labels_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"\b9 .*\b9 .*at least 10"):
        learn_ngram_weights(written(tmp_path / "a.tsv", cameras(9)), "gramvec-en", tmp_path / "m")
    rows = [("a b", "c d", label) for label in (2, 3, 4)]
    with pytest.raises(InputError, match="3 scored pairs; .*10"):
        learn_ngram_weights(written(tmp_path / "b.tsv", rows), "gramvec-en", tmp_path / "m")
    (tmp_path / "c.tsv").write_text("a b\tc d\n")
    with pytest.raises(InputError, match="no column of labels"):
        learn_ngram_weights(tmp_path / "c.tsv", "gramvec-en", tmp_path / "m")


def test_the_command_writes_a_model_whose_identity_knows(tmp_path: Path) -> None:
    path, out = written(tmp_path / "cameras.tsv", cameras()), tmp_path / "mine"
    result = call("fit-weights", path, "--from", "gramvec-en", "--export", out, "--anyway")
    assert "column 3 holds numbers and is taken for a score, which is learned: 0 or 1" in result.stderr
    assert "learned " in result.stdout
    assert "256 lexical columns, to be had with --space lexical" in result.stdout
    left, right = ["canon powershot 9001"], ["canon digital camera 9001", "canon powershot 9007"]
    known, learned = (gramvec.load(one, device="cpu", space="lexical") for one in ("gramvec-en", out))
    before, after = known.similarity(left, right)[0], learned.similarity(left, right)[0]
    assert after[0] - after[1] > before[0] - before[1]
    # What it means is as it was, to the bit.
    meaning = [gramvec.load(one, device="cpu").embed(left).tobytes() for one in ("gramvec-en", out)]
    assert meaning[0] == meaning[1]
    held_out = learned.manifest.provenance["lexical"]["held_out"]
    assert held_out["pairs"] == 120
    assert held_out["scores"]["learned"]["f1"] > held_out["scores"]["what it means"]["f1"]


def test_rows_and_weights_are_learned_by_commands_of_their_own(tmp_path: Path) -> None:
    path = written(tmp_path / "cameras.tsv", cameras())
    assert "Missing option '--export'" in call("fit-weights", path, "--from", "gramvec-en").stderr
    assert "Missing option '--from'" in call("fit-weights", path, "--export", tmp_path / "m").stderr
    assert "No such option" in call("fit-weights", path, "--epochs", "2").stderr
    unlabeled = written(tmp_path / "pairs.tsv", [])
    unlabeled.write_text("a b\tc d\n" * 20)
    result = call("fit-weights", unlabeled, "--from", "gramvec-en", "--export", tmp_path / "m")
    assert "no column of labels" in result.stderr
