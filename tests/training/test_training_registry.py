from __future__ import annotations

from typing import Any, Literal

import pytest

from gramvec.errors import InputError
from gramvec_training.config import Config, parse_config
from gramvec_training.registry import Registry
from gramvec_training.sections import ENCODERS, EncoderSettings
from gramvec_training.systems import find_system, register_system


def config(**sections: Any) -> Config:
    values = {"model": {"name": "m", "kind": "dan"}, "training": {"steps": 1}, "data": [{"path": "x"}], **sections}
    return parse_config(values, source="test")


@pytest.mark.parametrize(
    ("sections", "message"),
    [
        ({"encoder": {"kind": "gru"}}, "encoder: there is no encoder of kind 'gru'; there are bag, char-cnn, dan"),
        ({"encoder": {}}, "encoder: there is no encoder of kind None"),
        ({"encoder": "lstm"}, "encoder: there is no encoder of kind None"),
        ({"encoder": {"kind": "dan", "deep": 1}}, "encoder: the key deep is not known here"),
        ({"model": {"name": "m", "kind": "none"}}, "model.kind: there is no kind of model 'none'; there are charagram"),
    ],
    ids=str,
)
def test_a_section_names_what_is_wrong_with_it(sections: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        config(**sections)


def test_a_config_is_read_again_from_its_record() -> None:
    written = config(encoder={"kind": "dan", "layers": 2})
    values = written.model_dump(mode="json")
    assert values["encoder"] == {"kind": "dan", "layers": 2, "activation": "tanh"}
    assert Config.model_validate(values) == written


def test_an_objective_belongs_to_training_and_has_its_own_numbers() -> None:
    assert "objective" not in config().model_dump()
    written = config(objective={"kind": "margin"})
    assert Config.model_validate(written.model_dump(mode="json")) == written
    with pytest.raises(InputError, match="there is no objective of kind 'triplet'; there are margin"):
        config(objective={"kind": "triplet"})
    sections = {"training": None, "distillation": {"teacher": "t", "steps": 1}, "texts": [{"path": "x"}], "data": []}
    with pytest.raises(InputError, match=r"\[objective\] belongs to \[training\]"):
        config(objective={"kind": "margin"}, **sections)


def test_two_classes_of_one_kind_are_refused() -> None:
    class OtherSettings(EncoderSettings):
        kind: Literal["dan"] = "dan"

    registry: Registry[EncoderSettings] = Registry("encoder", "gramvec_training.encoders")
    registry.register(OtherSettings)(object)
    with pytest.raises(ValueError, match="two classes for the encoder 'dan'"):
        registry.register(OtherSettings)(object)
    with pytest.raises(ValueError, match="two systems of kind 'dan'"):
        register_system("dan", "Another.", ())
    assert ENCODERS.class_of(ENCODERS.parse({"kind": "dan"})).__name__ == "Average"
    assert find_system("sif").paper_config == "sif-paper"
