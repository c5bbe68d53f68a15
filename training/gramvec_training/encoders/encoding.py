"""Texts to vectors in torch: what development scores are computed with and what an export is checked against."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from gramvec_training.data import Featurize
from gramvec_training.encoders.base import Encoder
from gramvec_training.types import Encode, Floats, Similarity

_CHUNK = 512  # texts that are featurized at a time


def encoder_function(encoder: Encoder, featurize: Featurize) -> Encode:
    """An encoder, as its parameters are when it is called: n texts to float32[n, d]."""

    @torch.no_grad()
    def encode_chunk(texts: Sequence[str]) -> Floats:
        device = encoder.table.device
        features = featurize(texts)
        ids = torch.from_numpy(features.ids).to(device)
        offsets = torch.from_numpy(features.offsets.astype(np.int32)).to(device)
        vectors: Floats = encoder(ids, offsets).cpu().numpy()
        return vectors

    def encode(texts: Sequence[str]) -> Floats:
        chunks = [encode_chunk(texts[at : at + _CHUNK]) for at in range(0, len(texts), _CHUNK)]
        return np.concatenate([np.zeros((0, encoder.dimension), dtype=np.float32), *chunks])

    return encode


def known_vectors(encode: Encode, featurize: Featurize) -> Encode:
    """The same vectors, or zero for a text without a known feature."""

    def known(texts: Sequence[str]) -> Floats:
        vectors = encode(texts)
        vectors[np.diff(featurize(texts).offsets) == 0] = 0
        return vectors

    return known


def unit_vectors(encode: Encode, featurize: Featurize) -> Encode:
    """The same vectors at length 1, or zero for a text without a known feature."""
    known = known_vectors(encode, featurize)

    def unit(texts: Sequence[str]) -> Floats:
        vectors = known(texts)
        scaled: Floats = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
        return scaled

    return unit


def cosines(encode: Encode, featurize: Featurize) -> Similarity:
    """The cosine of each left text with its right one, float32[n]; 0 where a side has no known feature."""
    unit = unit_vectors(encode, featurize)

    def similarity(left: Sequence[str], right: Sequence[str]) -> Floats:
        cosine: Floats = np.einsum("nd,nd->n", unit(left), unit(right))
        return cosine

    return similarity
