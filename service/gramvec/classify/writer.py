"""Labels and scores as the output of a bulk job: a line for each row."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from gramvec.classify.head import Head
from gramvec.tables.batches import Block
from gramvec.tables.writers import Writes, json_line, records_of, tsv_line

UNKNOWN = "unknown"

LabelFormat = Literal["tsv", "jsonl"]


class LabelForm(Writes):
    """Writer of label, score and text, tab-separated, or of JSON objects that also hold the row's columns.

    The label is "unknown" for a text that scores below the head's threshold, and for a row without a vector, which has
    no score.

    Args:
        head: scores the texts.
        form: "tsv" or "jsonl".
        column: of the texts.
        shown: escapes a cell for a terminal.
        most: the characters of a text that the head sees.
    """

    def __init__(
        self, head: Head, form: LabelFormat, column: str, shown: Callable[[str], str] = str, *, most: int | None = None
    ) -> None:
        self._head = head
        self._form = form
        self._column = column
        self._shown = shown
        self._most = most

    def encode(self, block: Block, vectors: NDArray[np.generic], missing: NDArray[np.bool_]) -> bytes:
        """Return the lines of a block."""
        no_vector = missing.tolist()
        texts = ["" if no else text[: self._most] for text, no in zip(block.texts, no_vector, strict=True)]
        scores = self._head.predict(texts, np.asarray(vectors, np.float32))
        answers, places = self._head.answers(scores), scores.argmax(axis=1).tolist()
        best = scores.max(axis=1, initial=0).tolist()
        lines = []
        for row, record in enumerate(records_of(block)):
            label = UNKNOWN if no_vector[row] else answers[row] or UNKNOWN
            if self._form == "jsonl":
                found: dict[str, Any] = {"label": label, "best": None, "score": None, "record": record}
                if not no_vector[row]:
                    found |= {"best": self._head.labels[places[row]], "score": round(best[row], 6)}
                lines.append(json_line(block.numbers[row], found))
            else:
                score = "" if no_vector[row] else f"{best[row]:.4f}"
                line = tsv_line([label, score, record.get(self._column) or ""], self._shown)
                lines.append(line.encode("utf-8", "replace"))
        return b"".join(lines)
