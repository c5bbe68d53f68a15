"""The weights of a bundle back in float32, each row a feature's own."""

from __future__ import annotations

from gramvec.bundle import Bundle
from gramvec.errors import BundleError
from gramvec.weights import weights_of
from gramvec_training.types import Floats


def read_weights(bundle: Bundle) -> tuple[Floats, Floats | None]:
    """The table float32[rows, d] and the bias float32[d], or None, of a bundle of any precision, without its memo.

    int8 rows are multiplied by their scales, and columns by theirs; suffixes are taken out of rows that hold them.
    Common components were removed when the bundle was written. Raises BundleError where the bundle is no bag of rows.
    """
    manifest = bundle.manifest
    if manifest.graph.stored is None:
        raise BundleError(f"{bundle.path}: is no bag of rows, and only a bag's weights can be taken up again")
    weights = weights_of(bundle)
    return weights.rows(slice(manifest.rows)), None if manifest.graph.stored.bias is None else weights.bias
