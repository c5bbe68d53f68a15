"""A table that is left out is scored by the model that did not learn from it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from benchmarks import left_out
from gramvec.jobs.pairs.model import pair_model
from gramvec_training.data.pair_tables import LearningTable
from gramvec_training.runs.pair_model import Learned

NOTHING = np.zeros(0, np.int64)


@pytest.mark.parametrize(("kind", "same"), [("register", True), ("set", False)])
def test_the_jobs_take_the_model_without_the_table_and_then_the_shipped_one(
    monkeypatch: pytest.MonkeyPatch, kind: str, same: bool
) -> None:
    names = ("asked", "near", "far")
    tables = [
        LearningTable(
            name, kind, "here" if name != "far" else "there", np.zeros((0, 1), np.float32), NOTHING, NOTHING, 0
        )
        for name in names
    ]
    made: Any = object()
    seen: list[str] = []

    def learn(kept: list[LearningTable]) -> Learned:
        seen.extend(table.name for table in kept)
        return Learned(made, {})

    monkeypatch.setattr(left_out, "learn_model", learn)
    shipped = pair_model(same=same)
    with left_out.leave_out("asked", tables):
        assert pair_model(same=same) is made
        assert pair_model(same=not same) is not made
    # What is of the same source is left out with it.
    assert seen == ["far"] and pair_model(same=same) is shipped
