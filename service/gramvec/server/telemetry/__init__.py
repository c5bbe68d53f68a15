"""What is told about the service: counters that all workers share, and the form of log lines.

May import contract and below. A new figure is counted in `metrics` and named in routes/exposition.
"""

from __future__ import annotations

from gramvec.server.telemetry.logs import FIELDS, NO_USER_TEXT
from gramvec.server.telemetry.metrics import SECONDS, TEXTS, UNKNOWN_ROUTE, Metrics, Rows
from gramvec.server.telemetry.tracing import Spans, check_tracing

__all__ = [
    "FIELDS",
    "NO_USER_TEXT",
    "SECONDS",
    "TEXTS",
    "UNKNOWN_ROUTE",
    "Metrics",
    "Rows",
    "Spans",
    "check_tracing",
]
