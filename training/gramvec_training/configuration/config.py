"""A training config: one TOML file, typed, frozen, and strict about its keys."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from pydantic import ValidationError, model_validator

from gramvec.errors import InputError
from gramvec_training.configuration.methods import Distillation, Sif, Start, Training
from gramvec_training.configuration.model import (
    SEQUENCES,
    BagSettings,
    CharCnnSettings,
    EncoderSettings,
    Export,
    Features,
    IrnnSettings,
    Model,
    TwoLayerSettings,
    VocabularyLimits,
    WeightedSettings,
)
from gramvec_training.configuration.sources import DataSet, Dev, Select, TextSource
from gramvec_training.configuration.strict import Strict


class Config(Strict):
    """A whole config: [model] and [training] with [[data]], [distillation] with [[texts]], or [sif] with [[texts]]."""

    model: Model
    features: Features = Features()
    vocabulary: VocabularyLimits = VocabularyLimits()
    encoder: EncoderSettings | None = None  # a bag as [model] says where it is left out
    training: Training | None = None
    distillation: Distillation | None = None
    sif: Sif | None = None
    start: Start | None = None  # the bundle that [training] or [distillation] goes on from
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
    def _labelled_alone(self) -> Config:
        if not any(one.labelled for one in self.data):
            return self
        if len(self.data) > 1:
            raise ValueError("a labelled [[data]] stands alone: its negatives are chosen by its labels")
        for name in ("layout", "max_groups", "pairs_per_group"):
            if getattr(self.data[0], name) != DataSet.model_fields[name].default:
                raise ValueError(f"data.{name} belongs to paraphrases; a labelled [[data]] has none")
        return self

    @model_validator(mode="after")
    def _one_encoder(self) -> Config:
        for name in ("pooling", "activation", "bias") if self.encoder is not None else ():
            if getattr(self.model, name) != Model.model_fields[name].default:
                raise ValueError(f"model.{name} belongs to a model without [encoder]; leave it out")
        return self

    @model_validator(mode="after")
    def _encoder_and_features(self) -> Config:
        settings, model, features = self.composition, self.model, self.features
        if isinstance(settings, SEQUENCES):
            words, characters = (features.orders, features.words) == ((), True), features.orders == (1,)
            if not (words or (characters and not features.words)):
                raise ValueError(
                    f'encoder "{settings.kind}" reads words or characters in order: set features.orders = [] and words '
                    "= true, or orders = [1] and words = false"
                )
        same = isinstance(settings, (BagSettings, WeightedSettings, TwoLayerSettings, IrnnSettings))
        if same and model.table_width != model.dimension:
            raise ValueError(f'encoder "{settings.kind}" has vectors as wide as its rows: leave model.width out')
        if isinstance(settings, CharCnnSettings):
            found = sum(count for _, count in settings.counts)
            if not settings.layer and model.dimension != found:
                raise ValueError(f"without encoder.layer a vector is the {found} filters: set model.dimension to that")
        return self

    @model_validator(mode="after")
    def _fixed_vectors(self) -> Config:
        if not isinstance(self.composition, WeightedSettings):
            return self
        if self.model.vectors is None:
            raise ValueError('encoder "weighted" learns a number for each of the words of model.vectors: name a file')
        learning = self.training or self.distillation
        if learning is not None and learning.l2 and learning.l2_centre != "initial":
            raise ValueError('encoder "weighted" has fixed vectors: set l2_centre = "initial", or l2 = 0')
        if learning is not None and learning.fixed_table:
            raise ValueError('encoder "weighted" learns numbers in its table: leave fixed_table out')
        if self.export.scales:
            raise ValueError('encoder "weighted" has learned how words weigh: leave export.scales out')
        return self

    @property
    def composition(self) -> EncoderSettings:
        """The settings of the encoder: [encoder], or the bag that [model] describes."""
        if self.encoder is not None:
            return self.encoder
        return BagSettings(pooling=self.model.pooling, activation=self.model.activation, bias=self.model.bias)

    def public(self) -> dict[str, Any]:
        """The config as JSON types for records that travel: of absolute paths the file's name alone."""
        values: dict[str, Any] = _without_folders(self.model_dump())
        return values


def _without_folders(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_folders(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_without_folders(one) for one in value]
    if isinstance(value, Path):
        return value.name if value.is_absolute() else value.as_posix()
    return value


def load_config(path: Path) -> Config:
    """Read a TOML config. Raises InputError, one sentence naming the file and the key, for whatever is wrong in it.

    `base = "other.toml"`, before the first section, names a config beside it that this one changes: sections are
    merged key by key, but [encoder] and lists such as [[data]] take the place of the other's.
    """
    return parse_config(_values(path, ()), source=str(path))


def _values(path: Path, above: tuple[Path, ...]) -> dict[str, Any]:
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputError(f"There is no config {path}; the shipped ones are in training/configs.") from None
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"The config {path} cannot be read: {error}.") from error
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"The config {path} is not TOML: {error}.") from error
    base = values.pop("base", None)
    if base is None:
        return values
    if not isinstance(base, str):
        raise InputError(f"{path}: base names another config in quotes (given: {base!r}).")
    if path in above:
        raise InputError(f"{path}: base leads back to this config.")
    return _merged(_values(path.parent / base, (*above, path)), values)


def _merged(base: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    merged = dict(base)
    for key, value in changes.items():
        both = isinstance(value, dict) and isinstance(merged.get(key), dict) and key != "encoder"
        merged[key] = _merged(merged[key], value) if both else value
    return merged


def parse_config(values: dict[str, Any], *, source: str) -> Config:
    """The config that nested values spell; `source` names them in errors."""
    try:
        return Config.model_validate(values)
    except ValidationError as error:
        raise InputError(f"{source}: {_sentence(error)}") from error


def _sentence(error: ValidationError) -> str:
    first = error.errors(include_url=False)[0]
    key = ".".join(str(part) for part in first["loc"]) or "the config"
    if first["type"] == "extra_forbidden":
        return f"the key {key} is not known here; remove it or check its spelling."
    if first["type"] == "missing":
        return f"the key {key} is missing."
    message = first["msg"].removeprefix("Value error, ")
    given = f" (given: {first['input']!r})" if isinstance(first["input"], (str, int, float, bool)) else ""
    return f"{key}: {message[0].lower()}{message[1:]}{given}."
