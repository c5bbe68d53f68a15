"""What can be set about the service, each with a sensible default, and what is wrong with a value.

Nothing of http is below it. A new setting is a field of `Settings`; the command's option, variable and page follow.
"""

from __future__ import annotations

from gramvec.server.settings.aliases import aliases_of
from gramvec.server.settings.origins import ANY
from gramvec.server.settings.settings import NO_WORKERS_ON_CUDA, Settings, environment_variable, option, settings_from
from gramvec.server.settings.token_files import OTHERS, token_files

__all__ = [
    "ANY",
    "NO_WORKERS_ON_CUDA",
    "OTHERS",
    "Settings",
    "aliases_of",
    "environment_variable",
    "option",
    "settings_from",
    "token_files",
]
