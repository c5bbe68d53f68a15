"""TOML files -> typed, frozen configs. The ground floor: it imports none of the other rooms.

A new setting goes into the section that it belongs to; a new encoder has its settings in model.py, a new way of
learning in methods.py.
"""

from __future__ import annotations

from gramvec_training.configuration.config import Config, load_config, parse_config
from gramvec_training.configuration.how import How
from gramvec_training.configuration.methods import (
    Centre,
    Decay,
    Distillation,
    Optimiser,
    Sampling,
    Sif,
    Start,
    Training,
)
from gramvec_training.configuration.model import (
    Activation,
    BagSettings,
    EncoderSettings,
    Export,
    Features,
    Kind,
    Model,
    Pooling,
    Precision,
    TwoLayerSettings,
    VocabularyLimits,
)
from gramvec_training.configuration.sources import DataSet, Dev, Layout, OnBad, TextLayout, TextSource

__all__ = [
    "Activation",
    "BagSettings",
    "Centre",
    "Config",
    "DataSet",
    "Decay",
    "Dev",
    "Distillation",
    "EncoderSettings",
    "Export",
    "Features",
    "How",
    "Kind",
    "Layout",
    "Model",
    "OnBad",
    "Optimiser",
    "Pooling",
    "Precision",
    "Sampling",
    "Sif",
    "Start",
    "TextLayout",
    "TextSource",
    "Training",
    "TwoLayerSettings",
    "VocabularyLimits",
    "load_config",
    "parse_config",
]
