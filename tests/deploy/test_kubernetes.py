"""The manifests of deploy/kubernetes: valid by Kubernetes' own schemas, and true of the service that they run."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import kubernetes_validate
import orjson
import pytest
import yaml

from benchmarks import capacity
from benchmarks.capacity import Capacity
from conftest import ROOT
from container_support import ENGINE, IMAGE, engine
from gramvec.server.routes import exposition
from gramvec.server.settings.settings import Settings, environment_variable
from http_support import PATIENCE, until

KUBERNETES = ROOT / "deploy" / "kubernetes"
OVERLAYS = sorted(path.name for path in (KUBERNETES / "overlays").iterdir())
# The oldest that knows preStop's sleep without a feature gate, and the newest that the validator knows.
VERSIONS = ("1.30", kubernetes_validate.latest_version())
# Their schemas are not Kubernetes' own.
FOREIGN = {"Kustomization", "Component", "ServiceMonitor"}
LABELS = {"app.kubernetes.io/name": "gramvec"}
WHOLE = ("base", "components/autoscale-cpu", "components/autoscale-queue", "components/network-policy")


def documents(path: Path) -> list[dict[str, Any]]:
    return [document for document in yaml.safe_load_all(path.read_text()) if document]


def written() -> Iterator[tuple[Path, dict[str, Any]]]:
    """Every whole object as it stands in the files."""
    for folder in WHOLE:
        for path in sorted((KUBERNETES / folder).glob("*.yaml")):
            for document in documents(path):
                if document.get("kind", "Component") not in FOREIGN and "apiVersion" in document:
                    yield path, document


def one(name: str, *folders: str) -> dict[str, Any]:
    (found,) = documents(KUBERNETES.joinpath(*folders) / f"{name}.yaml")
    return found


@pytest.fixture(scope="module")
def rendered() -> dict[str, list[dict[str, Any]]]:
    """What `kubectl kustomize` makes of each overlay."""
    if shutil.which("kubectl") is None:
        pytest.skip("kubectl is not here")
    made = {}
    for overlay in OVERLAYS:
        command = ["kubectl", "kustomize", str(KUBERNETES / "overlays" / overlay)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        made[overlay] = list(yaml.safe_load_all(done.stdout))
    return made


def test_a_part_is_added_by_an_overlay_of_ones_own(tmp_path: Path) -> None:
    if shutil.which("kubectl") is None:
        pytest.skip("kubectl is not here")
    parts = [os.path.relpath(KUBERNETES / "components" / name, tmp_path) for name in ("api-keys", "network-policy")]
    mine = {"resources": [os.path.relpath(KUBERNETES / "base", tmp_path)], "components": parts}
    (tmp_path / "kustomization.yaml").write_text(yaml.safe_dump(mine))
    command = ["kubectl", "kustomize", str(tmp_path)]
    objects = list(yaml.safe_load_all(subprocess.run(command, capture_output=True, text=True, check=True).stdout))
    for document in objects:
        kubernetes_validate.validate(document, VERSIONS[0], strict=True)
    spec, container = pod(of_kind(objects, "Deployment"))
    assert {"name": environment_variable("api_key_file"), "value": "/etc/gramvec/keys.txt"} in container["env"]
    assert [mount["name"] for mount in container["volumeMounts"]] == [volume["name"] for volume in spec["volumes"]]


def of_kind(objects: list[dict[str, Any]], kind: str) -> dict[str, Any]:
    (found,) = (one for one in objects if one["kind"] == kind)
    return found


def pod(deployment: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Its pods' spec, and the one container in it."""
    spec = deployment["spec"]["template"]["spec"]
    (container,) = spec["containers"]
    return spec, container


@pytest.mark.parametrize("version", VERSIONS)
def test_every_object_is_valid(version: str) -> None:
    found = list(written())
    assert {document["kind"] for _, document in found} == {
        "Deployment", "Service", "PodDisruptionBudget", "HorizontalPodAutoscaler", "NetworkPolicy",
    }  # fmt: skip
    for _, document in found:
        kubernetes_validate.validate(document, version, strict=True)


@pytest.mark.parametrize("version", VERSIONS)
def test_every_overlay_is_valid(version: str, rendered: dict[str, list[dict[str, Any]]]) -> None:
    for objects in rendered.values():
        for document in objects:
            if document["kind"] not in FOREIGN:
                kubernetes_validate.validate(document, version, strict=True)


def test_a_misspelt_field_would_be_found() -> None:
    deployment = one("deployment", "base")
    deployment["spec"]["template"]["spec"]["containers"][0]["readinesProbe"] = {}
    with pytest.raises(kubernetes_validate.ValidationError, match="readinesProbe"):
        kubernetes_validate.validate(deployment, VERSIONS[0], strict=True)


def test_the_overlays_have_what_their_names_say(rendered: dict[str, list[dict[str, Any]]]) -> None:
    always = {"ConfigMap", "Deployment", "PodDisruptionBudget", "Service"}
    scaled = always | {"HorizontalPodAutoscaler"}
    assert {name: {one["kind"] for one in objects} for name, objects in rendered.items()} == {
        "cpu": scaled, "gpu": always, "monitored": scaled | {"NetworkPolicy", "ServiceMonitor"},
    }  # fmt: skip
    for name, objects in rendered.items():
        deployment = of_kind(objects, "Deployment")
        spec, container = pod(deployment)
        assert container["image"] == ("gramvec:gpu" if name == "gpu" else "gramvec:cpu")
        # An autoscaler and a number here would take turns.
        assert ("replicas" in deployment["spec"]) == (name == "gpu")
        assert ("nvidia.com/gpu" in container["resources"]["limits"]) == (name == "gpu")
        settings = of_kind(objects, "ConfigMap")
        assert container["envFrom"] == [{"configMapRef": {"name": settings["metadata"]["name"]}}]
        assert settings["data"].get("GRAMVEC_DEVICE") == ("cuda" if name == "gpu" else None)
        assert set(settings["data"]) <= {environment_variable(name) for name in Settings.model_fields}
        grace = float(settings["data"]["GRAMVEC_GRACEFUL_SHUTDOWN_SECONDS"])
        sleep = container["lifecycle"]["preStop"]["sleep"]["seconds"]
        assert spec["terminationGracePeriodSeconds"] >= sleep + grace + 5


def test_everything_selects_the_same_pods() -> None:
    deployment, service = one("deployment", "base"), one("service", "base")
    assert deployment["spec"]["selector"]["matchLabels"] == LABELS
    assert deployment["spec"]["template"]["metadata"]["labels"] == LABELS
    assert service["spec"]["selector"] == LABELS
    assert one("disruption-budget", "base")["spec"]["selector"]["matchLabels"] == LABELS
    assert one("network-policy", "components", "network-policy")["spec"]["podSelector"]["matchLabels"] == LABELS
    monitor = one("service-monitor", "components", "service-monitor")["spec"]
    assert monitor["selector"]["matchLabels"].items() <= service["metadata"]["labels"].items()
    (endpoint,) = monitor["endpoints"]
    assert endpoint["port"] in {port["name"] for port in service["spec"]["ports"]}
    for component in ("autoscale-cpu", "autoscale-queue"):
        target = one("autoscaler", "components", component)["spec"]["scaleTargetRef"]
        assert (target["kind"], target["name"]) == ("Deployment", deployment["metadata"]["name"])


def test_the_pods_have_the_memory_that_was_measured() -> None:
    measured = Capacity(orjson.loads(capacity.RESULTS.read_bytes())).memory(1) * 1e6
    resources = pod(one("deployment", "base"))[1]["resources"]
    request, limit = (int(resources[kind]["memory"].removesuffix("Mi")) * 2**20 for kind in ("requests", "limits"))
    assert measured < request < limit
    # docs/scaling.md: 200 MB above what an idle one has.
    assert limit >= measured + 200e6


def test_the_pods_may_do_nothing_but_serve() -> None:
    spec, container = pod(one("deployment", "base"))
    assert spec["securityContext"]["runAsNonRoot"]
    assert spec["securityContext"]["runAsUser"] == 65532
    assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert not spec["automountServiceAccountToken"]
    # A Service named gramvec would set GRAMVEC_PORT to tcp://..., and the service would not start.
    assert spec["enableServiceLinks"] is False
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }


def test_the_probes_ask_what_there_is_at_the_port_that_is_listened_on() -> None:
    _, container = pod(one("deployment", "base"))
    (port,) = container["ports"]
    assert port["containerPort"] == Settings().port
    paths = {name: container[f"{name}Probe"]["httpGet"]["path"] for name in ("startup", "readiness", "liveness")}
    assert paths == {"startup": "/ready", "readiness": "/ready", "liveness": "/health"}
    assert {container[f"{name}Probe"]["httpGet"]["port"] for name in paths} == {port["name"]}


def test_the_queue_metric_is_made_of_one_that_we_expose() -> None:
    (rule,) = one("prometheus-adapter", "components", "autoscale-queue")["rules"]["custom"]
    series = rule["name"]["matches"].strip("^$")
    histograms = {family.name for family in exposition.HISTOGRAMS.values()}
    assert series.removesuffix("_sum") in histograms
    assert rule["seriesQuery"].startswith(series + "{")
    metrics = one("autoscaler", "components", "autoscale-queue")["spec"]["metrics"]
    assert [metric["pods"]["metric"]["name"] for metric in metrics if metric["type"] == "Pods"] == [rule["name"]["as"]]
    assert [metric["resource"]["name"] for metric in metrics if metric["type"] == "Resource"] == ["cpu"]


@pytest.mark.skipif(
    not ENGINE.endswith("podman"), reason="make image-test builds the image; podman can run a pod's manifest"
)
def test_a_pod_of_the_manifest_serves(rendered: dict[str, list[dict[str, Any]]], tmp_path: Path) -> None:
    objects = [one for one in rendered["cpu"] if one["kind"] in ("ConfigMap", "Deployment")]
    deployment = of_kind(objects, "Deployment")
    name = deployment["metadata"]["name"] = f"gramvec-test-{os.getpid()}"
    _, container = pod(deployment)
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    container |= {"image": IMAGE, "imagePullPolicy": "Never"}
    container["ports"][0] |= {"hostPort": port, "hostIP": "127.0.0.1"}
    for kind in ("startup", "readiness", "liveness"):
        container[f"{kind}Probe"]["httpGet"]["port"] = container["ports"][0]["containerPort"]  # podman knows no names
    manifest = tmp_path / "pod.yaml"
    manifest.write_text(yaml.safe_dump_all(objects))
    running = f"{name}-pod-0-gramvec"
    engine("play", "kube", str(manifest))
    try:
        until(lambda: is_ready(port))
        found = httpx.post(f"http://127.0.0.1:{port}/embed", json={"inputs": "vehicals"}, timeout=PATIENCE)
        assert len(found.json()[0]) == 300
        status = engine("exec", running, "cat", "/proc/1/status")
        for line in ("Uid:\t65532", "CapEff:\t0000000000000000", "NoNewPrivs:\t1", "Seccomp:\t2"):
            assert line in status
        assert engine("exec", running, "sh", "-c", "touch /x 2>/dev/null || echo refused") == "refused"
        engine("stop", running)
        assert engine("inspect", running, "--format", "{{.State.ExitCode}}") == "0"
    finally:
        engine("pod", "rm", "--force", f"{name}-pod-0")


def is_ready(port: int) -> bool:
    try:
        return httpx.get(f"http://127.0.0.1:{port}/ready", timeout=PATIENCE).status_code == 200
    except httpx.TransportError:
        return False
