"""The command gramvec-train: one file a group of commands, the only room that imports click.

It imports every room, inside the commands where a library is slow to import. A new command is a file here.
"""

from __future__ import annotations

from gramvec_training.cli.main import main

__all__ = ["main"]
