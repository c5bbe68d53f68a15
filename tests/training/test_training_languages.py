"""Models of many languages: words, concepts, n-grams and their fit, by hand and on tiny data."""

from __future__ import annotations

import gzip
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy.sparse import csr_matrix

import gramvec
from gramvec.errors import InputError
from gramvec.progress import NO_PROGRESS, Progress
from gramvec_training.data.languages import (
    ListedWord,
    Lists,
    choose_ngrams,
    cut_words,
    read_concepts,
    share_pieces,
    spell_ngrams,
)
from gramvec_training.data.translations import WordCutter, read_translations
from gramvec_training.fitting.ridge import solve_ridge
from gramvec_training.fitting.translations import Tying, margin_softmax, tie_translations
from gramvec_training.runs.languages import (
    Languages,
    build_table,
    choose_rows,
    count_spellings,
    export_languages,
    load_languages,
    tie_concepts,
    whiten_words,
)
from support.errors import refused

CONFIG: dict[str, Any] = {
    "name": "tiny",
    "license": "MIT",
    "dimension": 3,
    "precision": "float32",
    "words": {"languages": {"en": "eng", "de": "deu"}, "each": 5, "numbers": 2},
    "teacher": {"model": "none", "whitening": 0.5},
    "concepts": {"folder": "wordnets", "license": "CC0", "weight": 1.0, "steps": 3},
    "ngrams": {"rows": 40, "least": 1, "penalty": 0.1, "steps": 30},
}
TEXTS = ("house", "haus", "houses", "the", "\u6771\u4eac", "water", "wasser", "0", "1")


class Drawn:
    """Teacher of random vectors."""

    digest, precision = "0" * 64, "float32"

    def vectors(self, texts: Sequence[str], *, progress: Progress = NO_PROGRESS) -> np.ndarray[Any, Any]:
        found = np.random.default_rng(5).normal(size=(len(texts), 6))
        return np.asarray(found / np.linalg.norm(found, axis=1, keepdims=True), np.float16)


def lists() -> Lists:
    shares = (1e-4, 1e-4, 1e-5, 0.05, 1e-5, 1e-4, 1e-4, 1e-8, 1e-8)
    words = [ListedWord(text, share, "en") for text, share in zip(TEXTS, shares, strict=True)]
    return Lists(words, {"en": 5, "de": 2})


@pytest.fixture
def wordnets(tmp_path: Path) -> Path:
    folder = tmp_path / "wordnets"
    folder.mkdir()
    (folder / "wn-eng.tab").write_text(
        "# Wordnet\teng\tnowhere\tCC0\n1-n\teng:lemma\thouse\n1-n\teng:lemma\tbig house\n2-n\teng:lemma\twater\n"
        "2-n\teng:def\t0\ta liquid\n3-n\teng:lemma\tthe\n",
        encoding="utf-8",
    )
    (folder / "wn-deu.tab").write_text("1-n\tdeu:lemma\tHaus\n2-n\tdeu:lemma\tWasser\n", encoding="utf-8")
    return tmp_path


def test_words_are_cut_as_the_featurizer_cuts_them() -> None:
    assert list(cut_words("L'\u00c9au x_y 3.14 e\u0301")) == ["l", "\u00e9au", "x_y", "3", "14", "\u00e9"]
    assert list(cut_words("\u0939\u093f\u0928\u094d\u0926\u0940 \uff21\uff22")) == [
        "\u0939\u093f\u0928\u094d\u0926\u0940",
        "ab",
    ]
    assert share_pieces([("l'eau", 0.25), ("eau", 0.5)]) == {"l": 0.25, "eau": 0.75}


def test_ngrams_of_a_word_by_hand() -> None:
    assert list(spell_ngrams("ab", (1, 2, 3))) == ["a", " a", "b", "ab", " ab", "b ", "ab "]
    assert list(spell_ngrams("\u6771\u4eac", (1, 2, 3))) == ["\u6771", "\u4eac", "\u6771\u4eac"]
    # Of three words two have "ab"; "c" is a single character, and "abd" is of too rare a one.
    chosen = choose_ngrams(["ab", "abc", "abd"], (1, 2), 100, 2, 4)
    assert chosen[:4] == [" a", "a", "ab", "b"]
    assert "c" in chosen
    assert not any("d" in ngram for ngram in chosen)
    assert choose_ngrams(["ab", "abc"], (1, 2), 1, 2, 9) == [" a"]


def test_concepts_have_their_single_words_by_language(wordnets: Path) -> None:
    concepts, lines = read_concepts(wordnets / "wordnets", {"en": "eng", "de": "deu", "fr": "fra"})
    assert concepts == [[["house"], ["haus"]], [["water"], ["wasser"]]]
    assert lines == 6
    with pytest.raises(InputError, match="no file of a wordnet"):
        read_concepts(wordnets, {"en": "eng"})


def test_words_of_a_concept_are_drawn_together_by_hand() -> None:
    vectors = np.array([[1, 0], [0, 1], [3, 4]], np.float32)
    # The mean is (1/2, 1/2): (1, 0) becomes (3/4, 1/4) of length 1; the third names nothing that is known twice.
    found = tie_concepts(vectors, ["a", "b", "c"], [[["a"], ["b"]], [["c"], ["unknown"]]], 1.0, 1)
    np.testing.assert_allclose(found[0], np.array([3, 1]) / np.sqrt(10), atol=1e-6)
    np.testing.assert_allclose(found[1], np.array([1, 3]) / np.sqrt(10), atol=1e-6)
    np.testing.assert_array_equal(found[2], vectors[2])
    # A language counts once, however many words it has.
    found = tie_concepts(np.eye(3, dtype=np.float32), ["a", "b", "c"], [[["a", "b"], ["c"]]], 1e6, 1)
    np.testing.assert_allclose(found[0], np.array([1, 1, 2]) / np.sqrt(6), atol=1e-4)


def test_ridge_regression_is_that_of_the_normal_equations() -> None:
    random = np.random.default_rng(1)
    design = (random.random((60, 20)) < 0.3).astype(np.float32)
    targets = random.normal(size=(60, 4)).astype(np.float32)
    expected = np.linalg.solve(design.T @ design + 0.5 * np.eye(20), design.T @ targets)
    found = solve_ridge(csr_matrix(design), targets, 0.5, steps=40)
    np.testing.assert_allclose(found, expected, atol=1e-4)
    assert not solve_ridge(csr_matrix(design), np.zeros_like(targets), 0.5).any()


def test_whitened_words_have_no_mean_and_length_1_on_average() -> None:
    found = whiten_words(np.random.default_rng(2).normal(size=(500, 6)).astype(np.float32) * [4, 2, 1, 1, 1, 1], 3, 1.0)
    assert found.shape == (500, 3)
    np.testing.assert_allclose(found.mean(axis=0), 0, atol=1e-3)
    np.testing.assert_allclose(found.var(axis=0), 1 / 3, rtol=0.02)


def test_a_listed_word_has_its_vector_and_another_its_ngrams(wordnets: Path, tmp_path: Path) -> None:
    config = Languages.model_validate(CONFIG)
    table = build_table(config, wordnets, Drawn(), lists=lists())
    assert table.record["concepts"] == 2
    assert table.record["spelt_words"] == 1
    manifest = export_languages(table, config, tmp_path / "tiny", name="tiny", command="gramvec-train languages")
    assert (manifest.words, manifest.ngrams) == (8, 40)
    with gramvec.load(tmp_path / "tiny", device="cpu") as embedder:
        words = table.vocabulary.word_texts
        vectors = embedder.raw(["House!", "the", "hose", "\u6771\u4eac", "\u3042"]).vectors
        row = {text: table.rows[40 + index] for index, text in enumerate(words)}
        np.testing.assert_allclose(vectors[0], row["house"], atol=1e-6)
        np.testing.assert_allclose(vectors[1], row["the"], atol=1e-6)
        assert np.linalg.norm(row["the"]) < 0.1 * np.linalg.norm(row["house"])
        ngrams = dict(zip(table.vocabulary.ngram_texts, table.rows, strict=False))
        spelt = [ngram for ngram in spell_ngrams("hose", (1, 2, 3, 4)) if ngram in ngrams]
        np.testing.assert_allclose(vectors[2], sum(ngrams[ngram] for ngram in spelt), atol=1e-5)
        spelt = [ngram for ngram in spell_ngrams("\u6771\u4eac", (1, 2, 3, 4)) if ngram in ngrams]
        np.testing.assert_allclose(vectors[3], sum(ngrams[ngram] for ngram in spelt), atol=1e-5)
        assert not vectors[4].any()
    card = (tmp_path / "tiny" / "README.md").read_text(encoding="utf-8")
    assert "2 things" in card


def write_gzipped(path: Path, lines: Sequence[str]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress("".join(f"{line}\n" for line in lines).encode()))


def test_pairs_with_a_withheld_text_are_left_out_and_counted(tmp_path: Path) -> None:
    pairs = [f"text {n}\tSatz {n}" for n in range(20)]
    write_gzipped(tmp_path / "a.translations.tsv.gz", pairs)
    write_gzipped(tmp_path / "b.translations.tsv.gz", ["one\teins"])
    write_gzipped(tmp_path / "withheld.txt.gz", ["Satz 3!", "TEXT  4", "other"])
    read = read_translations(tmp_path, {"a": 100, "b": 1}, tmp_path / "withheld.txt.gz", 0)
    assert read.counts == {"a": 18, "b": 1} and read.withheld == {"a": 2, "b": 0}
    assert ("text 3", "Satz 3") not in read.pairs and ("text 4", "Satz 4") not in read.pairs
    drawn = read_translations(tmp_path, {"a": 5}, tmp_path / "withheld.txt.gz", 0)
    assert drawn == read_translations(tmp_path, {"a": 5}, tmp_path / "withheld.txt.gz", 0)
    assert len(drawn.pairs) == 5 and drawn.pairs == [pair for pair in read.pairs if pair in drawn.pairs]
    with pytest.raises(InputError, match=r"c\.translations\.tsv\.gz: cannot be read"):
        read_translations(tmp_path, {"c": 1}, tmp_path / "withheld.txt.gz", 0)
    write_gzipped(tmp_path / "c.translations.tsv.gz", ["alone"])
    with pytest.raises(InputError, match="a tab and its translation"):
        read_translations(tmp_path, {"c": 1}, tmp_path / "withheld.txt.gz", 0)
    (tmp_path / "c.translations.tsv.gz").write_bytes(b"no gzip")
    with pytest.raises(InputError, match="cannot be read"):
        read_translations(tmp_path, {"c": 1}, tmp_path / "withheld.txt.gz", 0)


def test_texts_are_cut_into_listed_words_and_runs_into_the_longest() -> None:
    cutter = WordCutter(["the", "house", "\u6771", "\u6771\u4eac", "\u90fd"])
    ids, offsets = cutter.cut(["The  house, unknown!", "", "\u6771\u4eac\u90fd\u3042\u6771", "house"])
    assert offsets.tolist() == [0, 2, 2, 5, 6]
    assert ids.tolist() == [0, 1, 3, 4, 2, 1]


def test_the_margin_softmax_by_hand() -> None:
    left, right = torch.eye(2), torch.tensor([[1.0, 0.0], [0.6, 0.8]])
    keys = torch.tensor([[0, 0], [1, 1]])
    # Cosines [[1, 0.6], [0, 0.8]], less a margin of 0.5 of the pairs themselves.
    rows = np.log1p(np.exp([0.6 - 0.5, 0.0 - 0.3])).mean()
    columns = np.log1p(np.exp([0.0 - 0.5, 0.6 - 0.3])).mean()
    loss = margin_softmax(left, right, keys, margin=0.5, scale=1.0)
    assert float(loss) == pytest.approx((rows + columns) / 2, abs=1e-6)
    # Pairs with one text in common are not told apart: what is left is a pair against almost nothing.
    same = margin_softmax(left, right, torch.tensor([[0, 0], [0, 1]]), margin=0.0, scale=20.0)
    assert float(same) < 1e-6


def test_translations_become_nearer_than_other_texts_and_unused_rows_stay() -> None:
    rows = np.random.default_rng(3).normal(size=(41, 8)).astype(np.float32)
    words = np.arange(20)
    left = (words.repeat(2), np.arange(0, 41, 2))
    right = (np.append(words.repeat(1) + 20, [0])[:20], np.arange(21))
    settings = Tying(epochs=30, batch=20, run=5, rate=0.2, pull=0.0)
    moved = tie_translations(rows, left, right, settings)
    twice = [tie_translations(rows, left, right, settings.model_copy(update={"epochs": 2})) for _ in range(2)]
    np.testing.assert_array_equal(*twice)
    np.testing.assert_array_equal(moved[40], rows[40])

    def share_found(table: np.ndarray[Any, Any]) -> float:
        unit = table / np.linalg.norm(table, axis=1, keepdims=True)
        return float(((unit[:20] @ unit[20:40].T).argmax(axis=1) == words).mean())

    assert share_found(rows) < 0.5 and share_found(moved) == 1.0
    near = tie_translations(rows, left, right, settings.model_copy(update={"pull": 0.5}))
    assert np.abs(near - rows).mean() < 0.5 * np.abs(moved - rows).mean()
    # A text without rows has no pair.
    empty = (np.zeros(0, np.int64), np.zeros(21, np.int64))
    with refused(InputError, "0 pairs", "a step takes 20"):
        tie_translations(rows, left, empty, settings)


def test_words_that_lose_most_keep_their_rows_by_hand() -> None:
    own = np.array([[1, 0], [0, 1], [2, 0], [0, 0]], np.float32)
    spelt = np.array([[1, 0], [0, 0], [0, 0], [0, 9]], np.float32)
    shares = np.array([0.5, 0.3, 0.1, 0.9], np.float32)
    rowed = np.array([0, 1, 2])  # lost: 0, 0.3, 0.4
    assert choose_rows(rowed, own, spelt, shares, 1).tolist() == [2]
    assert choose_rows(rowed, own, spelt, shares, 2).tolist() == [1, 2]
    assert choose_rows(rowed, own, spelt, shares, None).tolist() == [0, 1, 2]
    assert choose_rows(rowed, own, spelt, shares, 9).tolist() == [0, 1, 2]


def test_translations_draw_the_words_of_a_table_together(wordnets: Path, tmp_path: Path) -> None:
    lines = ["the house\tthe Haus", "houses\twasser", "water 0\twasser 0", "water 1\twasser 1"] * 8
    write_gzipped(wordnets / "pairs" / "a.translations.tsv.gz", lines)
    write_gzipped(wordnets / "withheld.txt.gz", ["Houses"])
    tying = {"epochs": 2, "batch": 4, "run": 2, "rate": 0.05, "pull": 0.0}
    translations = {
        "folder": "pairs", "withheld": "withheld.txt.gz", "tying": tying,
        "sets": {"a": {"pairs": 100, "license": "CC0"}},
    }  # fmt: skip
    few = {**CONFIG, "words": {**CONFIG["words"], "rows": 3}}
    before = build_table(Languages.model_validate(few), wordnets, Drawn(), lists=lists())
    config = Languages.model_validate({**few, "translations": translations})
    table = build_table(config, wordnets, Drawn(), lists=lists())
    assert table.record["data"][-1] == {"name": "a", "license": "CC0", "pairs": 24, "withheld": 8}
    assert table.vocabulary.n_words == 3 == before.vocabulary.n_words
    again = build_table(config, wordnets, Drawn(), lists=lists())
    np.testing.assert_array_equal(table.rows, again.rows)
    export_languages(table, config, tmp_path / "tiny", name="tiny", command="gramvec-train languages")
    card = (tmp_path / "tiny" / "README.md").read_text(encoding="utf-8")
    assert "| translations: a | CC0 | 24 pairs |" in card and "8 pairs" in card


def test_the_fit_is_of_weighed_vectors_where_no_spaces_are_written() -> None:
    counts = count_spellings(["aa", "\u6771"], ["a", "\u6771"], (1, 2))
    np.testing.assert_array_equal(counts.toarray(), [[2, 0], [0, 1]])


def test_a_config_that_does_not_fit_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text("name = 1", encoding="utf-8")
    with pytest.raises(InputError, match=r"config\.toml: name: "):
        load_languages(path)
    with pytest.raises(InputError, match="cannot be read as TOML"):
        load_languages(tmp_path / "missing.toml")
    config = Languages.model_validate({**CONFIG, "dimension": 7, "concepts": None})
    with pytest.raises(InputError, match="6 dimensions, and the model would have 7"):
        build_table(config, tmp_path, Drawn(), lists=lists())


def test_the_shipped_config_is_read() -> None:
    config = load_languages(Path("training/configs/gramvec-multi.toml"))
    assert len(config.words.languages) == 42
