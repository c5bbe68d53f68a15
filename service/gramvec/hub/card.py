"""The hub's metadata of a model: lines of YAML between `---` before the card, and away from it again."""

from __future__ import annotations

import re

from gramvec.bundle.bundle import Manifest
from gramvec.hub.errors import library

FENCE = b"---\n"
# What may stand before a card; the card itself has the length that the manifest says.
MOST_METADATA_BYTES = 64 * 2**10

_licence = re.compile(r"[A-Za-z0-9.+-]{1,40}").fullmatch


def with_metadata(card: bytes, manifest: Manifest) -> bytes:
    """The card with the metadata by which the hub lists it; as it is where it has some."""
    if card.startswith(FENCE):
        return card
    licence = str(manifest.provenance.get("licence", ""))
    data = library().ModelCardData(
        license=licence.lower() if _licence(licence) else None,
        library_name="gramvec",
        pipeline_tag="sentence-similarity",
        tags=["gramvec", "sentence-embeddings", "character-ngrams", manifest.kind],
        model_name=manifest.name,
    )
    return b"".join([FENCE, data.to_yaml().encode(), b"\n", FENCE, b"\n", card])


def without_metadata(content: bytes, size: int) -> bytes:
    """The last `size` bytes where metadata stands before them; else as it is, for the digest to judge."""
    if len(content) <= size or not content.startswith(FENCE):
        return content
    return content[len(content) - size :]
