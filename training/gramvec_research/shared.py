"""What every experiment takes and gives."""

from __future__ import annotations

import functools
import gzip
import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from gramvec.bundle.bundle import open_bundle
from gramvec.bundle.resolve import MANIFEST
from gramvec.errors import InputError
from gramvec.features.featurizer import Featurizer
from gramvec.features.spec import FeatureSpec
from gramvec.text.arrays import FeatureBatch
from gramvec_research.vectors import Counting, SquaredNorm, learn_word_vectors, save_vectors, treebank_tokens
from gramvec_training.config import parse_config
from gramvec_training.data.vocabulary import count_documents
from gramvec_training.encoders.bag import make_bag
from gramvec_training.encoders.build import make_encode, make_similarity
from gramvec_training.evaluation.backend import ScoredModel, remove_components_of_sets
from gramvec_training.evaluation.report import read_record
from gramvec_training.evaluation.similarity import SimilaritySet, find_sets, score_sets
from gramvec_training.export.bundle import read_weights
from gramvec_training.fitting.sif import make_word_table, weigh_words, weigh_words_by_idf
from gramvec_training.options import RunOptions
from gramvec_training.readers.vectors import find_vectors
from gramvec_training.runs.run_dir import CHECKPOINT, begin_run, is_begun, is_finished, make_way, read_begun
from gramvec_training.runs.sif import read_word_vectors
from gramvec_training.runs.train import train
from gramvec_training.shared import Floats, digest, write_atomically

ResultRow = Mapping[str, str | float | None]


@dataclass(frozen=True)
class ExperimentInputs:
    """What an experiment is made of.

    vectors: word vectors as text, .npy or an installed package; a run folder of a word model; or a bundle of one.
    frequencies: files of word frequencies, of which the first is used where one is wanted. sets: folders of
    similarity sets, each a task. norms: vectors of a trained model, whose lengths weigh words. data: the folder of
    training files. in_domain: a set of phrases such as are trained on. word_sets: sets of single words. models: the
    folder of the shipped bundles. labeled: the folder of labeled texts, SICK, SST, SNLI and IMDB each in its own.
    tagged: the folder of a treebank.
    work: where learned models are kept, so that a second call finds them. seeds: of what is learned.
    """

    vectors: Path
    frequencies: tuple[Path, ...]
    sets: tuple[Path, ...]
    norms: Path | None = None
    data: Path | None = None
    in_domain: Path | None = None
    word_sets: tuple[Path, ...] = ()
    models: Path = Path("models")
    work: Path = Path("runs/papers/models")
    seeds: tuple[int, ...] = (1, 2)
    labeled: Path | None = None
    tagged: Path | None = None


@dataclass(frozen=True)
class Finding:
    """What the paper found, whether it holds here, and what was seen; a sure one holds at any size."""

    claim: str
    holds: bool
    seen: str
    sure: bool = False


@dataclass(frozen=True)
class ResultTable:
    """rows: of a table, each with the same columns; where a paper's value is known, it stands in a column beside."""

    rows: tuple[ResultRow, ...]
    findings: tuple[Finding, ...]


@dataclass(frozen=True)
class Drawing:
    """Of an outcome's rows a curve for each of the columns y over x; a row whose x is no number is a level."""

    x: str
    y: tuple[str, ...]
    logarithmic: bool = False


@dataclass(frozen=True)
class Experiment:
    """name: as the command takes it. table: the paper's. stands_in: what is used here for the paper's data."""

    name: str
    table: str
    title: str
    stands_in: str
    run: Callable[[ExperimentInputs], ResultTable]
    learns: bool = False  # so it takes minutes, and has seeds
    labels: bool = False  # of the folder `labeled`
    tags: bool = False  # of the folder `tagged`, and of nothing else
    raw: bool = False  # of the raw texts below the folder `data`, and not of its other files
    drawing: Drawing | None = None
    note: str = ""  # what was tried, in sentences


@dataclass(frozen=True)
class Item:
    """where: the table, figure or section. paper: its main values. experiments: by name, those that make it here.

    missing: what is not made here, or of it, and why; "" where all of it is. about: what the claims begin with that
    belong to it, where an experiment makes several things.
    """

    where: str
    what: str
    paper: str
    experiments: tuple[str, ...] = ()
    missing: str = ""
    about: tuple[str, ...] = ("",)


@dataclass(frozen=True)
class Paper:
    """A paper: all of its tables, figures and other figures of weight, and the experiments that make them here."""

    name: str
    reference: str
    items: tuple[Item, ...]
    experiments: tuple[Experiment, ...]


OTHER_SETS = "of the paper's sets STS 2012 alone is here: the others are kept apart from this work, or cannot be had"

_SPEC = FeatureSpec(orders=(), words=True, word_rule="white-space/1")


class SetWords:
    """The vectors of the words that stand in some sets, whose texts are cut into Treebank tokens.

    words: of each row; table: float32[rows, d], their vectors as they were given. A word without a vector is skipped.
    """

    def __init__(self, vectors: Path, folders: Sequence[Path]) -> None:
        self.sets: list[SimilaritySet] = find_sets(folders)[0]
        self.texts = [text for similarity_set in self.sets for text in (*similarity_set.left, *similarity_set.right)]
        tokens = {token for text in self.texts for token in treebank_tokens(text).lower().split()}
        words, table = vectors_of(vectors)
        kept = [row for row, word in enumerate(words) if word.lower() in tokens]
        if not kept:
            raise InputError(f"{vectors}: no vector for any word of these sets; give vectors of the sets' language")
        vocabulary, self.table = make_word_table([words[row] for row in kept], table[kept], {}, symbols=False)
        self.words = [entry.text for entry in vocabulary.entries()]
        self._featurizer = Featurizer(_SPEC, vocabulary)

    def featurize(self, texts: Sequence[str]) -> FeatureBatch:
        """Return the rows of each text's tokens."""
        return self._featurizer([treebank_tokens(text) for text in texts])

    def sif(self, frequencies: Mapping[str, float], a: float = 1e-3) -> Floats:
        """Return a / (a + p(w)) of each row."""
        return weigh_words(self.words, frequencies, a)

    def idf(self) -> Floats:
        """Return log((1 + N) / (1 + N_w)) of each row, over the sentences of all sets (equation 7)."""
        return weigh_words_by_idf(count_documents(self.texts, self.featurize, len(self.words)), len(self.texts))

    def model(self, weights: Floats | None = None, components: int = 0) -> ScoredModel:
        """Return the means of the vectors times weights float32[rows], less the first common components of each set."""
        table = self.table if weights is None else self.table * weights[:, None]
        encoder = make_bag(table, pooling="mean", activation="linear")
        encode = make_encode(encoder, self.featurize)
        model = ScoredModel("words", self._featurizer, encode, make_similarity(encode, self.featurize))
        return remove_components_of_sets(model, components, "both") if components else model

    def score(self, weights: Floats | None = None, components: int = 0) -> dict[str, float]:
        """Return each task's mean Pearson, times 100, over its sets."""
        tasks = score_sets(self.sets, self.model(weights, components).similarity)["tasks"]
        return {name: float(task["mean"]["pearson"]) for name, task in tasks.items()}


@functools.lru_cache(maxsize=2)  # a run of all experiments asks ten times for the same
def vectors_of(place: Path) -> tuple[list[str], Floats]:
    """Return words and vectors float32[n, d] of a file, an installed package, a run, or a bundle of a bag of words."""
    source = find_vectors(place)
    if not (source / MANIFEST).is_file():
        words, vectors, _ = read_word_vectors(source)
        return words, vectors
    bundle = open_bundle(source)
    table = read_weights(bundle)[0]
    rows = [(row, entry.text) for row, entry in enumerate(bundle.vocabulary.entries()) if entry.kind == "word"]
    if not rows:
        raise InputError(f"{source}: the bundle has no words; name one of a word model, such as paragram-phrase")
    return [text for _, text in rows], np.ascontiguousarray(table[[row for row, _ in rows]])


_COMMONEST = 50_000  # of a file of vectors, which has the frequent words first

RunSettings = Mapping[str, Any]


def learn_run(inputs: ExperimentInputs, name: str, settings: RunSettings, seed: int) -> tuple[Path, dict[str, Any]]:
    """Return the folder and the record of a run with these settings and seed, from the folder `work` if it is there.

    settings: a config's sections, `training` without its seed; without `dev` the sets of the inputs are scored. Raises
    InputError where the inputs name no data, and TrainingInterrupted where it is stopped, with a checkpoint.
    """
    data = require_training_data(inputs)
    scored = (*inputs.sets, *([inputs.in_domain] if inputs.in_domain is not None else []))
    values = {
        **settings,
        "training": {**settings["training"], "seed": seed},
        "dev": settings.get("dev", {"sets": [str(path.resolve()) for path in scored]}),
    }
    values["model"] = {"name": name, **settings["model"]}
    config = parse_config(values, source=f"the experiment's {name}")
    read = [*(data_set.path for data_set in config.data), *config.dev.sets]
    read += [config.model.vectors] if config.model.vectors is not None else []
    values = {"config": config.public(), "read": [digest((data / path).resolve()) for path in read]}
    key = key_of(values, orjson.OPT_SORT_KEYS)
    folder = inputs.work / f"{name}-{seed}-{key}"
    if not is_finished(folder):
        resume = is_begun(folder) and (folder / CHECKPOINT).is_file()
        if not resume:
            make_way(folder, overwrite=True)
            begin_run(folder, config, data, command=f"python -m gramvec_research run ({name}, seed {seed})")
        train(read_begun(folder), folder, RunOptions(resume=resume, device="cpu"))
    return folder, read_record(folder)


def require_training_data(inputs: ExperimentInputs) -> Path:
    """Return the folder of the training files. Raises InputError where the inputs name none."""
    if inputs.data is None:
        raise InputError("this experiment learns models: give --data, the folder of the training files")
    return inputs.data


def key_of(values: Any, option: int = 0) -> str:
    """Return 8 hex digits over JSON types, which name what was learned from them."""
    return hashlib.sha256(orjson.dumps(values, option=option)).hexdigest()[:8]


def load_or_make(path: Path, make: Callable[[Path], dict[str, Any]]) -> dict[str, Any]:
    """Return the JSON that a file holds, or what `make` gives, which the file holds from then on.

    make: takes the path of a checkpoint to write and to go on from; it is removed at the end.
    """
    if path.is_file():
        return dict(orjson.loads(path.read_bytes()))
    path.parent.mkdir(parents=True, exist_ok=True)
    checkpoint = path.with_suffix(".pt")
    made = make(checkpoint)
    write_atomically(path, lambda handle: handle.write(orjson.dumps(made)))
    checkpoint.unlink(missing_ok=True)
    return made


def slug_of(name: str) -> str:
    """Return the name of a system as files have it."""
    return name.lower().replace(",", "").replace(" ", "-")


def list_values(values: Mapping[str, float], form: str = ".1f") -> str:
    """Return names and values, with one decimal by default."""
    return ", ".join(f"{name} {value:{form}}" for name, value in values.items())


def write_packed(path: Path, parts: Iterable[bytes]) -> Path:
    """Write a file, packed where its name ends in .gz, into a folder that is made if need be; return its path."""
    data = b"".join(parts)
    path.parent.mkdir(parents=True, exist_ok=True)
    # Without a time stamp the same parts give the same bytes.
    packed = gzip.compress(data, mtime=0) if path.suffix == ".gz" else data
    write_atomically(path, lambda handle: handle.write(packed))
    return path


def tasks_of(record: Mapping[str, Any], measure: str = "pearson") -> dict[str, float]:
    """Return each task's mean score, times 100, over its sets."""
    return {name: float(task["mean"][measure]) for name, task in record["scores"]["tasks"].items()}


def mean_scores(scores: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Return each task's mean over seeds."""
    return {task: float(np.mean([tasks[task] for tasks in scores])) for task in scores[0]}


def find_spread(scores: Sequence[Mapping[str, float]], tasks: Iterable[str]) -> float:
    """Return the greatest distance between two seeds on any of the tasks."""
    return max(max(of_seed[task] for of_seed in scores) - min(of_seed[task] for of_seed in scores) for task in tasks)


def cut_vectors(inputs: ExperimentInputs) -> tuple[Path, int]:
    """Return a file of the first 50,000 words of the vectors, and their dimension: no run needs all of GloVe."""
    words, vectors = vectors_of(inputs.vectors)
    inputs.work.mkdir(parents=True, exist_ok=True)
    path = (inputs.work / f"vectors-{digest(find_vectors(inputs.vectors).resolve())[:8]}.npy").resolve()
    if not path.is_file():
        save_vectors(path, words[:_COMMONEST], vectors[:_COMMONEST])
    return path, int(vectors.shape[1])


GIVEN, SN, PHRASE = "given vectors", "SN", "PARAGRAM-PHRASE"
_FOLDER, _NAMES = "raw", "more_wikipedia_c.txt.gz"  # below the folder of training files
_COUNTING = Counting(max_words=8_000)
_DIMENSION, _EPOCHS = 50, 20


def find_raw_texts(inputs: ExperimentInputs) -> list[Path]:
    """Return the files of raw text below the folder of training files; none where there is no such folder."""
    return [] if inputs.data is None else sorted((inputs.data / _FOLDER).glob(_NAMES))


def kinds_of_vectors(inputs: ExperimentInputs) -> dict[str, Path]:
    """Return where each kind of vectors is: given ones, those learned from raw text, and a trained model's.

    Those for which there is nothing here are left out.
    """
    kinds = {GIVEN: inputs.vectors}
    if find_raw_texts(inputs):
        kinds[SN] = _learn_vectors(inputs)
    if inputs.norms is not None:
        kinds[PHRASE] = inputs.norms
    return kinds


def _learn_vectors(inputs: ExperimentInputs) -> Path:
    """Return the file of vectors in the folder `work`, learned with the first seed if it is not there."""
    paths = find_raw_texts(inputs)
    settings = SquaredNorm(dimension=_DIMENSION, epochs=_EPOCHS, seed=inputs.seeds[0])
    values = [*(digest(path.resolve()) for path in paths), asdict(_COUNTING), asdict(settings)]
    path = (inputs.work / f"sn-{key_of(values)}.npy").resolve()
    if not path.is_file():
        path.parent.mkdir(parents=True, exist_ok=True)
        learned = learn_word_vectors(paths, _COUNTING, settings)
        save_vectors(path, learned.words, learned.vectors)
    return path
