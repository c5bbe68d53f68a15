"""Pair models that have not learned from a table, so that figures of it are those to expect of other tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from unittest.mock import patch

from gramvec.jobs.pairs import model as pair_models
from gramvec_training.data.pair_tables import LearningTable
from gramvec_training.runs.pair_model import learn_model


@contextmanager
def leave_out(name: str, learned_from: Sequence[LearningTable]) -> Iterator[None]:
    """Take a pair model that has not learned from the source of a table.

    Args:
        name: of the table.
        learned_from: tables of the model's kind: all of one table, or all of two.
    """
    left_out = next(table for table in learned_from if table.name == name)
    model = learn_model([table for table in learned_from if table.source != left_out.source]).model
    with patch.object(pair_models, "one_table_model" if left_out.is_one_table else "two_table_model", lambda: model):
        yield
