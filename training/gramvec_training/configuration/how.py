"""How a run is carried out, which is no part of its config."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class How:
    """How a run is carried out: nothing here changes what it gives but `device` and `threads`, in the last bits.

    save_every: seconds between checkpoints. cache: where teachers' vectors are kept from run to run.
    """

    device: str = "cpu"
    threads: int = 1
    resume: bool = False
    save_every: float = 60.0
    cache: Path = Path("runs/teachers")
