"""The command line: commands about models here, those that read files in `jobs`. Nothing else imports click.

A new command is a function in one of these modules and a line in `main.COMMANDS`.
"""

from __future__ import annotations

from gramvec.cli.main import cli, main

__all__ = ["cli", "main"]
