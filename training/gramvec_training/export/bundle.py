"""Bundles written from encoders: weights, memo, golden texts, parity with the trainer."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from itertools import chain, zip_longest
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from gramvec.bundle.bundle import GOLDEN_TEXTS, Bundle, make_golden, stage_folder, write_manifest
from gramvec.bundle.manifest import (
    CPU_GRAPH,
    GRAPH,
    LEXICAL,
    MEMO,
    VOCABULARY,
    Graph,
    LexicalRecord,
    Manifest,
    Precision,
    StoredWeights,
)
from gramvec.errors import BundleError, InputError
from gramvec.explain.row_vectors import open_weights
from gramvec.features.featurizer import Featurizer, can_be_memoized
from gramvec.features.spec import FeatureSpec
from gramvec.lexical.sketch import LexicalSketch
from gramvec.runtime.ort import OnnxRuntime
from gramvec.text.arrays import FeatureBatch
from gramvec.text.memo import Memo, longest_reach, ngrams_across, ngrams_by_end
from gramvec.text.suffixes import suffix_rows, sum_suffixes
from gramvec.text.vocabulary import Vocabulary
from gramvec_training.data.vocabulary import Counts, RepeatedParts
from gramvec_training.encoders.base import Encoder, EncoderGraph
from gramvec_training.encoders.build import make_encode
from gramvec_training.encoders.graphs import graph_encoder
from gramvec_training.shared import Floats


def read_weights(bundle: Bundle) -> tuple[Floats, Floats | None]:
    """Return the table float32[rows, d] and the bias float32[d] or None of a bundle, without its memo.

    int8 rows and columns are multiplied by their scales; suffixes are taken out of rows that hold them.
    Common components were removed when the bundle was written.

    Raises:
        BundleError: The bundle is not a bag of rows.
    """
    stored = find_stored(bundle)
    weights = open_weights(bundle)
    return weights.rows(np.arange(bundle.manifest.rows)), None if stored.bias is None else weights.bias


def find_stored(bundle: Bundle) -> StoredWeights:
    """Return where the table of a bag of rows lies in its bundle.

    Raises:
        BundleError: The bundle is not a bag of rows.
    """
    stored = bundle.manifest.graph.stored
    if stored is None or bundle.manifest.graph.beyond_rows is not None:
        raise BundleError(f"{bundle.path}: is no bag of rows, and only a bag's weights can be taken up again")
    return stored


# More rows than one exact sum in float32 has (gramvec.runtime.exact), so that a text that is cut is among them.
LONG_ROWS = 1_100
FREQUENT, FAR = 16, 4


def add_long_text(featurizer: Featurizer, texts: Sequence[str] = GOLDEN_TEXTS) -> list[str]:
    """Return the texts and a long one, made of the vocabulary and the memo, that has rows of every kind.

    featurizer: as the model is served, with its memo.
    """
    long = _make_long_text(featurizer)
    return [*texts, *({long} - set(texts) - {""})]


def open_runtime(folder: Path, graph: Graph, dimension: int) -> OnnxRuntime:
    """Open ONNX Runtime on the graphs of a folder that is being written."""
    integers = graph.cpu and graph.beyond_rows is None
    return OnnxRuntime(folder / GRAPH, dimension, cpu_graph=folder / CPU_GRAPH if integers else None)


def _make_long_text(featurizer: Featurizer) -> str:
    """Return words, n-grams, chunks and edges in turn, repeated until there are LONG_ROWS rows."""
    vocabulary, memo = featurizer.vocabulary, featurizer.memo
    kinds: list[Sequence[str]] = [vocabulary.word_texts, vocabulary.ngram_texts]
    kinds += [] if memo is None else memo.decode(vocabulary)
    pieces = chain.from_iterable(zip_longest(*map(_sample_entries, kinds), fillvalue=""))
    text = " ".join(filter(None, map(str.strip, pieces)))
    rows = int(featurizer([text]).counts[0])
    return " ".join([text] * -(-LONG_ROWS // rows)) if rows else text


def _sample_entries(entries: Sequence[str]) -> Sequence[str]:
    """Return the most frequent entries and a few from all of the table; each of those reads 64 KB of it."""
    rest = entries[FREQUENT:]
    return [*entries[:FREQUENT], *rest[:: max(1, len(rest) // FAR)][:FAR], *rest[-1:]]


LONGEST_CHUNK = 24  # characters; longer ones are rare, and their sums strain an int8 row
_BLOCK = 8_192


class ChosenChunks(NamedTuple):
    """Chunks and edges of a memo, the most frequent first."""

    chunks: Sequence[str] = ()
    edges: Sequence[str] = ()


def can_have_memo(spec: FeatureSpec, *, sums: bool) -> bool:
    """Return whether a model can have a memo; `sums` tells whether its vectors are made of sums."""
    return sums and can_be_memoized(spec)


def choose_chunks(repeated: RepeatedParts, featurizer: Featurizer, *, chunks: int, edges: int) -> ChosenChunks:
    """Return the chunks and edges whose rows save the most look-ups, the most frequent first.

    One saves its rows less one each time: of the n-grams that end in one character the longest is a row. Those with a
    character that the vocabulary lacks are left out.
    """
    vocabulary = featurizer.vocabulary
    featurizer = Featurizer(featurizer.spec, vocabulary, memo=Memo.build([], vocabulary))
    known = set(map(chr, vocabulary.alphabet.tolist()))
    candidates = _list_candidates(repeated.chunks, known, LONGEST_CHUNK)
    rows: list[int] = []
    for start in range(0, len(candidates), _BLOCK):
        rows += featurizer([chunk for chunk, _ in candidates[start : start + _BLOCK]]).counts.tolist()
    chosen = _choose_best(candidates, rows, chunks)
    reach = longest_reach(featurizer.spec.orders, vocabulary.bits)
    if not reach or not edges:
        return ChosenChunks(chosen)
    row_of = _index_ngrams(vocabulary)
    candidates = _list_candidates(repeated.edges, known, 2 * reach + 1)
    orders = featurizer.spec.orders
    rows = [
        sum(not row_of.keys().isdisjoint(ngrams) for ngrams in ngrams_by_end(edge, orders)) for edge, _ in candidates
    ]
    return ChosenChunks(chosen, _choose_best(candidates, rows, edges))


def make_memo(chosen: ChosenChunks, featurizer: Featurizer, table: Floats) -> tuple[Memo, Floats]:
    """Return the memo, and the table float32[rows + chunks + edges, d] that goes with it.

    table: float32[rows, d], each row a feature's own. N-grams get their suffixes, and the rows of chunks and edges,
    added in float64, follow.
    """
    vocabulary, orders = featurizer.vocabulary, featurizer.spec.orders
    reach = longest_reach(orders, vocabulary.bits)
    memo = Memo.build(chosen.chunks, vocabulary, edges=chosen.edges, reach=reach)
    sums = np.zeros((len(memo), table.shape[1]), np.float32)
    for start in range(0, len(chosen.chunks), _BLOCK):
        batch = featurizer(chosen.chunks[start : start + _BLOCK])
        for index, (first, last) in enumerate(zip(batch.offsets[:-1], batch.offsets[1:], strict=True), start):
            sums[index] = table[batch.ids[first:last]].sum(axis=0, dtype=np.float64)
    row_of = _index_ngrams(vocabulary)
    for index, edge in enumerate(chosen.edges, len(chosen.chunks)):
        rows = [row_of[ngram] for ngram in ngrams_across(edge, orders) if ngram in row_of]
        sums[index] = table[rows].sum(axis=0, dtype=np.float64)
    return memo, np.concatenate([sum_suffixes(table, suffix_rows(vocabulary)), sums])


def _list_candidates(counts: Counts, known: set[str], longest: int) -> list[tuple[str, int]]:
    return [
        (text, count)
        for text, count in sorted(counts.items(), key=lambda item: (-item[1], item[0]))
        if count > 1 and len(text) <= longest and known.issuperset(text)
    ]


def _choose_best(candidates: Sequence[tuple[str, int]], rows: Sequence[int], most: int) -> list[str]:
    saved = [
        (-count * (row - 1), index)
        for index, ((_, count), row) in enumerate(zip(candidates, rows, strict=True))
        if row > 1
    ]
    return [candidates[index][0] for index in sorted(index for _, index in sorted(saved)[:most])]


def _index_ngrams(vocabulary: Vocabulary) -> dict[str, int]:
    return dict(zip(vocabulary.ngram_texts, vocabulary.ngram_rows.tolist(), strict=True))


NO_MEMO = ChosenChunks()
PARITY = 1e-6  # largest 1 - cosine between the trainer and ONNX Runtime, both in float32


def export_bundle(
    path: Path,
    *,
    name: str,
    kind: str,
    spec: FeatureSpec,
    vocabulary: Vocabulary,
    encoder: Encoder,
    precision: Precision = "float32",
    parity_texts: Sequence[str] = (),
    golden_texts: Sequence[str] | None = None,
    memo: ChosenChunks = NO_MEMO,
    lexical: LexicalSketch | None = None,
    provenance: Mapping[str, Any],
    card: str,
) -> Manifest:
    """Write a bundle to the folder `path`, whole or not at all, and return its manifest.

    encoder: with a row of its table for each entry of the vocabulary. Its vectors of the parity texts are what the
        graph's are compared with, in float32; what the stored precision adds is measured on the same texts and
        recorded.
    precision: of the stored table.
    golden_texts: stored with features and vectors, which every opening computes again. None for texts of
        every kind of row.
    memo: chunks and edges that get a row with the sum of their features; only for encoders of sums.
    lexical: what makes the columns that say which n-grams stand in a text; None for none.

    Raises:
        InputError: The arguments do not fit together, or if the graph's vectors differ from the encoder's by more than
            1e-6 (1 - cosine).
    """
    parts = graph_encoder(encoder)
    if len(parts.table) != len(vocabulary):
        raise InputError(f"a table of shape {parts.table.shape} does not fit a vocabulary of {len(vocabulary)} rows")
    if any(memo) and not parts.sums:
        raise InputError("a memo holds sums, and the model takes means: export it without a memo")
    table, dimension = parts.table, encoder.dimension
    featurizer = memoized = Featurizer(spec, vocabulary)
    memory = None
    if any(memo):
        memory, table = make_memo(memo, featurizer, table)
        memoized = Featurizer(spec, vocabulary, memo=memory)
    if golden_texts is None:
        # What is read in order rounds a little at every step, on each processor another way: no long text there.
        golden_texts = GOLDEN_TEXTS if parts.in_order else add_long_text(memoized)

    parity: dict[str, Any] = {"texts": len(parity_texts)}
    exact = _run_in_float32(memoized, parity_texts, parts, table, dimension)
    if len(parity_texts):
        parity["float32_vs_trainer"] = _find_largest_distance(exact, make_encode(encoder, featurizer)(parity_texts))
        if not parity["float32_vs_trainer"] <= PARITY:
            raise InputError(
                f"the graph and the trainer differ by {parity['float32_vs_trainer']:.1e} (1 - cosine), "
                f"over {PARITY:.0e}; this is a fault of the exporter, please report it"
            )

    with stage_folder(Path(path)) as folder:
        vocabulary.save(folder / VOCABULARY)
        if memory is not None:
            memory.save(folder / MEMO)
        graph = parts.write(folder, precision, table=table)
        runtime = open_runtime(folder, graph, dimension)
        if len(parity_texts):
            stored = runtime.run(memoized(parity_texts))
            parity["stored_vs_float32"] = _find_largest_distance(stored, exact)
        golden = make_golden(runtime.run, featurizer, memoized, golden_texts)
        runtime.close()
        (folder / "README.md").write_text(card, encoding="utf-8")
        return write_manifest(
            folder,
            name=name,
            kind=kind,
            dimension=dimension,
            spec=spec,
            vocabulary=vocabulary,
            memo=memory,
            lexical=save_lexical(folder, lexical),
            graph=graph,
            golden=golden,
            provenance={**provenance, "parity": parity},
        )


def _run_in_float32(
    featurizer: Featurizer, texts: Sequence[str], parts: EncoderGraph, table: Floats, dimension: int
) -> Floats:
    if not len(texts):
        return np.zeros((0, dimension), np.float32)
    batch = featurizer(texts)
    # Over only the rows of these texts: the whole table would be 300 MB, written to be read once.
    ids = batch.ids
    if len(ids) and not parts.in_order:
        used, places = np.unique(ids, return_inverse=True)
        table, ids = table[used], places.astype(np.int32)
    with tempfile.TemporaryDirectory() as name:
        parts.write(Path(name), "float32", table=table)
        runtime = OnnxRuntime(Path(name) / GRAPH, dimension)
        vectors = runtime.run(FeatureBatch(ids, batch.offsets))
        runtime.close()
        return vectors


def _find_largest_distance(vectors: Floats, expected: Floats) -> float:
    """Return the largest 1 - cosine of two rows in float64: 0 for two zero rows, 1 for zero against non-zero."""
    a, b = vectors.astype(np.float64), np.asarray(expected, np.float64)
    lengths = np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1)
    cosines = np.einsum("ij,ij->i", a, b) / np.where(lengths > 0, lengths, 1)
    both_zero = ~a.any(axis=1) & ~b.any(axis=1)
    return max(0.0, float(np.max(1 - np.where(both_zero, 1.0, cosines), initial=0.0)))


def save_lexical(folder: Path, lexical: LexicalSketch | None) -> LexicalRecord | None:
    """Write the lexical weights into a folder; return their manifest record, or None for None."""
    if lexical is None:
        return None
    lexical.weights.save(folder / LEXICAL)
    return LexicalRecord(columns=lexical.columns, orders=list(lexical.orders), scale=lexical.scale)
