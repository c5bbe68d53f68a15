from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gramvec.errors import InputError
from gramvec.features.featurizer import Featurizer
from gramvec.features.spans import locate
from gramvec.features.spec import FeatureSpec
from gramvec.text.arrays import FeatureBatch
from gramvec.text.vocabulary import Entry, Vocabulary
from gramvec_training.data.vocabulary import build_vocabulary
from support import reference
from support.errors import refused

CORPUS = [
    "The quick brown fox, the lazy dog.",
    "naïve café Ünïcödé — don't stop",
    "İstanbul'da ΟΔΟΣ Straße ﬁn",
    "日本語 と 한국어",
    "emoji 🙂🙂 𝒳 👩‍👩‍👧 ❤️",
    "tabs\tand\nnew  lines\u2003wide\x00nul x_y 3.14",
    "e\u0301 a\u0308\u0323 \u0300alone",
]
SPECS = {
    "ngrams": FeatureSpec(),
    "wide": FeatureSpec(orders=(1, 3, 5, 6)),
    "words": FeatureSpec(orders=(), words=True),
    "words with unknown": FeatureSpec(orders=(), words=True, unknown_words="row"),
    "both": FeatureSpec(orders=(2, 3, 4), words=True, unknown_words="row"),
    "tokens": FeatureSpec(orders=(2, 3), words=True, unknown_words="row", word_rule="white-space/1"),
    "tokens alone": FeatureSpec(orders=(), words=True, word_rule="white-space/1"),
    "cased": FeatureSpec(orders=(2, 3), words=True, lowercase=False),
    "spelt": FeatureSpec(orders=(1, 2, 3, 4), words=True, unknown_words="ngrams"),
    "spelt tokens": FeatureSpec(orders=(2, 3, 5), words=True, unknown_words="ngrams", word_rule="white-space/1"),
}
EDGES = [
    "",
    " ",
    " \t\n\u2003 ",
    "a",
    ".",
    "🙂",
    "𝒳𝒳",
    "\u0130",
    "i\u0307",
    "e\u0301",
    "\u0301",
    "\x00",
    "a\nb",
    "a\r\nb",
    "\ufeffa",
    "A  B",
    " a ",
    "a" * 70_000,
    "ab " * 3000,
    "é" * 300,
    "\U0010ffff",
]

# Half the characters come from the corpus, so that n-grams and words are often known.
TEXTS = st.lists(
    st.text(st.one_of(st.sampled_from("".join(CORPUS)), st.characters(exclude_categories=["Cs"])), max_size=40)
    | st.sampled_from(CORPUS)
    | st.sampled_from(EDGES[:17]),
    max_size=6,
)


@pytest.fixture(scope="module", params=SPECS)
def featurizers(request: pytest.FixtureRequest) -> tuple[Featurizer, Featurizer, list[Entry]]:
    spec = SPECS[request.param]
    vocabulary = build_vocabulary(CORPUS * 2, spec)
    entries = vocabulary.entries()
    if spec.spells:  # half of the words are not listed
        entries = [entry for entry in entries if entry.kind != "word" or len(entry.text) % 2]
        vocabulary = Vocabulary.build(entries, symbols=spec.has_symbols)
    return Featurizer(spec, vocabulary, compiled=True), Featurizer(spec, vocabulary, compiled=False), entries


def rows_of(batch: FeatureBatch) -> list[list[int]]:
    return [batch.ids[a:b].tolist() for a, b in zip(batch.offsets[:-1], batch.offsets[1:], strict=True)]


@given(texts=TEXTS)
@example(texts=[])
@example(texts=EDGES)
@example(texts=CORPUS)
def test_both_passes_equal_the_reference(
    featurizers: tuple[Featurizer, Featurizer, list[Entry]], texts: list[str]
) -> None:
    compiled, plain, entries = featurizers
    expected = [reference.featurize(text, compiled.spec, entries) for text in texts]
    for featurizer in (compiled, plain):
        batch = featurizer(texts)
        assert rows_of(batch) == expected
        assert batch.ids.dtype == np.int32
        assert batch.offsets.dtype == np.int64
    assert compiled(texts).unknown == plain(texts).unknown


def test_the_corpus_is_known_to_its_own_vocabulary(
    featurizers: tuple[Featurizer, Featurizer, list[Entry]],
) -> None:
    compiled, _, entries = featurizers
    assert compiled(CORPUS).counts.min() >= 3
    used = set(compiled(CORPUS).ids.tolist())
    if compiled.spec.spells:  # n-grams that cross a space, or are of listed words alone, are never looked up
        assert used >= {row for row, entry in enumerate(entries) if entry.kind == "word"}
        return
    assert used == {row for row, entry in enumerate(entries) if entry.kind != "unknown"}


def test_worked_example_by_hand() -> None:
    spec = FeatureSpec(orders=(2, 3), words=True, unknown_words="row")
    names = [" a", "ab", "b ", " ab", "ab ", "b c", "zz"]
    entries = [Entry("ngram", name, 1) for name in names]
    entries += [Entry("word", "ab", 1), Entry("word", ".", 1), Entry("unknown", "", 0)]
    featurizer = Featurizer(spec, Vocabulary.build(entries))
    #  "AB c." is " ab c. ": " a" "ab" " ab" "b " "ab " "b c", then the words "ab", "c" (unknown) and "."
    assert rows_of(featurizer(["AB  c.", ""])) == [[0, 1, 3, 2, 4, 5, 7, 9, 8], []]
    assert featurizer(["AB  c."]).unknown == 1
    assert featurizer(["AB\u4e00", "ab "]).unknown == 2  # a character, and the word that it is in


@pytest.mark.parametrize("compiled", [True, False])
def test_a_word_is_listed_or_spelt_by_hand(compiled: bool) -> None:
    spec = FeatureSpec(orders=(1, 2, 3), words=True, unknown_words="ngrams")
    names = [" a", "ab", "b ", "b.", "b c", "c", " ", ".", "x y"]
    entries = [Entry("ngram", name, 1) for name in names] + [Entry("word", "xy", 1), Entry("word", "!", 1)]
    featurizer = Featurizer(spec, Vocabulary.build(entries), compiled=compiled)
    # "ab" is " ab ": " a" "ab" "b "; the point beside it is no word that is listed, and is not spelt. "xy" is listed.
    assert rows_of(featurizer(["ab. xy!", "c xy", "xy.ab", " "])) == [[0, 1, 2, 9, 10], [5, 9], [9, 0, 1, 2], []]
    assert featurizer(["ab. xy!"]).unknown == 2
    places = locate("(ab) xy", featurizer.spec, featurizer.vocabulary)
    assert [places.spell(index) for index in range(4)] == [" a", "ab", "b ", "xy"]
    assert (places.start.tolist(), places.end.tolist()) == ([1, 1, 2, 5], [2, 3, 3, 7])


def test_a_megabyte_of_one_character() -> None:
    spec = FeatureSpec(orders=(2, 3, 4), words=True)
    featurizer = Featurizer(spec, build_vocabulary(["xxxxxx"], spec), compiled=True)
    batch = featurizer(["x" * 1_000_000, "x"])
    counts = np.bincount(batch.ids, minlength=len(featurizer.vocabulary)).tolist()
    found = {entry.text: n for entry, n in zip(featurizer.vocabulary.entries(), counts, strict=True) if n}
    # The lone x adds its two edges; neither text is the word "xxxxxx".
    assert found == {
        "xx": 999_999, "xxx": 999_998, "xxxx": 999_997, " x": 2, "x ": 2, " xx": 1, "xx ": 1, " xxx": 1, "xxx ": 1,
    }  # fmt: skip
    assert batch.counts.tolist() == [len(batch.ids) - 2, 2]


@pytest.mark.parametrize("compiled", [True, False])
def test_a_lone_surrogate_is_refused_with_its_index(compiled: bool) -> None:
    spec = FeatureSpec()
    featurizer = Featurizer(spec, build_vocabulary(CORPUS, spec), compiled=compiled)
    with refused(InputError, "text 2", "surrogate") as caught:
        featurizer(["fine", "é", "bad \ud800", "worse \udfff"])
    assert caught.value.index == 2
    with refused(InputError, "text 1", "int"):
        featurizer(["fine", 3])  # type: ignore[list-item]


def test_composed_and_decomposed_spellings_are_one() -> None:
    spec = FeatureSpec(words=True)
    featurizer = Featurizer(spec, build_vocabulary(["café"], spec))
    composed, decomposed = rows_of(featurizer(["café", "cafe\u0301"]))
    assert composed == decomposed != []


def test_numpy_serves_where_the_loops_were_not_built(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gramvec.native.loops", None)
    spec = FeatureSpec()
    vocabulary = build_vocabulary(CORPUS, spec)
    assert not Featurizer(spec, vocabulary).compiled
    with refused(InputError, "compiled loops"):
        Featurizer(spec, vocabulary, compiled=True)


def test_the_loops_are_used_where_they_were_built() -> None:
    spec = FeatureSpec()
    assert Featurizer(spec, build_vocabulary(CORPUS, spec)).compiled


def test_batch_parts() -> None:
    batch = FeatureBatch(np.arange(6, dtype=np.int32), np.array([0, 2, 2, 6], np.int64))
    assert len(batch) == 3
    assert batch.counts.tolist() == [2, 0, 4]
    assert batch.part(1, 3) == FeatureBatch(np.arange(2, 6, dtype=np.int32), np.array([0, 0, 4], np.int64))
    assert batch.part(0, 0).ids.size == 0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"orders": (2, 7)}, "1 to 6"),
        ({"orders": (3, 2)}, "must ascend"),
        ({"orders": (2, 2)}, "must ascend"),
        ({"orders": ()}, "orders"),
        ({"unknown_words": "row"}, "needs words=True"),
        ({"unknown_words": "drop", "words": True}, r"'skip'.*'row'"),
        ({"padding": "#"}, "'#'"),
        ({"normalization": ("nfkc/1",)}, "normalization"),
        ({"version": 2}, "version 2"),
    ],
)
def test_a_spec_refuses_what_it_does_not_know(change: dict[str, object], message: str) -> None:
    values = FeatureSpec().to_dict() | change
    with pytest.raises(InputError, match=message):
        FeatureSpec.from_dict(values)


def test_a_spec_survives_json_and_has_a_stable_digest() -> None:
    spec = FeatureSpec(orders=(2, 3), words=True, unknown_words="row", unicode="14.0.0")
    assert FeatureSpec.from_dict(spec.to_dict()) == spec
    # Part of the bundle format: if this changes, no published bundle opens any more.
    assert spec.digest == "04f20a82bdda573c48d6f5cf0ea0d79f21b07ad99443618af67e55e35b857dd9"
    assert FeatureSpec(orders=(2, 3, 4), unicode="14.0.0").digest != spec.digest
    with refused(InputError, "color"):
        FeatureSpec.from_dict(spec.to_dict() | {"color": 1})


def test_spec_and_vocabulary_must_fit() -> None:
    spec = FeatureSpec(words=True)
    vocabulary = build_vocabulary(CORPUS, spec)
    with refused(InputError, "lowercase"):
        Featurizer(FeatureSpec(lowercase=False), vocabulary)
    with refused(InputError, "unknown words"):
        Featurizer(FeatureSpec(words=True, unknown_words="row"), vocabulary)


def test_unicode_s_classes_are_read_one_character_at_a_time() -> None:
    import tracemalloc

    from gramvec.text import characters

    tracemalloc.start()
    try:
        characters.class_ranges.__wrapped__()
        characters.lower_case_pairs.__wrapped__()
        assert tracemalloc.get_traced_memory()[1] < 10 << 20
    finally:
        tracemalloc.stop()
