"""From a config to a finished run folder, and from that to a bundle."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import torch
from tqdm import tqdm

from gramvec.bundle import Manifest
from gramvec.errors import InputError
from gramvec.features import FeatureSpec, Featuriser
from gramvec.vocab import Vocabulary
from gramvec_training.card import write_card
from gramvec_training.config import Config, DataSet, Export, Model, Precision, Training
from gramvec_training.continuing import begin_from, continued_encoder, held_out_record, origin_record
from gramvec_training.corpus import Corpus
from gramvec_training.data import BadRows, Group, read_vectors
from gramvec_training.encode import cosines, encoder_function, reference
from gramvec_training.encoders import ENCODERS, Bag, Encoder
from gramvec_training.evaluate import SimilaritySet, find_sets, score_sets
from gramvec_training.export import NO_MEMO, export_bundle
from gramvec_training.fit import choose_device, fit
from gramvec_training.held_out import read_kept
from gramvec_training.memo import Repeated, can_have_memo, choose, count_repeated
from gramvec_training.mixture import Mixture, SourceGroups
from gramvec_training.pair_trainer import PairTrainer
from gramvec_training.runs import (
    CHECKPOINT,
    PARITY_TEXTS,
    Begun,
    Run,
    Weights,
    finish_run,
    save_inputs,
    spec_of,
    versions,
)
from gramvec_training.shape import scaled, whitening_transform
from gramvec_training.start import Started, extended_vocabulary
from gramvec_training.vocabulary import vocabulary_for

_log = logging.getLogger(__name__)
UNKNOWN_WORD = "UUUNKKK"  # what the files of PARAGRAM vectors call the row of unknown words
_BYTES = {"float32": 4, "float16": 2, "int8": 1}
GOLDEN_TEXTS = (
    "vehicles",
    "a man is playing the guitar",
    "Where can I buy a second-hand bicycle?",
    "the talks were broken off on Tuesday, two officials said",
    "definately recieved teh pacakge",
    "",
)


@dataclass(frozen=True)
class Prepared:
    """The data of a run, read, sampled and featurised."""

    vocabulary: Vocabulary
    featuriser: Featuriser
    corpus: Corpus
    mixture: Mixture
    texts: list[str]
    repeated: Repeated
    record: list[dict[str, Any]]


def run_fit(
    begun: Begun, folder: Path, *, device: str, threads: int, resume: bool, save_every: float
) -> dict[str, Any]:
    """Train the model of a begun run's config into its folder; gives the record, with the development scores."""
    config, data = begun.config, begun.data
    training = config.training
    assert training is not None
    torch.set_num_threads(threads)
    target = choose_device(device)
    if target.type == "cuda":
        torch.use_deterministic_algorithms(True, warn_only=True)
    dev = find_sets([data / path for path in config.dev.sets])[0] if config.dev.sets else []
    started = begin_from(config)
    prepared = prepare(config, training, data, started)
    save_inputs(folder, prepared.vocabulary, prepared.texts, prepared.repeated)

    encoder = begun_encoder(config.model, started, training.seed, prepared.vocabulary, data).to(target)
    trainer = PairTrainer(encoder, prepared.corpus, prepared.mixture, training, target)
    history = fit(
        trainer,
        folder / CHECKPOINT,
        identity=identity_of(config, prepared.corpus.digest),
        resume=resume,
        save_every=save_every,
        score=lambda model: means(scores_of(dev, model, prepared.featuriser)) if dev else {},
        score_every=config.dev.every,
    )
    bias = None if encoder.bias is None else encoder.bias.detach().cpu().numpy()
    weights = Weights(encoder.table.detach().cpu().numpy(), bias)
    record = {
        "name": config.model.name,
        "kind": config.model.kind,
        "command": begun.command,
        "config": config.public(),
        "data": prepared.record,
        "rows": len(prepared.vocabulary),
        "steps": history.steps,
        "pairs": history.pairs,
        "seconds": round(history.seconds, 1),
        "pairs_per_second": round(history.pairs / history.seconds) if history.seconds else None,
        "device": str(target),
        "threads": threads,
        "versions": versions(),
        "loss": history.losses,
        "dev": history.dev,
        "scores": scores_of(dev, encoder, prepared.featuriser) if dev else {"tasks": {}, "notes": []},
        **held_out_record(
            config, training, data, started, encoder_function(encoder, prepared.featuriser), prepared.featuriser
        ),
        **origin_record(started),
    }
    finish_run(folder, weights, record)
    return record


def prepare(config: Config, training: Training, data: Path, started: Started | None = None) -> Prepared:
    """Read the data sets, build the vocabulary on their distinct texts, and featurise these once."""
    numbers: dict[str, int] = {}
    drawn: list[tuple[DataSet, list[Group], BadRows]] = []
    for index, one in enumerate(config.data):
        groups, bad = read_kept(one, data, training.seed)
        if bad.total:
            _log.warning(bad.summary())
        if one.max_groups is not None and one.max_groups < len(groups):
            rng = np.random.default_rng([training.seed, 2**31, index])
            groups = [groups[i] for i in np.sort(rng.permutation(len(groups))[: one.max_groups])]
        drawn.append((one, groups, bad))
        for group in groups:
            for text in group:
                numbers.setdefault(text, len(numbers))

    texts = list(numbers)
    spec = spec_of(config)
    vocabulary = begun_vocabulary(config, started, texts, spec, data)
    featuriser = Featuriser(spec, vocabulary)
    with tqdm(total=len(texts), desc="features", unit=" texts", disable=None) as bar:
        corpus = Corpus.of(texts, featuriser, len(vocabulary), progress=bar.update)

    counts = corpus.counts
    sources: list[SourceGroups] = []
    record: list[dict[str, Any]] = []
    for one, groups, bad in drawn:
        source = _source(one, groups, numbers, counts)
        sources.append(source)
        record.append(
            {
                "name": one.name,
                "licence": one.licence,
                "groups": source.groups,
                "pairs_per_epoch": source.pairs_per_epoch,
                "rows_skipped": {reason: len(lines) for reason, lines in bad.lines.items()},
                "groups_without_known_features": len(groups) - source.groups,
            }
        )
    sample = np.random.default_rng([training.seed, 2**31]).permutation(len(texts))[:PARITY_TEXTS]
    mixture = Mixture(sources, training.seed, training.shuffle_first_epoch)
    parity_texts = [texts[i] for i in sample]
    return Prepared(vocabulary, featuriser, corpus, mixture, parity_texts, count_repeated(texts, spec), record)


def begun_vocabulary(
    config: Config, started: Started | None, texts: Sequence[str], spec: FeatureSpec, data: Path
) -> Vocabulary:
    """The vocabulary of the texts, or that of the bundle which training goes on from with what the texts add."""
    if config.start is None or started is None:
        return vocabulary_for(config, texts, spec, data)
    return extended_vocabulary(config.start, started.bundle.vocabulary, texts, spec)


def begun_encoder(model: Model, started: Started | None, seed: int, vocabulary: Vocabulary, data: Path) -> Bag:
    """The encoder with its first values, or with those of the bundle which training goes on from."""
    if started is None:
        return build_encoder(model, seed, vocabulary, data)
    return continued_encoder(started, seed, vocabulary)


def build_encoder(model: Model, seed: int, vocabulary: Vocabulary, data: Path) -> Bag:
    """The encoder with its first values: uniform from a seed, and word vectors from a file where one is named."""
    generator = torch.Generator().manual_seed(seed)
    rows = len(vocabulary)
    half = (6 / (rows + model.dimension)) ** 0.5 if model.initial == "glorot" else model.initial
    table = torch.empty(rows, model.dimension).uniform_(-half, half, generator=generator)
    if model.vectors is not None:
        path = data / model.vectors
        words, vectors = read_vectors(path)
        if vectors.shape[1] != model.dimension:
            raise InputError(f"{path} has {vectors.shape[1]} dimensions and model.dimension is {model.dimension}.")
        rows_of_words = ((row, entry) for row, entry in enumerate(vocabulary.entries()) if entry.kind != "ngram")
        places = {entry.text or UNKNOWN_WORD: row for row, entry in rows_of_words}
        known = [index for index, word in enumerate(words) if word in places]
        table[[places[words[index]] for index in known]] = torch.from_numpy(vectors[known])
        _log.info("%s gives %d of %d words their first values", path.name, len(known), len(places))
    return ENCODERS["bag"](table, pooling=model.pooling, activation=model.activation, bias=model.bias)


def export_run(
    run: Run, path: Path, *, export: Export | None = None, precision: Precision | None = None, name: str | None = None
) -> Manifest:
    """Write the bundle of a finished run, checked against torch on texts of its training data.

    export: instead of what the run's config says; precision: instead of what that says.
    """
    model = run.config.model
    spec = spec_of(run.config)
    export = export or run.config.export
    precision = precision or export.precision
    name = name or model.name
    featuriser = Featuriser(spec, run.vocabulary)
    weights = _shaped(run, export, featuriser)
    kept = {key: value for key, value in run.record.items() if key not in ("loss", "dev", "kind", "name")}
    provenance = {"licence": model.licence, **kept, "export": export.model_dump(mode="json")}
    return export_bundle(
        path,
        name=name,
        kind=model.kind,
        spec=spec,
        vocabulary=run.vocabulary,
        table=weights.table,
        bias=weights.bias,
        pooling=model.pooling,
        activation=model.activation,
        common_component=weights.components,
        precision=precision,
        reference=reference(
            weights,
            featuriser,
            pooling=model.pooling,
            activation=model.activation,
        ),
        parity_texts=run.texts,
        golden_texts=GOLDEN_TEXTS,
        memo=(
            choose(run.repeated, featuriser, chunks=export.memo_chunks, edges=export.memo_edges)
            if can_have_memo(spec, model.pooling)
            else NO_MEMO
        ),
        provenance=provenance,
        card=write_card(
            {**run.record, "export": export.model_dump(mode="json")},
            name=name,
            precision=precision,
            table_bytes=run.weights.table.size * _BYTES[precision],
        ),
    )


def _shaped(run: Run, export: Export, featuriser: Featuriser) -> Weights:
    scales = {str(kind): scale for kind, scale in export.scales.items()}
    weights = replace(run.weights, table=scaled(run.weights.table, run.vocabulary.entries(), scales))
    if not export.whitening:
        return weights
    vectors = reference(weights, featuriser, pooling=run.config.model.pooling, activation="linear")(run.texts)
    return replace(weights, table=weights.table @ whitening_transform(vectors, export.whitening))


def _source(one: DataSet, groups: list[Group], numbers: dict[str, int], counts: np.ndarray[Any, Any]) -> SourceGroups:
    known = [[numbers[text] for text in group if counts[numbers[text]]] for group in groups]
    known = [members for members in known if len(members) > 1]
    offsets = np.zeros(len(known) + 1, dtype=np.int64)
    np.cumsum([len(members) for members in known], out=offsets[1:])
    flat = np.array([number for members in known for number in members], dtype=np.int64)
    return SourceGroups(one.name, flat, offsets, one.pairs_per_group, one.cap)


def scores_of(sets: Sequence[SimilaritySet], encoder: Encoder, featuriser: Featuriser) -> dict[str, Any]:
    """The scores of an encoder as it is now, see evaluate.score_sets."""
    return score_sets(sets, cosines(encoder_function(encoder, featuriser), featuriser))


def means(scores: dict[str, Any]) -> dict[str, float]:
    """Each task's mean Pearson, rounded, for the log."""
    return {task: round(result["mean"]["pearson"], 2) for task, result in scores["tasks"].items()}


def identity_of(config: Config, *digests: str) -> str:
    """64 hex digits over a config and the digests of what it is trained on: what a checkpoint belongs to."""
    state = hashlib.sha256(orjson.dumps(config.model_dump(mode="json"), option=orjson.OPT_SORT_KEYS))
    state.update(" ".join(digests).encode())
    return state.hexdigest()
