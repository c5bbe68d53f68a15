"""Everything that a training run needs before its first step."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from gramvec.features.featurizer import Featurizer
from gramvec.jobs.common.watch import NO_WATCH, JobWatch
from gramvec.text.vocabulary import Vocabulary
from gramvec_training.config import Config
from gramvec_training.data.vocabulary import RepeatedParts
from gramvec_training.encoders.base import Encoder
from gramvec_training.fitting.loop import History, Selection
from gramvec_training.objectives.base import Objective
from gramvec_training.options import RunOptions
from gramvec_training.runs.run_dir import StartedRun


class Plan(ABC):
    """A run that `prepare` makes ready for its first step; a subclass reads and featurizes one kind of data there.

    begun: the config, the data's folder and the rows that were read already. folder: of the run. options: of the run.
    texts: a sample of those that it learns from, for the export's parity check. repeated: counts for its memo. digests:
    of what it is trained on, for the checkpoint.
    """

    config: Config
    data: Path
    vocabulary: Vocabulary
    featurizer: Featurizer
    texts: Sequence[str]
    repeated: RepeatedParts
    digests: tuple[str, ...] = ()

    def __init__(self, begun: StartedRun, folder: Path, options: RunOptions) -> None:
        self.begun, self.folder, self.options = begun, folder, options
        self.config, self.data = begun.config, begun.data

    @abstractmethod
    def prepare(self, watch: JobWatch = NO_WATCH) -> None:
        """Read and featurize the data, for all that is below.

        Raises:
            InputError: They cannot be used.
        """

    @abstractmethod
    def make_encoder(self) -> Encoder:
        """Return the encoder with its first values, on the CPU."""

    def make_objective(self, encoder: Encoder, device: torch.device) -> Objective | None:
        """Return what the encoder learns, on a device; None where its first values are the last."""
        return None

    def make_selection(self) -> Selection | None:
        """Return what the kept model is chosen by where the config does not say; None for the last step's."""
        return None

    @abstractmethod
    def record(self, history: History, encoder: Encoder) -> dict[str, Any]:
        """Return the entries of the record about the data, from the history of the loop and its encoder."""
