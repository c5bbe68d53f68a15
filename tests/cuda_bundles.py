"""Bundles for the tests on CUDA: python tests/cuda_bundles.py FOLDER, with the trainer."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from test_sequences_served import MODELS as MODELS_BEYOND_BAGS
from test_sequences_served import written

from conftest import MODELS, SHIPPED
from gramvec.features.spec import FeatureSpec
from gramvec.text.vocabulary import Entry, Vocabulary
from gramvec_training.export.convert import convert
from support.training import export_table

SMALL = (
    "sum-tanh-int8",
    "mean-linear-int8",
    "sum-tanh-int4",
    "mean-linear-int4",
    "sum-linear-float32",
    "sum-linear-float16",
)


def main(folder: Path) -> None:
    """The shipped models with the graphs of today, small ones of few columns, and one of each encoder beyond a bag."""
    for name in MODELS_BEYOND_BAGS:
        written(folder / name, name)
    for name in SHIPPED:
        convert(MODELS / name, folder / name)
    vocabulary = Vocabulary.build([Entry("word", word, 1) for word in ("east", "north", "south", "west")])
    for name in SMALL:
        pooling, activation, precision = name.split("-")
        random, d = np.random.default_rng(0), 38 if precision == "int4" else 37  # the stand-in cuts no odd column off
        export_table(
            folder / name, name="small", kind="test", spec=FeatureSpec(orders=(), words=True), vocabulary=vocabulary,
            table=random.normal(size=(4, d)).astype(np.float32), bias=random.normal(size=d).astype(np.float32),
            pooling=pooling, activation=activation, precision=precision, provenance={}, card="",
        )  # fmt: skip


if __name__ == "__main__":
    main(Path(sys.argv[1]))
