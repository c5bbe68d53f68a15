"""Feature ids and offsets -> vectors: the architectures, a page each, and texts to vectors with a finished one.

It imports configuration and data. A new encoder is a page here, its settings in configuration/model.py, a branch of
`build_encoder`, and a writer of its graph in export/graphs.
"""

from __future__ import annotations

from gramvec_training.encoders.average import Average
from gramvec_training.encoders.bag import Bag, bag_of
from gramvec_training.encoders.base import ACTIVATIONS, Arrays, Encoder, glorot, normal
from gramvec_training.encoders.build import build_encoder, restored_encoder
from gramvec_training.encoders.char_cnn import CharCnn
from gramvec_training.encoders.encoding import cosines, encoder_function, known_vectors, unit_vectors
from gramvec_training.encoders.lstm import Lstm
from gramvec_training.encoders.recurrence import lstm, rnn
from gramvec_training.encoders.rnn import Rnn
from gramvec_training.encoders.sequences import LONGEST, Steps, projected
from gramvec_training.encoders.two_layer import TwoLayer
from gramvec_training.encoders.weighted import Weighted, folded

__all__ = [
    "ACTIVATIONS",
    "LONGEST",
    "Arrays",
    "Average",
    "Bag",
    "CharCnn",
    "Encoder",
    "Lstm",
    "Rnn",
    "Steps",
    "TwoLayer",
    "Weighted",
    "bag_of",
    "build_encoder",
    "cosines",
    "encoder_function",
    "folded",
    "glorot",
    "known_vectors",
    "lstm",
    "normal",
    "projected",
    "restored_encoder",
    "rnn",
    "unit_vectors",
]
