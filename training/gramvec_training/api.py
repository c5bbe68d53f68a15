"""Training from a Python program: `fit`, `distill` and `evaluate`, with the options of the commands as records.

What they show is bars, on a terminal and in a notebook. torch, scipy and onnx are imported inside the functions, so
that `gramvec-train --help` answers at once.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gramvec.errors import InputError
from gramvec_training.options import LabelOptions, PairOptions, RunOptions, TextOptions, WeightOptions

if TYPE_CHECKING:
    from gramvec_training.config import Config
    from gramvec_training.evaluation.backend import ScoredModel
    from gramvec_training.readers.lines import RowsRead
    from gramvec_training.runs.run_dir import StartedRun

FileOf = PairOptions | LabelOptions | WeightOptions

_NO_BETTER = "the new model is no better for sure than the one it started from; give anyway=True to write it"
_AS_IT_IS = RunOptions()


def fit(
    source: Path | str,
    bundle: Path | str,
    *,
    options: FileOf | None = None,
    data: Path | str | None = None,
    out: Path | str | None = None,
    run: RunOptions = _AS_IT_IS,
    anyway: bool = False,
) -> Path:
    """Train a model and write its bundle; return the bundle's folder.

    It is `gramvec-train fit` without `options`, and with PairOptions, LabelOptions or WeightOptions `fit-pairs`,
    `fit-labels` or `fit-weights`.

    Args:
        source: the config; or the file that the options are for.
        bundle: the folder to write, ready to be served; replaced with `run.overwrite` where it holds a bundle.
        options: how to learn from the file.
        data: the folder that the paths in a config are relative to; the working folder without it.
        out: the run folder, runs/NAME without it; weights have none.
        run: device, threads, checkpoints, and whether to resume or to overwrite.
        anyway: whether to write a model that is no better than the one it goes on from.

    Raises:
        InputError: What is given cannot be used, or the model is no better and not `anyway`.
        BundleError: The bundle to go on from.
        TrainingInterrupted: A signal came; a checkpoint is written, and `run.resume` goes on from it.
    """
    from gramvec_training.config import load_config
    from gramvec_training.runs.adhoc_config import make_file_config

    _check(run, RunOptions, "run")
    _check(options, (PairOptions, LabelOptions, WeightOptions, type(None)), "options")
    source, bundle = _as_path(source, "source"), _as_path(bundle, "bundle")
    may_replace(bundle, options.start if options is not None else None, overwrite=run.overwrite)
    if isinstance(options, WeightOptions):
        return _fit_weights(source, bundle, options, anyway=anyway)
    config = load_config(source) if options is None else make_file_config(source, options, name_from=bundle)
    return _train(config, bundle, data=data, out=out, run=run, anyway=anyway)


def _check(value: object, kind: type | tuple[type, ...], name: str) -> None:
    """Raise InputError where a value is of another type."""
    if not isinstance(value, kind):
        kinds = kind if isinstance(kind, tuple) else (kind,)
        wanted = " or ".join("None" if one is type(None) else one.__name__ for one in kinds)
        raise InputError(f"{name}: must be {wanted}, got {type(value).__name__}")


def _as_path(value: Path | str, name: str) -> Path:
    if not isinstance(value, (str, os.PathLike)):
        raise InputError(f"{name}: must be a path of a file or folder, got {type(value).__name__}")
    return Path(value)


def _fit_weights(source: Path, bundle: Path, options: WeightOptions, *, anyway: bool) -> Path:
    from gramvec_training.runs.ngram_weights import learn_weights_of_file

    manifest, _ = learn_weights_of_file(source, bundle, options, anyway=anyway)
    if manifest is None:
        raise InputError(f"{bundle}: not written, because {_NO_BETTER}")
    return bundle


def distill(
    source: Path | str | TextOptions,
    bundle: Path | str,
    *,
    data: Path | str | None = None,
    out: Path | str | None = None,
    run: RunOptions = _AS_IT_IS,
) -> Path:
    """Train a student on a teacher's vectors and write its bundle; return the bundle's folder.

    Args:
        source: the config; or texts and teacher.
        bundle: as of `fit`.
        data: as of `fit`.
        out: as of `fit`.
        run: as of `fit`.

    Raises:
        InputError: What is given cannot be used.
        TrainingInterrupted: See `fit`.
    """
    from gramvec_training.config import load_config
    from gramvec_training.runs.adhoc_config import make_texts_config

    bundle = _as_path(bundle, "bundle")
    _check(run, RunOptions, "run")
    may_replace(bundle, overwrite=run.overwrite)
    if isinstance(source, TextOptions):
        if not (source.texts and source.teacher):
            raise InputError("texts and teacher belong together: give both, or a config")
        run = run.model_copy(update={"cache": source.cache})
        config = make_texts_config(source)
    else:
        config = load_config(_as_path(source, "source"))
        if config.distillation is None:
            raise InputError(f"{source}: the config has no [distillation]; train it with fit")
    return _train(config, bundle, data=data, out=out, run=run, anyway=True)


def _train(
    config: Config, bundle: Path, *, data: Path | str | None, out: Path | str | None, run: RunOptions, anyway: bool
) -> Path:
    from gramvec.jobs.common.bars import TerminalWatch
    from gramvec_training.runs.run_dir import export_run, is_better, is_finished, load_run
    from gramvec_training.runs.train import train

    folder = Path(out) if out is not None else Path("runs") / config.model.name
    begun = begin(folder, config, Path(data) if data is not None else Path(), command="", options=run)
    if not is_finished(folder):
        with closing(TerminalWatch()) as watch:
            train(begun, folder, run, watch=watch)
    finished = load_run(folder)
    if not anyway and not is_better(finished.record):
        raise InputError(f"{bundle}: not written, because {_NO_BETTER}")
    export_run(finished, bundle, name=bundle.resolve().name)
    return bundle


def may_replace(bundle: Path, start: str | None = None, *, overwrite: bool = True) -> None:
    """Raise InputError where a bundle cannot be written to the folder without a loss.

    A new or an empty folder will do, and with `overwrite` one with a bundle, but not the bundle `start` that training
    continues from.
    """
    from gramvec.bundle.resolve import MANIFEST, find_bundle

    if bundle.exists() and not bundle.is_dir():
        raise InputError(f"{bundle}: not a folder but a file; name a folder for the bundle")
    if bundle.is_dir() and not (bundle / MANIFEST).is_file() and any(bundle.iterdir()):
        raise InputError(f"{bundle}: holds other files than a bundle, which would be lost; name another folder")
    if start is not None and find_bundle(start).resolve() == bundle.resolve():
        raise InputError(f"{bundle}: the bundle that training starts from; name another folder for the new one")
    if (bundle / MANIFEST).is_file() and not overwrite:
        raise InputError(f"{bundle}: holds a model already; give --overwrite to replace it, or name another folder")


def begin(
    folder: Path,
    wanted: Config | None,
    data: Path,
    *,
    command: str,
    options: RunOptions,
    read: RowsRead | None = None,
) -> StartedRun:
    """Begin a run in the folder, or, with `options.resume`, return the one that it holds.

    Args:
        folder: the run folder.
        wanted: the config; None for that of the begun run.
        data: what the config's paths are relative to.
        command: for the record.
        options: whether to resume or to overwrite.
        read: the rows of the config's one file, if they were read already.

    Raises:
        InputError: The folder holds something else, or a run of another config.
    """
    from gramvec_training.runs import run_dir

    if options.resume:
        begun = run_dir.read_begun(folder)
        if wanted is not None and wanted != begun.config:
            raise InputError(f"{folder}: the run has another config; leave the CONFIG out to continue it")
        return begun
    assert wanted is not None
    run_dir.make_way(folder, overwrite=options.overwrite)
    return run_dir.begin_run(folder, wanted, data, command=command, read=read)


def evaluate(
    models: Path | str | Iterable[Path | str],
    sets: Path | str | Iterable[Path | str],
    *,
    device: str = "auto",
    space: str = "semantic",
) -> dict[str, dict[str, Any]]:
    """Score models on similarity sets; return the report of each, by the name it was given by.

    Args:
        models: a name or a folder of a bundle, which is scored as it is served, or the folder of a finished run; or
            several.
        sets: a folder of tasks, or of sets, or a set: score, tab, text, tab, text a line; or several.
        device: "auto", "cpu" or "cuda".
        space: the columns of bundles with lexical ones: "semantic", "lexical" or "both".

    Returns:
        For each model its `tasks`: of each `sets` with `pearson` and `spearman` times 100, and their `mean`.

    Raises:
        InputError: No model or no set is named, there is no such set, or no usable line in it.
        BundleError: There is no such bundle.
    """
    from gramvec_training.evaluation.backend import evaluate_models
    from gramvec_training.evaluation.similarity import find_sets

    paths, similarity_paths = _list_paths(models, "models"), _list_paths(sets, "sets")
    similarity_sets, _ = find_sets(similarity_paths)
    names = tuple(dict.fromkeys(map(str, paths)))
    return evaluate_models([open_model(name, device=device, space=space) for name in names], names, similarity_sets)


def _list_paths(given: Path | str | Iterable[Path | str], name: str) -> list[Path]:
    """Return the paths, of one or of an iterable; at least one."""
    several = [given] if isinstance(given, (str, os.PathLike)) or not isinstance(given, Iterable) else given
    paths = [_as_path(path, name) for path in several]
    if not paths:
        raise InputError(f"{name}: none is named; name at least one")
    return paths


def open_model(name: str, *, device: str, space: str) -> ScoredModel:
    """Open a run folder's model, or a bundle's.

    Raises:
        BundleError: There is no such bundle.
        InputError: The run is not finished.
    """
    import gramvec
    from gramvec_training.evaluation.backend import serve_model
    from gramvec_training.runs.run_dir import is_begun, load_run
    from gramvec_training.runs.train import wrap_run

    if is_begun(Path(name)):
        return wrap_run(load_run(Path(name)), device)
    return serve_model(gramvec.load(name, device=device, space=space))  # type: ignore[arg-type]
