"""Which phrase of the mini-batch, or of several, each phrase is held apart from.

Candidates are the phrases of both sides, as in the authors' code; PARAGRAM-PHRASE's formula has those of the phrase's
own side alone, t1 among the first phrases of the other pairs, and that is to be had too. Excluded are the phrase
itself, its partner, and every other phrase with the same text as one of these two (the papers exclude t in {x1, x2}; a
text may stand in a batch twice). Of texts with labels, all of the phrase's own label are excluded as well. The
authors' code differs in two points that are not copied: it masks with cosine 0, so that a phrase may become its own
negative where all others are below 0, and its random draw never excludes the own pair.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from gramvec_training.configuration import Among, Sampling
from gramvec_training.data import Corpus, Ints
from gramvec_training.encoders import Encoder

CHUNK_PHRASES = 1024  # of a mega-batch at a time: their cosines with 10,000 others take 40 MB
_OUT = -2.0  # below every cosine


@torch.no_grad()
def choose_negatives(
    phrases: Tensor,
    texts: Tensor,
    sampling: Sampling,
    *,
    among: Among = "both",
    generator: torch.Generator | None = None,
    classes: Tensor | None = None,
) -> Tensor:
    """int64[2b]: the negative of each of the 2b phrases (b left, then b right), or -1 where no phrase is left.

    `phrases` float32[2b, d] are unit vectors; `texts` int64[2b] are equal where the texts are equal. `classes`
    int64[2b] are the labels of the texts where they have any: no negative is of the phrase's own one, and a phrase of
    class -1, which has several labels, has none and is none. MAX takes the
    most similar candidate, the first of equals. RAND takes one uniformly at random, MIX does so for each phrase by
    itself with probability 0.5 and else takes MAX; `generator` (on the CPU) is then required. (CHARAGRAM's supplement,
    section 1.1; PARAGRAM-PHRASE, section 3.1.1 and the timing runs.)
    """
    half = len(texts) // 2
    partners = texts.roll(half)
    chosen = []
    for start in range(0, len(texts), CHUNK_PHRASES):
        part = slice(start, start + CHUNK_PHRASES)
        out = (texts[part, None] == texts) | (partners[part, None] == texts)  # [c, 2b]
        if classes is not None:
            out |= (classes[part, None] == classes) | (classes[part, None] < 0) | (classes < 0)
        if among == "own":
            is_left = torch.arange(len(texts), device=texts.device) < half
            out |= is_left[part, None] != is_left
        none_left = out.all(dim=1)
        if sampling != "rand":
            most = (phrases[part] @ phrases.T).masked_fill_(out, _OUT).argmax(dim=1)  # [c]
        if sampling != "max":
            drawn = torch.rand(out.shape, generator=generator).to(phrases.device).masked_fill_(out, -1.0).argmax(dim=1)
            coin = torch.rand(len(out), generator=generator).to(phrases.device) < 0.5
            most = drawn if sampling == "rand" else torch.where(coin, drawn, most)
        chosen.append(torch.where(none_left, -1, most))
    return torch.cat(chosen)


@torch.no_grad()
def mega_batch_negatives(
    encoder: Encoder,
    corpus: Corpus,
    pairs: Ints,
    sampling: Sampling,
    *,
    among: Among = "both",
    generator: torch.Generator | None = None,
    classes: Ints | None = None,
) -> Ints:
    """The negatives of pairs of texts, sought among all of them, with the encoder as it is: int64[2, m].

    `pairs` int64[m, 2] are numbers of texts of the corpus, and so is what comes back, for the left and the right
    sides, with -1 for none; `classes` int64[texts] are the labels of the corpus: see `choose_negatives`.
    (Wieting and Gimpel, 2018, whose mega-batches are these pairs; they seek on the opposite side alone.)
    """
    device = encoder.table.device
    phrases = np.concatenate([pairs[:, 0], pairs[:, 1]])  # [2m]
    texts, places = np.unique(phrases, return_inverse=True)
    vectors = []
    for start in range(0, len(texts), CHUNK_PHRASES):
        ids, offsets = corpus.cut(texts[start : start + CHUNK_PHRASES])
        vectors.append(encoder(torch.from_numpy(ids).to(device), torch.from_numpy(offsets).to(device)))
    unit = functional.normalize(torch.cat(vectors), dim=1)[torch.from_numpy(places).to(device)]  # [2m, d]
    same = torch.from_numpy(phrases).to(device)
    of_label = None if classes is None else torch.from_numpy(classes[phrases]).to(device)
    found = choose_negatives(unit, same, sampling, among=among, generator=generator, classes=of_label)
    chosen = found.cpu().numpy()
    negatives: Ints = np.where(chosen >= 0, phrases[chosen], -1).reshape(2, -1)
    return negatives
