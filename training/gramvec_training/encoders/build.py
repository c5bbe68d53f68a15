"""From settings to an encoder: a new one, or a finished one of the arrays that it was stored as."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from gramvec_training.configuration import (
    BagSettings,
    CharCnnSettings,
    EncoderSettings,
    IrnnSettings,
    LstmSettings,
    RnnSettings,
    TwoLayerSettings,
    WeightedSettings,
)
from gramvec_training.encoders.average import Average
from gramvec_training.encoders.bag import Bag
from gramvec_training.encoders.base import Arrays, Encoder
from gramvec_training.encoders.char_cnn import CharCnn
from gramvec_training.encoders.lstm import Lstm
from gramvec_training.encoders.rnn import Rnn
from gramvec_training.encoders.two_layer import TwoLayer
from gramvec_training.encoders.weighted import Weighted


def build_encoder(settings: EncoderSettings, table: Tensor, dimension: int, generator: torch.Generator) -> Encoder:
    """A new encoder over the first values of its table, float32[rows, width], with vectors of `dimension` columns.

    The generator draws all other first values. A bag, weighted words, two layers and iRNN have vectors as
    wide as their rows.
    """
    if isinstance(settings, BagSettings):
        return Bag(table, settings)
    if isinstance(settings, TwoLayerSettings):
        return TwoLayer(table, settings, generator)
    if isinstance(settings, WeightedSettings):
        return Weighted(table, dimension)
    if isinstance(settings, LstmSettings):
        return Lstm(table, settings, dimension, generator)
    if isinstance(settings, (RnnSettings, IrnnSettings)):
        return Rnn(table, settings, dimension, generator)
    if isinstance(settings, CharCnnSettings):
        return CharCnn(table, settings, dimension, generator)
    return Average(table, settings, dimension, generator)


def restored_encoder(settings: EncoderSettings, arrays: Arrays, dimension: int) -> Encoder:
    """The encoder that `Encoder.arrays` gave. Raises RuntimeError where they are another encoder's."""
    table = torch.from_numpy(np.zeros(arrays["table"].shape, np.float32))  # on pages of 2 MB, where torch's are of 4 KB
    if isinstance(settings, BagSettings):
        components = torch.zeros(arrays["components"].shape) if "components" in arrays else None
        encoder: Encoder = Bag(table, settings, components=components)
    else:
        encoder = build_encoder(settings, table, dimension, torch.Generator())
    encoder.take(arrays)
    return encoder
