"""Questions about labels of texts, those that teach a head most first, and what the answers teach.

A text is asked about if the head is unsure of it, if many texts are like it, and if none that has a label is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from gramvec.errors import InputError
from gramvec.jobs.classify.fit import fit_head
from gramvec.jobs.classify.head import Head
from gramvec.jobs.report.records import ScoreHistogram
from gramvec.jobs.review.session import Answers
from gramvec.text.arrays import Bools, Doubles, Floats, Int64s

BETWEEN = "|"  # labels of a text that may have several
BATCH = 10
CHOICES = 9  # a digit for each
MAX_LISTED = 500  # labels that the page offers while a person types
MAX_SHOWN = 2_000  # characters of a text
MAX_SCORES = 1 << 27  # texts times labels: 0.5 GB
# How typical a text is: its mean cosine with this many nearest texts of a sample.
SAMPLE, NEAREST = 1_000, 20
MAX_CANDIDATES = 2_000
SEED = 1


class HeadScores(NamedTuple):
    """Scores that a head gives to all texts.

    Attributes:
        labels: its labels.
        scores: float32[n, labels], 0 to 1.
        threshold: score from which on a label is known.
        right: share of the answers of this review for which the first head's and the last learned head's best label is
            right, those of the learned head left out; None before there are any.
        is_first: whether this is the head that the review began with.
    """

    labels: tuple[str, ...]
    scores: Floats
    threshold: float
    right: tuple[float, float] | None = None
    is_first: bool = True


class LabelQuestions:
    """Questions about the labels of texts, as `ReviewSubject`.

    Args:
        title: the page's title.
        texts: n different texts, white space as single spaces.
        vectors: float32[n, d], of length 1.
        head: the head that the review begins with.
        others: labeled texts that are learned from, too, with their vectors.
        before: texts and labels that were answered in an earlier review, which the head may have learned from.
        write: called at the end with the written labels; it writes a head and returns what it has to say.

    Raises:
        InputError: there is no text, or too many for the number of labels.
    """

    kind = "labels"
    question = "Which label does this text have?"
    columns: tuple[str, ...] = ("text", "label")

    def __init__(
        self,
        title: str,
        texts: Sequence[str],
        vectors: Floats,
        head: Head,
        write: Callable[[Sequence[str]], list[str]],
        *,
        others: tuple[Sequence[tuple[str, str]], Floats] | None = None,
        before: Sequence[str] = (),
    ) -> None:
        if not texts:
            raise InputError("there is no text to ask about")
        if len(texts) * len(head.labels) > MAX_SCORES:
            raise InputError(
                f"{len(texts):,} texts with {len(head.labels):,} labels take too much memory; "
                f"review at most {MAX_SCORES // len(head.labels):,} texts at a time"
            )
        self.title, self._texts, self._vectors, self._head, self._write = title, texts, vectors, head, write
        self._others, self._vectors_of_others = others or ([], vectors[:0])
        self._numbers = {text: number for number, text in enumerate(texts)}
        self._before = {self._numbers[text] for text in before if text in self._numbers}
        self._typical = typical_texts(vectors)
        self._first = HeadScores(head.labels, head.predict(texts, vectors), head.threshold)

    def first(self) -> HeadScores:
        """Return the scores of the head."""
        return self._first

    def propose(self, now: HeadScores, asked: set[int], seed: int) -> list[int]:
        """Return up to BATCH texts that teach most: of those that are worth most, each far from the others."""
        worth = _rate_doubt(now.scores, several=self._head.several) * self._typical
        worth[sorted(asked)] = -1
        candidates = np.argsort(-worth, kind="stable")[:MAX_CANDIDATES]
        candidates = candidates[worth[candidates] >= 0]
        known = np.vstack([self._vectors[sorted(asked)], self._vectors_of_others])
        here = self._vectors[candidates]
        far = np.minimum(1, 1 - (here @ known.T).max(axis=1, initial=0))
        chosen: list[int] = []
        while len(chosen) < min(BATCH, len(candidates)):
            value = worth[candidates] * np.maximum(far, 0)
            value[chosen] = -1
            chosen.append(int(value.argmax()))
            far = np.minimum(far, 1 - here @ here[chosen[-1]])
        return [int(candidates[at]) for at in chosen]

    def show(self, number: int, now: HeadScores) -> dict[str, Any]:
        """Return the text and its best labels."""
        scores = now.scores[number]
        best = np.argsort(-scores, kind="stable")[:CHOICES]
        text = self._texts[number]
        return {
            "text": text if len(text) <= MAX_SHOWN else text[:MAX_SHOWN] + "…",
            "reason": "unsure",
            "choices": [{"label": now.labels[at], "score": float(scores[at])} for at in best.tolist()],
        }

    def names(self, number: int) -> tuple[str, ...]:
        """Return the text."""
        return (self._texts[number],)

    def find(self, names: tuple[str, ...]) -> int | None:
        """Return the number of a text."""
        return self._numbers.get(" ".join(names[0].split()))

    def write(self, answer: str) -> str:
        """Return the label, or several with bars between them; "" where the person is not sure."""
        if not answer.isprintable():
            raise InputError("a label has no line feeds and no other control characters; type it again")
        return self.read(answer)

    def read(self, written: str) -> str:
        """Return the label without white space around it."""
        label = " ".join(written.split())
        return BETWEEN.join(self._labels(label)) if self._head.several else label

    def summarize(self, now: HeadScores, answers: Answers) -> dict[str, Any]:
        """Return counts, the labels that can be chosen, and the histogram of the best scores."""
        best = now.scores.max(axis=1)
        answered = [label for answer in answers.values() if answer for label in self._labels(answer)]
        return {
            "answers": sum(answer != "" for answer in answers.values()),
            "unsure": sum(answer == "" for answer in answers.values()),
            "known": int((best >= np.float32(now.threshold)).sum()),
            "labels": list(dict.fromkeys([*now.labels, *answered]))[:MAX_LISTED],
            "right": now.right,
            "is_first": now.is_first,
            "scores": ScoreHistogram.from_scores(best, now.threshold, unit="texts"),
        }

    def count_labels(self, answers: Answers) -> int:
        """Return how many texts were given a label, 0 with fewer than two labels."""
        answered = [answer for answer in answers.values() if answer]
        return len(answered) if len({*answered, *(label for _, label in self._others)}) > 1 else 0

    def learn(self, answers: Answers) -> HeadScores:
        """Learn a head from the answers and the other labeled texts.

        It takes the first head's place if it is right for as many of the answers of this review, each left out.
        """
        rows = np.array(sorted(number for number, answer in answers.items() if answer), np.int64)
        texts = [text for text, _ in self._others] + [self._texts[row] for row in rows.tolist()]
        labels = [label for _, label in self._others] + [answers[row] for row in rows.tolist()]
        vectors = np.vstack([self._vectors_of_others, self._vectors[rows]])
        targets: Any = [self._labels(label) for label in labels] if self._head.several else labels
        head, report = fit_head(texts, vectors, targets, model=self._head.model, digest=self._head.digest)
        places = report.answers.rows - len(self._others)
        is_new = np.array([at >= 0 and int(rows[at]) not in self._before for at in places.tolist()], np.bool_)
        right = self._compare(rows[places[is_new]], report.answers.right[is_new], answers)
        if right is not None and right[0] > right[1]:
            return self._first._replace(right=right)
        return HeadScores(head.labels, head.predict(self._texts, self._vectors), head.threshold, right, is_first=False)

    def finish(self, answers: Answers) -> list[str]:
        """Write a head. Raises as `write` does."""
        return self._write([*(label for _, label in self._others), *answers.values()])

    def _compare(self, rows: Int64s, learned: Bools, answers: Answers) -> tuple[float, float] | None:
        """Return the shares of answers for which the first and the learned head's best label is right."""
        if not len(rows):
            return None
        best = self._first.scores[rows].argmax(axis=1).tolist()
        labels = [self._first.labels[at] in self._labels(answers[row])
                  for at, row in zip(best, rows.tolist(), strict=True)]  # fmt: skip
        return float(np.mean(labels)), float(learned.mean())

    def _labels(self, answer: str) -> tuple[str, ...]:
        """Return the labels of an answer."""
        if not self._head.several:
            return (answer,)
        return tuple(dict.fromkeys(part.strip() for part in answer.split(BETWEEN) if part.strip()))


def typical_texts(vectors: Floats) -> Doubles:
    """Return how many texts are like each, float64[n], 0 to 1: the mean cosine with the nearest of a sample.

    Args:
        vectors: float32[n, d], of length 1.
    """
    sample = vectors[np.random.default_rng(SEED).permutation(len(vectors))[:SAMPLE]]
    nearest = min(NEAREST, len(sample))
    found = [np.partition(block @ sample.T, -nearest, axis=1)[:, -nearest:].mean(axis=1) for block in _blocks(vectors)]
    return np.maximum(np.concatenate(found).astype(np.float64), 1e-6)


def _blocks(vectors: Floats, size: int = 4_096) -> Iterator[Floats]:
    for start in range(0, len(vectors), size):
        yield vectors[start : start + size]


def _rate_doubt(scores: Floats, *, several: bool) -> Doubles:
    """Return how unsure each text's labels are, float64[n], 0 to 1.

    It is 1 less the distance of the two best labels; of labels that a text may have several of, how near one is to 0.5.
    """
    if several:
        far: Doubles = np.abs(scores - 0.5).min(axis=1).astype(np.float64)
        return 1 - 2 * far
    best = np.partition(scores, -2, axis=1)[:, -2:].astype(np.float64)
    unsure: Doubles = 1 - (best[:, 1] - best[:, 0])
    return unsure
