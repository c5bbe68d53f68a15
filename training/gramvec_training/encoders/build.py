"""From settings to an encoder: a new one, or a finished one of the arrays that it was stored as."""

from __future__ import annotations

import torch
from torch import Tensor

from gramvec_training.configuration import BagSettings, EncoderSettings
from gramvec_training.encoders.bag import Bag
from gramvec_training.encoders.base import Arrays, Encoder
from gramvec_training.encoders.two_layer import TwoLayer


def build_encoder(settings: EncoderSettings, table: Tensor, generator: torch.Generator) -> Encoder:
    """A new encoder over the first values of its table, float32[rows, width]; the generator draws all others."""
    if isinstance(settings, BagSettings):
        return Bag(table, settings)
    return TwoLayer(table, generator)


def restored_encoder(settings: EncoderSettings, arrays: Arrays) -> Encoder:
    """The encoder that `Encoder.arrays` gave. Raises RuntimeError where they are another encoder's."""
    table = torch.zeros(arrays["table"].shape)
    if isinstance(settings, BagSettings):
        components = torch.zeros(arrays["components"].shape) if "components" in arrays else None
        encoder: Encoder = Bag(table, settings, components=components)
    else:
        encoder = build_encoder(settings, table, torch.Generator())
    encoder.take(arrays)
    return encoder
