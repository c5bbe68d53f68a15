"""Feature ids and offsets -> vectors: the architectures, a page each, and texts to vectors with a finished one.

It imports configuration and data. A new encoder is a page here, its settings in configuration/model.py, a branch of
`build_encoder`, and a writer of its graph in export/graphs.
"""

from __future__ import annotations

from gramvec_training.encoders.bag import Bag, bag_of
from gramvec_training.encoders.base import Arrays, Encoder, glorot
from gramvec_training.encoders.build import build_encoder, restored_encoder
from gramvec_training.encoders.encoding import cosines, encoder_function, unit_vectors
from gramvec_training.encoders.two_layer import TwoLayer

__all__ = [
    "Arrays",
    "Bag",
    "Encoder",
    "TwoLayer",
    "bag_of",
    "build_encoder",
    "cosines",
    "encoder_function",
    "glorot",
    "restored_encoder",
    "unit_vectors",
]
