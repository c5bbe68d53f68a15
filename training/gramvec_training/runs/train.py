"""The skeleton of every run: prepare, build an encoder and an objective, loop, record."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from gramvec.features.featurizer import Featurizer
from gramvec.jobs.common.watch import NO_WATCH, JobWatch
from gramvec_training.config import Config
from gramvec_training.encoders.base import Encoder
from gramvec_training.encoders.build import make_encode, make_similarity, zero_unknown
from gramvec_training.evaluation.backend import ScoredModel
from gramvec_training.evaluation.similarity import SimilaritySet, find_sets, round_scores, score_sets
from gramvec_training.fitting.loop import History, Log, Selection, fit
from gramvec_training.fitting.trainer import Trainer, choose_device, settle
from gramvec_training.options import RunOptions
from gramvec_training.runs.distill import DistillationPlan
from gramvec_training.runs.pairs import LabelPlan, PairPlan
from gramvec_training.runs.run_dir import (
    CHECKPOINT,
    FinishedRun,
    StartedRun,
    finish_run,
    list_versions,
    make_spec,
    save_inputs,
)
from gramvec_training.runs.sif import SifPlan
from gramvec_training.sections import Dev, Select


def train(begun: StartedRun, folder: Path, options: RunOptions, *, watch: JobWatch = NO_WATCH) -> dict[str, Any]:
    """Train the model of a started run into its folder; return the record with the development scores.

    Raises TrainingInterrupted after SIGINT or SIGTERM, with a checkpoint written; InputError, BundleError and
    DeviceError for what cannot be trained.
    """
    config, data = begun.config, begun.data
    device = choose_device(options.device)
    settle(device, options.threads)
    dev = find_sets([data / path for path in config.dev.sets])[0] if config.dev.sets else []
    chosen_by = find_sets([data / config.select.set])[0] if config.select is not None else []

    plan = _choose_plan(config)(begun, folder, options)
    plan.prepare(watch)
    save_inputs(folder, plan.vocabulary, plan.texts, plan.repeated)
    encoder = plan.make_encoder().to(device)
    objective = plan.make_objective(encoder, device)
    history, selection = History(), plan.make_selection()
    if config.select is not None:
        selection = _make_selection(config.select, chosen_by, plan.featurizer)
    if objective is not None:
        history = fit(
            Trainer(encoder, objective, device),
            folder / CHECKPOINT,
            identity=_digest_config(config, *plan.digests),
            resume=options.resume,
            save_every=options.save_every,
            log=_make_log(config.dev, dev, plan.featurizer),
            selection=selection,
            progress=watch,
        )
    record = {
        "name": config.model.name,
        "kind": config.model.kind,
        "command": begun.command,
        "config": config.public(),
        "rows": len(plan.vocabulary),
        "dimension": encoder.dimension,
        "parameters": encoder.parameter_counts(),
        "steps": history.steps,
        "seconds": round(history.seconds, 1),
        "device": str(device),
        "threads": options.threads,
        "versions": list_versions(),
        "loss": history.losses,
        "dev": history.dev,
        **({"selection": {"scores": history.selection, "kept": history.kept}} if selection is not None else {}),
        **plan.record(history, encoder),
        "scores": _score_sets(dev, encoder, plan.featurizer),
    }
    finish_run(folder, encoder.arrays(), record)
    return record


def _choose_plan(config: Config) -> type[DistillationPlan | LabelPlan | PairPlan | SifPlan]:
    if config.sif is not None:
        return SifPlan
    if config.distillation is not None:
        return DistillationPlan
    return LabelPlan if config.data[0].labeled else PairPlan


def _score_sets(sets: Sequence[SimilaritySet], encoder: Encoder, featurizer: Featurizer) -> dict[str, Any]:
    """Return the scores of the encoder's current weights."""
    return score_sets(sets, make_similarity(make_encode(encoder, featurizer), featurizer))


def _make_log(dev: Dev, sets: Sequence[SimilaritySet], featurizer: Featurizer) -> Log | None:
    """Return the log: the mean of each task and the score of each set, every `every` steps."""
    if not sets or dev.every is None:
        return None
    return Log(lambda encoder: round_scores(_score_sets(sets, encoder, featurizer)), dev.every)


def _make_selection(select: Select, sets: Sequence[SimilaritySet], featurizer: Featurizer) -> Selection:
    def score(encoder: Encoder) -> float:
        tasks = _score_sets(sets, encoder, featurizer)["tasks"]
        return float(np.mean([task["mean"][select.measure] for task in tasks.values()]))

    return Selection(score, select.every)


def _digest_config(config: Config, *digests: str) -> str:
    """Return 64 hex digits over the config and the digests of its data, to which a checkpoint belongs."""
    state = hashlib.sha256(orjson.dumps(config.model_dump(mode="json"), option=orjson.OPT_SORT_KEYS))
    state.update(" ".join(digests).encode())
    return state.hexdigest()


def wrap_run(run: FinishedRun, device: str = "cpu") -> ScoredModel:
    """Return the model of a run as its trainer computes it, with the table in float32."""
    featurizer = Featurizer(make_spec(run.config), run.vocabulary)
    encoder = run.encoder.to(choose_device(device))
    encode = make_encode(encoder, featurizer)
    return ScoredModel(
        run.config.model.name,
        featurizer,
        zero_unknown(encode, featurizer),
        make_similarity(encode, featurizer),
        {"device": str(encoder.table.device), "parameters": encoder.parameter_counts()},
    )
