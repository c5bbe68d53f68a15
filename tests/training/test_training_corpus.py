"""Batches and epochs against slow versions of themselves."""

from __future__ import annotations

import numpy as np
import pytest

from gramvec.text.arrays import FeatureBatch
from gramvec_training.data.corpus import Corpus
from gramvec_training.data.sampling import Mixture, SourceGroups

LENGTHS = [3, 0, 5, 1, 0, 4, 2]


@pytest.fixture
def bags() -> list[list[int]]:
    rng = np.random.default_rng(0)
    return [rng.integers(0, 11, size=length).tolist() for length in LENGTHS]


def featurize(bags: dict[str, list[int]]):  # type: ignore[no-untyped-def]
    def call(texts):  # type: ignore[no-untyped-def]
        ids = [one for text in texts for one in bags[text]]
        offsets = np.cumsum([0, *(len(bags[text]) for text in texts)])
        return FeatureBatch(np.array(ids, dtype=np.int32), offsets)

    return call


@pytest.fixture
def corpus(bags: list[list[int]]) -> Corpus:
    by_name = {f"t{number}": bag for number, bag in enumerate(bags)}
    return Corpus.from_texts(list(by_name), featurize(by_name), 11, chunk=3)


def test_the_corpus_is_the_features_of_its_texts(corpus: Corpus, bags: list[list[int]]) -> None:
    assert len(corpus) == len(bags)
    assert corpus.counts.tolist() == LENGTHS
    assert corpus.ids.tolist() == [one for bag in bags for one in bag]


@pytest.mark.parametrize("texts", [[0], [1], [5, 2, 2, 1, 0], [1, 4], [6, 5, 4, 3, 2, 1, 0]])
def test_a_batch_holds_the_bags_of_its_texts(corpus: Corpus, bags: list[list[int]], texts: list[int]) -> None:
    batch = corpus.batch(np.array(texts))
    for place, text in enumerate(texts):
        local = batch.ids[batch.offsets[place] : batch.offsets[place + 1]]
        assert batch.rows[local].tolist() == bags[text]
    assert batch.rows.tolist() == sorted({one for text in texts for one in bags[text]})
    assert batch.texts.tolist() == texts


def test_batches_do_not_depend_on_those_before(corpus: Corpus) -> None:
    first = corpus.batch(np.array([0, 2]))
    corpus.batch(np.array([5, 6, 2]))
    again = corpus.batch(np.array([0, 2]))
    assert again.ids.tolist() == first.ids.tolist()
    assert again.rows.tolist() == first.rows.tolist()


def test_the_digest_sees_ids_and_borders(corpus: Corpus) -> None:
    ids = corpus.ids.copy()
    assert Corpus(ids, corpus.offsets, 11).digest == corpus.digest
    offsets = corpus.offsets.copy()
    offsets[1] -= 1
    assert Corpus(ids, offsets, 11).digest != corpus.digest
    ids[0] += 1
    assert Corpus(ids, corpus.offsets, 11).digest != corpus.digest


def source(groups: list[list[int]], **settings: int) -> SourceGroups:
    offsets = np.cumsum([0, *(len(group) for group in groups)])
    return SourceGroups("s", np.array([t for group in groups for t in group]), offsets, **settings)  # type: ignore[arg-type]


GROUPS = [[0, 1], [2, 3, 4], [5, 6, 7, 8, 9]]


@pytest.mark.parametrize(("settings", "pairs"), [({}, 3), ({"pairs_per_group": 4}, 12), ({"cap": 2}, 2)])
def test_an_epoch_takes_so_many_pairs_within_groups(settings: dict[str, int], pairs: int) -> None:
    mixture = Mixture([source(GROUPS, **settings)], seed=1)
    assert mixture.pairs_per_epoch == pairs
    for number in range(50):
        epoch = mixture.epoch(number)
        assert epoch.shape == (pairs, 2)
        for left, right in epoch.tolist():
            assert left != right
            assert any(left in group and right in group for group in GROUPS)


def test_groups_are_drawn_without_replacement_and_members_evenly() -> None:
    mixture = Mixture([source([[10 * g, 10 * g + 1, 10 * g + 2] for g in range(20)], cap=15)], seed=1)
    seen = np.zeros(3)
    for number in range(400):
        epoch = mixture.epoch(number)
        assert len(set((epoch[:, 0] // 10).tolist())) == 15
        seen += np.bincount(epoch.ravel() % 10, minlength=3)
    assert (np.abs(seen / seen.sum() - 1 / 3) < 0.02).all()


def test_the_seed_decides_the_epochs() -> None:
    sources = [source(GROUPS, pairs_per_group=5), source([[20, 21]])]
    assert Mixture(sources, 1).epoch(3).tolist() == Mixture(sources, 1).epoch(3).tolist()
    assert Mixture(sources, 1).epoch(3).tolist() != Mixture(sources, 2).epoch(3).tolist()
    assert Mixture(sources, 1).epoch(3).tolist() != Mixture(sources, 1).epoch(4).tolist()
