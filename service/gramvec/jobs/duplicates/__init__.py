"""Near-duplicates in one table, or beside an index: by the score of matching, or by meaning."""

from __future__ import annotations

from gramvec.jobs.duplicates.api import dedupe

__all__ = ["dedupe"]
