"""From a [distillation] config to a finished run folder."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from tqdm import tqdm

from gramvec.errors import InputError
from gramvec.features import Featuriser
from gramvec_training.config import Distillation
from gramvec_training.continuing import begin_from, origin_record
from gramvec_training.corpus import Batch, Corpus
from gramvec_training.distillation import Projection, distillation_loss, principal_projection
from gramvec_training.encoders import Encoder
from gramvec_training.evaluate import find_sets
from gramvec_training.fit import Trainer, choose_device, fit
from gramvec_training.memo import count_repeated
from gramvec_training.noise import misspelt
from gramvec_training.pipeline import begun_encoder, begun_vocabulary, identity_of, means, scores_of
from gramvec_training.robustness import read_misspellings
from gramvec_training.runs import CHECKPOINT, PARITY_TEXTS, Begun, Weights, finish_run, save_inputs, spec_of, versions
from gramvec_training.teacher import Halves, open_teacher
from gramvec_training.texts import collect_texts

PROJECTION_TEXTS = 200_000  # the axes are steady to the third digit from a tenth of that


class TeacherTrainer(Trainer):
    """Learns a teacher's vectors. Each epoch goes through all items (texts and misspelt copies) in a new order.

    `targets` int64[items]: the teacher's row of each item of the corpus. Items without a known feature are left out.
    """

    def __init__(
        self,
        encoder: Encoder,
        corpus: Corpus,
        targets: npt.NDArray[np.int64],
        teacher: Halves,
        projection: Projection,
        settings: Distillation,
        device: torch.device,
    ) -> None:
        self._known = np.flatnonzero(corpus.counts)
        if len(self._known) < 2:
            raise InputError("Distillation needs at least two texts with known features; check the texts.")
        # A last batch may be of one text, whose cosines to others teach nothing, so it is left out.
        self.steps_per_epoch = max((len(self._known) - 2) // settings.batch + 1, 1)
        steps = settings.steps or (settings.epochs or 1) * self.steps_per_epoch
        super().__init__(encoder, corpus, settings, steps, device)
        self._targets = targets
        self._teacher = teacher
        self._projection = projection
        self._settings = settings
        self._epoch = -1
        self._order = self._known

    def batch_at(self, step: int) -> Batch:
        """The batch of a step, counted from 0."""
        epoch, position = divmod(step, self.steps_per_epoch)
        if epoch != self._epoch:
            rng = np.random.default_rng([self._settings.seed, epoch])
            self._epoch, self._order = epoch, self._known[rng.permutation(len(self._known))]
        start = position * self._settings.batch
        return self.corpus.batch(self._order[start : start + self._settings.batch])

    def loss(self, vectors: torch.Tensor, batch: Batch, step: int) -> torch.Tensor:
        """The distillation loss against the teacher's projected vectors."""
        teacher = self._projection(self._teacher[self._targets[batch.texts]])  # [b, d]
        return distillation_loss(vectors, torch.from_numpy(teacher).to(self.device), relation=self._settings.relation)


def run_distillation(
    begun: Begun, folder: Path, *, cache: Path, device: str, threads: int, resume: bool, save_every: float
) -> dict[str, Any]:
    """Train the student of a begun run's config into its folder; gives the record, with the development scores.

    cache: where the teacher's vectors are kept from run to run; see gramvec_training.teacher.
    """
    config, data = begun.config, begun.data
    settings = config.distillation
    assert settings is not None
    torch.set_num_threads(threads)
    target = choose_device(device)
    dev = find_sets([data / path for path in config.dev.sets])[0] if config.dev.sets else []

    texts, counts = collect_texts(
        config.texts, data, seed=settings.seed, spans=settings.spans, limit=settings.max_texts
    )
    started = begin_from(config)
    teacher = open_teacher(settings.teacher, cache, threads=threads)
    with _bar("teacher", len(texts)) as bar:
        vectors = teacher.vectors(texts, progress=bar.update)
    if vectors.shape[1] < config.model.dimension:
        raise InputError(
            f"The teacher has {vectors.shape[1]} dimensions; a student has at most as many, not "
            f"{config.model.dimension}: set model.dimension, or --dimension."
        )
    rng = np.random.default_rng([settings.seed, 2**31])
    projection = principal_projection(
        vectors[np.sort(rng.permutation(len(texts))[:PROJECTION_TEXTS])], config.model.dimension
    )
    spec = spec_of(config)
    vocabulary = begun_vocabulary(config, started, texts, spec, data)
    save_inputs(folder, vocabulary, texts[:PARITY_TEXTS], count_repeated(texts, spec))
    featuriser = Featuriser(spec, vocabulary)

    known = read_misspellings([data / path for path in settings.misspellings])
    copied = rng.permutation(len(texts))[: int(settings.misspelt * len(texts))]
    copies = misspelt([texts[i] for i in copied.tolist()], rng, share=settings.misspelt_words, known=known)
    with _bar("features", len(texts) + len(copies)) as bar:
        corpus = Corpus.of([*texts, *copies], featuriser, len(vocabulary), progress=bar.update)

    encoder = begun_encoder(config.model, started, settings.seed, vocabulary, data).to(target)
    trainer = TeacherTrainer(
        encoder, corpus, np.concatenate([np.arange(len(texts)), copied]), vectors, projection, settings, target
    )
    history = fit(
        trainer,
        folder / CHECKPOINT,
        identity=identity_of(config, corpus.digest, teacher.digest),
        resume=resume,
        save_every=save_every,
        score=lambda model: means(scores_of(dev, model, featuriser)) if dev else {},
        score_every=config.dev.every,
    )
    bias = None if encoder.bias is None else encoder.bias.detach().cpu().numpy()
    record = {
        "name": config.model.name,
        "kind": config.model.kind,
        "command": begun.command,
        "config": config.public(),
        "data": [{"name": one.name, "licence": one.licence, "texts": counts[one.name]} for one in config.texts],
        "spans": counts.get("spans", 0),
        "teacher": {
            "model": Path(settings.teacher).name,
            "digest": teacher.digest,
            "dimension": int(vectors.shape[1]),
            "kept_by_projection": round(projection.kept, 4),
        },
        "texts": len(texts),
        "misspelt_copies": len(copies),
        "rows": len(vocabulary),
        "steps": history.steps,
        "examples": history.pairs,
        "seconds": round(history.seconds, 1),
        "device": str(target),
        "threads": threads,
        "versions": versions(),
        "loss": history.losses,
        "dev": history.dev,
        "scores": scores_of(dev, encoder, featuriser) if dev else {"tasks": {}, "notes": []},
        **origin_record(started),
    }
    finish_run(folder, Weights(encoder.table.detach().cpu().numpy(), bias), record)
    return record


def _bar(title: str, total: int) -> tqdm[Any]:
    return tqdm(total=total, desc=title, unit=" texts", unit_scale=True, disable=not sys.stderr.isatty())
