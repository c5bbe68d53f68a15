"""Which teacher a name means."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

import numpy as np
import numpy.typing as npt
import torch

from gramvec.errors import BundleError, InputError
from gramvec_training.teachers.bundle import BundleTeacher
from gramvec_training.teachers.transformer import TransformerTeacher


class Teacher(Protocol):
    """Vectors of texts. `digest` says which teacher it is, `precision` in which it computes."""

    @property
    def digest(self) -> str: ...  # noqa: D102
    @property
    def precision(self) -> str: ...  # noqa: D102

    def vectors(self, texts: Sequence[str], *, progress: Callable[[int], object] = ...) -> npt.NDArray[np.float16]:
        """float16[n, d], of length 1 or zero, in the order of the texts; `progress` is told how many are done."""
        ...


def open_teacher(model: str, cache: Path, *, device: torch.device, threads: int) -> Teacher:
    """A sentence-transformers model where `model` is one, else the bundle of that name or folder.

    Raises InputError where it is neither.
    """
    try:
        return TransformerTeacher(model, cache, device=device, threads=threads)
    except InputError as error:
        try:
            return BundleTeacher(model)
        except BundleError:
            raise error from None
