"""Which model made a file of vectors, and how: what is written beside them."""

from __future__ import annotations

from typing import Any

import orjson

import gramvec
from gramvec.embed.embedder import Embedder


def provenance(embedder: Embedder, options: dict[str, Any]) -> dict[str, str]:
    """The metadata of a file of vectors: gramvec.model, .digest, .version and, as JSON, .options."""
    return {
        "gramvec.model": embedder.name,
        "gramvec.digest": embedder.digest,
        "gramvec.version": gramvec.__version__,
        "gramvec.options": orjson.dumps(options, option=orjson.OPT_SORT_KEYS).decode(),
    }
