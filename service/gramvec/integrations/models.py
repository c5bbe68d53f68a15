"""The model behind an interface: by name, opened once a process; or one that is open; or a service's client."""

from __future__ import annotations

import os
from functools import lru_cache

import numpy as np

from gramvec.embed.embedder import Embedder
from gramvec.embed.loading import load
from gramvec.embed.st_compat import Encodes
from gramvec.embed.vectors import Vectors, check_dimensions
from gramvec.errors import InputError
from gramvec.text.inputs import listed

# A name or folder; what keeps its settings as text takes no other.
Name = str | os.PathLike[str]
Model = Name | Encodes

# More models than this at once are opened again when they come back.
MOST_OPEN = 8
# Texts of one call, which all cores share.
BLOCK = 65_536


def opened(model: Model) -> Encodes:
    """A name or folder is loaded, once a process; what embeds is taken as it is. Raises what gramvec.load does."""
    if isinstance(model, Encodes):
        return model
    try:
        name = os.fspath(model)
    except TypeError:
        said = f"model must be a name, a folder, an Embedder or a Client, not {type(model).__name__}"
        raise InputError(said, field="model") from None
    return _loaded(name)


def vectors_of(
    model: Model, texts: object, *, dimensions: int | None = None, normalize: bool = True, truncate: bool = True
) -> Vectors:
    """float32[n, k] of any iterable of texts. Raises InputError as Embedder.embed does."""
    encodes = opened(model)
    check_dimensions(dimensions, encodes.dimension)
    given = listed(texts)  # type: ignore[arg-type]
    found = np.empty((len(given), dimensions or encodes.dimension), np.float32)
    start = 0
    for block in encodes.stream(given, batch_size=BLOCK, normalize=normalize, dimensions=dimensions, truncate=truncate):
        found[start : start + len(block)] = block
        start += len(block)
    return found


def name_of(model: Model) -> str:
    """What another library writes down so that the model can be opened again: the name or folder it was given by.

    Raises InputError for a client, which is not opened by a name.
    """
    if isinstance(model, str | os.PathLike):
        return os.fspath(model)
    if isinstance(model, Embedder):
        return str(model.bundle.path)
    raise InputError(f"a {type(model).__name__} cannot be written down; give the model's name or folder", field="model")


@lru_cache(maxsize=MOST_OPEN)
def _loaded(name: str) -> Embedder:
    return load(name)
