"""A head of the papers over a finished model, learned from labelled texts or scored pairs and kept in a folder."""

from __future__ import annotations

import hashlib
import zipfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import torch

from gramvec.errors import InputError
from gramvec.text.featurizer import Featurizer
from gramvec_training.configuration import BagSettings, Start, Supervision
from gramvec_training.data import Corpus, Ints
from gramvec_training.encoders import Bag, Encoder, cosines, encoder_function
from gramvec_training.files import digest, write_atomically
from gramvec_training.fitting import Selection, Trainer, choose_device, fit, settle
from gramvec_training.objectives import Head, HeadObjective, new_head
from gramvec_training.readers import Labelled, Scored
from gramvec_training.runs.answers import Answers, Scores, likelihood, pearson, recorded
from gramvec_training.runs.folder import CHECKPOINT, is_begun, load_run, spec_of, versions
from gramvec_training.runs.start import read_start
from gramvec_training.types import Floats

_HEAD, _ARRAYS = "head.json", "head.npz"
_TO_CHOOSE = 10  # one in so many of the rows that are left is what the epoch is chosen by
_CHUNK = 4_096  # texts that are told of at a time
# Those of the papers' regimes: features, and universal.
_FROZEN = {"epochs": 30, "rate": 5e-3, "fixed_table": True}
_LEARNED = {
    "epochs": 10, "rate": 2e-3, "l2": 1e-5, "l2_centre": "initial", "l2_composition": 1e-4,
    "l2_composition_centre": "initial",
}  # fmt: skip

Texts = Sequence[tuple[str, ...]]
Rows = Sequence[Labelled | Scored]


@dataclass(frozen=True)
class Origin:
    """The model below a head, as its trainer computes it; digest: of what it was read from."""

    encoder: Encoder
    featurizer: Featurizer
    digest: str

    @classmethod
    def open(cls, model: str) -> Origin:
        """Of a run folder, or of a bundle by its name or folder.

        Raises InputError where the run is not finished, and BundleError where there is no such bundle or it is no bag
        of rows.
        """
        folder = Path(model)
        if is_begun(folder):
            run = load_run(folder)
            return cls(run.encoder, Featurizer(spec_of(run.config), run.vocabulary), digest(folder / "weights.npz"))
        started = read_start(Start(bundle=folder))
        return cls(started.bag(started.table), started.bundle.featurizer, started.bundle.digest)


@dataclass(frozen=True)
class Parts:
    """Rows to learn from, to choose the epoch by, and to score: int64[n] each, of one file."""

    learned: Ints
    chosen_by: Ints
    scored: Ints


def head_settings(*, frozen: bool, **changes: float | str | None) -> Supervision:
    """The settings of a head over a fixed model, or of one that is learned with the model; None changes nothing."""
    given = {name: value for name, value in changes.items() if value is not None}
    return Supervision.model_validate({"l2_head": 1e-6, **(_FROZEN if frozen else _LEARNED), **given})


def parts_of(rows: int, share: float, seed: int) -> Parts:
    """A share of the rows is scored, and a tenth of the others, at least one each, is what the epoch is chosen by."""
    order = np.random.default_rng(seed).permutation(rows)
    scored = min(max(1, round(share * rows)), rows - 2)
    chosen_by = max(1, (rows - scored) // _TO_CHOOSE)
    return Parts(order[scored + chosen_by :], order[scored : scored + chosen_by], order[:scored])


def make_way_for_head(folder: Path, *, overwrite: bool) -> None:
    """See that a head may be written to a folder: a new one, one with a checkpoint, or with `overwrite` a head's.

    Raises InputError, saying what to do.
    """
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is a file; give --out a folder.")
    there = {path.name for path in folder.iterdir()} if folder.exists() else set()
    if not there <= {_HEAD, _ARRAYS, CHECKPOINT}:
        raise InputError(f"{folder} holds other files than a head; give another --out.")
    if there - {CHECKPOINT} and not overwrite:
        raise InputError(f"{folder} holds a head already; give another --out, or --overwrite.")
    if overwrite:
        for name in there:
            (folder / name).unlink()


def learn_head(
    model: str, answers: Answers, rows: Rows, folder: Path, settings: Supervision, *, share: float, command: str
) -> dict[str, Any]:
    """Learn a head over a model from labelled texts or scored pairs into a folder; gives the record, with its figures.

    With settings.fixed_table the model stays as it is, else it is learned, too. The epoch that is kept is that under
    which the answers to a tenth of what is not scored are likeliest. The same arguments give the same head; stopped,
    they go on from the checkpoint. Raises what `Origin.open` raises, and Interrupted.
    """
    device = choose_device("cpu")
    settle(device, 1)
    origin = Origin.open(model)
    head = new_head(len(rows[0].texts), origin.encoder.dimension, answers.classes, settings)
    parts = parts_of(len(rows), share, settings.seed)
    before = _before(origin, answers, rows, parts)
    encoder, corpus = _start(origin, [row.texts for row in rows], frozen=settings.fixed_table)
    numbers = np.arange(len(rows) * len(rows[0].texts)).reshape(len(rows), -1)
    truth = answers.truth(rows)
    objective = HeadObjective(
        corpus, numbers[parts.learned], answers.targets(truth[parts.learned]), head, settings
    )  # fmt: skip
    wanted = answers.targets(truth[parts.chosen_by])

    def figures(part: Ints) -> dict[str, float | None]:
        return answers.figures(objective.probabilities(encoder, numbers[part]), truth[part])

    identity = orjson.dumps([origin.digest, settings.model_dump(mode="json"), share, [list(row) for row in rows]])
    folder.mkdir(parents=True, exist_ok=True)
    checkpoint = folder / CHECKPOINT
    history = fit(
        Trainer(encoder, objective, device), checkpoint, identity=_hashed(identity),
        resume=checkpoint.is_file(),
        selection=Selection(
            lambda one: likelihood(objective.probabilities(one, numbers[parts.chosen_by]), wanted),
            objective.steps_per_epoch,
        ),
    )  # fmt: skip
    record = {
        "command": command, "model": _place(model), "digest": origin.digest, **answers.record,
        "sides": len(rows[0].texts), "frozen": settings.fixed_table, "dimension": encoder.dimension,
        "settings": settings.model_dump(mode="json"), "rows": {name: len(part) for name, part in asdict(parts).items()},
        **figures(parts.scored), **before,
        **{f"{name} of the epoch": value for name, value in figures(parts.chosen_by).items()},
        **answers.simplest(truth[parts.learned], truth[parts.scored]), "kept": history.kept, "steps": history.steps,
        "seconds": round(history.seconds, 1), "versions": versions(),
    }  # fmt: skip
    arrays = {f"head.{name}": value.detach().numpy() for name, value in head.named_parameters()}
    if not settings.fixed_table:
        arrays |= {f"encoder.{name}": value for name, value in encoder.arrays().items()}
    write_atomically(folder / _ARRAYS, lambda handle: np.savez(handle, allow_pickle=False, **arrays))
    data = orjson.dumps(record, option=orjson.OPT_INDENT_2) + b"\n"
    write_atomically(folder / _HEAD, lambda handle: handle.write(data))
    checkpoint.unlink(missing_ok=True)
    return record


@dataclass(frozen=True)
class LearnedHead:
    """A finished head with its model."""

    answers: Answers
    sides: int
    origin: Origin
    head: Head

    @classmethod
    def open(cls, folder: Path) -> LearnedHead:
        """What `learn_head` wrote. Raises InputError where it is not there or damaged, or its model is another now."""
        try:
            record = orjson.loads((folder / _HEAD).read_bytes())
            with np.load(folder / _ARRAYS, allow_pickle=False) as stored:
                arrays = dict(stored)
            answers, sides = recorded(record), int(record["sides"])
            settings = Supervision.model_validate(record["settings"])
            head = new_head(sides, record["dimension"], answers.classes, settings)
            head.load_state_dict(_below(arrays, "head."))
        except FileNotFoundError:
            raise InputError(f"There is no head in {folder}; give a folder that gramvec-train head wrote.") from None
        except (OSError, ValueError, KeyError, TypeError, RuntimeError, zipfile.BadZipFile) as error:
            raise InputError(f"The head in {folder} is damaged ({error}); learn it anew.") from error
        origin = Origin.open(record["model"])
        if origin.digest != record["digest"]:
            raise InputError(
                f"{record['model']} has changed since the head was learned; put it back, or learn it anew."
            )
        if of_encoder := _below(arrays, "encoder."):
            origin.encoder.load_state_dict(of_encoder)
        return cls(answers, sides, origin, head)

    @torch.no_grad()
    def told(self, texts: Texts) -> list[tuple[str, ...]]:
        """Of each text or pair the likeliest label and its probability, or of each pair its score."""
        encode = encoder_function(self.origin.encoder, self.origin.featurizer)
        found: list[tuple[str, ...]] = []
        for start in range(0, len(texts), _CHUNK):
            part = texts[start : start + _CHUNK]
            sides = tuple(torch.from_numpy(encode([one[side] for one in part])) for side in range(self.sides))
            found += self.answers.told(torch.softmax(self.head(sides), dim=1).numpy())
        return found


def _before(origin: Origin, answers: Answers, rows: Rows, parts: Parts) -> dict[str, float | None]:
    """Of scores: Pearson's r, times 100, of the cosines by the model as it is."""
    if not isinstance(answers, Scores):
        return {}
    scored = [rows[row] for row in parts.scored.tolist()]
    similarity = cosines(encoder_function(origin.encoder, origin.featurizer), origin.featurizer)
    said = similarity([row.texts[0] for row in scored], [row.texts[1] for row in scored])
    return {"pearson of the cosine": pearson(said, answers.truth(scored))}


def _start(origin: Origin, texts: Texts, *, frozen: bool) -> tuple[Encoder, Corpus]:
    flat = [text for one in texts for text in one]
    if not frozen:
        return origin.encoder, Corpus.of(flat, origin.featurizer, len(origin.encoder.table))
    vectors = torch.from_numpy(encoder_function(origin.encoder, origin.featurizer)(flat))
    corpus = Corpus(np.arange(len(flat), dtype=np.int32), np.arange(len(flat) + 1), len(flat))
    return Bag(vectors, BagSettings(activation="linear", bias=False)), corpus


def _below(arrays: dict[str, Floats], start: str) -> dict[str, torch.Tensor]:
    return {name[len(start) :]: torch.from_numpy(value) for name, value in arrays.items() if name.startswith(start)}


def _place(model: str) -> str:
    return str(Path(model).resolve()) if Path(model).exists() else model


def _hashed(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
