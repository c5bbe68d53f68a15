"""The command gramvec-train; libraries that are slow to import are imported inside the commands.

It imports every room, inside the commands where a library is slow to import. A new command is a file here.
"""

from __future__ import annotations

from gramvec_training.cli.main import main

__all__ = ["main"]
