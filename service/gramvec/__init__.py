"""gramvec: sentence embeddings from character n-grams and words.

>>> import gramvec
>>> embedder = gramvec.load("gramvec-en")
>>> embedder.embed(["a text", "another"]).shape
(2, 300)
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from gramvec.errors import (
    BackendError,
    BundleError,
    DeviceError,
    GramvecError,
    InputError,
    Overloaded,
)

if TYPE_CHECKING:
    from gramvec import explain, neighbours, sparse
    from gramvec.embedding import Embedder, load
    from gramvec.matching import match

__all__ = [
    "BackendError",
    "BundleError",
    "DeviceError",
    "Embedder",
    "GramvecError",
    "InputError",
    "Overloaded",
    "__version__",
    "explain",
    "load",
    "match",
    "neighbours",
    "sparse",
]

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    """`Embedder`, `load`, `match` and the modules `explain`, `neighbours` and `sparse`, imported when they are wanted.

    They bring numpy, for which `gramvec serve` sets something first.
    """
    if name in ("Embedder", "load"):
        return getattr(import_module("gramvec.embedding"), name)
    if name == "match":
        return import_module("gramvec.matching").match
    if name in ("explain", "neighbours", "sparse"):
        return import_module(f"gramvec.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
