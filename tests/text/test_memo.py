"""The memo: a text's rows with it expand to exactly the features that it has without."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from test_features import CORPUS, EDGES, TEXTS, rows_of

from gramvec.errors import BundleError, InputError
from gramvec.features.featurizer import Featurizer
from gramvec.features.spec import FeatureSpec
from gramvec.text.memo import Memo, cut_edges, longest_reach, ngrams_across, ngrams_by_end
from gramvec.text.suffixes import suffix_rows, sum_suffixes
from gramvec.text.vocabulary import Entry, Vocabulary
from gramvec_training.data.vocabulary import build_vocabulary
from support import reference
from support.errors import refused

SPECS = {
    "ngrams": FeatureSpec(),
    "one order": FeatureSpec(orders=(5,)),
    "wide": FeatureSpec(orders=(2, 3, 5, 6)),
    "both": FeatureSpec(orders=(2, 3, 4, 5), words=True),
    "unknown row": FeatureSpec(orders=(2, 4), words=True, unknown_words="row"),
    "cased": FeatureSpec(orders=(2, 3), words=True, lowercase=False),
}


@pytest.fixture(scope="module", params=SPECS)
def memoized(request: pytest.FixtureRequest) -> tuple[Featurizer, Featurizer, list[Entry], list[str]]:
    """Compiled and in numpy, the vocabulary's entries, and the memo's."""
    spec = SPECS[request.param]
    vocabulary = build_vocabulary(CORPUS * 2, spec)
    known = set("".join(entry.text for entry in vocabulary.entries()))
    chunks = {chunk for text in CORPUS for chunk in reference.normalized(text, spec.lowercase).split()}
    # Every second one, so that memoized chunks stand beside others, and one of a single letter.
    kept = [*sorted(chunk for chunk in chunks if set(chunk) <= known)[::2], "q"]
    reach = longest_reach(spec.orders, vocabulary.bits)
    texts = [reference.normalized(text, spec.lowercase) for text in [*CORPUS, "q q q"]]
    edges = {edge for text in texts for edge in cut_edges(text, reach)} if reach else set()
    across = sorted(edge for edge in edges if set(edge) <= known)[::2]
    memo = Memo.build(kept, vocabulary, edges=across, reach=reach)
    assert (len(memo), memo.reach) == (len(kept) + len(across), reach)
    both = (Featurizer(spec, vocabulary, compiled=compiled, memo=memo) for compiled in (True, False))
    return *both, vocabulary.entries(), [*kept, *across]


@given(texts=TEXTS)
@example(texts=[])
@example(texts=EDGES)
@example(texts=CORPUS)
@example(texts=[" ".join(CORPUS), "q q  q\tq", "qq q.", "the the THE the,"])
def test_rows_expand_to_the_same_multiset(
    memoized: tuple[Featurizer, Featurizer, list[Entry], list[str]], texts: list[str]
) -> None:
    compiled, plain, entries, repeated = memoized
    spec = compiled.spec
    ngrams = {entry.text: row for row, entry in enumerate(entries) if entry.kind == "ngram"}

    def expand(row: int) -> list[int]:
        if row < len(entries):
            entry = entries[row]
            return [ngrams[one] for one in reference.suffixes(entry.text, ngrams)] if entry.kind == "ngram" else [row]
        if " " in (one := repeated[row - len(entries)]):
            return [ngrams[ngram] for ngram in ngrams_across(one, spec.orders) if ngram in ngrams]
        return reference.featurize(one, spec, entries)

    for featurizer in (compiled, plain):
        for text, rows in zip(texts, rows_of(featurizer(texts)), strict=True):
            features = [feature for row in rows for feature in expand(row)]
            assert Counter(features) == Counter(reference.featurize(text, spec, entries))
    assert plain.without_memo()(texts) == compiled.without_memo()(texts)


def test_of_ngrams_that_end_in_one_character_the_longest_is_a_row() -> None:
    spec = FeatureSpec(orders=(2, 3, 4))
    names = ["ab", "cab", " cab", " a", "b ", "b a", "ab a", "a "]
    vocabulary = Vocabulary.build([Entry("ngram", name, 1) for name in names])
    # " cab ab ": in "b" ends " cab" (and "cab", "ab"), then "b "; in the next "a" ends " a", and, across, "ab a" (and
    # "b a"); in "b" ends "ab"; then "b ".
    for compiled in (True, False):
        featurizer = Featurizer(spec, vocabulary, compiled=compiled, memo=Memo.build([], vocabulary))
        assert sorted(rows_of(featurizer(["cab ab"]))[0]) == [0, 2, 3, 4, 4, 6]
    parents = suffix_rows(vocabulary)
    assert [names[row] if row >= 0 else None for row in parents.tolist()] == [
        None, "ab", "cab", None, None, None, "b a", None,
    ]  # fmt: skip
    table = np.array([[1], [10], [100], [1000], [2], [3], [30], [4]], np.float32)
    assert sum_suffixes(table, parents).ravel().tolist() == [1, 11, 111, 1000, 2, 3, 33, 4]


def test_worked_example_by_hand() -> None:
    spec = FeatureSpec(orders=(2, 3), words=True)
    names = [" a", "ab", "b ", " ab", "ab ", "b c", " c", "c ", "cd"]
    vocabulary = Vocabulary.build([*(Entry("ngram", name, 1) for name in names), Entry("word", "ab", 1)])
    featurizer = Featurizer(spec, vocabulary, memo=Memo.build(["ab", "c"], vocabulary))
    # "ab c cd": the rows of "ab" and "c"; "b c" crosses, and "cd" is spelt out. "Ab." is another chunk: its word, then
    # " a", and " ab" with its suffix "ab". N-grams come last.
    assert rows_of(featurizer(["ab  C cd", "Ab."])) == [[10, 11, 5, 6, 8], [9, 0, 3]]


def test_edges_by_hand() -> None:
    assert list(cut_edges(" the end of a ", 2)) == ["he en", "nd of", "of a "]
    assert list(cut_edges(" a b ", 3)) == [" a b "]
    assert list(cut_edges("", 2)) == list(cut_edges(" a ", 2)) == []
    assert ngrams_across("he en", (2, 3, 4)) == ["e e", "he e", "e en"]
    # The space that an edge is around is its last but the one that ends the next chunk; order 2 never crosses one.
    assert ngrams_across("f a b ", (2, 3, 4, 5)) == ["a b", " a b", "f a b", "a b ", " a b "]
    assert ngrams_by_end("f a b ", (2, 3, 4, 5)) == [["a b", " a b", "f a b"], ["a b ", " a b "]]


def test_an_edge_takes_the_place_of_what_crosses() -> None:
    spec = FeatureSpec(orders=(3, 4))
    names = ["e e", "he e", "e en", "he ", " en", "nd ", "end"]
    vocabulary = Vocabulary.build([Entry("ngram", name, 1) for name in names])
    memo = Memo.build([], vocabulary, edges=["he en"], reach=2)
    featurizer = Featurizer(spec, vocabulary, memo=memo)
    # " the end ": the edge, "he ", " en", "end", "nd "; in " the e " the space ends the next chunk: another edge, and
    # of "he e" and "e e", which end in one character, the longer is the row
    assert rows_of(featurizer(["the end", "the e"])) == [[7, 3, 4, 6, 5], [3, 1]]


def opened(path: Path, vocabulary: Vocabulary) -> Memo:
    return Memo.read(path, path.read_bytes(), vocabulary)


def test_the_memo_is_read_back_and_a_foreign_file_refused(tmp_path: Path) -> None:
    vocabulary = build_vocabulary(CORPUS, FeatureSpec())
    memo = Memo.build(["the", "quick"], vocabulary)
    memo.save(tmp_path / "memo.safetensors")
    found = opened(tmp_path / "memo.safetensors", vocabulary)
    assert (len(found), found.longest, found.first_row, found.reach) == (2, 5, len(vocabulary), 0)
    assert np.array_equal(found.chars, memo.chars)
    both = Memo.build(["quick", "the"], vocabulary, edges=["he qu", "e l"], reach=2)
    assert both.decode(vocabulary) == (["quick", "the"], ["he qu", "e l"])
    vocabulary.save(tmp_path / "vocabulary.safetensors")
    with pytest.raises(BundleError, match=r"vocabulary\.safetensors"):
        opened(tmp_path / "vocabulary.safetensors", vocabulary)
    other = build_vocabulary(CORPUS[:1], FeatureSpec())
    with refused(BundleError, "memo.safetensors", "rows begin at"):
        opened(tmp_path / "memo.safetensors", other)


@pytest.mark.parametrize("chunks", [[""], ["the quick"], ["the "], ["ʘ"], ["the", "The"]])
def test_a_chunk_that_cannot_be_found_is_refused(chunks: list[str]) -> None:
    vocabulary = build_vocabulary(CORPUS, FeatureSpec())
    with pytest.raises(InputError, match="chunk"):
        Memo.build(chunks, vocabulary)


def test_a_memo_needs_its_vocabulary_and_orders_from_two() -> None:
    spec = FeatureSpec(orders=(1, 2))
    vocabulary = build_vocabulary(CORPUS, spec)
    memo = Memo.build(["the"], vocabulary)
    with pytest.raises(InputError, match="does not fit"):
        Featurizer(spec, vocabulary, memo=memo)
    other = build_vocabulary(CORPUS, FeatureSpec())
    with pytest.raises(InputError, match="does not fit"):
        Featurizer(FeatureSpec(), other, memo=memo)
