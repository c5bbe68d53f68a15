"""A [training] run: paraphrases, read, sampled and featurized, and the margin loss."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from tqdm import tqdm

from gramvec.text.featurizer import Featurizer
from gramvec_training.configuration import Config, DataSet, How, Training
from gramvec_training.data import Corpus, Mixture, SourceGroups, count_repeated, read_held_out, read_kept
from gramvec_training.encoders import Encoder, encoder_function, unit_vectors
from gramvec_training.evaluation import retrieval
from gramvec_training.fitting import History
from gramvec_training.objectives import PairObjective
from gramvec_training.readers import BadRows, Group
from gramvec_training.runs.beginning import begun_encoder, begun_vocabulary
from gramvec_training.runs.folder import PARITY_TEXTS, Begun, spec_of
from gramvec_training.runs.plan import Plan
from gramvec_training.runs.start import Started, begin_from, origin_record

_log = logging.getLogger(__name__)


def prepare_pairs(begun: Begun, folder: Path, how: How) -> Plan:
    """Read the data sets, build the vocabulary on their distinct texts, and featurize these once."""
    config, data = begun.config, begun.data
    training = config.training
    assert training is not None
    started = begin_from(config)
    drawn = [_drawn(one, data, training.seed, index) for index, one in enumerate(config.data)]
    numbers: dict[str, int] = {}
    for groups, _ in drawn:
        for group in groups:
            for text in group:
                numbers.setdefault(text, len(numbers))

    texts = list(numbers)
    spec = spec_of(config)
    vocabulary = begun_vocabulary(config, started, texts, spec, data)
    featurizer = Featurizer(spec, vocabulary)
    with tqdm(total=len(texts), desc="features", unit=" texts", disable=None) as bar:
        corpus = Corpus.of(texts, featurizer, len(vocabulary), progress=bar.update)
    counts = corpus.counts
    sources = [_source(one, groups, numbers, counts) for one, (groups, _) in zip(config.data, drawn, strict=True)]
    mixture = Mixture(sources, training.seed, training.shuffle_first_epoch)
    sample = np.random.default_rng([training.seed, 2**31]).permutation(len(texts))[:PARITY_TEXTS]

    def record(history: History, encoder: Encoder) -> dict[str, Any]:
        return {
            "data": [
                _data_record(one, groups, bad, source)
                for one, (groups, bad), source in zip(config.data, drawn, sources, strict=True)
            ],
            "pairs": history.examples,
            "pairs_per_second": round(history.examples / history.seconds) if history.seconds else None,
            **_held_out_record(config, training, data, started, encoder, featurizer),
            **origin_record(started),
        }

    return Plan(
        vocabulary,
        featurizer,
        [texts[i] for i in sample],
        count_repeated(texts, spec),
        make_encoder=lambda: begun_encoder(config, started, training.seed, vocabulary, data),
        record=record,
        make_objective=lambda encoder, device: PairObjective(encoder, corpus, mixture, training),
        digests=(corpus.digest,),
    )


def _drawn(one: DataSet, data: Path, seed: int, index: int) -> tuple[list[Group], BadRows]:
    groups, bad = read_kept(one, data, seed)
    for line in bad.notes():
        _log.warning(line)
    if one.max_groups is not None and one.max_groups < len(groups):
        rng = np.random.default_rng([seed, 2**31, index])
        groups = [groups[i] for i in np.sort(rng.permutation(len(groups))[: one.max_groups])]
    return groups, bad


def _source(one: DataSet, groups: list[Group], numbers: dict[str, int], counts: npt.NDArray[np.int64]) -> SourceGroups:
    known = [[numbers[text] for text in group if counts[numbers[text]]] for group in groups]
    known = [members for members in known if len(members) > 1]
    offsets = np.zeros(len(known) + 1, dtype=np.int64)
    np.cumsum([len(members) for members in known], out=offsets[1:])
    flat = np.array([number for members in known for number in members], dtype=np.int64)
    return SourceGroups(one.name, flat, offsets, one.pairs_per_group, one.cap)


def _data_record(one: DataSet, groups: list[Group], bad: BadRows, source: SourceGroups) -> dict[str, Any]:
    return {
        "name": one.name,
        "licence": one.licence,
        "groups": source.groups,
        "pairs_per_epoch": source.pairs_per_epoch,
        "rows_skipped": {reason: len(lines) for reason, lines in bad.lines.items()},
        "groups_without_known_features": len(groups) - source.groups,
    }


def _held_out_record(
    config: Config, training: Training, data: Path, started: Started | None, encoder: Encoder, featurizer: Featurizer
) -> dict[str, Any]:
    """What a run's record says of the held-out pairs; nothing where there are none.

    `before` is the retrieval of the bundle with its own features, None without one; `after` that of the encoder.
    """
    pairs = read_held_out(config.data, data, training.seed)
    if not len(pairs):
        return {}
    before = None
    if started is not None:
        before = retrieval(pairs, unit_vectors(started.encode(), started.bundle.featurizer))
    after = retrieval(pairs, unit_vectors(encoder_function(encoder, featurizer), featurizer))
    return {"held_out": {"pairs": len(pairs), "before": before, "after": after}}
