"""Everything that a training run needs before its first step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from gramvec.features.featurizer import Featurizer
from gramvec.text.vocabulary import Vocabulary
from gramvec_training.data.vocabulary import RepeatedParts
from gramvec_training.encoders.base import Encoder
from gramvec_training.fit.loop import History, Selection
from gramvec_training.objectives.base import Objective


@dataclass(frozen=True)
class Plan:
    """A run that is ready for its first step.

    texts: a sample of those that it learns from, for the export's parity check. repeated: counts for its memo.
    make_encoder: the encoder with its first values, on the CPU. record: what the record says of the data, given what
    the loop did and the encoder that came of it. make_objective: what is learned, on a device; None where the first
    values are the last. selection: by what the kept model is chosen where the config does not say. digests: of what it
    is trained on, for the checkpoint.
    """

    vocabulary: Vocabulary
    featurizer: Featurizer
    texts: Sequence[str]
    repeated: RepeatedParts
    make_encoder: Callable[[], Encoder]
    record: Callable[[History, Encoder], dict[str, Any]]
    make_objective: Callable[[Encoder, torch.device], Objective] | None = None
    selection: Selection | None = None
    digests: tuple[str, ...] = ()
