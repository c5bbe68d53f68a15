"""The labeled texts of the supervised experiments: to learn from, to choose an epoch on, and to score."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import torch
from scipy import optimize, sparse, stats

from gramvec.errors import InputError
from gramvec.features.featurizer import Featurizer
from gramvec.features.spec import FeatureSpec
from gramvec_research.answers import spread_scores
from gramvec_research.heads import HeadObjective, Supervision, fix_encoder, new_head, one_row_each
from gramvec_research.shared import ExperimentInputs, key_of, load_or_make, require_training_data, slug_of, vectors_of
from gramvec_research.systems import learn_system
from gramvec_research.vectors import treebank_tokens
from gramvec_training.data.corpus import Corpus
from gramvec_training.encoders.bag import Average, ProjectionSettings, make_bag
from gramvec_training.encoders.base import Encoder
from gramvec_training.encoders.build import make_encode
from gramvec_training.fitting.loop import Selection, fit
from gramvec_training.fitting.sif import make_word_table, weigh_words
from gramvec_training.fitting.trainer import Trainer, choose_device
from gramvec_training.readers.labels import Labeled, read_labeled
from gramvec_training.readers.vectors import find_vectors, read_frequencies
from gramvec_training.runs.run_dir import load_run
from gramvec_training.runs.train import wrap_run
from gramvec_training.runs.warm_start import begin_encoder
from gramvec_training.shared import Doubles, Floats, Ints, digest

SCORES = 5  # of similarity, 1 to 5
_HELD_OUT = 10  # of what has no development part, one example of ten

TextTuples = list[tuple[str, ...]]


@dataclass(frozen=True)
class LabeledPart:
    """Single texts or pairs, and of each its score, or the number of its class: float64[n]."""

    texts: TextTuples
    truth: npt.NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.texts)

    def those(self, rows: Ints) -> LabeledPart:
        """Return the examples with these numbers."""
        return LabeledPart([self.texts[row] for row in rows.tolist()], self.truth[rows])


@dataclass(frozen=True)
class SupervisedTask:
    """classes: the labels by number; none where they are scores from 1 to 5."""

    name: str
    classes: tuple[str, ...]
    learned: LabeledPart
    held_out: LabeledPart
    scored: LabeledPart

    @property
    def width(self) -> int:
        """Return the number of a head's classes."""
        return len(self.classes) or SCORES

    @property
    def sides(self) -> int:
        """Return how many texts an example has."""
        return len(self.learned.texts[0])

    @property
    def digest(self) -> str:
        """Return 16 hex digits over all of it."""
        state = hashlib.sha256(repr(self.classes).encode())
        for part in (self.learned, self.held_out, self.scored):
            state.update(repr(part.texts).encode() + part.truth.tobytes())
        return state.hexdigest()[:16]

    def targets(self, part: LabeledPart) -> Floats:
        """Return float32[n, width]: the distribution of each example's classes."""
        if not self.classes:
            return spread_scores(part.truth, SCORES)
        return np.eye(self.width, dtype=np.float32)[part.truth.astype(np.int64)]

    def score(self, probabilities: Floats, part: LabeledPart) -> float:
        """Return, times 100, Pearson's r of the mean scores, or the share of examples whose class is right."""
        if self.classes:
            return 100 * float(np.mean(probabilities.argmax(axis=1) == part.truth))
        predicted = probabilities.astype(np.float64) @ np.arange(1, SCORES + 1)
        if not np.ptp(predicted) or not np.ptp(part.truth):
            return 0.0
        return 100 * float(stats.pearsonr(predicted, part.truth).statistic)

    def majority(self) -> float:
        """Return, times 100, the share of the class that most examples of learning have."""
        commonest = np.bincount(self.learned.truth.astype(np.int64)).argmax()
        return 100 * float(np.mean(self.scored.truth == commonest))

    def shuffled(self, seed: int) -> SupervisedTask:
        """Return a copy with the words of every text in another order."""
        rng = np.random.default_rng(seed)

        def shuffle(part: LabeledPart) -> LabeledPart:
            texts = [tuple(" ".join(rng.permutation(text.split())) for text in sides) for sides in part.texts]
            return replace(part, texts=texts)

        return replace(
            self,
            name=f"{self.name}-shuffled",
            learned=shuffle(self.learned),
            held_out=shuffle(self.held_out),
            scored=shuffle(self.scored),
        )

    def only(self, number: int, seed: int) -> SupervisedTask:
        """Return a copy with fewer examples to learn from, drawn by the seed, of each class its share."""
        rows = np.random.default_rng(seed).permutation(len(self.learned))
        if self.classes:
            # A round takes one of each class, so that every number of examples has all of them.
            rank = np.empty(len(rows), np.int64)
            truth = self.learned.truth[rows]
            for value in np.unique(truth):
                of_class = np.flatnonzero(truth == value)
                rank[of_class] = np.arange(len(of_class))
            rows = rows[np.argsort(rank, kind="stable")]
        return replace(self, learned=self.learned.those(rows[:number]))


def read_similarity(inputs: ExperimentInputs) -> SupervisedTask:
    """Read SICK's scores: a tenth of its training part held out, its trial part scored."""
    folder = _folder(inputs)
    # The scores of the trial part are a similarity set, which lies beside the labeled texts.
    learned, scored = _read(folder / "sick" / "train.tsv"), _read(folder.parent / "sick" / "trial.tsv")
    return _task("similarity", learned, None, scored, scores=True)


def read_entailment(inputs: ExperimentInputs) -> SupervisedTask:
    """Read SICK's three classes: a tenth of its training part held out, its trial part scored."""
    folder = _folder(inputs) / "sick"
    return _task("entailment", _read(folder / "train.entail.tsv"), None, _read(folder / "trial.entail.tsv"))


def read_sentiment(inputs: ExperimentInputs, phrases: int) -> SupervisedTask:
    """Read the two classes of Stanford's treebank: some of its 67,349 phrases, its development and test part."""
    folder = _folder(inputs) / "sst2"
    parts = [_read(folder / f"binary.{name}.tsv") for name in ("train", "dev", "test")]
    return _task("sentiment", *parts).only(phrases, seed=1)


def read_reviews(inputs: ExperimentInputs) -> SupervisedTask:
    """Read the two classes of 2,440 reviews of IMDB."""
    folder = _folder(inputs) / "imdb"
    return _task("reviews", *(_read(folder / f"{name}.tsv") for name in ("train", "dev", "test")))


def read_inference(inputs: ExperimentInputs) -> SupervisedTask:
    """Read SNLI's three classes: its development part learned from, a tenth of it held out, its test part scored."""
    folder = _folder(inputs) / "snli"
    return _task("inference", _read(folder / "dev.tsv"), None, _read(folder / "test.tsv"))


def _folder(inputs: ExperimentInputs) -> Path:
    if inputs.labeled is None:
        raise InputError("this experiment learns from labels: give --labeled, the folder of SICK, SST, SNLI and IMDB")
    return inputs.labeled


def _read(path: Path) -> list[Labeled]:
    packed = path.with_name(f"{path.name}.gz")
    return read_labeled(packed if packed.is_file() and not path.is_file() else path)[0]


def _task(
    name: str,
    learned: list[Labeled],
    held_out: list[Labeled] | None,
    scored: list[Labeled],
    *,
    scores: bool = False,
) -> SupervisedTask:
    classes = () if scores else tuple(sorted({row.label for row in learned}))
    numbers = {label: float(number) for number, label in enumerate(classes)}

    def part(rows: Sequence[Labeled]) -> LabeledPart:
        try:
            truth = [float(row.label) if scores else numbers[row.label] for row in rows]
        except (KeyError, ValueError) as error:
            raise InputError(f"the labels of {name} are not all of one kind: {error}") from None
        return LabeledPart([row.texts for row in rows], np.array(truth))

    whole = part(learned)
    if held_out is not None:
        return SupervisedTask(name, classes, whole, part(held_out), part(scored))
    rows = np.random.default_rng(1).permutation(len(whole))
    cut = max(1, len(rows) // _HELD_OUT)
    return SupervisedTask(name, classes, whole.those(rows[cut:]), whole.those(rows[:cut]), part(scored))


Regime = Literal["trained", "universal", "features"]
SIF = "SIF"  # weighted averages of given vectors, W, which are fixed, below a learned projection
_PROJECTION = 2_400
_A = 1e-3
_WORDS = FeatureSpec(orders=(), words=True, word_rule="white-space/1")

# One setting for all systems and tasks, not searched: the papers searched for each.
_SETTINGS: dict[Regime, dict[str, Any]] = {
    "trained": {"epochs": 10, "rate": 2e-3, "l2": 1e-5, "l2_center": "initial", "l2_composition": 1e-6},
    "universal": {
        "epochs": 10, "rate": 2e-3, "l2": 1e-5, "l2_center": "initial", "l2_composition": 1e-4,
        "l2_composition_center": "initial",
    },
    "features": {"epochs": 30, "rate": 5e-3, "fixed_table": True},
}  # fmt: skip
_SIF = {"epochs": 10, "rate": 1e-3, "fixed_table": True, "l2_composition": 1e-6}
_SHARED = {"batch": 25, "hidden": 50, "l2_head": 1e-6}
_JOINED = {"pair": "joined", "hidden": 200, "narrow": 100}
_LARGE = 10_000  # examples, above which there are fewer epochs of larger batches
_OF_LARGE = {"batch": 50, "epochs": 4}


def score_head(
    inputs: ExperimentInputs, task: SupervisedTask, system: str, regime: Regime, seed: int, *, joined: bool = False
) -> float:
    """Return the score, times 100, of the epoch that was best on the held-out part. It is kept in the folder `work`.

    joined: with Bowman's layers, in place of the head that compares.
    """
    settings = _settings(task, system, regime, seed, joined=joined)
    origin = _origin(inputs, system, seed)
    values = [task.digest, origin, regime, settings.model_dump(mode="json")]
    key = key_of(values)
    path = inputs.work / "heads" / f"{task.name}-{slug_of(system)}-{regime}-{seed}-{key}.json"

    def learn(checkpoint: Path) -> dict[str, float]:
        encoder, corpus = _start(inputs, task, system, regime, seed)
        learned, held_out, scored = _examples(task)
        head = new_head(task.sides, encoder.dimension, task.width, settings)
        objective = HeadObjective(corpus, learned, task.targets(task.learned), head, settings)

        def score(encoder: Encoder, examples: Ints, part: LabeledPart) -> float:
            return task.score(objective.probabilities(encoder, examples), part)

        selection = Selection(lambda encoder: score(encoder, held_out, task.held_out), objective.steps_per_epoch)
        trainer = Trainer(encoder, objective, choose_device("cpu"))
        fit(trainer, checkpoint, identity=key, resume=checkpoint.is_file(), selection=selection)
        return {
            "score": score(encoder, scored, task.scored),
            "held out": score(encoder, held_out, task.held_out),
        }

    return float(load_or_make(path, learn)["score"])


def average_vectors(inputs: ExperimentInputs, texts: list[str], a: float | None = _A) -> Floats:
    """Return float32[n, d]: the means of the given vectors of each text's words, weighted as SIF does, or all alike."""
    tokens = [treebank_tokens(text).lower() for text in texts]
    occurring = {word for line in tokens for word in line.split()}
    words, vectors = vectors_of(inputs.vectors)
    kept = [row for row, word in enumerate(words) if word.lower() in occurring]
    if not kept:
        raise InputError(f"{inputs.vectors}: no vector for any word of these texts; give vectors of their language")
    vocabulary, table = make_word_table([words[row] for row in kept], vectors[kept], {}, symbols=False)
    if a is not None:
        listed = [entry.text for entry in vocabulary.entries()]
        table = table * weigh_words(listed, _frequencies(inputs.frequencies[0]), a)[:, None]
    return make_encode(make_bag(table, pooling="mean", activation="linear"), Featurizer(_WORDS, vocabulary))(tokens)


_frequencies = functools.lru_cache(1)(read_frequencies)  # a second, and the same for each fit


def _settings(task: SupervisedTask, system: str, regime: Regime, seed: int, *, joined: bool) -> Supervision:
    own = _SIF if system == SIF else _SETTINGS[regime]
    values = {**_SHARED, **own, "seed": seed}
    if len(task.learned) > _LARGE:
        values |= _OF_LARGE
    if joined:
        values |= _JOINED
    return Supervision.model_validate(values)


def _origin(inputs: ExperimentInputs, system: str, seed: int) -> str:
    if system == SIF:
        return "-".join(digest(path.resolve()) for path in (find_vectors(inputs.vectors), inputs.frequencies[0]))
    return learn_system(inputs, system, seed)[0].name  # which has a digest of all that it was learned from


def _start(
    inputs: ExperimentInputs, task: SupervisedTask, system: str, regime: Regime, seed: int
) -> tuple[Encoder, Corpus]:
    """Return the encoder as it begins, and the texts of all parts of a task, in the order of `_examples`."""
    parts = (task.learned, task.held_out, task.scored)
    texts = [text for part in parts for sides in part.texts for text in sides]
    if system == SIF:
        table = torch.from_numpy(average_vectors(inputs, texts))
        generator = torch.Generator().manual_seed(seed)
        projection = ProjectionSettings(kind="projection")
        return Average(table, projection, _PROJECTION, generator), one_row_each(len(texts))
    run = load_run(learn_system(inputs, system, seed)[0])
    model = wrap_run(run)
    if regime == "features":
        return fix_encoder(model.encode(texts)), one_row_each(len(texts))
    corpus = Corpus.from_texts(texts, model.featurizer, len(run.vocabulary))
    if regime == "universal":
        return run.encoder, corpus
    return begin_encoder(run.config, None, seed, run.vocabulary, require_training_data(inputs)), corpus


def _examples(task: SupervisedTask) -> tuple[Ints, Ints, Ints]:
    """Return int64[n, sides] of each part: the numbers of its texts among all."""
    ends = np.cumsum([len(task.learned), len(task.held_out), len(task.scored)])
    numbers = np.arange(ends[-1] * task.sides).reshape(-1, task.sides)
    learned, held_out, scored = np.split(numbers, ends[:-1])
    return learned, held_out, scored


LSTM, OPEN_LSTM = "LSTM", "LSTM, no output gate"
PHRASES = 10_000  # of the sentiment treebank


def regime_of(system: str) -> Regime:
    """Return how a system is learned with its head where a table has one way: SIF's vectors are fixed."""
    return "features" if system == SIF else "trained"


def mean_score(
    inputs: ExperimentInputs, task: SupervisedTask, system: str, regime: Regime, *, joined: bool = False
) -> float:
    """Return the mean over seeds of `score_head`."""
    return float(np.mean([score_head(inputs, task, system, regime, seed, joined=joined) for seed in inputs.seeds]))


def score_nb_svm(task: SupervisedTask) -> float:
    """Return the accuracy of NB-SVM, times 100, on a task of two classes."""
    learned, scored = ([text for (text,) in part.texts] for part in (task.learned, task.scored))
    return 100 * float(np.mean(fit_nb_svm(learned, task.learned.truth > 0, scored) == (task.scored.truth > 0)))


_ALPHA, _BETA, _C = 1.0, 0.25, 1.0  # smoothing, the share of the SVM's own weights, and its cost: the paper's


def fit_nb_svm(texts: Sequence[str], truth: npt.NDArray[np.bool_], asked: Sequence[str]) -> npt.NDArray[np.bool_]:
    """Predict the asked texts by a classifier that learned `texts`; both classes occur in `truth`, bool[n].

    f are the binary indicators of a text's unigrams and bigrams, r = log(p / ||p||_1) - log(q / ||q||_1) with p = 1 +
    the sum of f over the texts of the class, q over the others. A linear SVM learns f * r; its weights w become
    beta w + (1 - beta) mean|w|.
    """
    columns: dict[str, int] = {}
    known = _indicators(texts, columns, grow=True)
    p, q = (_ALPHA + np.asarray(known[rows].sum(axis=0)).ravel() for rows in (truth, ~truth))
    ratio = np.log(p / p.sum()) - np.log(q / q.sum())
    weights, bias = fit_linear_svm(known @ sparse.diags_array(ratio), truth)
    weights = _BETA * weights + (1 - _BETA) * np.abs(weights).mean()
    scores: Doubles = _indicators(asked, columns, grow=False) @ (ratio * weights) + bias
    return scores > 0


def fit_linear_svm(features: Any, truth: npt.NDArray[np.bool_]) -> tuple[Doubles, float]:
    """Return weights float64[d] and bias with the least (||w||^2 + bias^2) / 2 + C sum of max(0, 1 - y (x w + bias))^2.

    features: sparse float64[n, d]. It is LIBLINEAR's L2-regularised L2-loss SVM, which the paper has.
    """
    signs = np.where(truth, 1.0, -1.0)

    def loss(both: Doubles) -> tuple[float, Doubles]:
        short = np.maximum(0, 1 - signs * (features @ both[:-1] + both[-1]))
        slope = -2 * _C * signs * short
        gradient = both + np.append(features.T @ slope, slope.sum())
        return float(both @ both / 2 + _C * (short**2).sum()), gradient

    options = {"maxiter": 1_000}
    solution = optimize.minimize(loss, np.zeros(features.shape[1] + 1), jac=True, method="L-BFGS-B", options=options).x
    return solution[:-1], float(solution[-1])


def _indicators(texts: Sequence[str], columns: dict[str, int], *, grow: bool) -> Any:
    rows: list[int] = []
    places: list[int] = []
    for row, text in enumerate(texts):
        words = treebank_tokens(text).lower().split()
        for gram in dict.fromkeys([*words, *(f"{word} {following}" for word, following in pairwise(words))]):
            if grow:
                columns.setdefault(gram, len(columns))
            if gram in columns:
                rows.append(row)
                places.append(columns[gram])
    return sparse.csr_array((np.ones(len(rows)), (rows, places)), shape=(len(texts), len(columns)))


ENCODER_NOTE = (
    "encoders begin as the models of all-systems or their vectors; one setting of the learning for all, where the "
    "papers searched"
)
