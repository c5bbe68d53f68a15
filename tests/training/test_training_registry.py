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


def distilled(**settings: Any) -> dict[str, Any]:
    """The sections of distillation in the place of training's."""
    distillation = {"teacher": "t", "steps": 1, **settings}
    return {"training": None, "distillation": distillation, "texts": [{"path": "x"}], "data": []}


@pytest.mark.parametrize(
    ("sections", "message"),
    [
        ({"encoder": {"kind": "gru"}}, "encoder: .*'gru'.* bag, char-cnn, dan"),
        ({"encoder": {}}, "encoder: .*None"),
        ({"encoder": "lstm"}, "encoder: .*None"),
        ({"encoder": {"kind": "dan", "deep": 1}}, "encoder: .* deep "),
        ({"model": {"name": "m", "kind": "none"}}, "model.kind: .*'none'.* charagram"),
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
    with pytest.raises(InputError, match="objective: .*'triplet'.* margin"):
        config(objective={"kind": "triplet"})
    with pytest.raises(InputError, match=r'objective "margin" belongs to \[training\]'):
        config(objective={"kind": "margin"}, **distilled())
    with pytest.raises(InputError, match=r'objective "teacher" belongs to \[distillation\]'):
        config(objective={"kind": "teacher"})


def test_an_objective_of_distillation_fits_its_section() -> None:
    words = {"spelling": {"words": "w"}}
    assert config(objective={"kind": "teacher"}, **distilled()).objective is not None
    assert config(objective={"kind": "spelling"}, **distilled(**words)).objective is not None
    with pytest.raises(InputError, match=r'"spelling" needs \[distillation.spelling\]'):
        config(objective={"kind": "spelling"}, **distilled())
    with pytest.raises(InputError, match=r'\[distillation.spelling\] belongs to objective "spelling"'):
        config(objective={"kind": "teacher"}, **distilled(**words))


def test_two_classes_of_one_kind_are_refused() -> None:
    class OtherSettings(EncoderSettings):
        kind: Literal["dan"] = "dan"

    registry: Registry[EncoderSettings] = Registry("encoder", "gramvec_training.encoders")
    registry.register(OtherSettings)(object)
    with pytest.raises(ValueError, match="two classes for the encoder 'dan'"):
        registry.register(OtherSettings)(object)
    with pytest.raises(ValueError, match="two systems of kind 'dan'"):
        register_system("dan", "Another.", ())
    assert ENCODERS.find_class(ENCODERS.parse({"kind": "dan"})).__name__ == "Average"
    assert find_system("sif").paper_config == "sif-paper"
