"""Word vectors from raw text: counts against a slow reference, the objective by hand, and the command."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from gramvec.errors import InputError
from gramvec_research import vectors as cooccurrence
from gramvec_research.vectors import SquaredNorm, count_cooccurrences, learn_squared_norm, squared_norm
from gramvec_training.readers.vectors import read_vectors
from support.training import research as call
from support.training import sentence

pytestmark = pytest.mark.slow

LETTERS = "abcdef"


def slowly(texts: Sequence[Sequence[str]], window: int) -> Counter[tuple[str, str]]:
    """Every place with every other at most so many places from it."""
    return Counter(
        (text[i], text[j])
        for text in texts
        for i in range(len(text))
        for j in range(len(text))
        if i != j and abs(i - j) <= window
    )


def test_pairs_by_hand() -> None:
    """In "a b a", of two places: a and b twice, each way, and a beside itself; the window ends with its text."""
    found = count_cooccurrences([["a", "b", "a"], ["b"]], window=2)
    assert found.words == ["a", "b"]  # twice each, in order
    assert found.counts.tolist() == [2, 2]
    np.testing.assert_array_equal(found.pairs, [[2, 2], [2, 0]])


@given(
    texts=st.lists(st.lists(st.sampled_from(LETTERS), max_size=12), max_size=9),
    window=st.integers(1, 5),
    block=st.integers(1, 40),
    least=st.integers(1, 4),
)
def test_pairs_are_those_of_the_slow_reference(texts: list[list[str]], window: int, block: int, least: int) -> None:
    """However the text is cut into blocks; rarer words hold their places."""
    counts = Counter(word for text in texts for word in text)
    kept = sorted((word for word in counts if counts[word] >= least), key=lambda word: (-counts[word], word))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cooccurrence, "_BLOCK", block)
        patch.setattr(cooccurrence, "_TEXTS", 3)
        if len(kept) < 2:
            with pytest.raises(InputError, match="fewer than two words"):
                count_cooccurrences(iter(texts), window=window, min_count=least)
            return
        found = count_cooccurrences(iter(texts), window=window, min_count=least)
    assert found.words == kept
    expected = slowly(texts, window)
    for i, a in enumerate(kept):
        assert found.counts[i] == counts[a]
        assert found.pairs[i].tolist() == [expected[a, b] for b in kept]


def test_the_objective_by_hand() -> None:
    """Vectors 1 and 2, C = 0.5, X = [[0, e], [e, 200]] with f at most 100.

    Of the first row one count: f = e and log X - |1 + 2|^2 - C = 1 - 9 - 0.5 = -8.5. Of the second that, and
    f = 100 with log 200 - 16 - 0.5 = -11.2017.
    """
    counts = torch.tensor([[0.0, np.e], [np.e, 200.0]])
    vectors, constant = torch.tensor([[1.0], [2.0]]), torch.tensor([0.5])
    loss, gradient, of_constant = squared_norm(counts[:1], torch.tensor([0]), vectors, constant, 100.0)
    assert loss == pytest.approx(8.5**2)
    # -2 * -8.5 * 2 (v + v') for both words, and -2 * -8.5 for C.
    np.testing.assert_allclose(gradient, [[102.0], [102.0]], rtol=1e-5)
    np.testing.assert_allclose(of_constant, [17.0], rtol=1e-5)
    apart = np.log(200) - 16.5
    loss, _, of_constant = squared_norm(counts[1:], torch.tensor([1]), vectors, constant, 100.0)
    assert loss == pytest.approx((np.e * 8.5**2 + 100 * apart**2) / (np.e + 100), rel=1e-5)
    np.testing.assert_allclose(of_constant, [-2 * (np.e * -8.5 + 100 * apart) / (np.e + 100)], rtol=1e-5)


def test_gradients_are_those_of_autograd() -> None:
    generator = torch.Generator().manual_seed(1)
    counts = torch.randint(0, 5, (7, 7), generator=generator).float()
    counts = counts + counts.T
    vectors = torch.randn(7, 3, generator=generator).requires_grad_()
    constant = torch.tensor([0.3], requires_grad=True)
    rows = torch.tensor([4, 1, 6])
    weights = counts[rows].clamp(max=4)
    logs = torch.where(counts[rows] > 0, counts[rows], 1.0).log()
    lengths = (vectors[rows][:, None] + vectors[None]).square().sum(dim=2)
    slow = (weights * (logs - lengths - constant).square()).sum() / weights.sum()
    expected = torch.autograd.grad(slow, [vectors, constant])
    loss, *found = squared_norm(counts[rows], rows, vectors.detach(), constant.detach(), 4.0)
    assert loss == pytest.approx(float(slow.detach()), rel=1e-5)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


def test_words_that_stand_alike_become_alike() -> None:
    rng = np.random.default_rng(1)
    kinds = [["sun", "moon"], ["dog", "cat"]]
    near = [["sky", "shines", "night"], ["eats", "sleeps", "barks"]]
    texts = [[str(rng.choice(kinds[one])), *map(str, rng.choice(near[one], 3))] for one in rng.integers(0, 2, 2000)]
    found = count_cooccurrences(texts, window=4)
    vectors, losses = learn_squared_norm(found.pairs, SquaredNorm(dimension=8, epochs=200))
    assert losses[-1] < losses[0] / 10
    unit = dict(zip(found.words, vectors / np.linalg.norm(vectors, axis=1, keepdims=True), strict=True))
    assert unit["sun"] @ unit["moon"] > unit["sun"] @ unit["dog"] + 0.3
    again, _ = learn_squared_norm(found.pairs, SquaredNorm(dimension=8, epochs=200))
    assert again.tobytes() == vectors.tobytes()


def test_the_command(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("The dog doesn't bark.\n\nA dog barks, the cat sleeps.\n" * 30)
    options = ["--dimension", "4", "--epochs", "3"]
    done = call("vectors", tmp_path / "a.txt", "-o", tmp_path / "new" / "v.npy", *options)
    assert done.exit_code == 0, done.output
    assert "11 words of 4 dimensions" in done.stdout
    words, vectors = read_vectors(tmp_path / "new" / "v.npy")
    assert {"the", "does", "n't", "barks", ",", "."} < set(words)
    assert vectors.shape == (11, 4)
    first = (tmp_path / "new" / "v.npy").read_bytes()
    assert call("vectors", tmp_path / "a.txt", "-o", tmp_path / "new" / "v.npy", *options).exit_code == 0
    assert (tmp_path / "new" / "v.npy").read_bytes() == first
    done = call("vectors", tmp_path / "a.txt", "-o", tmp_path / "w.npy", *options, "--tokenised", "--max-words", "2")
    assert read_vectors(tmp_path / "w.npy")[0] == ["dog", "the"], done.output


def test_bad_calls_say_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one two\n")
    assert "no such file" in sentence(call("vectors", tmp_path / "none.txt", "-o", tmp_path / "v.npy"))
    assert "give more text" in sentence(call("vectors", tmp_path / "a.txt", "-o", tmp_path / "v.npy"))
    (tmp_path / "empty.txt").write_text("")
    assert "give more text" in sentence(call("vectors", tmp_path / "empty.txt", "-o", tmp_path / "v.npy"))
    wrong = call("vectors", tmp_path / "a.txt", "-o", tmp_path / "v.txt")
    assert wrong.exit_code == 2
    assert "--out ends in .npy" in wrong.stderr
    assert call("vectors", tmp_path / "a.txt", "-o", tmp_path / "v.npy", "--max-words", "30001").exit_code == 2
    assert not (tmp_path / "v.npy").exists()


def test_the_command_knows_how_many_words_a_matrix_may_have() -> None:
    assert f"x<={cooccurrence.MAX_WORDS}" in call("vectors", "--help").stdout
