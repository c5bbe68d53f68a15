"""All papers, the files of the folder papers but its template, and all experiments, in the order of the page."""

from __future__ import annotations

import importlib
import pkgutil

from gramvec.errors import InputError
from gramvec_research import papers, systems
from gramvec_research.shared import Experiment, Paper


def _read_papers() -> tuple[Paper, ...]:
    names = sorted(module.name for module in pkgutil.iter_modules(papers.__path__) if module.name[0] != "_")
    return tuple(importlib.import_module(f"{papers.__name__}.{name}").PAPER for name in names)


PAPERS = _read_papers()
EXPERIMENTS: tuple[Experiment, ...] = (
    *systems.EXPERIMENTS,
    *(experiment for paper in PAPERS for experiment in paper.experiments),
)


def experiment_named(name: str) -> Experiment:
    """Return an experiment. Raises InputError, with the names that there are, for another name."""
    for experiment in EXPERIMENTS:
        if experiment.name == name:
            return experiment
    raise InputError(
        f"there is no experiment {name}; there are {', '.join(experiment.name for experiment in EXPERIMENTS)}"
    )
