"""The chart of deploy/helm renders what deploy/kubernetes holds: by helm or by Go's templates, whichever is here."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import jsonschema
import kubernetes_validate
import pytest
import yaml

import gramvec
from conftest import ROOT
from gramvec.server.settings.settings import Settings, environment_variable

CHART = ROOT / "deploy" / "helm" / "gramvec"
OVERLAYS = ROOT / "deploy" / "kubernetes" / "overlays"
# An overlay, and the values that make the chart it.
SAME = {"cpu": [], "monitored": ["values-monitored.yaml"], "gpu": ["values-gpu.yaml"]}
FOREIGN = {"ServiceMonitor"}
VERSIONS = ("1.30", kubernetes_validate.latest_version())
Values = dict[str, Any]


def merged(base: Values, over: Values) -> Values:
    """As Helm merges values: maps by their keys, all else replaced."""
    made = dict(base)
    for key, value in over.items():
        both = isinstance(value, dict) and isinstance(base.get(key), dict)
        made[key] = merged(base[key], value) if both else value
    return made


def values(*more: Values | str) -> Values:
    made = yaml.safe_load((CHART / "values.yaml").read_text())
    for one in more:
        made = merged(made, yaml.safe_load((CHART / one).read_text()) if isinstance(one, str) else one)
    return made


def rendered(tmp_path: Path, *more: Values | str, name: str = "gramvec") -> dict[str, Values]:
    """The documents by their kind."""
    chosen = values(*more)
    if shutil.which("helm") is not None:
        path = tmp_path / "values.yaml"
        path.write_text(yaml.safe_dump(chosen))
        command = ["helm", "template", name, str(CHART), "--values", str(path)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    elif shutil.which("go") is not None:
        given = {
            "Values": chosen,
            "Release": {"Name": name},
            "Chart": yaml.safe_load((CHART / "Chart.yaml").read_text()),
        }
        command = ["go", "run", str(ROOT / "tests" / "deploy" / "helm_render.go"), str(CHART)]
        done = subprocess.run(command, input=json.dumps(given), capture_output=True, text=True, check=False)
    else:
        pytest.skip("neither helm nor go is here")
    assert done.returncode == 0, done.stderr
    found = [document for document in yaml.safe_load_all(done.stdout) if document]
    by_kind = {document["kind"]: document for document in found}
    assert len(by_kind) == len(found)
    return by_kind


def overlay(name: str) -> dict[str, Values]:
    if shutil.which("kubectl") is None:
        pytest.skip("kubectl is not here")
    command = ["kubectl", "kustomize", str(OVERLAYS / name)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return {document["kind"]: document for document in yaml.safe_load_all(done.stdout)}


def container(objects: dict[str, Values]) -> Values:
    (found,) = objects["Deployment"]["spec"]["template"]["spec"]["containers"]
    assert isinstance(found, dict)
    return found


@pytest.mark.parametrize("name", SAME)
def test_it_is_the_overlay(tmp_path: Path, name: str) -> None:
    ours, theirs = rendered(tmp_path, *SAME[name]), overlay(name)
    # A change of the settings rolls the pods over by a checksum here, there by a hash in the name.
    annotations = ours["Deployment"]["spec"]["template"]["metadata"].pop("annotations")
    assert annotations.keys() == {"checksum/settings"}
    hashed = theirs["ConfigMap"]["metadata"]["name"]
    assert hashed.startswith("gramvec-settings-")
    theirs["ConfigMap"]["metadata"]["name"] = "gramvec-settings"
    (reference,) = container(theirs)["envFrom"]
    assert reference["configMapRef"]["name"] == hashed
    reference["configMapRef"]["name"] = "gramvec-settings"
    assert ours == theirs


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", SAME)
def test_every_object_is_valid(tmp_path: Path, name: str, version: str) -> None:
    more = {"keysSecret": "mine", "nodeSelector": {"a": "b"}, "image": {"pullSecrets": [{"name": "registry"}]}}
    for kind, document in rendered(tmp_path, *SAME[name], more).items():
        if kind not in FOREIGN:
            kubernetes_validate.validate(document, version, strict=True)


def test_keys_are_those_of_the_part(tmp_path: Path) -> None:
    objects = rendered(tmp_path, {"keysSecret": "gramvec-keys"})
    (part,) = yaml.safe_load_all((ROOT / "deploy/kubernetes/components/api-keys/keys.yaml").read_text())
    spec = part["spec"]["template"]["spec"]
    assert objects["Deployment"]["spec"]["template"]["spec"]["volumes"] == spec["volumes"]
    for key in ("env", "volumeMounts"):
        assert container(objects)[key] == spec["containers"][0][key]


def test_two_releases_do_not_select_each_others_pods(tmp_path: Path) -> None:
    one, other = (rendered(tmp_path, "values-monitored.yaml", name=name) for name in ("one", "other"))
    for objects, name in ((one, "one"), (other, "other")):
        assert {document["metadata"]["name"] for document in objects.values()} == {name, f"{name}-settings"}
        labels = objects["Deployment"]["spec"]["template"]["metadata"]["labels"]
        assert labels == objects["Service"]["spec"]["selector"] == {"app.kubernetes.io/name": name}
        assert objects["HorizontalPodAutoscaler"]["spec"]["scaleTargetRef"]["name"] == name


def test_another_setting_rolls_the_pods_over_and_is_text(tmp_path: Path) -> None:
    def checksum(objects: dict[str, Values]) -> Any:
        return objects["Deployment"]["spec"]["template"]["metadata"]["annotations"]["checksum/settings"]

    before, after = (
        rendered(tmp_path),
        rendered(tmp_path, {"settings": {"GRAMVEC_WORKERS": "2", "GRAMVEC_MODEL": 'a"b'}}),
    )
    assert checksum(before) != checksum(after)
    assert after["ConfigMap"]["data"]["GRAMVEC_WORKERS"] == "2"
    assert after["ConfigMap"]["data"]["GRAMVEC_MODEL"] == 'a"b'


# Without helm or go


def test_the_chart_has_our_version_and_its_settings_are_ours() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert (chart["version"], chart["appVersion"]) == (gramvec.__version__, gramvec.__version__)
    for more in SAME.values():
        assert set(values(*more)["settings"]) <= {environment_variable(name) for name in Settings.model_fields}


def test_templates_ask_for_values_that_there_are() -> None:
    there = values()
    asked = {
        path
        for template in (CHART / "templates").iterdir()
        for path in re.findall(r"\.Values\.([\w.]+)", template.read_text())
    }
    for path in asked:
        found = there
        for part in path.split("."):
            assert part in found, path
            found = found[part]
    assert {path.partition(".")[0] for path in asked} == set(there)


def test_values_have_a_schema_that_knows_misspellings() -> None:
    schema = json.loads((CHART / "values.schema.json").read_text())
    jsonschema.Draft7Validator.check_schema(schema)
    assert set(schema["properties"]) == {*values(), "global"}
    for more in SAME.values():
        jsonschema.validate(values(*more), schema)
    for wrong in (
        {"replica": 3},
        {"settings": {"model": "sif"}},
        {"settings": {"GRAMVEC_PORT": 1}},
        {"autoscaling": {"max": 3}},
        {"replicas": "two"},
    ):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(values(wrong), schema)
