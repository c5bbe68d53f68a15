"""Contributions: the score of two texts as a sum over pairs of features, pairs of words, and characters.

A model that sums rows has cos(a, b) = sum over i, j of <x_i, y_j> / (|a| |b|), where x_i are the rows of the features
of a and y_j those of b: each pair of features contributes one term. A mean divides the rows by their number. Before a
tanh each column of a text is scaled by tanh(z) / z, where z is its sum, so that features share what the tanh left of
them (the rescale rule of DeepLIFT, Shrikumar et al. 2017). The rest is the `residual`: the share of the bias, and less
than 1e-5 of rounding where there is none.

If a vector is not a sum of rows, because layers are above it or the order of rows counts, features are left out one at
a time (see `decompose.shares`). The contribution of a pair is then its interaction, and that of a feature is by how
much the score falls without it; their sum need not be the score.

Rows of a memo in int8 were rounded apart from the rows that they stand for, by up to a hundredth of a text's vector.
That difference is shared evenly among the text's features, so that the contributions are those of the score as served.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from gramvec.embed.embedder import Embedder
from gramvec.embed.vectors import cosine_matrix
from gramvec.errors import InputError
from gramvec.explain.decompose import TextSum, WordPair, locate_characters
from gramvec.explain.row_vectors import open_weights
from gramvec.features.spans import FeaturePlaces
from gramvec.lexical.top_k import top_k
from gramvec.text.arrays import Doubles
from gramvec.text.inputs import is_whole
from gramvec.text.vocabulary import EntryKind

TOP_K, MAX_PAIRS = 20, 1_000
# Two texts of this many characters have some 10,000 features each, and 100 million pairs: half a second of a core.
MAX_CHARACTERS = 4_096
# Products held at a time, in float32: 16 MB.
BLOCK = 4 * 2**20


class Feature(NamedTuple):
    """A feature of a text, and where it stands.

    kind: "ngram", "word", or "unknown" for a word that shares the row of unknown words. text: normalized, with the
    spaces of the padding. start, end: code-point offsets into the text as given, clipped to it; of the first, if the
    feature is there more than once. times: how often it is there.
    """

    kind: EntryKind
    text: str
    start: int
    end: int
    times: int = 1


class Contribution(NamedTuple):
    """Contribution of a source feature and a target feature to the score, summed over all their occurrences."""

    source: Feature
    target: Feature
    contribution: float


@dataclass(frozen=True, eq=False)
class Side:
    """Source or target text of an explanation.

    located: the text's features, see FeaturePlaces. contributions: float64[n], what each feature adds to the score
    with all of the other text. coverage: the share of the text's characters, except white space, that lie in at least
    one feature of the vocabulary; 0 for a text without any (the row that unknown words share does not count).
    """

    text: str
    located: FeaturePlaces
    contributions: Doubles
    coverage: float
    unknown_row: int

    @property
    def features(self) -> list[Feature]:
        """Return a feature for each contribution, in the order in which the model sums them."""
        return [self.feature(index) for index in range(len(self.located.rows))]

    def feature(self, index: int, times: int = 1) -> Feature:
        """Return the feature of this index."""
        place = self.located
        kind: EntryKind = "word" if place.words[index] else "ngram"
        if kind == "word" and place.rows[index] == self.unknown_row:
            kind = "unknown"
        return Feature(kind, place.spell(index), int(place.start[index]), int(place.end[index]), times)

    @cached_property
    def characters(self) -> Doubles:
        """Return the contributions, each spread evenly over the characters of its feature, float64[len(text)]."""
        shares = np.zeros(len(self.text) + 1)
        first, last = locate_characters(self.text, self.located)
        each = self.contributions / (last - first)
        np.add.at(shares, first, each)
        np.subtract.at(shares, last, each)
        return np.asarray(np.cumsum(shares)[:-1])


@dataclass(frozen=True, eq=False)
class Explanation:
    """Score of two texts and its parts: the contributions of `pairs`, plus `rest`, plus `residual`, are the score.

    Args:
        score: the cosine in [-1, 1], as Embedder.similarity returns it.
        pairs: the pairs of features that add or take away the most, largest first; repeated features are one.
        rest: the sum of the pairs that are not listed.
        residual: the part that no pair of features explains: the share of the model's bias, and rounding.
        by_occlusion: features were left out one at a time; the effect of each by itself is in the residual, too.
        words: the pairs of words that add or take away the most, largest first. A feature over two words is shared
            between them by its characters.
        words_rest: the sum of all other pairs of words.
    """

    score: float
    residual: float
    rest: float
    source: Side
    target: Side
    pairs: list[Contribution]
    words: list[WordPair]
    words_rest: float
    by_occlusion: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Return JSON types and numpy's float32; `characters` are Side.characters of source and target."""

        def list_pairs(pairs: Sequence[Contribution] | Sequence[WordPair]) -> list[dict[str, Any]]:
            return [
                {
                    "source": pair.source._asdict(),
                    "target": pair.target._asdict(),
                    "contribution": np.float32(pair.contribution),
                }
                for pair in pairs
            ]

        return {
            "score": np.float32(self.score),
            "residual": np.float32(self.residual),
            "rest": np.float32(self.rest),
            "coverage": [np.float32(side.coverage) for side in (self.source, self.target)],
            "features": list_pairs(self.pairs),
            "words": list_pairs(self.words),
            "words_rest": np.float32(self.words_rest),
            "characters": [side.characters.astype(np.float32) for side in (self.source, self.target)],
        }


def explain(embedder: Embedder, source: str, target: str, *, top_k: int = TOP_K) -> Explanation:
    """Share out the cosine of two texts over the pairs of their features; the `top_k` largest are listed (1 to 1000).

    Takes memory for the features of each, not for all pairs. A text without a known feature explains its score of 0
    with nothing.

    Raises InputError for what Embedder.prepare refuses, for a text of more than 4,096 characters, and for a top_k out
    of range; BackendError if the runtime fails; BundleError if the bundle does not say where its table lies.
    """
    if not is_whole(top_k) or not 1 <= top_k <= MAX_PAIRS:
        raise InputError(f"top_k: must be a whole number from 1 to {MAX_PAIRS}, got {top_k!r}", field="top_k")
    texts = embedder.prepare([source, target])
    for index, text in enumerate(texts):
        if len(text) > MAX_CHARACTERS:
            raise InputError(
                f"text {index} has {len(text)} characters, and explanations take {MAX_CHARACTERS}: shorten it",
                index=index,
            )
    weights = None if embedder.manifest.graph.beyond_rows else open_weights(embedder.bundle)
    raw = embedder.raw(texts)
    score = float(cosine_matrix(raw.take(slice(1)), raw.take(slice(1, 2)))[0, 0])
    source_sum, target_sum = (
        TextSum.from_occlusion(text, embedder)
        if weights is None
        else TextSum.from_rows(text, vector, embedder, weights)
        for text, vector in zip(texts, raw.vectors, strict=True)
    )
    left, right = (
        Side(text.text, text.located, text.contributions_with(against), text.coverage, text.unknown_row)
        for text, against in ((source_sum, target_sum), (target_sum, source_sum))
    )
    total = float(source_sum.whole @ target_sum.whole)
    pairs = [
        Contribution(left.feature(*source_sum.occurrence(i)), right.feature(*target_sum.occurrence(j)), contribution)
        for i, j, contribution in largest_products(source_sum.distinct, target_sum.distinct, top_k)
    ]
    of_words = largest_products(source_sum.of_words, target_sum.of_words, top_k) if pairs else []
    words = [WordPair(source_sum.words[i], target_sum.words[j], contribution) for i, j, contribution in of_words]
    rest, words_rest = (total - sum(pair.contribution for pair in listed) for listed in (pairs, words))
    return Explanation(score, score - total, rest, left, right, pairs, words, words_rest, by_occlusion=weights is None)


def largest_products(left_rows: Doubles, right_rows: Doubles, k: int) -> list[tuple[int, int, float]]:
    """Return the k products of rows of float64[n, d] and float64[m, d] that are largest in size, as (i, j, product).

    Of equal products that of the first rows comes first. They are found in float32 and returned in float64.
    """
    if not len(left_rows) or not len(right_rows):
        return []
    left, right = left_rows.astype(np.float32), right_rows.astype(np.float32).T
    width = right.shape[1]
    step = max(1, BLOCK // width)
    places, sizes = np.zeros(0, np.int64), np.zeros(0, np.float32)
    for start in range(0, len(left), step):
        block = np.abs(left[start : start + step] @ right).ravel()
        chosen = np.sort(top_k(block, k))
        places = np.append(places, chosen + start * width)
        sizes = np.append(sizes, block[chosen])
        kept = np.sort(top_k(sizes, k))
        places, sizes = places[kept], sizes[kept]
    i, j = np.divmod(places, width)
    contributions = np.add.reduce(left_rows[i] * right_rows[j], axis=1)
    order = top_k(np.abs(contributions), k, places)
    return [(int(i[at]), int(j[at]), float(contributions[at])) for at in order]
