"""Rows of a table moved so that a text is nearer to its translation than to others: an additive margin softmax."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from gramvec.errors import InputError
from gramvec.lexical.sparse_vectors import ranges
from gramvec.progress import NO_PROGRESS, Progress
from gramvec_training.sections import Strict
from gramvec_training.shared import Floats, Ints

Bags = tuple[Ints, Ints]


class Tying(Strict):
    """Settings of `tie_translations`.

    margin: by how much the cosine to the translation has to be above others. scale: of cosines within the softmax.
    batch: pairs of a step, of which runs of `run` stand in a row in their file, where sentences are alike, so that
    they are hard to tell apart. rate: of Adam, falling to zero. pull: of a row back to where it began, a share of each
    step.
    """

    margin: float = 0.2
    scale: float = 20.0
    epochs: int = 4
    batch: int = 1_024
    run: int = 32
    rate: float = 3e-3
    pull: float = 1e-2
    seed: int = 0


def margin_softmax(left: Tensor, right: Tensor, keys: Tensor, *, margin: float, scale: float) -> Tensor:
    """Return the mean loss of both directions, a scalar.

    -log(e^(s (c_ii - m)) / (e^(s (c_ii - m)) + sum over j of e^(s c_ij))), c the cosines of each left vector and all
    right ones, and of each right one and all left (Yang et al., 2019). Pairs whose keys are equal are not told apart.

    left, right: float32[b, d], unit vectors. keys: int64[b, 2], of the left and of the right texts.
    """
    cosines = left @ right.T  # [b, b]
    same = (keys[:, None, 0] == keys[None, :, 0]) | (keys[:, None, 1] == keys[None, :, 1])
    own = torch.eye(len(left), dtype=torch.bool)
    logits = scale * (cosines - margin * own).masked_fill(same & ~own, -2.0)
    targets = torch.arange(len(left))
    return (functional.cross_entropy(logits, targets) + functional.cross_entropy(logits.T, targets)) / 2


def tie_translations(
    rows: Floats, left: Bags, right: Bags, settings: Tying, *, progress: Progress = NO_PROGRESS
) -> Floats:
    """Return the rows float32[n, d], moved by Adam over the pairs; a text is the sum of its rows.

    Args:
        rows: float32[n, d], where they begin.
        left: the rows of each text, int64[words], and where each text begins and the last ends, int64[pairs + 1].
        right: the same of the translations. Pairs of which a text has no row are left out.
        settings: see Tying.
        progress: shows the task "translations".

    Raises:
        InputError: There are fewer such pairs than a step takes.
    """
    first = torch.from_numpy(rows)
    table = torch.nn.Parameter(first.clone())
    optimizer = torch.optim.SparseAdam([table], lr=settings.rate)
    usable = np.flatnonzero((np.diff(left[1]) > 0) & (np.diff(right[1]) > 0))
    if len(usable) < settings.batch:
        raise InputError(
            f"translations: {len(usable):,} pairs have words of the model in both texts, and a step takes"
            f" {settings.batch:,}; give more pairs or a smaller batch"
        )
    keys = np.stack([_number_texts(left), _number_texts(right)], axis=1)
    steps = settings.epochs * (len(usable) // settings.batch)
    progress.start("translations", steps, "steps")
    batches = _draw_batches(usable, settings)
    for step in range(steps):
        for group in optimizer.param_groups:
            group["lr"] = settings.rate * (1 - step / steps)
        pairs = next(batches)
        texts = [_take(side, pairs) for side in (left, right)]
        vectors = [
            functional.normalize(functional.embedding_bag(ids, table, offsets, mode="sum", sparse=True), dim=1)
            for ids, offsets in texts
        ]
        loss = margin_softmax(
            vectors[0], vectors[1], torch.from_numpy(keys[pairs]), margin=settings.margin, scale=settings.scale
        )
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()  # type: ignore[no-untyped-call]
        if settings.pull:
            used = torch.unique(torch.cat([ids for ids, _ in texts]))
            with torch.no_grad():
                table[used] = torch.lerp(table[used], first[used], settings.pull * (1 - step / steps))
        progress.advance(1)
    return table.detach().numpy()


def _number_texts(bags: Bags) -> Ints:
    """Return int64[n]: the same number for texts of the same words."""
    ids, offsets = bags
    numbers: dict[bytes, int] = {}
    return np.array(
        [
            numbers.setdefault(ids[begin:end].tobytes(), len(numbers))
            for begin, end in zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True)
        ],
        np.int64,
    )


def _draw_batches(usable: Ints, settings: Tying) -> Iterator[Ints]:
    """Yield the pairs of each step, all runs in a new order each epoch."""
    random = np.random.default_rng(settings.seed)
    runs = settings.batch // settings.run
    while True:
        shifted = np.roll(usable, int(random.integers(settings.run)))
        whole = shifted[: len(shifted) // settings.run * settings.run].reshape(-1, settings.run)
        order = random.permutation(len(whole))
        for start in range(0, len(order) // runs * runs, runs):
            yield whole[order[start : start + runs]].reshape(-1)


def _take(bags: Bags, texts: Ints) -> tuple[Tensor, Tensor]:
    """Return the rows of some texts and where each begins, as embedding_bag takes them."""
    ids, offsets = bags
    begins, lengths = offsets[texts], offsets[texts + 1] - offsets[texts]
    return torch.from_numpy(ids[ranges(begins, lengths)]), torch.from_numpy(np.cumsum(lengths) - lengths)
