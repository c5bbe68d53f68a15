"""Questions about pairs of rows: whether both are the same thing, and what the answers say of the scores."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from gramvec.errors import InputError
from gramvec.jobs.matching.proposals import Reason, propose
from gramvec.jobs.report.records import Pair, ScoreHistogram
from gramvec.jobs.review.estimate import Quality, estimate_quality, knows_far
from gramvec.jobs.review.session import Answers

# How an answer stands in the file: as `gramvec match --labels` reads it. An unsure answer is no label.
WRITTEN = {"yes": "1", "no": "0", "unsure": ""}
ANSWERS = {written: answer for answer, written in WRITTEN.items()}
# Learning starts when there are this many answers of each kind.
MIN_OF_EACH = 5


class LearnedScores(NamedTuple):
    """Scores that were learned: the probability of each pair, float64[n], 0 to 1, and the threshold for them."""

    scores: NDArray[np.float64]
    threshold: float


class PairJob(Protocol):
    """Pairs of a review, their scores, and what is written at the end.

    Attributes:
        title: the page's title.
        question: what the person is asked, such as "Are these the same thing?".
        unit: what is counted, such as "pairs".
        columns: the columns of the file of answers; the last one holds the answer.
    """

    title: str
    question: str
    unit: str
    columns: tuple[str, ...]

    def first(self) -> LearnedScores:
        """Score all pairs before anything was answered."""

    def rows(self, pair: int) -> tuple[int, int]:
        """Return the left and the right row of a pair."""

    def show(self, pair: int, scores: NDArray[np.float64]) -> Pair:
        """Return what the page shows of a pair: its texts with differences marked, and why its score is so.

        Args:
            pair: the place of the pair.
            scores: float64[n], the scores of all pairs.
        """

    def names(self, pair: int) -> tuple[str, ...]:
        """Return what stands in the file of answers before the answer, such as both ids."""

    def find(self, names: tuple[str, ...]) -> int | None:
        """Return the pair that these names stand for; None if it is not among the pairs."""

    def learn(self, pairs: NDArray[np.int64], match: NDArray[np.bool_]) -> LearnedScores:
        """Learn from the answers. Raises InputError where they do not suffice."""

    def finish(self, pairs: NDArray[np.int64], match: NDArray[np.bool_]) -> list[str]:
        """Write what the review made, and return sentences that say what was written and how to repeat it."""


class PairQuestions:
    """Questions about the pairs of a job, as `ReviewSubject`."""

    kind = "pairs"

    def __init__(self, job: PairJob) -> None:
        self.job = job
        self.title, self.question, self.columns = job.title, job.question, job.columns
        self.first, self.names, self.find = job.first, job.names, job.find
        self._reasons: dict[int, Reason] = {}

    def propose(self, now: LearnedScores, asked: set[int], seed: int) -> list[int]:
        """Return the pairs that teach most, see `proposals`."""
        chosen = propose(now.scores, now.threshold, asked, self.job.rows, seed)
        self._reasons |= chosen
        return [*chosen]

    def show(self, number: int, now: LearnedScores) -> dict[str, Any]:
        """Return the pair, and why it is asked."""
        return {"pair": self.job.show(number, now.scores), "reason": self._reasons.get(number)}

    def write(self, answer: str) -> str:
        """Return 1, 0 or nothing. Raises InputError for another answer than yes, no and unsure."""
        if answer not in WRITTEN:
            raise InputError(f"{answer!r} is no answer; answer yes, no or unsure")
        return WRITTEN[answer]

    def read(self, written: str) -> str:
        """Return yes, no or unsure. Raises InputError for anything but 1, 0 and nothing."""
        if written not in ANSWERS:
            raise InputError(f"the answer {written!r} is not 1, 0 or nothing")
        return ANSWERS[written]

    def summarize(self, now: LearnedScores, answers: Answers) -> dict[str, Any]:
        """Return counts, estimated precision and recall, and the histogram."""
        pairs, match = _labels(answers)
        estimate = estimate_quality(now.scores, pairs, match, now.threshold) if len(pairs) else None
        given = list(answers.values())
        return {
            "yes": given.count("yes"),
            "no": given.count("no"),
            "unsure": given.count("unsure"),
            "estimate": None if estimate is None else _as_json(estimate),
            "knows_far": knows_far(now.scores, pairs, now.threshold),
            "scores": ScoreHistogram.from_scores(now.scores, now.threshold, unit=self.job.unit),
        }

    def count_labels(self, answers: Answers) -> int:
        """Return how many answers are yes or no, 0 with fewer than MIN_OF_EACH of either."""
        match = _labels(answers)[1]
        return len(match) if min(int(match.sum()), int((~match).sum())) >= MIN_OF_EACH else 0

    def learn(self, answers: Answers) -> LearnedScores:
        """Learn from the answers."""
        return self.job.learn(*_labels(answers))

    def finish(self, answers: Answers) -> list[str]:
        """Write the matches."""
        return self.job.finish(*_labels(answers))


def _labels(answers: Answers) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    sure = [(pair, answer == "yes") for pair, answer in answers.items() if answer != "unsure"]
    return np.array([pair for pair, _ in sure], np.int64), np.array([match for _, match in sure], np.bool_)


def _as_json(estimate: Quality) -> dict[str, Any]:
    return {name: share._asdict() for name, share in estimate._asdict().items()}
