"""A [training] run over paraphrases or over labeled texts: read, held out, sampled and featurized."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import orjson
import torch

from gramvec.errors import InputError
from gramvec.features.featurizer import Featurizer
from gramvec.jobs.common.watch import NO_WATCH, JobWatch
from gramvec_training.data.corpus import Corpus
from gramvec_training.data.sampling import (
    HeldOut,
    LabelGroups,
    LabelSplit,
    LabelTexts,
    Mixture,
    SourceGroups,
    join_held_out,
    split_held_out,
    split_labels,
)
from gramvec_training.data.vocabulary import count_repeated
from gramvec_training.encoders.base import Encoder
from gramvec_training.encoders.build import make_encode, make_unit_encode
from gramvec_training.evaluation.classification import (
    measure_label_accuracies,
    measure_label_cosines,
    measure_label_hits,
    score_labels,
)
from gramvec_training.evaluation.tasks import list_reciprocal_ranks, measure_retrieval
from gramvec_training.evaluation.verdict import count_values, judge, mean_of
from gramvec_training.fitting.loop import History, Selection
from gramvec_training.objectives.base import Objective
from gramvec_training.objectives.pairs import build_objective
from gramvec_training.readers.labels import read_label_texts
from gramvec_training.readers.lines import SkippedRows, shorten_path
from gramvec_training.readers.pairs import Group, read_paraphrases
from gramvec_training.runs.plan import Plan
from gramvec_training.runs.run_dir import PARITY_TEXTS, StartedRun, make_spec
from gramvec_training.runs.warm_start import StartTable, begin_encoder, begin_from, begin_vocabulary, make_origin_record
from gramvec_training.sections import DataSet
from gramvec_training.shared import Encode

_log = logging.getLogger(__name__)


class PairPlan(Plan):
    """A run over paraphrases: the vocabulary is of their distinct texts, which are featurized once."""

    def prepare(self, watch: JobWatch = NO_WATCH) -> None:
        """See `Plan.prepare`."""
        config, data, begun = self.config, self.data, self.begun
        assert config.training is not None
        self.training = training = config.training
        self.started = begin_from(config)
        read = [_draw(begun, data_set, training.seed, index) for index, data_set in enumerate(config.data)]
        self._drawn = [(groups, bad) for groups, bad, _ in read]
        self._held_out = join_held_out([held_out for _, _, held_out in read])
        numbers: dict[str, int] = {}
        for groups, _ in self._drawn:
            for group in groups:
                for text in group:
                    numbers.setdefault(text, len(numbers))

        texts = list(numbers)
        spec = make_spec(config)
        self.vocabulary = begin_vocabulary(config, self.started, texts, spec, data, watch)
        self.featurizer = Featurizer(spec, self.vocabulary)
        self._corpus = Corpus.from_texts(texts, self.featurizer, len(self.vocabulary), progress=watch)
        counts = self._corpus.counts
        self._sources = [
            _make_source(data_set, groups, numbers, counts)
            for data_set, (groups, _) in zip(config.data, self._drawn, strict=True)
        ]
        self._mixture = Mixture(self._sources, training.seed, training.shuffle_first_epoch)
        sample = np.random.default_rng([training.seed, 2**31]).permutation(len(texts))[:PARITY_TEXTS]
        self.texts = [texts[i] for i in sample]
        self.repeated = count_repeated(texts, spec)
        self.digests = (self._corpus.digest,)

    def make_encoder(self) -> Encoder:
        """Return the encoder with its first values, or with those of the bundle that it starts from."""
        return begin_encoder(self.config, self.started, self.training.seed, self.vocabulary, self.data)

    def make_objective(self, encoder: Encoder, device: torch.device) -> Objective:
        """Return what the pairs teach."""
        return build_objective(self.config.objective, encoder, self._corpus, self._mixture, self.training)

    def record(self, history: History, encoder: Encoder) -> dict[str, Any]:
        """Return the record of the data sets, the pairs and the held-out part."""
        return {
            "data": [
                _make_data_record(data_set, groups, bad, source)
                for data_set, (groups, bad), source in zip(self.config.data, self._drawn, self._sources, strict=True)
            ],
            **_make_pairs_record(history),
            **self._held_out_record(encoder),
            **make_origin_record(self.started),
        }

    def _held_out_record(self, encoder: Encoder) -> dict[str, Any]:
        """Return the record of the held-out pairs; empty without any.

        `before` is the retrieval of the bundle with its own features, None without one; `after` that of the encoder;
        `verdict` whether that is better, where there is a bundle: among the right sides of all pairs.
        """
        pairs = self._held_out
        if not len(pairs):
            return {}
        new = make_unit_encode(make_encode(encoder, self.featurizer), self.featurizer)
        record: dict[str, Any] = {"pairs": len(pairs), "before": None, "after": measure_retrieval(pairs, new)}
        if self.started is not None:
            former = make_unit_encode(self.started.encode(), self.started.bundle.featurizer)
            right_sides = list(dict.fromkeys(group[1] for groups, _ in self._drawn for group in groups))
            ranks = [count_values(list_reciprocal_ranks(pairs, right_sides, unit)) for unit in (former, new)]
            groups = np.unique(pairs.meanings, return_inverse=True)[1]
            record["before"] = measure_retrieval(pairs, former)
            record["verdict"] = judge(
                "right side among those of all pairs, mean reciprocal rank x 100", ranks, groups, mean_of
            )
        return {"held_out": record}


def _make_pairs_record(history: History) -> dict[str, Any]:
    return {
        "pairs": history.examples,
        "pairs_per_second": round(history.examples / history.seconds) if history.seconds else None,
    }


def _draw(begun: StartedRun, data_set: DataSet, seed: int, index: int) -> tuple[list[Group], SkippedRows, HeldOut]:
    """Return the groups of a data set that are trained on, its bad rows, and its held-out pairs."""
    groups, bad = begun.take_rows() or read_paraphrases(
        begun.data / data_set.path, layout=data_set.layout, on_bad=data_set.bad_rows, given=data_set.format
    )
    groups, held_out = split_held_out(groups, data_set.held_out, seed)
    for line in bad.sentences():
        _log.warning(line)
    if data_set.max_groups is not None and data_set.max_groups < len(groups):
        rng = np.random.default_rng([seed, 2**31, index])
        groups = [groups[i] for i in np.sort(rng.permutation(len(groups))[: data_set.max_groups])]
    return groups, bad, held_out


def _make_source(
    data_set: DataSet, groups: list[Group], numbers: dict[str, int], counts: npt.NDArray[np.int64]
) -> SourceGroups:
    known = [[numbers[text] for text in group if counts[numbers[text]]] for group in groups]
    known = [members for members in known if len(members) > 1]
    offsets = np.zeros(len(known) + 1, dtype=np.int64)
    np.cumsum([len(members) for members in known], out=offsets[1:])
    flat = np.array([number for members in known for number in members], dtype=np.int64)
    return SourceGroups(data_set.name, flat, offsets, data_set.pairs_per_group, data_set.cap)


def _make_data_record(data_set: DataSet, groups: list[Group], bad: SkippedRows, source: SourceGroups) -> dict[str, Any]:
    return {
        "name": data_set.name,
        "license": data_set.license,
        "groups": source.groups,
        "pairs_per_epoch": source.pairs_per_epoch,
        "rows_skipped": {reason: len(lines) for reason, lines in bad.lines.items()},
        "groups_without_known_features": len(groups) - source.groups,
    }


_SHOWN = 3  # labels that a line names
# Labels of eight groups of questions that share words have 0.057 to 0.376, of sixteen groups at random 0.012 to 0.051.
_HARDLY = 0.05
_MAX_TO_CHOOSE = 20_000  # texts that a model is chosen beside, at every epoch; the report is beside all


class LabelPlan(Plan):
    """A run over labeled texts: some of each label are held out, and the others are featurized once.

    Raises InputError where no two texts can be paired, or no text has another label.
    """

    def prepare(self, watch: JobWatch = NO_WATCH) -> None:
        """See `Plan.prepare`."""
        config, begun, (data_set,) = self.config, self.begun, self.config.data
        assert config.training is not None
        self.training = training = config.training
        self.started = begin_from(config)
        rows, self._bad = begun.take_rows() or read_label_texts(
            begun.data / data_set.path, on_bad=data_set.bad_rows, given=data_set.format
        )
        self._split = split = split_labels(rows, data_set.held_out, training.seed)
        for line in self._bad.sentences():
            _log.warning(line)
        texts, spec = split.train.texts, make_spec(config)
        self._labels = len(split.names)
        self.vocabulary = begin_vocabulary(config, self.started, texts, spec, begun.data, watch)
        self.featurizer = Featurizer(spec, self.vocabulary)
        self._corpus = Corpus.from_texts(texts, self.featurizer, len(self.vocabulary), progress=watch)
        sample = np.random.default_rng([training.seed, 2**31]).permutation(len(texts))
        self._chosen_beside = split.train.take(np.sort(sample[:_MAX_TO_CHOOSE]).tolist())
        self._source = _make_label_groups(data_set, split.train, self._labels, self._corpus)
        for line in _list_notes(data_set, split):
            _log.warning(line)
        if self.started is not None and (
            note := _describe_unlike(data_set, split.names, self._chosen_beside, self.started)
        ):
            _log.warning(note)
        self._mixture = Mixture([self._source], training.seed, training.shuffle_first_epoch)
        self.texts = [texts[i] for i in sample[:PARITY_TEXTS]]
        self.repeated = count_repeated(texts, spec)
        self.digests = (self._corpus.digest, _digest_split(split))

    def make_encoder(self) -> Encoder:
        """Return the encoder with its first values, or with those of the bundle that it starts from."""
        return begin_encoder(self.config, self.started, self.training.seed, self.vocabulary, self.data)

    def make_objective(self, encoder: Encoder, device: torch.device) -> Objective:
        """Return what pairs of texts of a label teach."""
        return build_objective(
            self.config.objective, encoder, self._corpus, self._mixture, self.training, self._split.train.classes
        )

    def make_selection(self) -> Selection | None:
        """Return how often the label of a held-out text is found, at each epoch; None where none are held out."""
        if not len(self._split.chosen_by):
            return None
        return Selection(
            lambda encoder: score_labels(self._chosen_beside, self._split.chosen_by, self._labels, self._unit(encoder)),
            max(-(-self._mixture.pairs_per_epoch // self.training.batch), 1),
        )

    def record(self, history: History, encoder: Encoder) -> dict[str, Any]:
        """Return the record of the file, the pairs and how often labels are found."""
        return {
            "data": [_make_label_record(self.config.data[0], self._split, self._bad, self._source)],
            **_make_pairs_record(history),
            **self._labels_record(encoder),
            **make_origin_record(self.started),
        }

    def _labels_record(self, encoder: Encoder) -> dict[str, Any]:
        """Return the record of the labels that are found of the reported texts, empty without any."""
        split = self._split
        if not len(split.reported):
            return {}
        asked = split.train, split.reported, self._labels
        before = make_unit_encode(self.started.encode(), self.started.bundle.featurizer) if self.started else None
        record: dict[str, Any] = {
            "texts": len(split.reported),
            "before": measure_label_accuracies(*asked, before) if before else None,
            "after": measure_label_accuracies(*asked, self._unit(encoder)),
        }
        if before is not None:
            rights = [count_values(measure_label_hits(*asked, unit)) for unit in (before, self._unit(encoder))]
            measure = "label of the nearest text and nearest mean of a label, mean %"
            record["verdict"] = judge(measure, rights, np.arange(len(split.reported)), mean_of)
        return {"labels": record}

    def _unit(self, encoder: Encoder) -> Encode:
        return make_unit_encode(make_encode(encoder, self.featurizer), self.featurizer)


def _digest_split(split: LabelSplit) -> str:
    """Return 64 hex digits over the labels and the texts for model selection."""
    values = [split.names, split.train.labels, split.chosen_by.texts, split.chosen_by.labels]
    return hashlib.sha256(orjson.dumps(values)).hexdigest()


def _list_notes(data_set: DataSet, split: LabelSplit) -> list[str]:
    """Return remarks on the labels for the user, one a line."""
    counts = np.bincount([number for labels in split.train.labels for number in labels], minlength=len(split.names))
    several = sum(len(labels) > 1 for labels in split.train.labels)
    lone = [split.names[number] for number in np.flatnonzero(counts == 1).tolist()]
    notes, name = [], shorten_path(data_set.path)
    if lone:
        which = f"{len(lone):,} labels have" if len(lone) > 1 else "1 label has"
        shown = ", ".join([*lone[:_SHOWN], *(["..."] if len(lone) > _SHOWN else [])])
        notes.append(f"{name}: {which} a single text, which serves only as a negative: {shown}")
    if several:
        which = f"{several:,} texts have" if several > 1 else "1 text has"
        notes.append(f"{name}: {which} several labels; each counts as right, and it is no negative")
    return notes


def _describe_unlike(data_set: DataSet, names: Sequence[str], texts: LabelTexts, started: StartTable) -> str | None:
    """Return a warning where texts of a label are hardly alike to the starting model, or None."""
    within, without = measure_label_cosines(
        texts, len(names), make_unit_encode(started.encode(), started.bundle.featurizer)
    )
    hardly = np.flatnonzero(within - without < _HARDLY)
    if not len(hardly):
        return None
    worst = hardly[np.argsort((within - without)[hardly], kind="stable")]
    shown = ", ".join(f"{names[i]} ({within[i]:.2f}, others {without[i]:.2f})" for i in worst[:_SHOWN].tolist())
    more = ", ..." if len(worst) > _SHOWN else ""
    which = f"{len(worst):,} of {len(names):,} labels have texts" if len(worst) > 1 else "1 label has texts"
    return (
        f"{shorten_path(data_set.path)}: {which} that are hardly nearer to each other than to others by the model's "
        f"cosines: {shown}{more}. To train on such labels costs what the model knows: divide them by what their texts "
        "are about, or learn a head on the model as it is (gramvec classify fit)."
    )


def _make_label_groups(data_set: DataSet, train: LabelTexts, labels: int, corpus: Corpus) -> LabelGroups:
    known = corpus.counts > 0
    groups: list[list[int]] = [[] for _ in range(labels)]
    for place, own in enumerate(train.labels):
        for number in own if known[place] else ():
            groups[number].append(place)
    groups = [members for members in groups if members]
    if len({*train.classes[known].tolist()} - {-1}) < 2 or max(map(len, groups)) < 2:
        raise InputError(
            f"{shorten_path(data_set.path)}: too few texts have a label of their own and known features; give more"
        )
    offsets = np.zeros(len(groups) + 1, np.int64)
    np.cumsum([len(members) for members in groups], out=offsets[1:])
    return LabelGroups(data_set.name, np.concatenate(groups).astype(np.int64), offsets, cap=data_set.cap)


def _make_label_record(data_set: DataSet, split: LabelSplit, bad: SkippedRows, source: LabelGroups) -> dict[str, Any]:
    return {
        "name": data_set.name,
        "license": data_set.license,
        "groups": source.groups,
        "labels": len(split.names),
        "texts": len(split.train),
        "pairs_per_epoch": source.pairs_per_epoch,
        "rows_skipped": {reason: len(lines) for reason, lines in bad.lines.items()},
    }
