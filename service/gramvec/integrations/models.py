"""Models behind the interfaces: opened by name once per process, or passed as an Embedder or a Client."""

from __future__ import annotations

import os
from functools import lru_cache

import numpy as np

from gramvec.embed.embedder import Embedder
from gramvec.embed.loading import load
from gramvec.embed.st_compat import SentenceEncoder
from gramvec.embed.vectors import Vectors, check_dimensions
from gramvec.errors import InputError
from gramvec.text.inputs import list_texts

# A name or folder: interfaces that store their settings as text take nothing else.
ModelName = str | os.PathLike[str]
ModelOrName = ModelName | SentenceEncoder

# Models that are kept open.
MAX_OPEN = 8
# Texts of one call, which uses all cores.
BLOCK = 65_536


def open_model(model: ModelOrName) -> SentenceEncoder:
    """Return an open model: load a name or folder once per process. Raises what gramvec.load does."""
    if isinstance(model, SentenceEncoder):
        return model
    try:
        name = os.fspath(model)
    except TypeError:
        sentence = f"model: must be a name, a folder, an Embedder or a Client, got {type(model).__name__}"
        raise InputError(sentence, field="model") from None
    return _load_once(name)


def embed_texts(
    model: ModelOrName, texts: object, *, dimensions: int | None = None, normalize: bool = True, truncate: bool = True
) -> Vectors:
    """Return float32[n, dimensions] of any iterable of texts. Raises InputError as Embedder.embed does."""
    encodes = open_model(model)
    check_dimensions(dimensions, encodes.dimension)
    listed = list_texts(texts)  # type: ignore[arg-type]
    vectors = np.empty((len(listed), dimensions or encodes.dimension), np.float32)
    start = 0
    for block in encodes.stream(
        listed, batch_size=BLOCK, normalize=normalize, dimensions=dimensions, truncate=truncate
    ):
        vectors[start : start + len(block)] = block
        start += len(block)
    return vectors


def embed_lists(model: ModelOrName, texts: object, dimensions: int | None) -> list[list[float]]:
    """Return what `embed_texts` does, as lists."""
    lists: list[list[float]] = embed_texts(model, texts, dimensions=dimensions).tolist()
    return lists


def name_to_store(model: ModelOrName) -> str:
    """Return the name or folder that another library stores to open the model again.

    Raises:
        InputError: A client cannot be opened by a name.
    """
    if isinstance(model, str | os.PathLike):
        return os.fspath(model)
    if isinstance(model, Embedder):
        return str(model.bundle.path)
    raise InputError(f"a {type(model).__name__} cannot be stored; give the model's name or folder", field="model")


@lru_cache(maxsize=MAX_OPEN)
def _load_once(name: str) -> Embedder:
    return load(name)
