"""Weighted averages of given word vectors, scored as SIF's paper does: with components of each set's own sentences."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from gramvec.bundle.bundle import open_bundle
from gramvec.bundle.resolve import MANIFEST
from gramvec.errors import InputError
from gramvec.text.batch import FeatureBatch
from gramvec.text.featurizer import Featurizer
from gramvec.text.spec import FeatureSpec
from gramvec_training.data import count_documents
from gramvec_training.encoders import bag_of, cosines, encoder_function
from gramvec_training.evaluation import ScoredModel, SimilaritySet, find_sets, score_sets, without_components_of_sets
from gramvec_training.export import read_weights
from gramvec_training.fitting import idf_weights, word_table, word_weights
from gramvec_training.readers import treebank_tokens, vectors_at
from gramvec_training.runs import word_vectors
from gramvec_training.types import Floats

_SPEC = FeatureSpec(orders=(), words=True, word_rule="white-space/1")


class Words:
    """The vectors of the words that stand in some sets, whose texts are cut into Treebank tokens.

    words: of each row; table: float32[rows, d], their vectors as they were given. A word without a vector is skipped.
    """

    def __init__(self, vectors: Path, folders: Sequence[Path]) -> None:
        self.sets: list[SimilaritySet] = find_sets(folders)[0]
        self.texts = [text for one in self.sets for text in (*one.left, *one.right)]
        tokens = {token for text in self.texts for token in treebank_tokens(text).lower().split()}
        words, found = vectors_of(vectors)
        kept = [row for row, word in enumerate(words) if word.lower() in tokens]
        if not kept:
            raise InputError(f"{vectors} has a vector for no word of these sets; give vectors of the sets' language.")
        vocabulary, self.table = word_table([words[row] for row in kept], found[kept], {}, symbols=False)
        self.words = [entry.text for entry in vocabulary.entries()]
        self._featurizer = Featurizer(_SPEC, vocabulary)

    def featurize(self, texts: Sequence[str]) -> FeatureBatch:
        """The rows of each text's tokens."""
        return self._featurizer([treebank_tokens(text) for text in texts])

    def sif(self, frequencies: Mapping[str, float], a: float = 1e-3) -> Floats:
        """a / (a + p(w)) of each row."""
        return word_weights(self.words, frequencies, a)

    def idf(self) -> Floats:
        """log((1 + N) / (1 + N_w)) of each row, over the sentences of all sets (equation 7)."""
        return idf_weights(count_documents(self.texts, self.featurize, len(self.words)), len(self.texts))

    def model(self, weights: Floats | None = None, components: int = 0) -> ScoredModel:
        """Means of the vectors times weights float32[rows], less so many common components of each set."""
        table = self.table if weights is None else self.table * weights[:, None]
        encoder = bag_of(table, pooling="mean", activation="linear")
        encode = encoder_function(encoder, self.featurize)
        model = ScoredModel("words", self._featurizer, encode, cosines(encode, self.featurize))
        return without_components_of_sets(model, components, "both") if components else model

    def score(self, weights: Floats | None = None, components: int = 0) -> dict[str, float]:
        """Task -> mean Pearson times 100 over its sets."""
        tasks = score_sets(self.sets, self.model(weights, components).similarity)["tasks"]
        return {name: float(task["mean"]["pearson"]) for name, task in tasks.items()}


@functools.lru_cache(maxsize=2)  # a run of all experiments asks ten times for the same
def vectors_of(place: Path) -> tuple[list[str], Floats]:
    """Words and vectors float32[n, d] of a file, an installed package, a run, or a bundle of a bag of words."""
    found = vectors_at(place)
    if not (found / MANIFEST).is_file():
        words, vectors, _ = word_vectors(found)
        return words, vectors
    bundle = open_bundle(found)
    table = read_weights(bundle)[0]
    rows = [(row, entry.text) for row, entry in enumerate(bundle.vocabulary.entries()) if entry.kind == "word"]
    if not rows:
        raise InputError(f"The bundle {found} has no words; name one of a word model, such as paragram-phrase.")
    return [text for _, text in rows], np.ascontiguousarray(table[[row for row, _ in rows]])
