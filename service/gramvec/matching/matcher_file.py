"""A matcher in a file: JSON of names and numbers, no code; a stranger's perhaps, so checked before it is used."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray

from gramvec.errors import InputError, quoted
from gramvec.lexical.sparse import WEIGHTINGS
from gramvec.matching.classifiers import Classifier, Linear, Trees
from gramvec.matching.features import feature_names
from gramvec.matching.fields import MOST_COLUMNS, Ngrams
from gramvec.matching.fit_matcher import Report
from gramvec.matching.matcher import Learned
from gramvec.tables.staging import whole

FORMAT, VERSION = "gramvec matcher", 1
MOST_BYTES = 4 << 20
MOST_NODES, MOST_TREES, MOST_DEPTH = 100_000, 1_000, 64
MOST_NAME = 1_000
# Sums and products of numbers below this stay finite.
MOST = 1e12
COUNTS = ("pairs", "matches", "held_pairs", "held_matches")
SHARES = ("precision", "recall", "f1")


class _Damaged(Exception):
    """What is wrong with a file."""


def save_matcher(matcher: Learned, path: Path) -> None:
    """Write a matcher, in one step at the end. Raises InputError where that cannot be."""
    classifier = matcher.classifier
    record = {
        "format": FORMAT,
        "version": VERSION,
        "columns": matcher.columns,
        "weights": matcher.weights,
        "ngrams": matcher.ngrams._asdict(),
        "features": feature_names(len(matcher.columns)),
        "threshold": matcher.threshold,
        "report": matcher.report._asdict(),
        "classifier": {name: getattr(classifier, name) for name in classifier.__dataclass_fields__},
    }
    data = orjson.dumps(record, option=orjson.OPT_SERIALIZE_NUMPY | orjson.OPT_APPEND_NEWLINE)
    try:
        with whole(path) as file:
            file.write(data)
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({error.strerror or error})") from error


def load_matcher(path: Path) -> Learned:
    """The matcher of a file. Raises InputError for what is no whole one: every size, range and index is checked."""
    try:
        with path.open("rb") as file:
            data = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror or error})") from error
    try:
        if len(data) > MOST_BYTES:
            raise _Damaged(f"it has more than {MOST_BYTES >> 20} MiB")
        return _matcher(data)
    except _Damaged as error:
        raise InputError(f"{path}: no whole matcher ({error}); write one with --save-matcher") from error


def _matcher(data: bytes) -> Learned:
    try:
        record = _object(orjson.loads(data), "it")
    except orjson.JSONDecodeError:
        raise _Damaged("it is not JSON") from None
    if record.get("format") != FORMAT or record.get("version") != VERSION:
        raise _Damaged(f"its format is not {FORMAT!r}, version {VERSION}")
    columns = tuple(_pair(one) for one in _list(record, "columns", 1, MOST_COLUMNS))
    weights = _floats(record, "weights", len(columns))
    if not (weights > 0).all() or len(set(columns)) < len(columns):
        raise _Damaged("its columns are not different ones with weights above 0")
    names = feature_names(len(columns))
    if record.get("features") != names:
        raise _Damaged("its features are not those of this version")
    return Learned(
        columns,
        tuple(weights.tolist()),
        _ngrams(_object(record.get("ngrams"), "ngrams")),
        _classifier(_object(record.get("classifier"), "classifier"), len(names)),
        _number(record, "threshold", 0, 1),
        _report(_object(record.get("report"), "report")),
    )


def _ngrams(record: Mapping[str, Any]) -> Ngrams:
    orders = [int(one) for one in _ints(record, "orders", 1, 8, 1, 8).tolist()]
    weighting = record.get("weighting")
    if weighting not in WEIGHTINGS or len(set(orders)) < len(orders):
        raise _Damaged("its n-grams are of no known kind")
    return Ngrams(weighting, tuple(orders), _number(record, "a", 1e-9, 1e9))


def _report(record: Mapping[str, Any]) -> Report:
    kind = record.get("kind")
    if kind not in ("logistic", "trees"):
        raise _Damaged("report.kind is unknown")
    counts = [int(_number(record, name, 0, 1e9)) for name in COUNTS]
    return Report(kind, *counts, *(_number(record, name, 0, 1) for name in SHARES))


def _classifier(record: Mapping[str, Any], features: int) -> Classifier:
    if "coefficients" in record:
        scales = _floats(record, "scales", features)
        if not (scales >= 1 / MOST).all():
            raise _Damaged("scales are not above 0")
        means, coefficients = _floats(record, "means", features), _floats(record, "coefficients", features)
        return Linear(means, scales, coefficients, _number(record, "intercept", -MOST, MOST))
    feature = _ints(record, "feature", 1, MOST_NODES, -1, features - 1)
    nodes = len(feature)
    starts = _ints(record, "starts", 2, MOST_TREES + 1, 0, nodes)
    trees = Trees(
        _number(record, "base", -MOST, MOST),
        starts,
        feature,
        _floats(record, "cut", nodes),
        _ints(record, "below", nodes, nodes, 0, nodes - 1),
        _ints(record, "above", nodes, nodes, 0, nodes - 1),
        _floats(record, "value", nodes),
    )
    _check_trees(trees)
    return trees


def _check_trees(trees: Trees) -> None:
    """That each node's children come after it and in its own tree, so that none is above itself, and trees are low."""
    nodes = len(trees.feature)
    if trees.starts[0] != 0 or trees.starts[-1] != nodes or not (np.diff(trees.starts) > 0).all():
        raise _Damaged("starts are not those of trees one after the other")
    place = np.arange(nodes)
    end = np.repeat(trees.starts[1:], np.diff(trees.starts))
    inner = trees.feature >= 0
    for children in (trees.below, trees.above):
        if not ((children > place) & (children < end))[inner].all():
            raise _Damaged("a tree's nodes do not come one below the other")
    if trees.depths.max() > MOST_DEPTH:
        raise _Damaged(f"a tree has more than {MOST_DEPTH} floors")


def _object(value: Any, name: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise _Damaged(f"{name} is no object")
    return value


def _list(record: Mapping[str, Any], name: str, least: int, most: int) -> Sequence[Any]:
    value = record.get(name)
    if not isinstance(value, list) or not least <= len(value) <= most:
        raise _Damaged(f"{name} is no list of {least:,} to {most:,} values")
    return value


def _pair(value: Any) -> tuple[str, str]:
    if not isinstance(value, list) or len(value) != 2 or not all(
        isinstance(name, str) and 0 < len(name) <= MOST_NAME for name in value
    ):  # fmt: skip
        raise _Damaged(f"a column is {quoted(value)}, not the names in both tables")
    return value[0], value[1]


def _number(record: Mapping[str, Any], name: str, least: float, most: float) -> float:
    value: Any = record.get(name)
    if not _is_number(value) or not least <= value <= most:
        raise _Damaged(f"{name} is no number from {least:g} to {most:g}")
    return float(value)


def _floats(record: Mapping[str, Any], name: str, size: int) -> NDArray[np.float64]:
    values = _list(record, name, size, size)
    if not all(_is_number(value) and abs(value) <= MOST for value in values):
        raise _Damaged(f"{name} are not numbers up to {MOST:g}")
    return np.array(values, np.float64)


def _ints(record: Mapping[str, Any], name: str, fewest: int, most: int, least: int, greatest: int) -> NDArray[np.int32]:
    values = _list(record, name, fewest, most)
    if not all(type(value) is int and least <= value <= greatest for value in values):
        raise _Damaged(f"{name} are not whole numbers from {least} to {greatest}")
    return np.array(values, np.int32)


def _is_number(value: Any) -> bool:
    return type(value) in (int, float) and math.isfinite(value)
