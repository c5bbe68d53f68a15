"""Misspelt test sets: seeded, of the share asked for, and as people misspell."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from gramvec.errors import InputError
from gramvec_training.evaluation.similarity import SimilaritySet, keep_sentence_sets, misspell_sets
from gramvec_training.readers.vectors import read_misspellings


def test_sets_are_seeded_and_misspell_the_share_asked_for() -> None:
    words = " ".join(["keyboard", "transposition"] * 500)
    one = SimilaritySet("sts", "set", np.array([1.0, 2.0]), [words, "a an"], [words, "it"])
    (noisy,) = misspell_sets([one], 0.2, {"keyboard": ["keybord"]})
    assert (noisy.task, noisy.name) == ("sts", "set")
    changed = sum(a != b for a, b in zip(words.split(), noisy.left[0].split(), strict=True))
    assert 150 < changed < 250
    assert noisy.left[1] == "a an"
    assert "keybord" in noisy.left[0].split()
    assert noisy.left[0] != noisy.right[0]
    (again,) = misspell_sets([one], 0.2, {"keyboard": ["keybord"]})
    assert again.left == noisy.left
    (other,) = misspell_sets([one], 0.2, {"keyboard": ["keybord"]}, seed=2)
    assert other.left != noisy.left
    (clean,) = misspell_sets([one], 0.0, {})
    assert clean.left == one.left


def test_each_kind_of_mistake_is_as_likely() -> None:
    one = SimilaritySet("sts", "set", np.array([1.0, 2.0]), ["keyboard " * 2000], ["keyboard " * 2000])
    (noisy,) = misspell_sets([one], 1.0, {"keyboard": ["REAL"]})
    words = noisy.left[0].split()
    assert "keyboard" not in words
    real = words.count("REAL")
    deletions = sum(len(word) == 7 for word in words)
    insertions = sum(len(word) == 9 for word in words)
    transpositions = sum(len(word) == 8 and sorted(word) == sorted("keyboard") for word in words)
    keys = 2000 - real - deletions - insertions - transpositions
    assert all(330 < count < 470 for count in (real, deletions, insertions, transpositions, keys))


def test_sets_of_single_words_are_not_misspelt() -> None:
    scores = np.array([1.0, 2.0])
    words = SimilaritySet("words", "w", scores, ["cat", "dog "], ["mouse", "house"])
    mixed = SimilaritySet("ppdb", "p", scores, ["cat", "dog"], ["mouse", "a house"])
    assert keep_sentence_sets([words, mixed]) == [mixed]


def test_real_misspellings_are_read(tmp_path: Path) -> None:
    (tmp_path / "m.tsv").write_text("America\tAmerca\nAmerica\tAmeirca\nthe\tThe\n1990s\tninties\nbad row\n")
    assert read_misspellings([tmp_path / "m.tsv"]) == {"america": ["Amerca", "Ameirca"]}
    (tmp_path / "none.tsv").write_text("5\ta b\tc d\n")
    with pytest.raises(InputError, match="none.tsv: no misspelling"):
        read_misspellings([tmp_path / "m.tsv", tmp_path / "none.tsv"])
    with pytest.raises(InputError, match="nowhere"):
        read_misspellings([tmp_path / "nowhere"])
