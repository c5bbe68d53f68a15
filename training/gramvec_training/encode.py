"""Texts to vectors in torch: what development scores are computed with and what an export is checked against."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt
import torch

from gramvec_training.corpus import Featurise
from gramvec_training.encoders import Activation, Bag, Encoder, Pooling
from gramvec_training.evaluate import Similarity
from gramvec_training.runs import Weights
from gramvec_training.sif import remove_components

Floats = npt.NDArray[np.float32]
Encode = Callable[[Sequence[str]], Floats]

_CHUNK = 512  # texts that are featurised at a time


def encoder_function(encoder: Encoder, featurise: Featurise) -> Encode:
    """An encoder, as its parameters are when it is called: n texts to float32[n, d]."""
    device = encoder.table.device

    @torch.no_grad()
    def encode_chunk(texts: Sequence[str]) -> Floats:
        features = featurise(texts)
        ids = torch.from_numpy(features.ids).to(device)
        offsets = torch.from_numpy(features.offsets.astype(np.int32)).to(device)
        vectors: Floats = encoder(ids, offsets).cpu().numpy()
        return vectors

    def encode(texts: Sequence[str]) -> Floats:
        chunks = [encode_chunk(texts[at : at + _CHUNK]) for at in range(0, len(texts), _CHUNK)]
        return np.concatenate([np.zeros((0, encoder.table.shape[1]), dtype=np.float32), *chunks])

    return encode


def reference(weights: Weights, featurise: Featurise, *, pooling: Pooling, activation: Activation) -> Encode:
    """Finished weights in plain torch: x = pool(rows); x -= (x u^T) u; h(x + bias)."""
    pool = encoder_function(
        Bag(torch.from_numpy(weights.table), pooling=pooling, activation="linear", bias=False), featurise
    )

    def encode(texts: Sequence[str]) -> Floats:
        x = pool(texts)  # [n, d]
        if weights.components is not None:
            x = remove_components(x, weights.components)  # [n, d]
        if weights.bias is not None:
            x += weights.bias  # [n, d]
        return np.tanh(x, out=x) if activation == "tanh" else x

    return encode


def unit_vectors(encode: Encode, featurise: Featurise) -> Encode:
    """The same vectors at length 1, or zero for a text without a known feature."""

    def unit(texts: Sequence[str]) -> Floats:
        vectors = encode(texts)
        vectors[np.diff(featurise(texts).offsets) == 0] = 0
        scaled: Floats = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
        return scaled

    return unit


def cosines(encode: Encode, featurise: Featurise) -> Similarity:
    """The cosine of each left text with its right one, float32[n]; 0 where a side has no known feature."""
    unit = unit_vectors(encode, featurise)

    def similarity(left: Sequence[str], right: Sequence[str]) -> Floats:
        cosine: Floats = np.einsum("nd,nd->n", unit(left), unit(right))
        return cosine

    return similarity
