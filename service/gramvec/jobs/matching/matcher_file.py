"""Matcher files: JSON of names and numbers, without code. A file is untrusted, so every value is checked."""

from __future__ import annotations

import math
import os
import stat
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray

from gramvec.errors import InputError, quote
from gramvec.jobs.matching.features import feature_names
from gramvec.jobs.matching.fields import MAX_COLUMNS, NgramSettings
from gramvec.jobs.matching.matcher import LabelReport, LearnedMatcher, LinearClassifier, PairClassifier
from gramvec.jobs.pairs.trees import Trees
from gramvec.jobs.tables.staging import whole
from gramvec.lexical.sparse import WEIGHTINGS

FORMAT, VERSION = "gramvec matcher", 2
MAX_BYTES = 4 << 20
MAX_NODES, MAX_TREES, MAX_DEPTH = 100_000, 1_000, 64
MAX_NAME = 1_000
# Sums and products of numbers below this stay finite.
MAX_NUMBER = 1e12
COUNTS = ("pairs", "matches", "held_pairs", "held_matches")
SHARES = ("precision", "recall", "f1")


class _InvalidMatcher(Exception):
    """A file is not a valid matcher."""


def save_matcher(matcher: LearnedMatcher, path: Path) -> None:
    """Write a matcher to a file that appears when it is whole. Raises InputError if it cannot be written."""
    classifier = matcher.classifier
    record = {
        "format": FORMAT,
        "version": VERSION,
        "columns": matcher.columns,
        "weights": matcher.weights,
        "ngrams": matcher.ngrams._asdict(),
        "features": feature_names(len(matcher.columns)),
        "threshold": matcher.threshold,
        "top": matcher.top,
        "report": matcher.report._asdict(),
        # Features are finite, so that it does not matter where a missing one would go.
        "classifier": {
            name: getattr(classifier, name) for name in classifier.__dataclass_fields__ if name != "missing"
        },
    }
    data = orjson.dumps(record, option=orjson.OPT_SERIALIZE_NUMPY | orjson.OPT_APPEND_NEWLINE)
    try:
        with whole(path) as file:
            file.write(data)
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({error.strerror or error})") from error


def load_matcher(path: Path) -> LearnedMatcher:
    """Read a matcher. Raises InputError for an invalid file: every size, range and index is checked."""
    try:
        # A FIFO without a writer opens at once, and is refused below.
        with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise InputError(f"{path}: is not a regular file; write one with `save_matcher`")
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror or error})") from error
    try:
        if len(data) > MAX_BYTES:
            raise _InvalidMatcher(f"it has more than {MAX_BYTES >> 20} MiB")
        return _matcher(data)
    except _InvalidMatcher as error:
        raise InputError(f"{path}: is not a valid matcher ({error}); write one with `save_matcher`") from error


def _matcher(data: bytes) -> LearnedMatcher:
    try:
        record = _object(orjson.loads(data), "it")
    except orjson.JSONDecodeError:
        raise _InvalidMatcher("it is not JSON") from None
    if record.get("format") != FORMAT or record.get("version") != VERSION:
        raise _InvalidMatcher(f"its format is not {FORMAT!r}, version {VERSION}")
    columns = tuple(_pair(pair) for pair in _list(record, "columns", 1, MAX_COLUMNS))
    weights = _floats(record, "weights", len(columns))
    if not (weights > 0).all() or len(set(columns)) < len(columns):
        raise _InvalidMatcher("its columns are not distinct, with weights above 0")
    names = feature_names(len(columns))
    if record.get("features") != names:
        raise _InvalidMatcher("its features are not those of this version")
    return LearnedMatcher(
        columns,
        tuple(weights.tolist()),
        _ngrams(_object(record.get("ngrams"), "ngrams")),
        _classifier(_object(record.get("classifier"), "classifier"), len(names)),
        _number(record, "threshold", 0, 1),
        None if record.get("top") is None else int(_ints({"top": [record["top"]]}, "top", 1, 1, 1, 10**6)[0]),
        _report(_object(record.get("report"), "report")),
    )


def _ngrams(record: Mapping[str, Any]) -> NgramSettings:
    orders = [int(order) for order in _ints(record, "orders", 1, 8, 1, 8).tolist()]
    weighting = record.get("weighting")
    if weighting not in WEIGHTINGS or len(set(orders)) < len(orders):
        raise _InvalidMatcher("its n-grams are of an unknown kind")
    return NgramSettings(weighting, tuple(orders), _number(record, "a", 1e-9, 1e9))


def _report(record: Mapping[str, Any]) -> LabelReport:
    kind = record.get("kind")
    if kind not in ("logistic", "trees"):
        raise _InvalidMatcher("report.kind is unknown")
    counts = [int(_number(record, name, 0, 1e9)) for name in COUNTS]
    return LabelReport(kind, *counts, *(_number(record, name, 0, 1) for name in SHARES))


def _classifier(record: Mapping[str, Any], features: int) -> PairClassifier:
    if "coefficients" in record:
        scales = _floats(record, "scales", features)
        if not (scales >= 1 / MAX_NUMBER).all():
            raise _InvalidMatcher("scales are not above 0")
        means, coefficients = _floats(record, "means", features), _floats(record, "coefficients", features)
        return LinearClassifier(means, scales, coefficients, _number(record, "intercept", -MAX_NUMBER, MAX_NUMBER))
    feature = _ints(record, "feature", 1, MAX_NODES, -1, features - 1)
    nodes = len(feature)
    starts = _ints(record, "starts", 2, MAX_TREES + 1, 0, nodes)
    trees = Trees(
        _number(record, "base", -MAX_NUMBER, MAX_NUMBER),
        starts,
        feature,
        _floats(record, "cut", nodes),
        _ints(record, "below", nodes, nodes, 0, nodes - 1),
        _ints(record, "above", nodes, nodes, 0, nodes - 1),
        np.zeros(nodes, np.uint8),
        _floats(record, "value", nodes),
    )
    _check_trees(trees)
    return trees


def _check_trees(trees: Trees) -> None:
    """Check that children stand after their parent in the same tree, so that there is no cycle, and the depth."""
    nodes = len(trees.feature)
    if trees.starts[0] != 0 or trees.starts[-1] != nodes or not (np.diff(trees.starts) > 0).all():
        raise _InvalidMatcher("starts are not those of consecutive trees")
    place = np.arange(nodes)
    end = np.repeat(trees.starts[1:], np.diff(trees.starts))
    inner = trees.feature >= 0
    for children in (trees.below, trees.above):
        if not ((children > place) & (children < end))[inner].all():
            raise _InvalidMatcher("a node does not stand after its parent")
    depth = np.zeros(nodes, np.int32)
    # From the last node up, edges to the lowest leaf: children stand after their parent.
    for node in np.flatnonzero(inner)[::-1].tolist():
        depth[node] = 1 + max(depth[trees.below[node]], depth[trees.above[node]])
    if depth.max() > MAX_DEPTH:
        raise _InvalidMatcher(f"a tree has more than {MAX_DEPTH} levels")


def _object(value: Any, name: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise _InvalidMatcher(f"{name} is not an object")
    return value


def _list(record: Mapping[str, Any], name: str, lowest: int, highest: int) -> Sequence[Any]:
    value = record.get(name)
    if not isinstance(value, list) or not lowest <= len(value) <= highest:
        raise _InvalidMatcher(f"{name} is not a list of {lowest:,} to {highest:,} values")
    return value


def _pair(value: Any) -> tuple[str, str]:
    if not isinstance(value, list) or len(value) != 2 or not all(
        isinstance(name, str) and 0 < len(name) <= MAX_NAME for name in value
    ):  # fmt: skip
        raise _InvalidMatcher(f"a column is {quote(value)}, not the names in both tables")
    return value[0], value[1]


def _number(record: Mapping[str, Any], name: str, lowest: float, highest: float) -> float:
    value: Any = record.get(name)
    if not _is_number(value) or not lowest <= value <= highest:
        raise _InvalidMatcher(f"{name} is not a number from {lowest:g} to {highest:g}")
    return float(value)


def _floats(record: Mapping[str, Any], name: str, size: int) -> NDArray[np.float64]:
    values = _list(record, name, size, size)
    if not all(_is_number(value) and abs(value) <= MAX_NUMBER for value in values):
        raise _InvalidMatcher(f"{name} are not numbers up to {MAX_NUMBER:g}")
    return np.array(values, np.float64)


def _ints(
    record: Mapping[str, Any], name: str, min_length: int, max_length: int, lowest: int, highest: int
) -> NDArray[np.int32]:
    values = _list(record, name, min_length, max_length)
    if not all(type(value) is int and lowest <= value <= highest for value in values):
        raise _InvalidMatcher(f"{name} are not whole numbers from {lowest} to {highest}")
    return np.array(values, np.int32)


def _is_number(value: Any) -> bool:
    return type(value) in (int, float) and math.isfinite(value)
