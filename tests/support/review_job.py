"""A review of numbers: a pair matches if its place is even among the upper half."""

from __future__ import annotations

import numpy as np

from gramvec.jobs.report import Pair, ValuePair
from gramvec.jobs.review.pair_questions import LearnedScores


class NumberJob:
    title, question, unit = "Review of numbers", "Are these the same?", "pairs"
    columns = ("left", "right", "match")

    def __init__(self, pairs: int = 200) -> None:
        self.pairs = pairs
        self.learned: list[int] = []

    def truth(self, pair: int) -> bool:
        return pair >= self.pairs // 2

    def first(self) -> LearnedScores:
        return LearnedScores(np.linspace(0, 1, self.pairs), 0.5)

    def rows(self, pair: int) -> tuple[int, int]:
        return pair, pair

    def show(self, pair: int, scores) -> Pair:
        return Pair(
            float(scores[pair]), f"a{pair}", f"b{pair}", [ValuePair.mark("name", f"row {pair}", f"row {pair + 1}")]
        )

    def names(self, pair: int) -> tuple[str, ...]:
        return f"a{pair}", f"b{pair}"

    def find(self, names: tuple[str, ...]) -> int | None:
        return int(names[0][1:]) if names[0][1:].isdigit() else None

    def learn(self, pairs, match) -> LearnedScores:
        self.learned.append(len(pairs))
        return LearnedScores(np.where(np.arange(self.pairs) >= self.pairs // 2, 0.9, 0.1), 0.5)

    def finish(self, pairs, match) -> list[str]:
        return [f"{len(pairs)} labels are written"]
