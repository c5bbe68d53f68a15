"""Labels and scores as columns that a bulk job adds to its input's."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gramvec.jobs.classify.head import Head
from gramvec.jobs.tables.batches import Block
from gramvec.jobs.tables.writers import AddedColumns


class LabelColumns(AddedColumns):
    """The best label of each row, its score, and whether that reaches the label's threshold.

    Of a head of several labels a text, the first column is a list: the labels that reach their thresholds, the best one
    first, or the best label only where none does. A row without a vector has neither label nor score.

    Args:
        head: scores the texts.
        prefix: of the columns' names.
        max_characters: the characters of a text that the head sees.
    """

    option = "put something before the names of the new columns with `prefix`"

    def __init__(self, head: Head, prefix: str = "", *, max_characters: int | None = None) -> None:
        self.names = (f"{prefix}label", f"{prefix}score", f"{prefix}known")
        self._head = head
        self._max_characters = max_characters

    def types(self, pa: Any) -> list[Any]:
        """Return the Arrow type of each column."""
        return [pa.list_(pa.string()) if self._head.several else pa.string(), pa.float64(), pa.bool_()]

    def values(self, block: Block, vectors: NDArray[np.generic], missing: NDArray[np.bool_]) -> list[list[Any]]:
        """Return labels, scores and whether each is known, None for a row without a vector."""
        no_vector = missing.tolist()
        texts = ["" if no else text[: self._max_characters] for text, no in zip(block.texts, no_vector, strict=True)]
        answers = self._head.answers(self._head.predict(texts, np.asarray(vectors, np.float32)))
        label, score, known = [], [], []
        for answer, no in zip(answers, no_vector, strict=True):
            labels = list(answer.labels) if self._head.several else answer.labels[0]
            label.append(None if no else labels)
            score.append(None if no else round(answer.score, 6))
            known.append(None if no else answer.known)
        return [label, score, known]
