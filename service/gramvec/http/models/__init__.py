"""What is served: models that are loaded and renewed, a batcher for each, and what all requests hold together.

May import telemetry and below. A new kind of work beside batches waits in a `SerialThread`, as explanations do.
"""

from __future__ import annotations

from gramvec.http.models.aside import aside
from gramvec.http.models.attached import Attached, Reloaded, open_attached, renewed_all
from gramvec.http.models.loading import (
    Change,
    Wanted,
    changes,
    check_aliases,
    check_names,
    check_there,
    check_whole,
    close_but,
    load_models,
)
from gramvec.http.models.searches import Rows
from gramvec.http.models.served import Served, check_characters, embed, prepare, unless_gone, usage_of, usage_of_turn
from gramvec.http.models.service import Service
from gramvec.http.models.token_ids import Encoding, UnknownId
from gramvec.http.models.traffic import ENTRY_BYTES, NUMBER_BYTES, SCORE_BYTES, UNCOUNTED_BYTES

__all__ = [
    "ENTRY_BYTES",
    "NUMBER_BYTES",
    "SCORE_BYTES",
    "UNCOUNTED_BYTES",
    "Attached",
    "Change",
    "Encoding",
    "Reloaded",
    "Rows",
    "Served",
    "Service",
    "UnknownId",
    "Wanted",
    "aside",
    "changes",
    "check_aliases",
    "check_characters",
    "check_names",
    "check_there",
    "check_whole",
    "close_but",
    "embed",
    "load_models",
    "open_attached",
    "prepare",
    "renewed_all",
    "unless_gone",
    "usage_of",
    "usage_of_turn",
]
