"""A review: what is asked, what was answered, and what is learned from it meanwhile.

The page and the command know only this module. A `ReviewJob` says what the questions are about: pairs of two tables,
pairs of one, or labels of texts.
"""

from __future__ import annotations

import logging
from concurrent.futures import Future
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from gramvec.errors import GramvecError, InputError
from gramvec.report.records import Pair, ScoreHistogram
from gramvec.review.answers_file import AnswersFile
from gramvec.review.estimate import Quality, estimate_quality
from gramvec.review.proposals import propose
from gramvec.threads import ProcessLock, ThreadPool

log = logging.getLogger("gramvec.review")

Answer = Literal["yes", "no", "unsure"]
# How an answer stands in the file: as `gramvec match --labels` reads it. An unsure answer is no label.
WRITTEN: dict[Answer, str] = {"yes": "1", "no": "0", "unsure": ""}
# Learning starts when there are so many answers of each kind, and again after as many more answers.
MIN_OF_EACH = 5
LEARN_EVERY = 10


class Learned(NamedTuple):
    """Scores that were learned: the probability of each pair, float64[n], 0 to 1, and the threshold for them."""

    scores: NDArray[np.float64]
    threshold: float


class ReviewJob(Protocol):
    """Subject of a review: its pairs, their scores, and what is written at the end.

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

    def first(self) -> Learned:
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

    def learn(self, pairs: NDArray[np.int64], match: NDArray[np.bool_]) -> Learned:
        """Learn from the answers. Raises InputError where they do not suffice."""

    def finish(self, pairs: NDArray[np.int64], match: NDArray[np.bool_]) -> list[str]:
        """Write what the review made, and return sentences that say what was written and how to repeat it."""


class ReviewSession:
    """A review by one person. Its methods may be called from any thread.

    Args:
        job: what is reviewed.
        answers: the open file of answers. Answers that it has already count, and are not asked again.
    """

    def __init__(self, job: ReviewJob, answers: AnswersFile) -> None:
        self.job = job
        self._file = answers
        self._lock = ProcessLock()
        self._learner = ThreadPool(1, "gramvec-review")
        self._learning: Future[None] | None = None
        self._now = job.first()
        self._answered: dict[int, Answer] = {}
        self._unknown = 0
        for row in answers.answers:
            self._take(row)
        self._order: list[int] = list(self._answered)
        self._queue: list[int] = []
        self._batches = 0
        self._learned_from = 0
        self._rounds = 0
        self._problem = ""
        self.finished: list[str] | None = None
        with self._lock:
            self._learn_if_due()

    def _take(self, row: list[str]) -> None:
        pair = self.job.find(tuple(row[:-1]))
        if pair is None:
            self._unknown += 1
            return
        known: dict[str, Answer] = {"1": "yes", "0": "no", "": "unsure"}
        if row[-1] not in known:
            raise InputError(f"{self._file.path}: the answer {row[-1]!r} is none of 1, 0 and nothing")
        self._answered[pair] = known[row[-1]]

    def state(self) -> dict[str, Any]:
        """Return what the page shows: the question, counts, the estimate and the histogram."""
        with self._lock:
            pair = self._question()
            pairs, match = self._labels()
            threshold = self._now.threshold
            estimate = estimate_quality(self._now.scores, pairs, match, threshold) if len(pairs) else None
            answers = list(self._answered.values())
            return {
                "question": None if pair is None else {"id": pair, "pair": self._shown(pair)},
                "yes": answers.count("yes"),
                "no": answers.count("no"),
                "unsure": answers.count("unsure"),
                "unknown": self._unknown,
                "can_undo": bool(self._order),
                "rounds": self._rounds,
                "learning": self._learning is not None and not self._learning.done(),
                "problem": self._problem,
                "estimate": None if estimate is None else _as_json(estimate),
                "scores": ScoreHistogram.from_scores(self._now.scores, threshold, unit=self.job.unit),
                "finished": self.finished,
            }

    def answer(self, pair: int, answer: Answer) -> None:
        """Write an answer to the question that is shown; it is on disk when this returns.

        Raises:
            InputError: another pair is asked now, or the review is finished.
            OSError: the answer cannot be written; the question stays.
        """
        with self._lock:
            if self.finished is not None:
                raise InputError("the review is finished; start it again to answer more")
            if pair != self._question():
                raise InputError("this pair is not asked now; load the page again")
            self._file.add([*self.job.names(pair), WRITTEN[answer]])
            self._answered[pair] = answer
            self._order.append(pair)
            self._queue.pop(0)
            self._learn_if_due()

    def undo(self) -> None:
        """Take back the last answer of this review and ask that pair again. Without one, nothing changes."""
        with self._lock:
            if self.finished is not None or self._file.undo() is None:
                return
            pair = self._order.pop()
            del self._answered[pair]
            self._queue.insert(0, pair)

    def finish(self) -> list[str]:
        """Write what the review made, and return sentences that say so. A second call returns the same sentences.

        Raises:
            GramvecError: it cannot be written, or the answers do not suffice; the review goes on.
        """
        with self._lock:
            if self.finished is None:
                self.finished = self.job.finish(*self._labels())
            return self.finished

    def close(self) -> None:
        """Wait for what is being learned, and close the file of answers."""
        self._learner.shutdown(cancel_futures=True)
        self._file.close()

    def wait_for_learning(self) -> None:
        """Wait until what is being learned now is learned."""
        learning = self._learning
        if learning is not None:
            learning.result()

    def _question(self) -> int | None:
        self._queue = [pair for pair in self._queue if pair not in self._answered]
        if not self._queue:
            self._queue = self._propose()
        return self._queue[0] if self._queue else None

    def _propose(self) -> list[int]:
        self._batches += 1
        now = self._now
        return propose(now.scores, now.threshold, set(self._answered), self.job.rows, seed=self._batches)

    def _shown(self, pair: int) -> Pair:
        return self.job.show(pair, self._now.scores)

    def _labels(self) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        sure = [(pair, answer == "yes") for pair, answer in self._answered.items() if answer != "unsure"]
        return np.array([pair for pair, _ in sure], np.int64), np.array([match for _, match in sure], np.bool_)

    def _learn_if_due(self) -> None:
        pairs, match = self._labels()
        enough = min(int(match.sum()), int((~match).sum())) >= MIN_OF_EACH
        busy = self._learning is not None and not self._learning.done()
        if enough and not busy and len(pairs) - self._learned_from >= LEARN_EVERY:
            self._learned_from = len(pairs)
            self._learning = self._learner.submit(self._learn, pairs, match)

    def _learn(self, pairs: NDArray[np.int64], match: NDArray[np.bool_]) -> None:
        try:
            learned = self.job.learn(pairs, match)
        except GramvecError as error:
            with self._lock:
                self._problem = str(error)
            return
        except Exception:
            log.exception("learning from the answers failed; the review goes on")
            with self._lock:
                self._problem = "learning from the answers failed; the log has the cause"
            return
        with self._lock:
            self._now, self._problem = learned, ""
            self._rounds += 1
            # The question that is shown stays; what follows is proposed anew.
            self._queue = self._queue[:1]


def _as_json(estimate: Quality) -> dict[str, Any]:
    return {name: share._asdict() for name, share in estimate._asdict().items()}
