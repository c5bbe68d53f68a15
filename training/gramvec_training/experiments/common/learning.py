"""Models that experiments learn: a config and a seed -> the record of a finished run, which is learned once."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from gramvec.errors import InputError
from gramvec_training.configuration import Config, How, parse_config
from gramvec_training.experiments.common.base import Inputs
from gramvec_training.experiments.common.words import vectors_of
from gramvec_training.files import digest, write_atomically
from gramvec_training.readers import vectors_at
from gramvec_training.reporting import read_record
from gramvec_training.runs import CHECKPOINT, begin_run, begun_run, carry_out, is_begun, is_finished, make_way

_COMMONEST = 50_000  # of a file of vectors, which has the frequent words first

Settings = Mapping[str, Any]


def learned(inputs: Inputs, name: str, settings: Settings, seed: int) -> tuple[Path, dict[str, Any]]:
    """The folder and the record of a run with these settings and this seed, from the folder `work` if it is there.

    settings: a config's sections, `training` without its seed; without `dev` the sets of the inputs are scored. Raises
    InputError where the inputs name no data, and Interrupted where it is stopped, with a checkpoint to go on from.
    """
    if inputs.data is None:
        raise InputError("This experiment learns models: give --data, the folder of the training files.")
    scored = (*inputs.sets, *([inputs.in_domain] if inputs.in_domain is not None else []))
    values = {
        **settings,
        "training": {**settings["training"], "seed": seed},
        "dev": settings.get("dev", {"sets": [str(path.resolve()) for path in scored]}),
    }
    values["model"] = {"name": name, **settings["model"]}
    config = parse_config(values, source=f"the experiment's {name}")
    folder = inputs.work / f"{name}-{seed}-{_key(config, inputs.data)}"
    if not is_finished(folder):
        resume = is_begun(folder) and (folder / CHECKPOINT).is_file()
        if not resume:
            make_way(folder, overwrite=True)
            begin_run(folder, config, inputs.data, command=f"gramvec-train papers run ({name}, seed {seed})")
        carry_out(begun_run(folder), folder, How(resume=resume))
    return folder, read_record(folder)


def _key(config: Config, data: Path) -> str:
    """8 hex digits over a config and all that it reads: another run than this has others."""
    read = [*(one.path for one in config.data), *config.dev.sets]
    read += [config.model.vectors] if config.model.vectors is not None else []
    values = {"config": config.public(), "read": [digest((data / path).resolve()) for path in read]}
    return hashlib.sha256(orjson.dumps(values, option=orjson.OPT_SORT_KEYS)).hexdigest()[:8]


def tasks_of(record: Mapping[str, Any], measure: str = "pearson") -> dict[str, float]:
    """Task -> mean score times 100 over its sets."""
    return {name: float(task["mean"][measure]) for name, task in record["scores"]["tasks"].items()}


def means(scores: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Task -> mean over seeds."""
    return {task: float(np.mean([one[task] for one in scores])) for task in scores[0]}


def spread(scores: Sequence[Mapping[str, float]], tasks: Iterable[str]) -> float:
    """The greatest distance between two seeds on any of the tasks."""
    return max(max(one[task] for one in scores) - min(one[task] for one in scores) for task in tasks)


def common_vectors(inputs: Inputs) -> tuple[Path, int]:
    """A file of the first 50,000 words of the vectors, and their dimension: no run needs all 400,000 of GloVe."""
    words, vectors = vectors_of(inputs.vectors)
    inputs.work.mkdir(parents=True, exist_ok=True)
    path = (inputs.work / f"vectors-{digest(vectors_at(inputs.vectors).resolve())[:8]}.npy").resolve()
    if not path.is_file():
        text = "".join(f"{word}\n" for word in words[:_COMMONEST])
        write_atomically(path.with_suffix(".txt"), lambda handle: handle.write(text.encode()))
        write_atomically(path, lambda handle: np.save(handle, vectors[:_COMMONEST], allow_pickle=False))
    return path, int(vectors.shape[1])
