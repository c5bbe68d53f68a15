"""The rule plain/1: full width, ligatures, curly quotes and what is invisible are read as plain forms."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gramvec
from gramvec.errors import InputError
from gramvec.features.featurizer import Featurizer
from gramvec.features.spans import locate
from gramvec.features.spec import FeatureSpec
from gramvec.lexical.sketch import LexicalSketch
from gramvec.text.folding import plain_forms, read_plain
from gramvec_training.data.vocabulary import build_vocabulary

PLAIN = FeatureSpec(orders=(2, 3), words=True, normalization=("plain/1", "nfc/1", "spaces/1"))
WITHOUT = FeatureSpec(orders=(2, 3), words=True)
CORPUS = ['The office\'s "fine" caf\u00e9 ABC 12', "カ\u3099 ガ don't new york", "e\u0301a\u0308\u0323 x"]
ODD = "Ａｂｃ　１２ﬁﬃ’“”‘ｶﾞﾟ\u200b\u200d\u00ad\ufe0f\u0301\u0308\u0323eéaABC 'office fine"
TEXTS = st.text(st.one_of(st.sampled_from(ODD), st.characters(exclude_categories=["Cs"])), max_size=30)
VOCABULARY = build_vocabulary(CORPUS * 2, WITHOUT)


@given(texts=st.lists(TEXTS, max_size=4))
def test_features_are_those_of_the_plain_forms(texts: list[str]) -> None:
    expected = Featurizer(WITHOUT, VOCABULARY, compiled=False)([plain_forms(text) for text in texts])
    for compiled in (True, False):
        found = Featurizer(PLAIN, VOCABULARY, compiled=compiled)(texts)
        assert found.ids.tolist() == expected.ids.tolist()
        assert found.offsets.tolist() == expected.offsets.tolist()
        assert found.unknown == expected.unknown


@given(text=TEXTS)
def test_places_are_of_the_text_as_given(text: str) -> None:
    found = locate(text, PLAIN, VOCABULARY)
    assert found.rows.tolist() == Featurizer(PLAIN, VOCABULARY)([text]).ids.tolist()
    assert np.all((found.start >= 0) & (found.start <= found.end) & (found.end <= len(text)))
    for at in range(len(found.rows)):
        own = " ".join(read_plain(text[found.start[at] : found.end[at]]).lower().split())
        assert found.spell(at).strip() in own or not own.isascii() or "\u0130" in text


def test_places_by_hand() -> None:
    found = locate("oﬃce ＡＢＣ n\u200bew", PLAIN, VOCABULARY)
    of_word = {found.spell(at): (found.start[at], found.end[at]) for at in np.flatnonzero(found.words).tolist()}
    assert of_word == {"office": (0, 4), "abc": (5, 8), "new": (9, 13)}


def test_sketches_are_those_of_the_plain_forms() -> None:
    made = LexicalSketch.of_texts(CORPUS, read=read_plain)
    vectors = np.ones((2, 4), np.float32)
    odd = ["O’Brien’s ＡＢＣ n\u200bew", "ﬁne"]
    joined, counts = made.join(odd, vectors)
    plainly = made._join_in_numpy(odd, vectors)
    assert joined.tobytes() == plainly[0].tobytes() == made.join([*map(plain_forms, odd)], vectors)[0].tobytes()
    assert counts.tolist() == plainly[1].tolist()
    assert made.digest != LexicalSketch.of_texts(CORPUS).digest
    assert made.ngrams(odd[1]).text == " fine "


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("ABC Company 123", "ＡＢＣ　Ｃｏｍｐａｎｙ　１２３"),
        ("office file", "oﬃce ﬁle"),
        ("O'Brien's \"Best\"", "O’Brien’s “Best”"),
        ("newyork cooperation", "new\u200byork coop\u00aderation"),
    ],
)
def test_the_shipped_model_reads_plain_forms(embedder: gramvec.Embedder, one: str, other: str) -> None:
    assert embedder.embed([one])[0].tobytes() == embedder.embed([other])[0].tobytes()
    assert embedder.embed(["café"])[0].tobytes() != embedder.embed(["cafe"])[0].tobytes()


def test_rules_in_another_order_are_refused() -> None:
    with pytest.raises(InputError, match=r"normalization .*\[plain/1, nfc/1"):
        FeatureSpec(normalization=("nfc/1", "plain/1", "spaces/1"))
