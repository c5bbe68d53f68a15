"""Compile the featuriser into numba's cache, so that no first request pays for it: python -m gramvec.warm."""

from __future__ import annotations

from gramvec.features import FeatureSpec, Featuriser
from gramvec.vocab import Entry, Vocabulary


def main() -> None:
    """Featurise one text with a vocabulary of two entries."""
    vocabulary = Vocabulary.build([Entry("ngram", " a", 1), Entry("word", "a", 1)])
    Featuriser(FeatureSpec(words=True), vocabulary)(["a"])


if __name__ == "__main__":
    main()
