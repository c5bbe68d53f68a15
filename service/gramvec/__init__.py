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
    from gramvec import client, explain, integrations, lexical
    from gramvec.embed.embedder import Embedder
    from gramvec.embed.loading import load
    from gramvec.jobs.duplicates.api import dedupe
    from gramvec.jobs.matching.api import explain_pairs, match, pair_scores
    from gramvec.jobs.search.index import Index

__all__ = [
    "BackendError",
    "BundleError",
    "DeviceError",
    "Embedder",
    "GramvecError",
    "Index",
    "InputError",
    "Overloaded",
    "ServiceError",
    "__version__",
    "client",
    "dedupe",
    "explain",
    "explain_pairs",
    "integrations",
    "lexical",
    "load",
    "match",
    "pair_scores",
]

__version__ = "0.2.0"


# Imported on first use: they import numpy, and `gramvec serve` sets an environment variable before that.
_WHERE = {
    "Embedder": "gramvec.embed",
    "Index": "gramvec.jobs.search",
    "dedupe": "gramvec.jobs.duplicates",
    "explain_pairs": "gramvec.jobs.matching",
    "load": "gramvec.embed",
    "match": "gramvec.jobs.matching",
    "pair_scores": "gramvec.jobs.matching",
}
_MODULES = ("client", "explain", "integrations", "lexical")


def __getattr__(name: str) -> Any:
    """Import a public name on first use."""
    if name in _WHERE:
        return getattr(import_module(_WHERE[name]), name)
    if name in _MODULES:
        return import_module(f"gramvec.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
