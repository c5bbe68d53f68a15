"""The systems of all three papers, learned from the same pairs, and their tables: by task, by set, by wins over sets.

It imports common. A new system is a line of learned.py.
"""

from __future__ import annotations

from gramvec_training.experiments.systems.bins import COMPARED, LENGTHS, binned, longest, models_of
from gramvec_training.experiments.systems.learned import SYSTEMS, learned_system, settings_of
from gramvec_training.experiments.systems.sets import official_75, set_by_set
from gramvec_training.experiments.systems.systems import all_systems
from gramvec_training.experiments.systems.wins import set_wins, wins

__all__ = [
    "COMPARED",
    "LENGTHS",
    "SYSTEMS",
    "all_systems",
    "binned",
    "learned_system",
    "longest",
    "models_of",
    "official_75",
    "set_by_set",
    "set_wins",
    "settings_of",
    "wins",
]
