"""Scores of pairs that are given: how probable it is that two texts are the same thing, without any others."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gramvec.errors import InputError
from gramvec.jobs.pairs.figures import NAMES, OF_PAIR, pair_figures, read_rows
from gramvec.jobs.pairs.model import two_table_model
from gramvec.jobs.pairs.telling_columns import telling_columns
from gramvec.text.arrays import Floats

BLOCK_PAIRS = 1 << 16


def score_given(left: Sequence[Sequence[str]], right: Sequence[Sequence[str]], *, rows_count: bool = True) -> Floats:
    """Return the probability that the left and the right row of each pair are the same thing, float32[n].

    A pair with an empty side has 0.

    Args:
        left: columns of n texts each.
        right: as many columns, of as many texts.
        rows_count: whether words are weighted by how rare they are in all pairs, else in English.

    Raises:
        InputError: there are not as many left texts as right ones.
    """
    lengths = [len(column) for column in (*left, *right)]
    if len(set(lengths)) > 1:
        raise InputError(f"{lengths[0]:,} left texts and {lengths[-1]:,} right ones; give as many of each")
    texts = telling_columns([left, right], paired=True).tables
    # What columns tell is measured on rows that are drawn by their place: the order of pairs must not change it.
    order = sorted(range(lengths[0]), key=[*zip(*texts[0], *texts[1], strict=True)].__getitem__)
    ordered = [[[column[row] for row in order] for column in table] for table in texts]
    tables = read_rows(ordered, rows_count=rows_count)
    all_scores = np.zeros(lengths[0], np.float32)
    for start in range(0, lengths[0], BLOCK_PAIRS):
        rows = np.arange(start, min(start + BLOCK_PAIRS, lengths[0]))
        figures = np.full((len(rows), len(NAMES)), np.nan, np.float32)
        figures[:, : len(OF_PAIR)] = pair_figures(tables, rows, rows)
        scores = two_table_model().probabilities(figures)
        filled = [np.diff(table.bounds[:: tables.tokens.columns])[rows] > 0 for table in tables.tokens.tables]
        all_scores[order[start : start + BLOCK_PAIRS]] = np.where(filled[0] & filled[1], scores, np.float32(0))
    return all_scores
