"""New and restored encoders, and functions from texts to vectors and cosines."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from gramvec_training.data.corpus import Featurize
from gramvec_training.encoders.base import Arrays, Encoder
from gramvec_training.sections import ENCODERS, EncoderSettings
from gramvec_training.shared import Encode, Floats, Similarity


def build_encoder(settings: EncoderSettings, table: Tensor, dimension: int, generator: torch.Generator) -> Encoder:
    """Build a new encoder over the initial table float32[rows, width], with vectors of `dimension` columns.

    The generator draws all other first values. Where `settings.keeps_width` the vectors are as wide as the rows.
    """
    encoder: Encoder = ENCODERS.find_class(settings).build(table, settings, dimension, generator)
    return encoder


def restore_encoder(settings: EncoderSettings, arrays: Arrays, dimension: int) -> Encoder:
    """Rebuild the encoder from the arrays of `Encoder.arrays`, to be used and not learned: without dropout.

    Raises:
        RuntimeError: The arrays belong to another encoder.
    """
    table = torch.from_numpy(np.zeros(arrays["table"].shape, np.float32))  # on pages of 2 MB, where torch's are of 4 KB
    encoder = build_encoder(settings, table, dimension, torch.Generator())
    encoder.take(arrays)
    encoder.eval()
    return encoder


_CHUNK = 512  # texts that are featurized at a time


def make_encode(encoder: Encoder, featurize: Featurize) -> Encode:
    """Return a function from n texts to float32[n, d] by the encoder's current parameters."""

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


def zero_unknown(encode: Encode, featurize: Featurize) -> Encode:
    """Return the same function with zero vectors for texts without a known feature."""

    def encode_known(texts: Sequence[str]) -> Floats:
        vectors = encode(texts)
        vectors[np.diff(featurize(texts).offsets) == 0] = 0
        return vectors

    return encode_known


def make_unit_encode(encode: Encode, featurize: Featurize) -> Encode:
    """Return the same function with vectors of length 1, zero for texts without a known feature."""
    encode_known = zero_unknown(encode, featurize)

    def unit(texts: Sequence[str]) -> Floats:
        vectors = encode_known(texts)
        scaled: Floats = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
        return scaled

    return unit


def make_similarity(encode: Encode, featurize: Featurize) -> Similarity:
    """Return a function to the cosine float32[n] of left and right texts; 0 where a side has no known feature."""
    unit = make_unit_encode(encode, featurize)

    def similarity(left: Sequence[str], right: Sequence[str]) -> Floats:
        cosine: Floats = np.einsum("nd,nd->n", unit(left), unit(right))
        return cosine

    return similarity
