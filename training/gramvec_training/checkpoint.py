"""Checkpoints: the state of a run between two steps, written whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

import torch

from gramvec.errors import InputError

_VERSION = 1


def write_atomically(path: Path, write: Callable[[BinaryIO], object]) -> None:
    """Write a file under another name beside `path`, flush it to the disk, and rename it over `path`."""
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        with partial.open("wb") as handle:
            write(handle)
            handle.flush()
            os.fsync(handle.fileno())
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


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
