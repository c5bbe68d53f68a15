"""TOML files -> typed, frozen configs. The ground floor: it imports none of the other rooms.

A new setting goes into the section that it belongs to; a new encoder has its settings in model.py, a new way of
learning in methods.py.
"""

from __future__ import annotations

from gramvec_training.configuration.config import Config, load_config, parse_config
from gramvec_training.configuration.how import How
from gramvec_training.configuration.methods import Among, Distillation, Sampling, Sif, Start, Training, Weights
from gramvec_training.configuration.model import (
    SEQUENCES,
    Activation,
    BagSettings,
    CharCnnSettings,
    DanSettings,
    EncoderSettings,
    Export,
    Features,
    FilterSet,
    IrnnSettings,
    Kind,
    LayerActivation,
    LstmSettings,
    Model,
    Pooling,
    Precision,
    ProjectionSettings,
    RnnSettings,
    TwoLayerSettings,
    UnknownWords,
    VocabularyLimits,
    WordRule,
)
from gramvec_training.configuration.schedule import Centre, Decay, Every, Optimiser, Schedule
from gramvec_training.configuration.sources import (
    DataSet,
    Dev,
    Layout,
    Measure,
    OnBad,
    Select,
    TextLayout,
    TextSource,
)

__all__ = [
    "SEQUENCES",
    "Activation",
    "Among",
    "BagSettings",
    "Centre",
    "CharCnnSettings",
    "Config",
    "DanSettings",
    "DataSet",
    "Decay",
    "Dev",
    "Distillation",
    "EncoderSettings",
    "Every",
    "Export",
    "Features",
    "FilterSet",
    "How",
    "IrnnSettings",
    "Kind",
    "LayerActivation",
    "Layout",
    "LstmSettings",
    "Measure",
    "Model",
    "OnBad",
    "Optimiser",
    "Pooling",
    "Precision",
    "ProjectionSettings",
    "RnnSettings",
    "Sampling",
    "Schedule",
    "Select",
    "Sif",
    "Start",
    "TextLayout",
    "TextSource",
    "Training",
    "TwoLayerSettings",
    "UnknownWords",
    "VocabularyLimits",
    "Weights",
    "WordRule",
    "load_config",
    "parse_config",
]
