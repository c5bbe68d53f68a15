"""Matcher files with changed values and bytes: each can be read and used, or ends in one sentence."""

from __future__ import annotations

import json
import random
from pathlib import Path

import numpy as np

from fuzz import mutate
from gramvec.errors import InputError
from gramvec.jobs.matching.features import feature_names
from gramvec.jobs.matching.matcher_file import FORMAT, VERSION, load_matcher, save_matcher

NAMES = feature_names(1)
TREES = {
    "base": 0.1, "starts": [0, 3, 8], "feature": [0, -1, -1, 1, 2, -1, -1, -1], "cut": [0.5] * 8,
    "below": [1, 1, 2, 4, 5, 5, 6, 7], "above": [2, 1, 2, 7, 6, 5, 6, 7], "value": [0.1] * 8,
}  # fmt: skip
LINEAR = {
    "means": [0.5] * len(NAMES), "scales": [1.0] * len(NAMES), "coefficients": [0.1] * len(NAMES), "intercept": -0.5,
}  # fmt: skip


def prepare(bases: Path) -> None:
    """Make the folder that other parts fill."""
    bases.mkdir(parents=True, exist_ok=True)


def one_round(numbers: random.Random, bases: Path, folder: Path) -> None:
    """Change a matcher, read it, give pairs their probabilities, and write it again."""
    kind = numbers.choice(["logistic", "trees"])
    counts = {"pairs": 9, "matches": 3, "held_pairs": 3, "held_matches": 1}
    record = {
        "format": FORMAT, "version": VERSION, "columns": [["text", "text"]], "weights": [1.0],
        "ngrams": {"weighting": "idf", "orders": [3], "a": 1.0}, "features": NAMES, "threshold": 0.5, "top": None,
        "report": {"kind": kind, **counts, "precision": 1.0, "recall": 1.0, "f1": 1.0},
        "classifier": TREES if kind == "trees" else LINEAR,
    }  # fmt: skip
    for _ in range(numbers.choice([0, 1, 1, 2])):
        record = mutate.value(numbers, record)
    data = json.dumps(record).encode()
    if numbers.random() < 0.2:
        data = mutate.content(numbers, data)
    path = folder / "in.json"
    path.write_bytes(data)
    try:
        matcher = load_matcher(path)
    except InputError as error:
        mutate.check_sentence(error, path)
        return
    features = np.array([[0.0], [0.5], [1.0]], np.float32).repeat(len(NAMES), axis=1)
    scores = matcher.classifier.probabilities(features)
    assert scores.shape == (3,)
    assert np.isfinite(scores).all()
    save_matcher(matcher, folder / "again.json")
    assert load_matcher(folder / "again.json").classifier.probabilities(features).tobytes() == scores.tobytes()
