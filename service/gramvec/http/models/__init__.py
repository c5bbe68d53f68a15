"""What is served: models that are loaded and renewed, a batcher for each, and what all requests hold together.

May import telemetry and below. A new kind of work beside batches waits in a `SerialThread`, as explanations do.
"""

from __future__ import annotations

from gramvec.http.models.loading import (
    Change,
    Wanted,
    changes,
    check_aliases,
    check_names,
    check_whole,
    close_but,
    load_models,
    renewed,
)
from gramvec.http.models.service import Served, Service, embed, prepare, usage_of
from gramvec.http.models.traffic import ENTRY_BYTES, NUMBER_BYTES, SCORE_BYTES, UNCOUNTED_BYTES

__all__ = [
    "ENTRY_BYTES",
    "NUMBER_BYTES",
    "SCORE_BYTES",
    "UNCOUNTED_BYTES",
    "Change",
    "Served",
    "Service",
    "Wanted",
    "changes",
    "check_aliases",
    "check_names",
    "check_whole",
    "close_but",
    "embed",
    "load_models",
    "prepare",
    "renewed",
    "usage_of",
]
