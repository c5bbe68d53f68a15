"""Distillation with misspelt words beside the texts: [distillation.spelling]."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import torch

import gramvec
from gramvec_training.data.misspelling import SOUNDS, find_spelt_alike, make_copies, misspell_word
from gramvec_training.objectives.distillation import spelling_loss
from support.training import call, words_teach

STEMS = ["garden", "winter", "butter", "castle", "market", "silver", "planet", "bridge", "harbour", "lantern"]
WORDS = [f"{stem}{ending}" for stem in STEMS for ending in ("", "ed", "er", "ing")]


def test_the_loss_by_hand_moves_copies_alone() -> None:
    words = torch.tensor([[2.0, 0.0], [0.0, 1.0]], requires_grad=True)
    copies = torch.tensor([[3.0, 0.0], [0.6, 0.8]], requires_grad=True)
    # Cosines of the copies with the words: [[1, 0], [0.6, 0.8]], over a temperature of 0.5: [[2, 0], [1.2, 1.6]].
    by_hand = (math.log(1 + math.exp(-2)) + math.log(1 + math.exp(-0.4))) / 2
    loss = spelling_loss(copies, words, temperature=0.5)
    assert loss.item() == pytest.approx(by_hand)
    loss.backward()
    assert copies.grad is not None
    assert copies.grad.abs().sum() > 0
    assert words.grad is None


def test_words_are_compared_with_those_that_are_spelt_alike() -> None:
    alike = find_spelt_alike(WORDS, 4)
    assert alike.shape == (len(WORDS), 4)
    for place, found in enumerate(alike.tolist()):
        stem = STEMS[place // 4]
        assert place in found
        assert sum(WORDS[other].startswith(stem) for other in found) >= 3
    assert sorted(find_spelt_alike(["one", "two"], 8)[0].tolist()) == [0, 1]


def test_errors_are_real_ones_edits_and_spellings_that_sound_alike() -> None:
    random = np.random.default_rng(1)
    found = {misspell_word("phone", random, known={}) for _ in range(2_000)}
    assert {"fone", "phoe", "phonne", "hpone", "phune"} <= found
    assert len(found) > 300
    real = [misspell_word("Their", random, known={"their": ["thier"]}) == "thier" for _ in range(400)]
    assert 0.4 < np.mean(real) < 0.65
    assert misspell_word("a", random, known={}) == "a"
    assert all(misspell_word("ghgh", random, known={}) for _ in range(500))
    assert all(one for one, _ in SOUNDS)
    words = make_copies(["garden", "winter"], 3, np.random.default_rng(2), known={})
    assert len(words) == 6
    assert words == make_copies(["garden", "winter"], 3, np.random.default_rng(2), known={})


@pytest.fixture
def first(tmp_path: Path) -> Path:
    """A model whose words say everything and whose n-grams say next to nothing."""
    words_teach(tmp_path, WORDS)
    (tmp_path / "texts.txt").write_text("\n".join(f"{one} {other}" for one in WORDS for other in STEMS))
    (tmp_path / "words.txt").write_text("\n".join(f"{word} {100 - place}" for place, word in enumerate(WORDS)))
    return tmp_path


def config(folder: Path, words: str) -> Path:
    path = folder / "second.toml"
    with path.open("a") as file:
        file.write(
            "batch = 32\nrate = 0.01\nsteps = 120\nmisspelt = 0.0\n"
            f'[distillation.spelling]\nwords = "{words}"\ngroups = 4\nnear = 4\nweight = 1.0\n'
        )
    return path


def test_a_misspelt_word_finds_its_word_and_words_stay_what_they_were(first: Path) -> None:
    options = ["--data", first, "--cache", first / "cache", "--out", first / "run"]
    result = call("distill", config(first, "words.txt"), *options)
    assert result.exit_code == 0, result.output
    result = call("export", first / "run", "-o", first / "second")
    assert result.exit_code == 0, result.output
    before, after = gramvec.load(first / "first"), gramvec.load(first / "second")
    random = np.random.default_rng(77)
    wrong = [misspell_word(word, random, known={}) for word in WORDS]

    def share(model: gramvec.Embedder) -> float:
        nearest = (model.embed(wrong) @ model.embed(WORDS).T).argmax(axis=1)
        return float(np.mean(nearest == np.arange(len(WORDS))))

    assert share(after) > share(before) + 0.2
    assert np.mean(np.sum(before.embed(WORDS) * after.embed(WORDS), axis=1)) > 0.9
    record = (first / "second" / "manifest.json").read_text()
    assert '"misspelt_words": 40' in record or '"misspelt_words":40' in record


def test_a_file_of_too_few_words_is_named(first: Path) -> None:
    (first / "few.txt").write_text("garden 5\nit 9\nx-ray 4\n")
    result = call("distill", config(first, "few.txt"), "--data", first, "--out", first / "run")
    assert result.exit_code == 1
    assert "few.txt: 1 words of four letters and more, 4 are compared: name a file of more" in result.stderr
