"""Learning curve of a head: how right it is on texts left out, after a quarter, half and all of the other texts."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gramvec.errors import InputError
from gramvec.jobs.classify.copies import near_copies, parts_held_out
from gramvec.jobs.classify.fit import fit_head
from gramvec.jobs.classify.head import Head
from gramvec.jobs.classify.targets import Targets
from gramvec.jobs.report import LearningPoint
from gramvec.progress import NO_PROGRESS, Progress
from gramvec.text.arrays import Floats, Int64s

# Shares of the training texts; together their heads take less time than the head that is written.
SHARES = (0.25, 0.5, 1.0)
# A fifth is left out, of at most this many texts that are drawn.
PARTS = 5
MAX_TEXTS = 5000
SEED = 1


def learning_curve(
    texts: Sequence[str],
    vectors: Floats,
    labels: Sequence[Sequence[str]],
    *,
    several: bool,
    progress: Progress = NO_PROGRESS,
) -> list[LearningPoint]:
    """Return how right heads are that learn from some of the texts, all on the same left-out fifth.

    Near copies of a left-out text are left out with it. A number of texts that has fewer than two labels has no point.

    Args:
        texts: n of them.
        vectors: float32[n, d], of length 1.
        labels: those of each text.
        several: whether a text may have several; then the points are F1 of pairs of a text and a known label.
        progress: shows the heads.
    """
    random = np.random.default_rng(SEED)
    rows: Int64s = np.sort(random.permutation(len(texts))[:MAX_TEXTS]).astype(np.int64)
    names = sorted({name for row in rows.tolist() for name in labels[row]})
    targets = Targets.of([labels[row] for row in rows.tolist()], names)
    groups = near_copies([texts[row] for row in rows.tolist()], vectors[rows], targets.rarest)
    parts = parts_held_out(groups, targets.rarest, PARTS)
    asked, rest = rows[parts == 0], random.permutation(rows[parts != 0])
    points = []
    progress.start("learning curve", len(SHARES), "heads")
    for share in SHARES:
        trained = np.sort(rest[: round(share * len(rest))])
        if len(asked) and (head := _fit(trained, texts, vectors, labels, several=several)) is not None:
            value = _score(head, [texts[row] for row in asked.tolist()], vectors[asked],
                           [labels[row] for row in asked.tolist()])  # fmt: skip
            points.append(LearningPoint(len(trained), value))
        progress.advance(1)
    return points


def _fit(
    rows: Int64s, texts: Sequence[str], vectors: Floats, labels: Sequence[Sequence[str]], *, several: bool
) -> Head | None:
    """Return a head of some rows, or None where they do not suffice for one."""
    targets = [labels[row] if several else labels[row][0] for row in rows.tolist()]
    try:
        return fit_head([texts[row] for row in rows.tolist()], vectors[rows], targets, model="", digest="")[0]
    except InputError:
        return None


def _score(head: Head, texts: Sequence[str], vectors: Floats, labels: Sequence[Sequence[str]]) -> float:
    """Return the share of right best labels, or F1 of known ones where a text may have several."""
    scores = head.predict(texts, vectors)
    if not head.several:
        best = scores.argmax(axis=1).tolist()
        return float(np.mean([head.labels[label] in own for label, own in zip(best, labels, strict=True)]))
    found = [{*answer.labels} if answer.known else set() for answer in head.answers(scores)]
    both = sum(len(answered & {*own}) for answered, own in zip(found, labels, strict=True))
    return 2 * both / max(1, sum(map(len, found)) + sum(len({*own}) for own in labels))
