"""gramvec: sentence embeddings from character n-grams and words.

>>> import gramvec
>>> embedder = gramvec.load("gramvec-en")
>>> embedder.embed(["a text", "another"]).shape
(2, 300)
"""

from __future__ import annotations

from gramvec.embedder import Embedder, load
from gramvec.errors import (
    BackendError,
    BundleError,
    DeviceError,
    GramvecError,
    InputError,
    Overloaded,
)

__all__ = [
    "BackendError",
    "BundleError",
    "DeviceError",
    "Embedder",
    "GramvecError",
    "InputError",
    "Overloaded",
    "__version__",
    "load",
]

__version__ = "0.1.0"
