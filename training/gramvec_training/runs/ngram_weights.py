"""Lexical weights learned from labeled pairs, with cross-validated scores."""

from __future__ import annotations

import logging
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from gramvec.bundle.bundle import open_bundle
from gramvec.bundle.manifest import Manifest
from gramvec.embed.loading import load
from gramvec.errors import InputError
from gramvec.lexical.sketch import COLUMNS, ORDERS, LexicalSketch
from gramvec.lexical.weights import WEIGHT_BITS, NgramWeights
from gramvec_training.evaluation.matching import judge_pairs, score_pairs
from gramvec_training.evaluation.verdict import group_rows
from gramvec_training.export.adapt import with_lexical
from gramvec_training.objectives.ngram_weights import NgramCounts, TextPairs, learn_weights
from gramvec_training.options import WeightOptions
from gramvec_training.readers.lines import is_piped, shorten_path, spool
from gramvec_training.readers.pairs import LabeledPairs, read_labeled_pairs
from gramvec_training.runs.run_dir import INPUT
from gramvec_training.sections import OnBad, TableFormat
from gramvec_training.shared import Floats, Ints

_log = logging.getLogger(__name__)

PARTS = 5
MIN_PAIRS = 10  # of either label, or of scored pairs
MAX_PAIRS, MAX_CHARACTERS = 200_000, 50_000_000  # some 3 GB
_FULL = 255
_SEED = 1


def learn_ngram_weights(
    source: Path,
    start: str,
    bundle: Path,
    *,
    on_bad: OnBad = "skip",
    given_format: TableFormat | None = None,
    name: str | None = None,
    anyway: bool = False,
) -> tuple[Manifest | None, dict[str, Any]]:
    """Write the bundle `start` with n-gram weights learned from labeled pairs to `bundle`; return manifest and report.

    Nothing is written, and the manifest is None, where pairs are judged no better for sure than by the best that the
    bundle has already, unless `anyway`.

    What a text means stays as it is, and so do the orders, columns and scale of the bundle's lexical columns. The
    report has the scores of pairs by the model as it was and by weights that have not seen the pair's texts: they are
    learned five times, each time without a fifth of the pairs, and then from all. Pairs that share a text, directly or
    through others, are in one fifth; where too many do, those that share the left text.

    Raises:
        InputError: A file that cannot be used.
        BundleError: The bundle.
    """
    pairs, bad = read_labeled_pairs(source, on_bad=on_bad, given=given_format)
    for line in bad.sentences():
        _log.warning(line)
    _check(pairs, source)
    known = open_bundle(start)
    texts = list(dict.fromkeys([*pairs.left, *pairs.right]))
    if sum(map(len, texts)) > MAX_CHARACTERS:
        raise InputError(f"{shorten_path(source)}: the texts have over {MAX_CHARACTERS:,} characters; give fewer pairs")
    weights, _ = NgramWeights.of_texts(texts, ORDERS if known.lexical is None else known.lexical.orders)
    unlearned = (
        LexicalSketch(weights, ORDERS, COLUMNS, 1.0, known.spec.read)
        if known.lexical is None
        else LexicalSketch(weights, **known.lexical.shape)
    )
    counts = NgramCounts.from_texts(unlearned, texts)
    places = {text: place for place, text in enumerate(texts)}
    left, right = (np.array([places[text] for text in side], np.int64) for side in (pairs.left, pairs.right))
    text_pairs = TextPairs(left, right, pairs.labels, pairs.binary)
    groups = _group_pairs(left, right)
    parts = _split_parts(groups)

    reports = {}
    before = _score_before(start, pairs, with_lexical=known.lexical is not None)
    for label, cosines in before.items():
        reports[label] = score_pairs(cosines, text_pairs.labels, parts, binary=text_pairs.binary)
    measure = "f1" if text_pairs.binary else "pearson"
    best = max(before, key=lambda label: reports[label][measure])
    reports["weighed by the texts"] = _score(unlearned, texts, text_pairs, parts)
    held_out = np.zeros(len(left))
    for part in range(PARTS):
        inside, outside = np.flatnonzero(parts != part), np.flatnonzero(parts == part)
        if len(outside):
            learned = _make_lexical(unlearned, counts, learn_weights(counts, text_pairs.take(inside)))
            held_out[outside] = _compare_texts(learned, texts, text_pairs.take(outside))
    reports["learned"] = score_pairs(held_out, text_pairs.labels, parts, binary=text_pairs.binary)
    report: dict[str, Any] = {"pairs": len(left), "binary": text_pairs.binary, "scores": reports, "best": best}
    verdict = judge_pairs(before[best], held_out, text_pairs.labels, parts, groups, binary=text_pairs.binary)
    report["verdict"] = verdict
    if not (anyway or verdict["better"]):
        return None, report
    learned = _make_lexical(unlearned, counts, learn_weights(counts, text_pairs))
    entries = {"labeled pairs": len(left), "held_out": report}
    return with_lexical(known, bundle, learned, entries, name=name), report


def learn_weights_of_file(
    source: Path, bundle: Path, options: WeightOptions, *, anyway: bool
) -> tuple[Manifest | None, dict[str, Any]]:
    """Learn from a file or a pipe what `learn_ngram_weights` learns, under the name of the bundle's folder."""
    with tempfile.TemporaryDirectory(prefix="gramvec-") as folder:
        file = source
        if is_piped(source):
            file = Path(folder) / INPUT
            spool(source, file)
        return learn_ngram_weights(
            file, options.start, bundle, on_bad=options.bad_rows, given_format=options.table_format,
            name=bundle.resolve().name, anyway=anyway,
        )  # fmt: skip


def _check(pairs: LabeledPairs, source: Path) -> None:
    matching = int((pairs.labels == 1).sum())
    if pairs.binary and min(matching, len(pairs.labels) - matching) < MIN_PAIRS:
        raise InputError(
            f"{shorten_path(source)}: {matching} pairs have the label 1 and {len(pairs.labels) - matching} have 0; "
            f"give at least {MIN_PAIRS} of either, or call gramvec-train fit-pairs, which takes those with 1"
        )
    if not pairs.binary and (len(pairs.labels) < MIN_PAIRS or pairs.labels.std() == 0):
        raise InputError(
            f"{shorten_path(source)}: {len(pairs.labels)} scored pairs; give {MIN_PAIRS} or more whose scores differ"
        )
    if len(pairs.labels) > MAX_PAIRS:
        raise InputError(
            f"{shorten_path(source)}: {len(pairs.labels):,} labeled pairs; at most {MAX_PAIRS:,}: give fewer"
        )


def _group_pairs(left: Ints, right: Ints) -> Ints:
    """Return int64[n], from 0: pairs that share a text, or only a left text where a group would be over a fifth."""
    groups = group_rows([left, right])
    if np.bincount(groups).max() * PARTS > len(groups):
        groups = np.unique(left, return_inverse=True)[1].astype(np.int64)
    return groups


def _split_parts(groups: Ints) -> Ints:
    """Return int64[n]: the fold of each pair, out of five; pairs of a group share a fold."""
    drawn = np.random.default_rng(_SEED).permutation(int(groups.max()) + 1) % PARTS
    return np.asarray(drawn[groups], np.int64)


def _score_before(start: str, pairs: LabeledPairs, *, with_lexical: bool) -> dict[str, Floats]:
    embedder = load(start, device="cpu", threads=1, space="both" if with_lexical else "semantic")
    texts = list(dict.fromkeys([*pairs.left, *pairs.right]))
    places = {text: place for place, text in enumerate(texts)}
    left, right = ([places[text] for text in side] for side in (pairs.left, pairs.right))
    try:
        vectors_by_space = {"what it means": embedder.embed(texts, truncate=True, space="semantic")}
        if with_lexical:
            vectors_by_space["lexical as it was"] = embedder.embed(texts, truncate=True, space="lexical")
    finally:
        embedder.close()
    return {name: np.einsum("ij,ij->i", vectors[left], vectors[right]) for name, vectors in vectors_by_space.items()}


def _make_lexical(unlearned: LexicalSketch, counts: NgramCounts, learned: Any) -> LexicalSketch:
    """Return the sketch with weights in 255ths of a bound that few exceed; unknown n-grams weigh as the rarest."""
    rarest = counts.shares == counts.shares.min()
    weights = np.full(1 << WEIGHT_BITS, float(np.exp(np.log(learned[rarest]).mean())))
    weights[counts.places] = learned
    most = float(np.quantile(learned, 0.999))
    rounded = np.clip(np.rint(_FULL * weights / most), 1, _FULL).astype(np.uint8)
    return LexicalSketch(NgramWeights(rounded, unlearned.weights.letters), **unlearned.shape)


def _score(lexical: LexicalSketch, texts: list[str], pairs: TextPairs, parts: Ints) -> dict[str, float]:
    return score_pairs(_compare_texts(lexical, texts, pairs), pairs.labels, parts, binary=pairs.binary)


def _compare_texts(lexical: LexicalSketch, texts: list[str], pairs: TextPairs) -> Floats:
    """Return cosines as they are served: of sketches, not of the n-grams themselves."""
    sketches = lexical.join(texts, np.zeros((len(texts), 0), np.float32))[0]
    lengths = np.linalg.norm(sketches, axis=1, keepdims=True)
    units = sketches / np.where(lengths > 0, lengths, 1)
    return np.asarray(np.einsum("ij,ij->i", units[pairs.left], units[pairs.right]), np.float32)
