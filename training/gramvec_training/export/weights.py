"""The weights of a bundle back in float32, each row a feature's own."""

from __future__ import annotations

from gramvec.bundles import Bundle
from gramvec.errors import BundleError
from gramvec.explaining import weights_of
from gramvec_training.types import Floats


def read_weights(bundle: Bundle) -> tuple[Floats, Floats | None]:
    """The table float32[rows, d] and the bias float32[d], or None, of a bundle of any precision, without its memo.

    int8 rows are multiplied by their scales, and columns by theirs; suffixes are taken out of rows that hold them.
    Common components were removed when the bundle was written. Raises BundleError where the bundle is no bag of rows.
    """
    biased = has_bias(bundle)
    weights = weights_of(bundle)
    return weights.rows(slice(bundle.manifest.rows)), weights.bias if biased else None


def has_bias(bundle: Bundle) -> bool:
    """Whether the bundle adds a bias, by its manifest alone. Raises BundleError where it is no bag of rows."""
    stored = bundle.manifest.graph.stored
    if stored is None:
        raise BundleError(f"{bundle.path}: is no bag of rows, and only a bag's weights can be taken up again")
    return stored.bias is not None
