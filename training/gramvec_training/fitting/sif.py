"""SIF (Arora et al., 2017): weighted word vectors less the common components of sentences.

The paper takes the component from the sentences at hand; here it is taken once, from a fixed sample, so that a
sentence's vector does not depend on its neighbors.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from gramvec.errors import InputError
from gramvec.text.characters import compose, lower
from gramvec.text.vocabulary import Entry, Vocabulary
from gramvec_training.shared import Floats


def weigh_words(words: Sequence[str], frequencies: Mapping[str, float], a: float) -> Floats:
    """Return a / (a + p(w)), float32[n] in (0, 1], of each word (Algorithm 1, line 2); 1 without a frequency."""
    p = np.array([frequencies.get(word.lower(), 0.0) for word in words], dtype=np.float64)
    return np.asarray(a / (a + p), dtype=np.float32)


def weigh_words_by_idf(containing: npt.NDArray[np.int64], documents: int) -> Floats:
    """Return log((1 + N) / (1 + N_w)), float32[n], of N documents, int64[n] of which have each word (equation 7)."""
    return np.asarray(np.log((1 + documents) / (1 + containing)), dtype=np.float32)


def make_word_table(
    words: Sequence[str],
    vectors: Floats,
    frequencies: Mapping[str, float],
    *,
    max_words: int | None = None,
    unknown: str | None = None,
    symbols: bool = True,
) -> tuple[Vocabulary, Floats]:
    """Return vocabulary and table float32[rows, d] of the lower-cased words, the most frequent first.

    unknown: the word whose vector is the last row, that of unknown words. symbols: see Vocabulary.build.

    Of words that fall together by lower-casing the one that is lower-case already is kept, as in a lookup of
    lower-cased tokens; without one, the first. The entries' counts are occurrences in 10^9 words.
    """
    rows: dict[str, int] = {}
    exact: dict[str, int] = {}
    for row, word in enumerate(words):
        composed = compose(word)
        text = "".join(lower(character) for character in composed)
        if text:
            rows.setdefault(text, row)
            if text == composed:
                exact.setdefault(text, row)
    rows |= exact
    order = sorted(rows, key=lambda text: (-frequencies.get(text, 0.0), text))[:max_words]
    entries = [Entry("word", text, round(1e9 * frequencies.get(text, 0.0))) for text in order]
    places = [rows[text] for text in order]
    if unknown is not None:
        entries.append(Entry("unknown", "", 0))
        places.append(words.index(unknown))
    return Vocabulary.build(entries, symbols=symbols), vectors[places]


def find_common_components(sentences: Floats, components: int) -> Floats:
    """Return the first right singular vectors of the sentence matrix, not centered: float32[k, d], orthonormal.

    (Algorithm 1, line 4, where k = 1.) The sign of each is chosen so that its largest entry is positive.

    Raises:
        InputError: The sentences span fewer than k dimensions.
    """
    matrix = sentences.astype(np.float64)
    values, vectors = np.linalg.eigh(matrix.T @ matrix)  # ascending
    if components > len(values) or values[-components] <= 1e-12 * max(values[-1], 1e-300):
        raise InputError(
            f"the sample of {len(sentences)} sentences does not span {components} dimensions; "
            "give more text or fewer components"
        )
    rows = vectors[:, ::-1][:, :components].T
    largest = np.take_along_axis(rows, np.abs(rows).argmax(axis=1, keepdims=True), axis=1)
    return np.ascontiguousarray(rows * np.sign(largest), dtype=np.float32)


def remove_components(vectors: Floats, components: Floats) -> Floats:
    """Return v - (v u^T) u, float32[n, d], for vectors float32[n, d] and orthonormal rows u (Algorithm 1, line 6)."""
    return np.asarray(vectors - (vectors @ components.T) @ components, dtype=np.float32)
