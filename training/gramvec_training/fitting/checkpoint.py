"""Checkpoints: the state of a run between two steps, written whole or not at all."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from gramvec.errors import InputError
from gramvec_training.files import write_atomically

_VERSION = 3  # 1: parameters without names; 2: no kept model


def save_checkpoint(path: Path, state: dict[str, Any]) -> None:
    """Write `state` (tensors, numbers, strings, lists and dicts of these) atomically."""
    write_atomically(path, lambda handle: torch.save({"version": _VERSION, **state}, handle))


def load_checkpoint(path: Path) -> dict[str, Any]:
    """The state that `save_checkpoint` wrote, on the CPU.

    Raises InputError where the file is missing, damaged or of another version. No code in the file is run.
    """
    try:
        state: dict[str, Any] = torch.load(path, map_location="cpu", weights_only=True)
    except FileNotFoundError:
        raise InputError(f"There is no checkpoint {path}; start the run without --resume.") from None
    except Exception as error:  # torch.load raises half a dozen types for a damaged file
        raise InputError(f"The checkpoint {path} is damaged; start the run anew with --overwrite.") from error
    if not isinstance(state, dict) or state.get("version") != _VERSION:
        raise InputError(f"The checkpoint {path} is not of version {_VERSION}; start the run anew with --overwrite.")
    return state
