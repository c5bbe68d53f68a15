"""Each equation by a worked example, and the loss against a plain NumPy version."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch.nn import functional

from gramvec.errors import InputError
from gramvec_training.encoders.bag import Bag, TwoLayer, TwoLayerSettings
from gramvec_training.fitting.sif import find_common_components, make_word_table, remove_components, weigh_words
from gramvec_training.objectives.pairs import choose_negatives, margin_loss
from gramvec_training.sections import BagSettings


def plain_loss(left: np.ndarray, right: np.ndarray, texts: list[int], margin: float) -> float:
    """The papers' loss with MAX, one pair at a time."""
    phrases, total, b = np.concatenate([left, right]), 0.0, len(left)
    cos = phrases @ phrases.T / np.outer(np.linalg.norm(phrases, axis=1), np.linalg.norm(phrases, axis=1))
    for i in range(b):
        for x, partner in ((i, b + i), (b + i, i)):
            others = [t for t in range(2 * b) if texts[t] not in (texts[x], texts[partner])]
            if others:
                total += max(0.0, margin - cos[x, partner] + max(cos[x, t] for t in others))
    return total / b


@pytest.mark.parametrize("seed", range(5))
def test_loss_equals_the_plain_version(seed: int) -> None:
    rng = np.random.default_rng(seed)
    left, right = rng.normal(size=(2, 9, 7))
    texts = rng.integers(0, 12, size=18)  # some texts stand in the batch twice
    unit = functional.normalize(torch.from_numpy(np.concatenate([left, right])), dim=1)
    negatives = choose_negatives(unit, torch.from_numpy(texts), "max")
    loss = margin_loss(*unit.chunk(2), negatives, 0.4)
    assert float(loss) == pytest.approx(plain_loss(left, right, texts.tolist(), 0.4), rel=1e-12)


def test_loss_by_hand() -> None:
    # Two pairs in the plane: x1 = 0 deg, x2 = 60 deg; y1 = 90 deg, y2 = 150 deg.
    degrees = torch.tensor([0.0, 90.0, 60.0, 150.0], dtype=torch.float64)  # left x1, y1, right x2, y2
    unit = torch.stack([torch.cos(torch.deg2rad(degrees)), torch.sin(torch.deg2rad(degrees))], dim=1)
    negatives = choose_negatives(unit, torch.arange(4), "max")
    assert negatives.tolist() == [1, 2, 1, 2]  # x1 -> y1 (0), y1 -> x2, x2 -> y1, y2 -> x2 (all within 90 deg)
    # Both pairs have cosine 0.5. x1: max(0, 0.4 - 0.5 + 0) = 0; y1 and x2: 0.4 - 0.5 + cos 30; y2: 0.4 - 0.5 + 0.
    expected = (0 + 2 * (0.4 - 0.5 + math.sqrt(3) / 2) + 0) / 2
    assert float(margin_loss(*unit.chunk(2), negatives, 0.4)) == pytest.approx(expected)


def test_the_gradient_flows_through_the_negatives() -> None:
    unit = functional.normalize(torch.eye(4) + 0.5, dim=1).requires_grad_()
    loss = margin_loss(unit[:2], unit[2:], torch.tensor([3, 3, 3, 0]), 0.4)
    (gradient,) = torch.autograd.grad(loss, unit)
    without = margin_loss(unit[:2], unit[2:], torch.tensor([1, 0, 1, 0]), 0.4)
    (other,) = torch.autograd.grad(without, unit)
    assert not torch.allclose(gradient[3], other[3])


def test_a_phrase_without_a_negative_counts_as_zero() -> None:
    unit = functional.normalize(torch.tensor([[1.0, 0.0], [0.0, 1.0]]), dim=1)
    negatives = choose_negatives(unit, torch.tensor([0, 1]), "max")  # a batch of one pair
    assert negatives.tolist() == [-1, -1]
    assert float(margin_loss(unit[:1], unit[1:], negatives, 0.4)) == 0


def test_max_never_takes_itself_its_partner_or_their_texts_again() -> None:
    # Phrase 1 has the same text as phrase 0, phrase 4 the same as phrase 0's partner; all others point away.
    texts = torch.tensor([7, 7, 2, 3, 3, 5])
    unit = functional.normalize(
        torch.tensor([[1.0, 0, 0], [1, 0, 0], [-1, 0.1, 0], [0.9, 0.1, 0], [0.9, 0.1, 0], [-1, 0, 0.2]]), dim=1
    )
    chosen = choose_negatives(unit, texts, "max")
    assert chosen[0].item() in (2, 5)  # although both cosines are below 0, where masking with 0 would fail
    for phrase, negative in enumerate(chosen.tolist()):
        partner = (phrase + 3) % 6
        assert texts[negative] not in (texts[phrase], texts[partner])


def test_mix_draws_only_allowed_phrases_and_takes_max_half_of_the_time() -> None:
    generator = torch.Generator().manual_seed(3)
    unit = functional.normalize(torch.randn(400, 5, generator=generator), dim=1)
    texts = torch.arange(400)
    best = choose_negatives(unit, texts, "max")
    mixed = choose_negatives(unit, texts, "mix", generator=generator)
    share = (best == mixed).double().mean().item()
    assert 0.4 < share < 0.6
    partner = texts.roll(200)
    assert not ((mixed == texts) | (mixed == partner)).any()
    again = torch.Generator().manual_seed(4)
    first = choose_negatives(unit, texts, "mix", generator=again)
    assert torch.equal(first, choose_negatives(unit, texts, "mix", generator=torch.Generator().manual_seed(4)))


def test_charagram_by_hand() -> None:
    """Equation 1: h(b + the sum of the rows of the n-grams), an n-gram that occurs twice counted twice."""
    encoder = Bag(torch.tensor([[0.1, 0.2], [0.3, -0.4]]), BagSettings())
    with torch.no_grad():
        encoder.bias[:] = torch.tensor([0.05, 0.0])  # type: ignore[index]
    vectors = encoder(torch.tensor([0, 1, 0]), torch.tensor([0, 3, 3]))
    expected = [[math.tanh(0.05 + 0.5), math.tanh(0.0)], [math.tanh(0.05), 0.0]]
    np.testing.assert_allclose(vectors.detach().numpy(), expected, atol=1e-7)


def test_paragram_phrase_by_hand() -> None:
    """The mean of the rows of the words; a text without words is zero."""
    encoder = Bag(torch.tensor([[1.0, 2.0], [3.0, -4.0]]), BagSettings(pooling="mean", activation="linear", bias=False))
    vectors = encoder(torch.tensor([0, 1, 1, 0]), torch.tensor([0, 3, 3, 4]))
    np.testing.assert_allclose(vectors.detach().numpy(), [[7 / 3, -2.0], [0, 0], [1, 2]], rtol=1e-6)
    assert encoder.dense() == {}


def test_two_layers_by_hand() -> None:
    """tanh(b2 + tanh(b1 + sum of the rows) W2): the second layer's units are columns of W2."""
    encoder = TwoLayer(
        torch.tensor([[0.1, 0.2], [0.3, -0.4]]), TwoLayerSettings(kind="two-layer"), torch.Generator().manual_seed(1)
    )
    with torch.no_grad():
        encoder.bias[:] = torch.tensor([0.05, 0.0])
        encoder.second[:] = torch.tensor([[1.0, 2.0], [0.5, -1.0]])
        encoder.second_bias[:] = torch.tensor([0.0, 0.25])
    vectors = encoder(torch.tensor([0, 1]), torch.tensor([0, 2, 2]))
    first = [[math.tanh(0.45), math.tanh(-0.2)], [math.tanh(0.05), 0.0]]
    expected = [[math.tanh(a + 0.5 * b), math.tanh(2 * a - b + 0.25)] for a, b in first]
    np.testing.assert_allclose(vectors.detach().numpy(), expected, atol=1e-6)


def test_sif_weights_by_hand() -> None:
    weights = weigh_words(["the", "cat", "zyzzyva"], {"the": 0.049, "cat": 0.001}, a=1e-3)
    np.testing.assert_allclose(weights, [0.02, 0.5, 1.0], rtol=1e-6)


def test_sif_component_by_hand() -> None:
    # X^T X = [[3, 1], [1, 3]]: the first singular vector is (1, 1) / sqrt 2. Centered, it would be (1, -1) / sqrt 2.
    sentences = np.array([[1, 1], [1, 1], [1, -1]], dtype=np.float32)
    u = find_common_components(sentences, 1)
    np.testing.assert_allclose(u, [[math.sqrt(0.5), math.sqrt(0.5)]], rtol=1e-6)
    np.testing.assert_allclose(remove_components(sentences, u), [[0, 0], [0, 0], [1, -1]], atol=1e-6)


def test_sif_components_are_the_first_right_singular_vectors() -> None:
    sentences = np.random.default_rng(0).normal(size=(50, 6)).astype(np.float32) + 1
    u = find_common_components(sentences, 3)
    _, _, expected = np.linalg.svd(sentences.astype(np.float64), full_matrices=False)
    np.testing.assert_allclose(np.abs(u @ expected[:3].T), np.eye(3), atol=1e-5)
    np.testing.assert_allclose(u @ u.T, np.eye(3), atol=1e-6)
    assert (np.take_along_axis(u, np.abs(u).argmax(axis=1, keepdims=True), axis=1) > 0).all()


def test_too_few_sentences_for_the_components() -> None:
    with pytest.raises(InputError, match="does not span 2 dimensions"):
        find_common_components(np.array([[1, 2, 3], [2, 4, 6]], dtype=np.float32), 2)


def test_sif_words_are_folded_and_sorted_by_frequency() -> None:
    vectors = np.array([[1, 0], [2, 0], [3, 0], [4, 0]], dtype=np.float32)
    words = ["Rare", "the", "rare", "CAT"]  # of two spellings the lower-case one, wherever it stands
    vocabulary, table = make_word_table(words, vectors, {"the": 0.5, "cat": 1e-9}, max_words=3)
    assert [(entry.text, entry.count) for entry in vocabulary.entries()] == [
        ("the", 500_000_000),
        ("cat", 1),
        ("rare", 0),
    ]
    assert table.tolist() == [[2, 0], [4, 0], [3, 0]]
