"""Where torch computes."""

from __future__ import annotations

import torch

from gramvec.errors import DeviceError


def choose_device(name: str) -> torch.device:
    """`auto` is CUDA where torch has it, else the CPU. Raises DeviceError where `cuda` is asked for and not there."""
    if name == "cuda" and not torch.cuda.is_available():
        raise DeviceError(
            f"torch {torch.__version__} finds no CUDA device here; choose --device cpu or install a CUDA build."
        )
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    return torch.device(name)


def settle(device: torch.device, threads: int) -> None:
    """Set torch to this number of CPU threads and, on CUDA, to operations that give the same bits each time."""
    torch.set_num_threads(threads)
    if device.type == "cuda":
        torch.use_deterministic_algorithms(True, warn_only=True)
