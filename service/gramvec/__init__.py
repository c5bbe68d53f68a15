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
    ServiceError,
)

if TYPE_CHECKING:
    from gramvec import client, explain, neighbours
    from gramvec.embedding import Embedder, load

__all__ = [
    "BackendError",
    "BundleError",
    "DeviceError",
    "Embedder",
    "GramvecError",
    "InputError",
    "Overloaded",
    "ServiceError",
    "__version__",
    "client",
    "explain",
    "load",
    "neighbours",
]

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    """`Embedder`, `load` and the modules `client`, `explain` and `neighbours`, imported when they are wanted.

    They bring numpy, for which `gramvec serve` sets something first.
    """
    if name in ("Embedder", "load"):
        return getattr(import_module("gramvec.embedding"), name)
    if name in ("client", "explain", "neighbours"):
        return import_module(f"gramvec.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
