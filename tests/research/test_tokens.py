"""Treebank tokens, and the word rule for text that is cut into tokens already."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import gramvec
from gramvec.errors import InputError
from gramvec.explain.contributions import explain
from gramvec.features.featurizer import Featurizer
from gramvec.features.spec import FeatureSpec
from gramvec.text.vocabulary import Entry, Vocabulary
from gramvec_research.vectors import treebank_tokens
from gramvec_training.data.vocabulary import build_vocabulary
from support.training import call, research

# What the Penn Treebank's tokeniser makes of these; "#tag" is the papers' own rule.
EXAMPLES = {
    "I don't know, said John's mother.": "I do n't know , said John 's mother .",
    "They'll've gone; we're 1,000 at 3:45!": "They 'll 've gone ; we 're 1,000 at 3:45 !",
    'He said "no" (twice).': "He said `` no '' ( twice ) .",
    "a mid-1990s U.S. well-known thing": "a mid-1990s U.S. well-known thing",
    "the dogs' bowl": "the dogs ' bowl",
    "You cannot go... I'm gonna": "You can not go ... I 'm gon na",
    "#tag of 50% @home $5": "tag of 50 % @ home $ 5",
    "It costs 3.14 dollars.": "It costs 3.14 dollars .",
    "don\u2019t \u201cquote\u201d": "do n't `` quote ''",
    "one--two \u2014 three": "one -- two \u2014 three",
    "": "",
    " \t ": "",
    "CAN'T": "CA N'T",
}


@pytest.mark.parametrize(("text", "expected"), EXAMPLES.items())
def test_treebank_tokens_by_hand(text: str, expected: str) -> None:
    assert treebank_tokens(text) == expected
    assert "  " not in expected


def test_words_are_what_stands_between_white_space() -> None:
    spec = FeatureSpec(orders=(), words=True, word_rule="white-space/1")
    vocabulary = build_vocabulary(["do n't mid-1990s (odd) , ."], spec)
    assert {entry.text for entry in vocabulary.entries()} == {"do", "n't", "mid-1990s", "(odd)", ",", "."}
    assert not vocabulary.symbols
    names = [entry.text for entry in vocabulary.entries()]
    for compiled in (True, False):
        batch = Featurizer(spec, vocabulary, compiled=compiled)(["Do  N'T\tmid-1990s odd (odd) don't"])
        assert [names[row] for row in batch.ids] == ["do", "n't", "mid-1990s", "(odd)"]
        assert batch.unknown == 2


def test_spec_and_vocabulary_agree_on_it() -> None:
    entries = [Entry("word", "n't", 1)]
    tokens = FeatureSpec(orders=(), words=True, word_rule="white-space/1")
    with pytest.raises(InputError, match="disagree on word_rule"):
        Featurizer(tokens, Vocabulary.build(entries))
    with pytest.raises(InputError, match="disagree on word_rule"):
        Featurizer(FeatureSpec(orders=(), words=True), Vocabulary.build(entries, symbols=False))
    assert FeatureSpec.from_dict(tokens.to_dict()) == tokens
    with pytest.raises(InputError, match="'runs-and-symbols/1' or 'white-space/1'"):
        FeatureSpec(words=True, word_rule="ptb/9")  # type: ignore[arg-type]


def test_columns_are_cut_and_scores_stay(tmp_path: Path) -> None:
    (tmp_path / "set.tsv").write_text("4.5\tIt isn't.\tNo, it's not.\n0\ta\t\n", encoding="utf-8")
    for name in ("cut.tsv", "cut.tsv.gz"):
        result = research("tokens", tmp_path / "set.tsv", "-o", tmp_path / name)
        assert result.exit_code == 0, result.output
        assert result.stdout == f"{tmp_path / name}: 2 lines\n"
    assert (tmp_path / "cut.tsv").read_text() == "4.5\tIt is n't .\tNo , it 's not .\n0\ta\t\n"
    (tmp_path / "latin").write_bytes("caf\u00e9".encode("latin-1"))
    assert "latin line 1: not UTF-8" in research("tokens", tmp_path / "latin", "-o", tmp_path / "x").stderr
    again = research("tokens", tmp_path / "cut.tsv.gz", "-o", tmp_path / "again.tsv")
    assert again.exit_code == 0
    assert (tmp_path / "again.tsv").read_text() == (tmp_path / "cut.tsv").read_text()


def test_published_vectors_meet_their_tokens(tmp_path: Path) -> None:
    """A vector of "n't" and of "mid-1990s" is used, which no word of the usual rule meets."""
    (tmp_path / "v.txt").write_text("do 1 0 0\nn't 0 1 0\nmid-1990s 0 0 1\nit 1 1 0\n")
    (tmp_path / "f.txt").write_text("do 5\nit 4\nn't 3\n")
    options = ["--vectors", tmp_path / "v.txt", "--freq", tmp_path / "f.txt", "--components", "0", "--weights", "none"]
    for rule in ("white-space/1", "runs-and-symbols/1"):
        run, bundle = tmp_path / f"run-{rule[:4]}", tmp_path / rule[:4]
        assert call("sif", *options, "--word-rule", rule, "--out", run).exit_code == 0
        assert call("export", run, "-o", bundle).exit_code == 0
    tokens, usual = (gramvec.load(tmp_path / name, device="cpu") for name in ("whit", "runs"))
    text = treebank_tokens("don't mid-1990s")
    np.testing.assert_allclose(tokens.embed([text], normalize=False)[0], np.array([1, 1, 1]) / 3, atol=1e-6)
    np.testing.assert_allclose(usual.embed([text], normalize=False)[0], [1, 0, 0], atol=1e-6)
    found = explain(tokens, text, "it")
    assert [feature.text for feature in found.source.features] == ["do", "n't", "mid-1990s"]
    for one in (tokens, usual):
        one.close()


def test_tokens_are_counted(tmp_path: Path) -> None:
    (tmp_path / "t.txt").write_text("do n't\nn't , mid-1990s\n")
    result = research("count", tmp_path / "t.txt", "-o", tmp_path / "c.txt", "--word-rule", "white-space/1")
    assert result.exit_code == 0, result.output
    assert (tmp_path / "c.txt").read_text() == "n't 2\n, 1\ndo 1\nmid-1990s 1\n"
