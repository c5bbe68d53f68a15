"""Text -> Treebank tokens between single spaces: what published word vectors are of, and the word rule white-space/1.

The conventions are those of the Penn Treebank (Marcus et al., 1993) as its tokeniser has them: punctuation is apart,
contractions are two tokens ("do n't", "John 's"), words with a hyphen stay whole, brackets and quotes stay as they are
in the vectors of GloVe. A full stop is a token only at the end of a text, since "U.S." and "3.14" are one.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from tqdm import tqdm

from gramvec.errors import InputError
from gramvec_training.fitting.trainer import choose_device, settle
from gramvec_training.readers.lines import read_texts
from gramvec_training.shared import Floats, Ints, write_atomically

_QUOTES = str.maketrans({"\u2018": "'", "\u2019": "'", "\u201c": '"', "\u201d": '"'})
_RULES: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"(^|[\s(\[{<])\""), r"\1 `` "),  # an opening quote
    (re.compile(r'"'), " '' "),
    (re.compile(r"(?<!\.)\.{2,}"), " ... "),
    (re.compile(r"([:,])(?!\d)"), r" \1 "),  # 1,000 and 3:45 are one
    (re.compile(r"(?<!\d)([:,])(?=\d)"), r" \1 "),
    (re.compile(r"([;@$%&?!()\[\]{}<>]|--+|[\u2013\u2014])"), r" \1 "),
    (re.compile(r"([^\s.])\.(?=[\s\"')\]}>]*$)"), r"\1 . "),  # the full stop of the text
    (re.compile(r"(^|\s)'(?=[^\s'])(?!(?:s|m|d|ll|re|ve|t|em|til|cause)\b)", re.IGNORECASE), r"\1 ' "),
    (re.compile(r"([^\s'])('s|'m|'d|'ll|'re|'ve)(?=\W|$)", re.IGNORECASE), r"\1 \2 "),
    (re.compile(r"(\w)(n't)(?=\W|$)", re.IGNORECASE), r"\1 \2 "),
    (re.compile(r"([^\s'])'(?=\s|$)"), r"\1 ' "),  # of the plural, or a closing one
    (re.compile(r"\b(can)(not)\b", re.IGNORECASE), r"\1 \2"),
    (re.compile(r"\b(gon|wan)(na)\b", re.IGNORECASE), r"\1 \2"),
    (re.compile(r"\b(got)(ta)\b", re.IGNORECASE), r"\1 \2"),
    (re.compile(r"(^|\s)#(?=\w)"), r"\1"),  # the word of a tag, as in the papers' Twitter data
)


def treebank_tokens(text: str) -> str:
    """Return the tokens of a text with a space between them; "" for only white space. Case stays."""
    text = text.translate(_QUOTES)
    for pattern, tokens in _RULES:
        text = pattern.sub(tokens, text)
    return " ".join(text.split())


MAX_WORDS = 30_000  # whose matrix has 3.6 GB
_BLOCK = 1_000_000  # words of text that are counted at a time
_TEXTS = 10_000  # that are numbered at a time
_BORDER = -1  # between two texts

_Numbers = npt.NDArray[np.int32]


@dataclass(frozen=True)
class Cooccurrences:
    """words: the most frequent first, equal counts by text. counts int64[n]: of each. pairs float32[n, n]: how often
    one stands at most `window` words before or behind the other; symmetric.
    """

    words: list[str]
    counts: Ints
    pairs: Floats


def count_cooccurrences(
    texts: Iterable[Sequence[str]], *, window: int, min_count: int = 1, max_words: int = MAX_WORDS
) -> Cooccurrences:
    """Count the pairs of words of the texts' tokens; a window ends where its text does.

    Words that stand fewer than `min_count` times, or are not among the `max_words` most frequent, hold their places in
    the windows and are not counted. Beside the matrix of 4 n^2 bytes memory has only the distinct words: the texts'
    numbers lie in a temporary file of 4 bytes a word. Raises InputError where no two words are left.
    """
    with tempfile.TemporaryFile() as file:
        known = _number(texts, file)
        counts = np.zeros(len(known), np.int64)
        for block, _ in _blocks(file, 0):
            counts += np.bincount(block[block >= 0], minlength=len(known))
        listed = list(known)
        often = np.flatnonzero(counts >= min_count).tolist()
        order = sorted(often, key=lambda number: (-counts[number], listed[number]))[:max_words]
        if len(order) < 2:
            raise InputError(
                f"fewer than two words stand {min_count} times in these texts; give more text or a lower min_count"
            )
        places = np.full(len(known) + 1, _BORDER - 1, np.int32)  # the last is that of the border, which is -1
        places[order], places[-1] = np.arange(len(order), dtype=np.int32), _BORDER
        pairs = np.zeros((len(order), len(order)), np.float32)
        for block, begin in _blocks(file, window):
            _add_pairs(pairs, places[block], begin, window)
    _add_transposed(pairs)
    return Cooccurrences([listed[number] for number in order], counts[order], pairs)


def _number(texts: Iterable[Sequence[str]], file: IO[bytes]) -> dict[str, int]:
    """Write each text's words as their numbers in the order in which they are met, with a border behind each text."""
    known: dict[str, int] = {}
    numbers: list[int] = []
    for done, text in enumerate(texts, 1):
        numbers += [known.setdefault(word, len(known)) for word in text]
        numbers.append(_BORDER)
        if done % _TEXTS == 0:
            file.write(np.array(numbers, np.int32).tobytes())
            numbers = []
    file.write(np.array(numbers, np.int32).tobytes())
    return known


def _blocks(file: IO[bytes], overlap: int) -> Iterator[tuple[_Numbers, int]]:
    """Yield the numbers in blocks, each behind the last `overlap` of those before, and how many these are."""
    file.seek(0)
    before = np.zeros(0, np.int32)
    while len(new := np.frombuffer(file.read(4 * _BLOCK), np.int32)):
        block = np.concatenate([before, new])
        yield block, len(before)
        before = block[max(0, len(block) - overlap) :]


def _add_pairs(pairs: Floats, numbers: _Numbers, begin: int, window: int) -> None:
    """Add 1 for each two known words of a text at most `window` places apart, of which the second is not before
    `begin`; the first gives the row.
    """
    flat, texts = pairs.reshape(-1), np.cumsum(numbers == _BORDER, dtype=np.int32)
    for apart in range(1, min(window, len(numbers) - 1) + 1):
        start = max(begin, apart)
        first, second = numbers[start - apart : -apart], numbers[start:]
        within = (first >= 0) & (second >= 0) & (texts[start - apart : -apart] == texts[start:])
        keys, counts = np.unique(first[within].astype(np.int64) * len(pairs) + second[within], return_counts=True)
        flat[keys] += counts


def _add_transposed(pairs: Floats, block: int = 1024) -> None:
    """Add the transpose of the matrix to it, in place."""
    for i in range(0, len(pairs), block):
        for j in range(i, len(pairs), block):
            upper = pairs[i : i + block, j : j + block] + pairs[j : j + block, i : i + block].T
            pairs[i : i + block, j : j + block], pairs[j : j + block, i : i + block] = upper, upper.T


_ROWS = 256  # of a block
_EPSILON = 1e-10  # within AdaGrad's root


@dataclass(frozen=True)
class SquaredNorm:
    """Settings of the learning. max_count: above which co-occurrences weigh no more. first: of the first values."""

    dimension: int = 100
    epochs: int = 20
    rate: float = 0.05
    max_count: float = 100.0
    first: float = 0.1
    seed: int = 1


def learn_squared_norm(pairs: Floats, settings: SquaredNorm) -> tuple[Floats, list[float]]:
    """Learn vectors float32[n, d] of symmetric counts float32[n, n]; return them and each epoch's mean loss.

    The same seed and number of torch's threads give the same bytes. Beside the matrix memory has some blocks of it.
    """
    counts = torch.from_numpy(pairs)
    generator = torch.Generator().manual_seed(settings.seed)
    vectors = torch.empty(len(counts), settings.dimension).normal_(0, settings.first, generator=generator)
    constant = torch.zeros(1)
    learned = (vectors, constant)
    squares = [torch.zeros_like(parameter) for parameter in learned]
    losses = []
    rng = np.random.default_rng(settings.seed)
    for _ in tqdm(range(settings.epochs), desc="learning vectors", unit=" epochs", disable=None):
        epoch = []
        for rows in torch.split(torch.from_numpy(rng.permutation(len(counts))), _ROWS):
            loss, *gradients = squared_norm(counts[rows], rows, vectors, constant, settings.max_count)
            epoch.append(loss)
            for value, total, gradient in zip(learned, squares, gradients, strict=True):
                total.addcmul_(gradient, gradient)
                value.addcdiv_(gradient, (total + _EPSILON).sqrt_(), value=-settings.rate)
        losses.append(float(np.mean(epoch)))
    return vectors.numpy(), losses


def squared_norm(
    counts: Tensor, rows: Tensor, vectors: Tensor, constant: Tensor, max_count: float
) -> tuple[float, Tensor, Tensor]:
    """Return the mean loss over a block of rows of the matrix, float32[r, n], weighed by f, and its gradients.

    rows: int64[r], the block's words. The gradients are those of the vectors, float32[n, d], and of C, float32[1].
    """
    own = vectors[rows]  # [r, d]
    lengths = vectors.square().sum(dim=1)  # [n]
    weights = counts.clamp(max=max_count)  # [r, n]
    whole = weights.sum().clamp(min=1)
    apart = counts.clamp(min=1).log_().sub_(constant).sub_(lengths).sub_(lengths[rows, None])
    apart.addmm_(own, vectors.T, alpha=-2)  # log X - |v + v'|^2 - C
    pulled = weights.mul_(apart)  # [r, n]
    loss = float((pulled * apart).sum() / whole)
    # d/dv of |v + v'|^2 is 2 (v + v').
    gradient = pulled.sum(dim=0)[:, None] * vectors + pulled.T @ own  # [n, d]
    gradient.index_add_(0, rows, pulled.sum(dim=1)[:, None] * own + pulled @ vectors)
    return loss, gradient.mul_(-4 / whole), (pulled.sum() * (-2 / whole)).view(1)


@dataclass(frozen=True)
class Counting:
    """Which words have a vector, and how many places apart words stand near each other.

    tokenised: the texts are tokens with white space between them; else they are cut into Treebank tokens. Words are
    lower-cased.
    """

    window: int = 10
    min_count: int = 20
    max_words: int = 10_000
    tokenised: bool = False


@dataclass(frozen=True)
class WordVectors:
    """words: the most frequent first. counts int64[n]. vectors float32[n, d]. losses: the mean of each epoch."""

    words: list[str]
    counts: Ints
    vectors: Floats
    losses: list[float]


def save_vectors(path: Path, words: Sequence[str], vectors: Floats) -> None:
    """Write an array of NumPy, and its words, one a line, into the file of the same name ending in .txt."""
    text = "".join(f"{word}\n" for word in words)
    write_atomically(path.with_suffix(".txt"), lambda handle: handle.write(text.encode()))
    write_atomically(path, lambda handle: np.save(handle, vectors, allow_pickle=False))


def learn_word_vectors(paths: Sequence[Path], counting: Counting, settings: SquaredNorm) -> WordVectors:
    """Learn vectors of the words of text files, a text a line; on one core, so that all have one result.

    Raises InputError for a missing file, or where fewer than two words are frequent enough.
    """
    missing = [path for path in paths if not path.is_file()]
    if missing:
        raise InputError(f"{missing[0]}: no such file; check the path")
    settle(choose_device("cpu"), 1)
    counted = count_cooccurrences(
        tokens_of(paths, tokenised=counting.tokenised),
        window=counting.window,
        min_count=counting.min_count,
        max_words=counting.max_words,
    )
    vectors, losses = learn_squared_norm(counted.pairs, settings)
    return WordVectors(counted.words, counted.counts, vectors, losses)


def tokens_of(paths: Iterable[Path], *, tokenised: bool) -> Iterator[list[str]]:
    """Yield the lower-cased tokens of each text."""
    for path in paths:
        for text in read_texts(path):
            yield (text if tokenised else treebank_tokens(text)).lower().split()
