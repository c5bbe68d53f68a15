"""Tokens of static models: the library's own, with the memo too, and files of tokenizers that are refused."""

from __future__ import annotations

import json
import string
from base64 import b64decode, b64encode
from pathlib import Path
from typing import Any
from zlib import decompress

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gramvec.errors import BundleError, InputError
from gramvec.features import tokens
from gramvec.features.tokens import TokenFeaturizer, TokenSpec, TokenVocabulary, _bound_growth
from support.static import WORDS, unigram_pieces, word_pieces

pytest.importorskip("tokenizers", reason="tokenizers is not installed: pip install '.[static]'")


def _words() -> Any:
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

    made = Tokenizer(models.WordLevel({word: at for at, word in enumerate(WORDS)}, unk_token="[UNK]"))
    made.normalizer = normalizers.Sequence([normalizers.NFD(), normalizers.Lowercase(), normalizers.StripAccents()])
    made.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Punctuation("merged_with_previous"), pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Digits()]
    )
    return made


# A double array of sentencepiece, deflated: U+3000 and tabs are spaces, U+FB01 and U+00E9 two letters, U+00B4 a space
# and a letter. U+0600 is an "a", and the library takes the space after it into the same character.
CHARSMAP = (
    "eNol0wmwz0UAB/D9v8E8M+Q+SvSeJHcJhSJHztx3zpTrqZyJIt5zlDtXclPOx0Ou3DlzzLxiXDly19CEHE8Hhc//+c189rs7uzu7"
    "O7u/kCGEEBdC5qwh+iWuLxhCjEzWjpWJlRSxMSFTtB4fQkr+mJCUMYQs2tlMeIIcZCcXOclDbvKRlyfJTwGewhLhaZ6hEPGPtxCe"
    "pTDPUYTnKUpxilGSEpSmFC9QhrK8SDleogLleYWXcYRQkVepTBVe43WqUp1q1KQGtXiDOtSmHnV5k/o0pAGNaURTmtCcZrSkBa1p"
    "xVu0oR1t6UB7OtGRzrzNu7xDV7rQnW4k0IP36MkHvE9vetGXPvSnHwP4kIF8xMcMYjCf8ClDGMZQkqIXzwiGM4qRfM5njGE04xjL"
    "BMbzBROZzCSmMoUvmcZXTGcmM5jNLOYyh/nM42sWsJBvWMwilrKEZJaxguWsJIXVrGIN37KOtWxgPRv5js1sYitb2M42dvA9u9jJ"
    "HnbzA3vZzz4OciDalxYJe+ZEwo/qqRziJ062j4TD8ihHOM4xfuYEp6JjOMNpzvIL5znHRS5wmUv8xq9c4c8QCb/Lq/wRHTM+Eq7L"
    "a+l9IdzgFje5w23uksbf/MW//MN97vE///GQB+n/XlxqklfYVdktITwClXeNmA=="
)


def _sentence_pieces(pre_tokenizer: Any = None) -> Any:
    """Return a tokenizer of sentencepiece's kind, as transformers writes that of XLM-R."""
    from tokenizers import Regex, normalizers, pre_tokenizers

    made = unigram_pieces()
    precompiled = normalizers.Precompiled(decompress(b64decode(CHARSMAP)))
    spaces = normalizers.Replace(Regex(" {2,}"), "\u2581")
    made.normalizer = normalizers.Sequence([precompiled, normalizers.Strip(left=False), spaces])
    made.pre_tokenizer = pre_tokenizer or pre_tokenizers.Metaspace()
    return made


def _split_sentence_pieces() -> Any:
    from tokenizers import pre_tokenizers

    return _sentence_pieces(pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()]))


def _marks_apart() -> Any:
    """Return a tokenizer with spaces around marks, as earlier versions of model2vec write it."""
    from tokenizers import AddedToken, Regex, normalizers

    made = word_pieces()
    marks = [normalizers.Replace(mark, f" {mark} ") for mark in string.punctuation]
    spaces = [normalizers.Replace(Regex(r"\s+"), " "), normalizers.Strip(left=False)]
    made.normalizer = normalizers.Sequence([made.normalizer, *marks, *spaces])
    made.add_tokens([AddedToken("mat", normalized=True, rstrip=True)])
    return made


def _byte_pairs() -> Any:
    from tokenizers import Tokenizer, models, pre_tokenizers

    letters = pre_tokenizers.ByteLevel.alphabet()
    known = {letter: at for at, letter in enumerate(sorted(letters))} | {"at": 256, "\u0120a": 257}
    made = Tokenizer(models.BPE(known, [("a", "t"), ("\u0120", "a")]))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    return made


MAKERS = {
    "word pieces": word_pieces,
    "words": _words,
    "marks apart": _marks_apart,
    "unigram": unigram_pieces,
    "sentence pieces": _sentence_pieces,
    "split sentence pieces": _split_sentence_pieces,
    "byte pairs": _byte_pairs,
}
SPLIT = dict.fromkeys(MAKERS, "some") | {"word pieces": "each", "words": "each", "byte pairs": None}


def featurizer(made: Any, **spec: Any) -> TokenFeaturizer:
    data = made.to_str().encode()
    return TokenFeaturizer(TokenSpec(**spec), TokenVocabulary(Path("tokenizer.json"), data, 400))


def ids(found: Any) -> list[list[int]]:
    return [part.tolist() for part in np.split(found.ids, found.offsets[1:-1])]


FEATURIZERS = {name: featurizer(make()) for name, make in MAKERS.items()}
ANY = st.text(
    st.one_of(
        st.sampled_from("the cats sat  \t\n\u3000\u00a0caf\u00e9E\u0301\u03a3.!12\u2581\u00b4\ufb01\u0600"),
        st.characters(codec="utf-8"),
    )
)
PIECES = st.lists(
    st.sampled_from([*WORDS, " ", "  ", "\t", "cats", "[UNK]", "x[PAD]", "\u0301", "\u03a3", "<unk>", "<mask>"])
).map("".join)


@pytest.mark.parametrize("name", MAKERS)
@given(texts=st.lists(st.one_of(ANY, PIECES), max_size=5))
@example(
    texts=[
        "the <unk> cat",
        "the <mask> <pad> cat",
        "the mat  cat",
        "a  b ",
        " a",
        "",
        " ",
        "a \u00b4 b",
        "a \u2581b",
        "a _b",
        "\u0600 a",
        "\u2581a b",
    ]
)
def test_tokens_are_the_librarys_however_often_a_chunk_was_seen(name: str, texts: list[str]) -> None:
    library = MAKERS[name]()
    expected = [library.encode(text, add_special_tokens=False).ids for text in texts]
    for _ in range(2):
        assert ids(FEATURIZERS[name](texts))[: len(texts)] == expected
    assert FEATURIZERS[name].vocabulary.split_at_spaces == SPLIT[name]


def test_an_added_token_that_takes_spaces_is_read_with_them() -> None:
    from tokenizers import AddedToken

    for token, split in ((AddedToken("the cat"), None), (AddedToken("cat", rstrip=True), "some")):
        made = word_pieces()
        made.add_tokens([token])
        found = featurizer(made)
        assert found.vocabulary.split_at_spaces == split
        text = "on the cat  sat"
        assert ids(found([text])) == [made.encode(text, add_special_tokens=False).ids]


@pytest.mark.parametrize("name", [name for name, split in SPLIT.items() if split])
def test_plain_words_are_not_tokenized_again(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    made = featurizer(MAKERS[name]())
    expected = ids(made(["the cats at", "sat on, 12"]))
    assert made.vocabulary.chunks is not None
    monkeypatch.setattr(made.vocabulary.chunks, "_encode", None)
    assert ids(made(["the cats at", "sat on, 12"])) == expected


def test_pieces_that_reach_over_spaces_or_begin_a_text_otherwise_have_no_memo() -> None:
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

    spanning = [_split_sentence_pieces() for _ in range(3)]
    for one, pair in zip(spanning, (("e c", "x"), ("e ", "x"), (" ", "_")), strict=True):
        one.normalizer = normalizers.Replace(*pair)
    unsplit, never = (
        _sentence_pieces(pre_tokenizers.Metaspace(**one)) for one in ({"split": False}, {"prepend_scheme": "never"})
    )
    bare = Tokenizer(models.Unigram([("<unk>", 0.0), ("a", -1.0)], unk_id=0))
    for made in (*spanning, unsplit, never, bare):
        assert featurizer(made).vocabulary.split_at_spaces is None
        assert ids(featurizer(made)(["the cat"])) == [made.encode("the cat", add_special_tokens=False).ids]


def test_long_texts_are_cut_and_the_dropped_token_has_no_row() -> None:
    text = "the zzz cat sat"
    assert ids(featurizer(word_pieces())([text])) == [[2, 1, 3, 4]]
    found = featurizer(word_pieces(), max_tokens=3, dropped=1)([text, "", "zzz"])
    assert ids(found) == [[2, 3], [], []] and found.unknown == 2
    assert ids(featurizer(word_pieces(), max_characters=7)([text])) == [[2, 1]]
    located = featurizer(word_pieces(), max_tokens=3, dropped=1).vocabulary.locate(text, TokenSpec(dropped=1))
    assert located.rows.tolist() == [2, 3, 4] and located.start.tolist() == [0, 8, 12]


def test_a_text_that_is_not_valid_is_named() -> None:
    for name in MAKERS:
        with pytest.raises(InputError, match="1"):
            FEATURIZERS[name](["a", "\ud800"])


def test_the_memo_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokens, "MAX_CHUNKS", 10)
    made = word_pieces()
    memo = featurizer(made).vocabulary.chunks
    assert memo is not None
    for text in (*map(str, range(1_000)), "x" * 41):
        assert np.frombuffer(memo.tokens(text), np.int32).tolist() == made.encode(text).ids
        assert len(memo) <= 10
    assert "x" * 41 not in memo


def _changed(**parts: Any) -> bytes:
    return json.dumps(json.loads(word_pieces().to_str()) | parts).encode()


_MODEL = json.loads(word_pieces().to_str())["model"]


def _nested(depth: int) -> dict[str, Any]:
    return {"type": "Sequence", "normalizers": [_nested(depth - 1)]} if depth else {"type": "NFC"}


def _replaces(pairs: list[tuple[str, str]]) -> dict[str, Any]:
    return {
        "type": "Sequence",
        "normalizers": [{"type": "Replace", "pattern": {"String": one}, "content": other} for one, other in pairs],
    }


HOSTILE = {
    "not JSON": (b"{", "line 1 column"),
    "a list": (b"[]", "no model"),
    "too many lists": (b"[" * 3_000_000, "over 2000000 lists"),
    "another model": (_changed(model={"type": "Pickle"}), "Pickle"),
    "random merges": (_changed(model=_MODEL | {"dropout": 0.5}), "at random"),
    "long words, squared": (_changed(model=_MODEL | {"max_input_chars_per_word": 10**6}), "max_input_chars_per_word"),
    "a long piece": (_changed(model=_MODEL | {"vocab": {"x" * 1_000: 0}}), "at most 256"),
    "no vocabulary": (_changed(model=_MODEL | {"vocab": {}}), "vocabulary"),
    "a vocabulary of numbers": (_changed(model=_MODEL | {"vocab": [[5, 0]]}), "vocabulary are not pieces"),
    "a tree of gigabytes": (
        _changed(model={"type": "Unigram", "unk_id": 0, "vocab": [["x" * 250, 0.0]] * 35_000}),
        "vocabulary have over 8388608 characters",
    ),
    "added tokens that take minutes": (_changed(added_tokens=[{"content": "x" * 250}] * 4_500), "over 1048576"),
    "an empty added token": (_changed(added_tokens=[{"content": ""}]), "empty"),
    "an unknown token that is a list": (_changed(model=_MODEL | {"unk_token": []}), "not a tokenizer"),
    "another normalizer": (_changed(normalizer={"type": "Python"}), "normalizer"),
    "a pattern that takes forever": (
        _changed(
            pre_tokenizer={"type": "Split", "pattern": {"Regex": "(a+)+$"}, "behavior": "Isolated", "invert": False}
        ),
        "linear",
    ),
    "text that grows": (
        _changed(normalizer={"type": "Replace", "pattern": {"String": "a"}, "content": "a" * 10_000}),
        "lengthens texts",
    ),
    "text that grows by one replacement after the other": (
        _changed(normalizer=_replaces([("a", " a ")] * 8)),
        "17 times",
    ),
    "text that grows by what another replacement writes": (
        _changed(normalizer=_replaces([("a", " a ")] * 7 + [("b", "a")])),
        "29 times",
    ),
    "text that grows by a map and by replacements": (
        _changed(
            normalizer={
                "type": "Sequence",
                "normalizers": [
                    {"type": "Precompiled", "precompiled_charsmap": b64encode(bytes(4) + b"a" * 30).decode()},
                    _replaces([("a", " a ")]),
                ],
            }
        ),
        "90 times",
    ),
    "a prefix of megabytes": (
        _changed(model=_MODEL | {"continuing_subword_prefix": "#" * 2_000_000}),
        "continuing_subword_prefix",
    ),
    "a suffix of 65 bytes": (
        _changed(model={"type": "BPE", "vocab": {"a": 0}, "merges": [], "end_of_word_suffix": "\u00e9" * 32 + "a"}),
        "end_of_word_suffix",
    ),
    "a prefix that is a list": (_changed(model=_MODEL | {"continuing_subword_prefix": ["##"]}), "at most 64 bytes"),
    "deeply nested sequences": (_changed(normalizer=_nested(9)), "Sequence is not known"),
    "a sequence that is not": (_changed(normalizer={"type": "Sequence", "normalizers": 5}), "not a tokenizer"),
    "a sequence without parts": (_changed(normalizer={"type": "Sequence"}), "not a tokenizer"),
    "a type that is a list": (_changed(normalizer={"type": []}), "not a tokenizer"),
    "a pattern that is a string": (
        _changed(normalizer={"type": "Replace", "pattern": "a", "content": "b"}),
        "not a tokenizer",
    ),
    "bytes of bytes of bytes": (
        _changed(normalizer={"type": "Sequence", "normalizers": [{"type": "ByteLevel"}] * 40}),
        "two of one kind",
    ),
    "a character for a page": (
        _changed(normalizer={"type": "Precompiled", "precompiled_charsmap": b64encode(bytes(4) + b"a" * 999).decode()}),
        "in place of a character",
    ),
    "a double array that points beyond its end": (
        _changed(
            normalizer={"type": "Precompiled", "precompiled_charsmap": b64encode(b"\4\0\0\0" + b"\xff" * 4).decode()}
        ),
        "not a tokenizer",
    ),
    "a truncation at the left": (_changed(truncation={"direction": "Left", "max_length": 5}), "beginning"),
    "added tokens that are not": (_changed(added_tokens=[{"content": 5}]), "added tokens"),
    "added tokens without contents": (_changed(added_tokens=[5]), "not a tokenizer"),
    "a field of another type": (_changed(model=_MODEL | {"vocab": {"a": "b"}}), "not a tokenizer"),
    "an id beyond the table": (_changed(model=_MODEL | {"vocab": {"[UNK]": 0, "a": 10**6}}), "the table 400 rows"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_tokenizers_file_that_is_not_served_is_refused_in_one_sentence(name: str) -> None:
    data, said = HOSTILE[name]
    with pytest.raises(BundleError, match=said) as raised:
        TokenVocabulary(Path("tokenizer.json"), data, 400)
    assert "\n" not in str(raised.value) and len(str(raised.value)) < 400


def test_a_spec_survives_its_json_and_refuses_what_it_does_not_know() -> None:
    spec = TokenSpec(max_characters=3_072, max_tokens=512, dropped=1)
    assert TokenSpec.from_dict(json.loads(json.dumps(spec.to_dict()))) == spec
    for wrong in ({"max_tokens": -1}, {"dropped": True}, {"tokenizer": "tokenizers/2"}, {"more": 1}):
        with pytest.raises(InputError):
            TokenSpec.from_dict(spec.to_dict() | wrong)


def test_normalizers_of_model2vec_are_served() -> None:
    """Nested sequences, and spaces around punctuation."""
    from tokenizers import Regex, normalizers

    made = word_pieces()
    marks = [normalizers.Replace(mark, f" {mark} ") for mark in ".,!"]
    rest = [normalizers.Replace(Regex(r"\s+"), " "), normalizers.Strip(left=False), normalizers.Lowercase()]
    made.normalizer = normalizers.Sequence([normalizers.Sequence([normalizers.NFKC()]), *marks, *rest])
    text = "The cat,sat!  on a MAT. "
    assert ids(featurizer(made)([text])) == [made.encode(text, add_special_tokens=False).ids]


_LETTERS = st.sampled_from(["a", "b", "A", ".", " ", "ab"])


@given(
    parts=st.lists(st.tuples(_LETTERS, st.sampled_from(["pad", "a", "b", " "])), min_size=1, max_size=6),
    text=st.text("abA. ", min_size=1, max_size=30),
)
def test_a_text_becomes_no_longer_than_is_said(parts: list[tuple[str, str]], text: str) -> None:
    """Of replacements that pad a piece, and others that write something in its place."""
    pairs = [(one, f" {one} " if how == "pad" and one != " " else how[:1]) for one, how in parts]
    from tokenizers import Tokenizer

    made = _replaces(pairs)
    normalizer = Tokenizer.from_str(_changed(normalizer=made).decode()).normalizer
    assert len(normalizer.normalize_str(text)) <= _bound_growth(made["normalizers"]) * len(text)
