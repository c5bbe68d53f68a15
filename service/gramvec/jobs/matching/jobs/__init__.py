"""Jobs of matching: files of tables are read, their rows matched, and what is found is written.

`MatchJob` is what `gramvec match` runs, `PairsJob` what `gramvec pairs` runs. docs/matching.md has an example.
"""

from __future__ import annotations

from gramvec.jobs.matching.jobs.match_job import MatchJob, MatchResult
from gramvec.jobs.matching.jobs.pairs_job import PairsJob, PairsResult
from gramvec.jobs.matching.jobs.table_files import ComparedColumn, TableFiles

__all__ = ["ComparedColumn", "MatchJob", "MatchResult", "PairsJob", "PairsResult", "TableFiles"]
