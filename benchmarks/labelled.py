"""python -m benchmarks.labelled: F1 of vectors that labelled pairs weigh the n-grams of, on three sets of records.

Learned by `gramvec-train fit --pairs` from a set's train and valid pairs, for so many lexical columns; F1 x 100 on
test, at the threshold that the fit reports and at the one that is best for train and valid, as `evaluate` has it.
Beside them the same columns weighed by the two tables, without a label. Prints a table in Markdown, in two minutes.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import gramvec
from benchmarks.measure import ROOT
from gramvec_training.export import add_lexical
from gramvec_training.families.matching import best_threshold, f1_at
from gramvec_training.families.matching_sets import COLUMNS as COLUMNS_OF
from gramvec_training.families.matching_sets import MatchingSet, Pairs, read_matching_set
from gramvec_training.runs import learn_identity

SETS = ("abt-buy", "amazon-google", "wdc-shoes")
COLUMNS = (256, 512, 1024)


def _lines(one: MatchingSet, pairs: Pairs) -> str:
    rows = zip(pairs.left.tolist(), pairs.right.tolist(), pairs.match.tolist(), strict=True)
    return "".join(f"{one.left[left]}\t{one.right[right]}\t{int(match)}\n" for left, right, match in rows)


def _f1(one: MatchingSet, model: gramvec.Embedder, threshold: float | None) -> float:
    """On test; a threshold of None is the best one for train and valid."""

    def cosines(pairs: Pairs) -> NDArray[np.float64]:
        left = [one.left[row] for row in pairs.left.tolist()]
        right = [one.right[row] for row in pairs.right.tolist()]
        return model.pair_similarity(left, right).astype(np.float64)

    known = one.train + one.valid
    least = best_threshold(cosines(known), known.match)[0] if threshold is None else threshold
    return 100 * f1_at(least, cosines(one.test), one.test.match)[0]


def run() -> None:
    """Learn, score and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.labelled")
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data")
    folder = parser.parse_args().data / "dev" / "matching"
    print("| | columns | by the tables, no label | learned | at the threshold of evaluate | seconds |")
    print("| --- | ---: | ---: | ---: | ---: | ---: |")
    with tempfile.TemporaryDirectory() as temporary:
        work = Path(temporary)
        for columns in COLUMNS:
            add_lexical("gramvec-en", work / str(columns), ["any text"], columns=columns)
            for name in SETS:
                one = read_matching_set(folder / name, COLUMNS_OF[name])
                (work / "pairs.tsv").write_text(_lines(one, one.train + one.valid), encoding="utf-8")
                began = time.process_time()
                _, report = learn_identity(work / "pairs.tsv", str(work / str(columns)), work / "ours")
                seconds = time.process_time() - began
                threshold = report["scores"]["learned"]["threshold"]
                ours = gramvec.load(work / "ours", device="cpu", space="lexical")
                tables = gramvec.load(work / str(columns), device="cpu").adapted(
                    [*one.left, *one.right], space="lexical"
                )
                found = _f1(one, tables, None), _f1(one, ours, threshold), _f1(one, ours, None)
                cells = " | ".join(f"{f1:.1f}" for f1 in found)
                print(f"| {name} | {columns} | {cells} | {seconds:.0f} |", flush=True)


if __name__ == "__main__":
    run()
