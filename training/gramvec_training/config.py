"""Training configs: objectives, the whole config, and its TOML files."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    BeforeValidator,
    Field,
    SerializeAsAny,
    SerializerFunctionWrapHandler,
    ValidationError,
    model_serializer,
    model_validator,
)

from gramvec.errors import InputError
from gramvec_training.registry import describe_first_error
from gramvec_training.sections import (
    ENCODERS,
    OBJECTIVES,
    BagSettings,
    DataSet,
    Dev,
    EncoderSettings,
    Export,
    FeatureKind,
    FeatureSettings,
    ModelSettings,
    Number,
    ObjectiveSettings,
    Penalty,
    Positive,
    PositiveCount,
    Schedule,
    Seed,
    Select,
    Strict,
    TextSource,
    VocabularyLimits,
)
from gramvec_training.systems import find_system

Sampling = Literal["max", "mix", "rand"]
Among = Literal["both", "own"]
SifWeights = Literal["sif", "idf", "none"]


class Training(Schedule):
    """Settings of the margin loss; `batch` counts pairs."""

    margin: Positive = 0.4
    negatives: Sampling = "max"
    negatives_among: Among = "both"  # or a phrase's own side, as PARAGRAM-PHRASE's formula has it
    batch: Annotated[int, Field(ge=2)] = 128
    mega_batch: PositiveCount = 1  # batches among which the negatives are sought
    cosine_epsilon: Penalty = 0.0  # added to the product of the lengths: 1e-4 of charCNN, 1e-6 of charLSTM
    shuffle_first_epoch: bool = True  # else in the order of the files


class Spelling(Strict):
    """Words learned beside the texts of a distillation.

    A misspelled word is drawn to its correct word and pushed away from other words of similar spelling.

    Each step has `groups` words of the `count` most frequent in the file `words` (of four letters or more), each with
    those most alike, `near` in all, and of each word a misspelt copy: one of `copies`. The loss beside the texts' is
    `keep` * (1 - cos(word, its vector of the teacher)) + `weight` * cross-entropy of the copy's cosines with the words
    of the step, over `temperature`, by which only the copies are moved.
    """

    words: Path
    count: PositiveCount = 50_000
    groups: PositiveCount = 64
    near: Annotated[int, Field(ge=2)] = 8
    copies: PositiveCount = 6
    weight: Positive = 0.3
    temperature: Positive = 0.05
    keep: Penalty = 1.5


class Distillation(Schedule):
    """Settings of distillation from a teacher's vectors of [[texts]]; `batch` counts texts."""

    teacher: str  # a sentence-transformers model's folder, an installed package that carries one, or a bundle
    relation: Penalty = 0.5  # weight of the batch's cosines beside the vectors themselves
    batch: Annotated[int, Field(ge=2)] = 1024
    rate: Positive = 2e-3
    spans: Number = 0  # texts that a short phrase is cut from, besides
    max_texts: PositiveCount | None = None  # keep at most this many texts
    # Of a kind of features: how many occurrences a step leaves out. What is served has all; [export] scales them down.
    dropout: dict[FeatureKind, Annotated[float, Field(gt=0, lt=1)]] = Field(default_factory=dict)
    whitening: Annotated[float, Field(ge=0, le=1)] = 0.0  # of the teacher's vectors; 0 for none
    misspelt: Annotated[float, Field(ge=0, le=1)] = 0.1  # misspelt copies, as a share of the texts
    misspelt_words: Annotated[float, Field(gt=0, le=1)] = 0.3  # share of a copy's longer words
    misspellings: tuple[Path, ...] = ()  # files of word<TAB>misspelling
    spelling: Spelling | None = None  # words to learn from besides


class Sif(Strict):
    """Word weights and common components over the words of a run, or of a file of vectors.

    weights: "sif", a / (a + p(w)); "idf", log((1 + N) / (1 + N_w)) of N `documents`, N_w of them with the word (SIF,
    equation 7); "none", 1. `frequencies` also decide the order of the rows, and so what max_words keeps.
    """

    run: str | None = None  # a run folder beside the one that is written
    vectors: Path | None = None
    frequencies: Path
    a: Positive = 1e-3
    weights: SifWeights = "sif"
    documents: tuple[TextSource, ...] = ()
    components: Number = 1
    sample: PositiveCount = 100_000  # texts that the components are taken from
    max_words: PositiveCount | None = None
    seed: Seed = 1

    @model_validator(mode="after")
    def _one_source(self) -> Sif:
        if (self.run is None) == (self.vectors is None):
            raise ValueError("give either run or vectors")
        if (self.weights == "idf") != bool(self.documents):
            raise ValueError('documents and weights = "idf" go together: give both or neither')
        return self


class Start(Strict):
    """The bundle of a warm start, and how many rows the new texts may add to its table.

    `bundle` is a folder or a name. A new row goes to an n-gram or word that the training texts hold `min_count` times
    and the bundle lacks, the most frequent first.
    """

    bundle: Path
    digest: str | None = None  # the bundle must have it
    min_count: PositiveCount = 2
    max_ngrams: Number = 10_000
    max_words: Number = 5_000


EncoderSection = Annotated[SerializeAsAny[EncoderSettings], BeforeValidator(ENCODERS.parse)]
ObjectiveSection = Annotated[SerializeAsAny[ObjectiveSettings], BeforeValidator(OBJECTIVES.parse)]
_OF_MARGIN = ("margin", "negatives", "negatives_among", "mega_batch", "cosine_epsilon")  # of [training]


class Config(Strict):
    """A whole config: [model] and [training] with [[data]], [distillation] with [[texts]], or [sif] with [[texts]]."""

    model: ModelSettings
    features: FeatureSettings = FeatureSettings()
    vocabulary: VocabularyLimits = VocabularyLimits()
    encoder: EncoderSection | None = None  # the bag of [model] where it is left out
    training: Training | None = None
    objective: ObjectiveSection | None = None  # what is learned, where it is not the margin or the teacher's loss
    distillation: Distillation | None = None
    sif: Sif | None = None
    start: Start | None = None  # the bundle that [training] or [distillation] continues from
    data: tuple[DataSet, ...] = ()
    texts: tuple[TextSource, ...] = ()
    dev: Dev = Dev()
    select: Select | None = None  # the last step's model is kept without it
    export: Export = Export()

    @model_validator(mode="after")
    def _one_way(self) -> Config:
        if sum(part is not None for part in (self.training, self.distillation, self.sif)) != 1:
            raise ValueError("give one of [training], [distillation] and [sif]")
        if self.training is not None and not self.data:
            raise ValueError("[training] needs at least one [[data]] with a path")
        if self.export.whitening and (self.model.activation != "linear" or self.model.bias):
            raise ValueError("export.whitening needs a linear model without a bias")
        if self.distillation is not None and not self.texts:
            raise ValueError("[distillation] needs at least one [[texts]] with a path")
        if self.start is not None and self.sif is not None:
            raise ValueError("[start] belongs to [training] or [distillation]")
        if self.select is not None and self.sif is not None:
            raise ValueError("[select] belongs to [training] or [distillation]; [sif] has nothing to select from")
        if self.sif is not None and self.sif.components and not self.texts:
            raise ValueError("[sif] needs at least one [[texts]] with a path to take its components from")
        return self

    @model_validator(mode="after")
    def _labeled_alone(self) -> Config:
        if not any(data_set.labeled for data_set in self.data):
            return self
        if len(self.data) > 1:
            raise ValueError("a labeled [[data]] is the only one: its negatives are chosen by its labels")
        for name in ("layout", "max_groups", "pairs_per_group"):
            if getattr(self.data[0], name) != DataSet.model_fields[name].default:
                raise ValueError(f"data.{name} belongs to paraphrases; a labeled [[data]] has none")
        return self

    @model_validator(mode="after")
    def _one_objective(self) -> Config:
        if self.objective is None:
            return self
        section = self.objective.section
        if getattr(self, section) is None:
            raise ValueError(f'objective "{self.objective.kind}" belongs to [{section}]')
        self.objective.check(getattr(self, section))
        for name in _OF_MARGIN if self.training is not None else ():
            if getattr(self.training, name) != Training.model_fields[name].default:
                raise ValueError(f"training.{name} belongs to the margin loss; leave it out, or leave out [objective]")
        return self

    @model_serializer(mode="wrap")
    def _without_absent_objective(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        values: dict[str, Any] = write(self)
        if self.objective is None:  # records of runs, and digests of them, are as they were without the section
            values.pop("objective", None)
        return values

    @model_validator(mode="after")
    def _kind_of_system_or_encoder(self) -> Config:
        if self.encoder is None or self.model.kind != self.encoder.kind:
            try:
                find_system(self.model.kind)
            except ValueError as error:
                raise ValueError(f"model.kind: {error}") from None
        return self

    @model_validator(mode="after")
    def _one_encoder(self) -> Config:
        for name in ("pooling", "activation", "bias") if self.encoder is not None else ():
            if getattr(self.model, name) != ModelSettings.model_fields[name].default:
                raise ValueError(f"model.{name} belongs to a model without [encoder]; leave it out")
        return self

    @model_validator(mode="after")
    def _encoder_and_features(self) -> Config:
        settings, model, features = self.composition, self.model, self.features
        if settings.reads_in_order:
            words, characters = (features.orders, features.words) == ((), True), features.orders == (1,)
            if not (words or (characters and not features.words)):
                raise ValueError(
                    f'encoder "{settings.kind}" reads words or characters in order: set features.orders = [] and words '
                    "= true, or orders = [1] and words = false"
                )
        if settings.keeps_width and model.table_width != model.dimension:
            raise ValueError(f'encoder "{settings.kind}" has vectors as wide as its rows: leave model.width out')
        settings.check(model, self.training or self.distillation, self.export)
        return self

    @property
    def composition(self) -> EncoderSettings:
        """Return the settings of the encoder: [encoder], or the bag that [model] describes."""
        if self.encoder is not None:
            return self.encoder
        return BagSettings(pooling=self.model.pooling, activation=self.model.activation, bias=self.model.bias)

    def public(self) -> dict[str, Any]:
        """Return the config as JSON types for published records; absolute paths are cut to the file name."""
        values: dict[str, Any] = _without_folders(self.model_dump())
        return values


def _without_folders(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_folders(member) for key, member in value.items()}
    if isinstance(value, (list, tuple)):
        return [_without_folders(member) for member in value]
    if isinstance(value, Path):
        return value.name if value.is_absolute() else value.as_posix()
    return value


def load_config(path: Path) -> Config:
    """Read a TOML config.

    Two keys before the first section name files beside the config. `base = "other.toml"` is a config that this one
    changes: sections are merged key by key; [encoder] and lists such as [[data]] replace those of the base.
    `corpora = "corpora/open.toml"` is a file of [[texts]] or [[data]], to which the config's own are added; one with
    the same path changes the keys that it names.

    Raises:
        InputError: A file is missing, is not TOML, or has a key or value that is not valid; the message names both.
    """
    return parse_config(_values(path, ()), source=str(path))


def _values(path: Path, above: tuple[Path, ...]) -> dict[str, Any]:
    values = _read_toml(path)
    base, corpora = values.pop("base", None), values.pop("corpora", None)
    for key, named in (("base", base), ("corpora", corpora)):
        if not isinstance(named, str | None):
            raise InputError(
                f"{path}: {key} is not a file name in quotes, got {named!r}; name one file beside the config"
            )
    if corpora is not None:
        values = _with_corpora(_read_toml(path.parent / corpora), values)
    if base is None:
        return values
    if path in above:
        raise InputError(f"{path}: base leads back to this config; name another one")
    return _merge(_values(path.parent / base, (*above, path)), values)


def _read_toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        below = sorted(str(other) for other in path.parent.glob("*/*.toml") if other.name == path.name)
        where = f"there is {' and '.join(below)}" if below else "the shipped ones are in training/configs"
        raise InputError(f"{path}: no such config; {where}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: the config cannot be read: {error}") from error
    except tomllib.TOMLDecodeError as error:
        raise InputError(
            f"{path}: not valid TOML: {error}; a file of pairs or of labels is learned from by fit-pairs, fit-labels "
            "or fit-weights"
        ) from error


def _with_corpora(corpora: dict[str, Any], values: dict[str, Any]) -> dict[str, Any]:
    """Return the values with the sources of a corpus file, changed and extended by the config's own."""
    merged = dict(values)
    for section, sources in corpora.items():
        own = values.get(section, [])
        if not isinstance(sources, list) or not isinstance(own, list):
            merged.setdefault(section, sources)  # the config's validation names what is wrong
            continue
        changes = {str(source.get("path")): source for source in own}
        known = [{**source, **changes.pop(str(source.get("path")), {})} for source in sources]
        merged[section] = [*known, *changes.values()]
    return merged


def _merge(base: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    merged = dict(base)
    for key, value in changes.items():
        both = isinstance(value, dict) and isinstance(merged.get(key), dict) and key != "encoder"
        merged[key] = _merge(merged[key], value) if both else value
    return merged


def parse_config(values: dict[str, Any], *, source: str) -> Config:
    """Validate nested values as a config; `source` names them in error messages."""
    try:
        return Config.model_validate(values)
    except ValidationError as error:
        raise InputError(f"{source}: {describe_first_error(error, 'the config')}") from error
