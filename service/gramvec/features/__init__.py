"""Text into features: rows of a table, by a FeatureSpec and a Vocabulary alone; in C, and in numpy.

May import vocab. A new kind of feature begins in `spec`, then in both featurisers and `located`.
"""

from __future__ import annotations

from gramvec.features.batch import FeatureBatch
from gramvec.features.compose import compose
from gramvec.features.featuriser import Featuriser, can_be_memoised
from gramvec.features.iterables import iterated, listed, no_text
from gramvec.features.located import Located, locate, places
from gramvec.features.plain import Characters, characters, ngram_keys, word_spans
from gramvec.features.spec import FeatureSpec
from gramvec.features.text import CodePoints, code_points, has_surrogate

__all__ = [
    "Characters",
    "CodePoints",
    "FeatureBatch",
    "FeatureSpec",
    "Featuriser",
    "Located",
    "can_be_memoised",
    "characters",
    "code_points",
    "compose",
    "has_surrogate",
    "iterated",
    "listed",
    "locate",
    "ngram_keys",
    "no_text",
    "places",
    "word_spans",
]
