"""A bundle weighed by a user's own texts, without labels: what is common among them counts less.

SIF's weights (Arora et al., 2017, section 3) for every feature and not for words alone: a row is multiplied by
a / (a + p), where p is the share of the texts at hand that have the feature. What tells one text from another is what
few of them share, and that differs from shop to shop.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from gramvec.bundle.bundle import Manifest, open_bundle
from gramvec.errors import InputError
from gramvec.lexical.sketch import LexicalSketch
from gramvec.text.featurizer import Featurizer
from gramvec_training.data import count_documents, count_repeated
from gramvec_training.encoders import bag_of
from gramvec_training.export.bundle import export_bundle
from gramvec_training.export.memo import Chosen, can_have_memo, choose
from gramvec_training.export.weights import read_weights
from gramvec_training.types import Floats

# Between 1e-3 and 1e-2 the matching sets of docs/evaluation.md differ by a point; none was chosen on.
A = 3e-3


def adapt(
    source: str | Path,
    path: Path,
    texts: Iterable[str],
    *,
    a: float = A,
    chunks: int = 20_000,
    edges: int = 10_000,
    name: str | None = None,
) -> tuple[Manifest, int]:
    """Write the model of the bundle `source`, weighed by these texts, to the folder `path`, whole or not at all.

    Gives the new manifest and the number of texts. A feature that none of them has keeps its row. The memo is made for
    these texts, `chunks` and `edges` as in `convert`.

    Raises BundleError for a source that is no bag of rows, InputError for no texts, or an `a` that is not above 0.
    """
    if not a > 0:
        raise InputError(f"a must be above 0, not {a}", field="a")
    bundle = open_bundle(source)
    manifest, graph = bundle.manifest, bundle.manifest.graph
    table, bias = read_weights(bundle)
    lines = list(texts)
    if not lines:
        raise InputError("there are no texts to weigh by; give a file with one a line", field="texts")
    weights = feature_weights(bundle.featurizer, lines, manifest.rows, a)
    memo = Chosen()
    if can_have_memo(bundle.spec, sums=graph.pooling == "sum"):
        memo = choose(count_repeated(lines, bundle.spec), bundle.featurizer, chunks=chunks, edges=edges)
    known = bundle.lexical
    adapted = {"from": bundle.digest, "texts": len(lines), "a": a}
    chosen = name or f"{manifest.name}-adapted"
    written = export_bundle(
        path,
        name=chosen,
        kind=manifest.kind,
        spec=bundle.spec,
        vocabulary=bundle.vocabulary,
        encoder=bag_of(
            table * weights[:, None],
            bias,
            pooling="mean" if graph.pooling == "mean" else "sum",
            activation="tanh" if graph.activation == "tanh" else "linear",
        ),
        precision=graph.precision,
        parity_texts=lines[:1_000],
        memo=memo,
        lexical=None if known is None else LexicalSketch.of_texts(lines, **known.shape, a=a),
        provenance={**manifest.provenance, "adapted": adapted},
        card=f"# {chosen}\n\n{manifest.name}, its features weighed by {len(lines):,} texts (a = {a:g}).\n",
    )
    return written, len(lines)


def feature_weights(featurizer: Featurizer, texts: Sequence[str], rows: int, a: float) -> Floats:
    """float32[rows]: a / (a + p) of each row, where p is the share of the texts that have it; 1 where none has."""
    shares = count_documents(texts, featurizer, rows) / max(len(texts), 1)
    return (a / (a + shares)).astype(np.float32)
