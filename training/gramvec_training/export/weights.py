"""The weights of a bundle back in float32, each row a feature's own."""

from __future__ import annotations

from gramvec.bundle.bundle import Bundle, Stored
from gramvec.errors import BundleError
from gramvec.explain.row_vectors import weights_of
from gramvec_training.types import Floats


def read_weights(bundle: Bundle) -> tuple[Floats, Floats | None]:
    """The table float32[rows, d] and the bias float32[d], or None, of a bundle of any precision, without its memo.

    int8 rows are multiplied by their scales, and columns by theirs; suffixes are taken out of rows that hold them.
    Common components were removed when the bundle was written. Raises BundleError where the bundle is no bag of rows.
    """
    stored = stored_of(bundle)
    weights = weights_of(bundle)
    return weights.rows(slice(bundle.manifest.rows)), None if stored.bias is None else weights.bias


def stored_of(bundle: Bundle) -> Stored:
    """Where and how the table of a bag of rows lies in its bundle. Raises BundleError where it is none."""
    stored = bundle.manifest.graph.stored
    if stored is None or bundle.manifest.graph.beyond_rows is not None:
        raise BundleError(f"{bundle.path}: is no bag of rows, and only a bag's weights can be taken up again")
    return stored
