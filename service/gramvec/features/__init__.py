"""Text to features: pure functions of a FeatureSpec and a Vocabulary."""

from __future__ import annotations

from gramvec.features.batch import FeatureBatch
from gramvec.features.featuriser import Featuriser
from gramvec.features.spec import FeatureSpec

__all__ = ["FeatureBatch", "FeatureSpec", "Featuriser"]
