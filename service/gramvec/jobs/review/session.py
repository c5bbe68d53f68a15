"""A review: what is asked, what was answered, and what is learned from it meanwhile.

The page and the command know only this module. A `ReviewSubject` provides the questions: pairs of rows
(`pair_questions`) or labels of texts (`label_questions`).
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from concurrent.futures import Future
from typing import Any, Generic, Protocol, TypeVar

from gramvec.errors import GramvecError, InputError
from gramvec.jobs.common.watch import JobWatch
from gramvec.jobs.review.answers_file import AnswersFile
from gramvec.threads import ProcessLock, ThreadPool

log = logging.getLogger("gramvec.jobs.review")

L = TypeVar("L")
# Answers by the number of what was asked.
Answers = Mapping[int, str]


class FinishWork(JobWatch):
    """Watcher of what finishing does, which any thread may read while it works.

    Attributes:
        messages: what the jobs said.
    """

    def __init__(self) -> None:
        self.messages: list[str] = []
        self._now: tuple[str, int | None, int, float] | None = None

    def start(self, task: str, total: int | None = None, unit: str = "rows", done: int = 0) -> None:
        """Begin a task."""
        self._now = task, total, done, time.monotonic()

    def advance(self, count: int, detail: str = "") -> None:
        """Count what is done."""
        if self._now is not None:
            task, total, done, began = self._now
            self._now = task, total, done + count, began

    def report(self, message: str) -> None:
        """Keep a message."""
        self.messages.append(message)

    def show(self) -> dict[str, Any]:
        """Return the task, its share that is done (None if nobody knows) and its seconds, as values of JSON."""
        if self._now is None:
            return {"task": "", "share": None, "seconds": 0}
        task, total, done, began = self._now
        return {
            "task": task,
            "share": min(done / total, 1) if total else None,
            "seconds": round(time.monotonic() - began),
        }


class ReviewSubject(Protocol[L]):
    """Subject of a review: what can be asked, what is known of it, and what is written at the end.

    What is learned is of a type that only the subject knows. An answer is a text, such as "yes".

    Attributes:
        title: the page's title.
        question: what the person is asked.
        kind: which questions the page shows, "pairs" or "labels".
        columns: the columns of the file of answers; the last one holds the answer.
    """

    title: str
    question: str
    kind: str
    columns: tuple[str, ...]

    def first(self) -> L:
        """Return what is known before anything was answered."""

    def propose(self, now: L, asked: set[int], seed: int) -> list[int]:
        """Return what is asked next, in order, and nothing that was asked.

        Args:
            now: what is known.
            asked: what was answered.
            seed: the number of the proposal.
        """

    def show(self, number: int, now: L) -> dict[str, Any]:
        """Return what the page shows of a question, as values of JSON."""

    def names(self, number: int) -> tuple[str, ...]:
        """Return what stands in the file of answers before the answer, such as both ids."""

    def find(self, names: tuple[str, ...]) -> int | None:
        """Return the number that these names stand for; None if it is not among what can be asked."""

    def write(self, answer: str) -> str:
        """Return an answer as it stands in the file. Raises InputError for what is no answer."""

    def read(self, written: str) -> str:
        """Return the answer that stands in the file. Raises InputError for what is no answer."""

    def summarize(self, now: L, answers: Answers) -> dict[str, Any]:
        """Return counts, estimates and scores that the page shows beside the question, as values of JSON."""

    def count_labels(self, answers: Answers) -> int:
        """Return from how many answers can be learned, 0 if they do not suffice."""

    def learn(self, answers: Answers) -> L:
        """Learn from the answers. Raises InputError where they do not suffice."""

    def finish(self, answers: Answers) -> list[str]:
        """Write what the review made, and return sentences that say what was written and how to repeat it."""


# Learning starts when answers suffice, and again after this many more.
LEARN_EVERY = 10


class ReviewSession(Generic[L]):
    """A review by one person. Its methods may be called from any thread.

    Args:
        subject: what is reviewed.
        answers: the open file of answers. Answers that it has already count, and are not asked again.
        work: what finishing does now; `subject` keeps it up to date.
    """

    def __init__(self, subject: ReviewSubject[L], answers: AnswersFile, work: FinishWork | None = None) -> None:
        self.subject = subject
        self.work = work or FinishWork()
        self._file = answers
        self._lock = ProcessLock()
        self._learner = ThreadPool(1, "gramvec-review")
        self._learning: Future[None] | None = None
        self._now = subject.first()
        self._answered: dict[int, str] = {}
        self._unknown = 0
        for row in answers.answers:
            self._take(row)
        self._order: list[int] = []
        self._queue: list[int] = []
        self._batches = 0
        self._learned_from = 0
        self._rounds = 0
        self._problem = ""
        self.finished: list[str] | None = None
        with self._lock:
            self._learn_if_due()

    def _take(self, row: list[str]) -> None:
        try:
            answer = self.subject.read(row[-1])
        except InputError as error:
            raise InputError(f"{self._file.path}: {error}") from error
        number = self.subject.find(tuple(row[:-1]))
        if number is None:
            self._unknown += 1
        else:
            self._answered[number] = answer

    def state(self) -> dict[str, Any]:
        """Return what the page shows: the question, and what is known from the answers."""
        with self._lock:
            number = self._question()
            return {
                "question": None if number is None else {"id": number, **self.subject.show(number, self._now)},
                **self.subject.summarize(self._now, self._answered),
                "unknown": self._unknown,
                "can_undo": bool(self._order),
                "rounds": self._rounds,
                "learning": self._learning is not None and not self._learning.done(),
                "problem": self._problem,
                "finished": self.finished,
            }

    def answer(self, number: int, answer: str) -> None:
        """Write an answer to the question that is shown; it is on disk when this returns.

        Raises:
            InputError: something else is asked now, this is no answer, or the review is finished.
            OSError: the answer cannot be written; the question stays.
        """
        with self._lock:
            if self.finished is not None:
                raise InputError("the review is finished; start it again to answer more")
            if number != self._question():
                raise InputError("this question is not asked now; load the page again")
            written = self.subject.write(answer)
            names = self.subject.names(number)[: len(self._file.columns) - 1]
            self._file.add([*names, written])
            self._answered[number] = self.subject.read(written)
            self._order.append(number)
            self._queue.pop(0)
            self._learn_if_due()

    def undo(self) -> None:
        """Take back the last answer of this review and ask that again. Without one, nothing changes."""
        with self._lock:
            if self.finished is not None or self._file.undo() is None:
                return
            number = self._order.pop()
            del self._answered[number]
            self._queue.insert(0, number)

    def finish(self) -> list[str]:
        """Write what the review made, and return sentences that say so. A second call returns the same sentences.

        Raises:
            GramvecError: it cannot be written, the answers do not suffice, or another program has changed their file;
                the review goes on.
        """
        with self._lock:
            if self.finished is None:
                self._file.check_unchanged()
                self.finished = self.subject.finish(dict(self._answered))
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
        self._queue = [number for number in self._queue if number not in self._answered]
        if not self._queue:
            self._batches += 1
            self._queue = self.subject.propose(self._now, set(self._answered), self._batches)
        return self._queue[0] if self._queue else None

    def _learn_if_due(self) -> None:
        labels = self.subject.count_labels(self._answered)
        busy = self._learning is not None and not self._learning.done()
        if labels and not busy and labels - self._learned_from >= LEARN_EVERY:
            self._learned_from = labels
            self._learning = self._learner.submit(self._learn, dict(self._answered))

    def _learn(self, answers: Answers) -> None:
        try:
            learned = self.subject.learn(answers)
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
