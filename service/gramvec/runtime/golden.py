"""What a runtime makes of a bundle's golden texts, against the vectors that ONNX Runtime made at export."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gramvec.bundle.bundle import Bundle
from gramvec.bundle.resolve import MANIFEST
from gramvec.errors import BundleError
from gramvec.runtime.base import Runtime

Floats = NDArray[np.float32]

# Largest difference of a vector from its golden one, relative to the latter's length. Sums are made in the same order,
# or are exact; tanh may round otherwise.
AGREEMENT = 1e-5
# Without the loops in C a bundle's memo is not used, and its int8 rows were rounded apart from those that are.
AGREEMENT_WITHOUT_MEMO = 5e-2


def golden_difference(bundle: Bundle, runtime: Runtime) -> float:
    """The largest difference of a golden vector from what the runtime makes of its text, see `differences`.

    Raises BackendError if the runtime fails, BundleError if the golden vectors have another shape.
    """
    golden = bundle.manifest.golden
    try:
        expected = np.array([one.vector for one in golden], np.float32).reshape(len(golden), bundle.manifest.dimension)
    except ValueError as error:
        path = bundle.path / MANIFEST
        raise BundleError(f"{path}: golden vectors of another shape; export the model again") from error
    found = runtime.embed(bundle.memoised, [one.text for one in golden]).vectors
    return float(differences(found, expected).max(initial=0.0))


def tolerance(bundle: Bundle) -> float:
    """How far from the golden vectors a runtime may be."""
    without_memo = bundle.manifest.memo and not bundle.memoised.compiled
    return AGREEMENT_WITHOUT_MEMO if without_memo else AGREEMENT


def differences(found: Floats, expected: Floats) -> NDArray[np.float64]:
    """float64[n]: the length of found - expected in each row, relative to that of expected; inf for a NaN.

    Where a row of `expected` is zeros, so must be that of `found`, or the difference is inf.
    """
    wide = expected.astype(np.float64)
    lengths = np.linalg.norm(wide, axis=1)
    apart = np.linalg.norm(found - wide, axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        relative = np.where(apart == 0, 0.0, apart / lengths)
    return np.where(np.isnan(relative), np.inf, relative)
