"""The commands of `gramvec`, a file a group of them; nothing else imports click.

May import every other room. A new command is a function in one of these files, and a line in `group.LATER`.
"""

from __future__ import annotations

from gramvec.cli.main import cli, main

__all__ = ["cli", "main"]
