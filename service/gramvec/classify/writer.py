"""Labels and scores as what a file of texts becomes: a line for each row, with what it was found to be."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO, Literal

import numpy as np
from numpy.typing import NDArray

from gramvec.classify.head import Head
from gramvec.tables.batches import Block
from gramvec.tables.writers import json_line, records_of

UNKNOWN = "unknown"

LabelFormat = Literal["tsv", "jsonl"]


class LabelForm:
    """label, score and text a line, or JSON objects with all columns of the row besides.

    A text that scores below the head's threshold is "unknown", in JSON null beside the best label; so is a row without
    a vector, which has no score. shown: what makes a cell of a terminal's line.
    """

    in_place = True

    def __init__(self, head: Head, form: LabelFormat, column: str, shown: Callable[[str], str] = str) -> None:
        self._head = head
        self._form = form
        self._column = column
        self._shown = shown

    def begin(self, block: Block | None, columns: Any) -> bytes:
        """See Writes."""
        return b""

    def resume(self, stage: Path) -> None:
        """See Writes."""

    def encode(self, block: Block, vectors: NDArray[np.generic], missing: NDArray[np.bool_]) -> bytes:
        """See Writes."""
        scores = self._head.predict(np.asarray(vectors, np.float32))
        answers, places = self._head.answers(scores), scores.argmax(axis=1).tolist()
        best = scores.max(axis=1, initial=0).tolist()
        lines = []
        for row, record in enumerate(records_of(block)):
            if self._form == "jsonl":
                found: dict[str, Any] = {"label": None, "best": None, "score": None, "record": record}
                if not missing[row]:
                    found |= {
                        "label": answers[row],
                        "best": self._head.labels[places[row]],
                        "score": round(best[row], 6),
                    }
                lines.append(json_line(block.numbers[row], found))
            else:
                text = str(record.get(self._column) or "")
                score = "" if missing[row] else f"{best[row]:.4f}"
                label = UNKNOWN if missing[row] else answers[row] or UNKNOWN
                cells = [self._shown(" ".join(one.split())) for one in (label, score, text)]
                lines.append(("\t".join(cells) + "\n").encode("utf-8", "replace"))
        return b"".join(lines)

    def finish(self, stage: BinaryIO, out: BinaryIO, rows: int) -> None:
        """See Writes."""
