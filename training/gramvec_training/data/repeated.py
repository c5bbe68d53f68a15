"""How often chunks and edges stand in the training texts: what an export chooses its memo by (gramvec.text.memo)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from gramvec.text.characters import lower
from gramvec.text.memo import edges_of
from gramvec.text.nfc import compose
from gramvec.text.spec import FeatureSpec

Counts = Mapping[str, int]


class Repeated(NamedTuple):
    """How often each chunk and each edge is in some texts. A chunk has no white space, an edge has."""

    chunks: Counts
    edges: Counts


def count_repeated(texts: Iterable[str], spec: FeatureSpec) -> Repeated:
    """The chunks and edges of the texts, normalised by the spec."""
    chunks: Counter[str] = Counter()
    edges: Counter[str] = Counter()
    reach = max(spec.orders, default=0) - 2
    for text in texts:
        composed = compose(text)
        if spec.lowercase:
            composed = composed.lower() if composed.isascii() else "".join(map(lower, composed))
        words = composed.split()
        chunks.update(words)
        if reach > 0:
            edges.update(edges_of(f" {' '.join(words)} ", reach))
    return Repeated(chunks, edges)
