"""The Helm chart: valid by Kubernetes' own schemas, and true of the service that its pods run."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from functools import cache
from typing import Any

import httpx
import jsonschema
import kubernetes_validate
import pytest
import yaml

import gramvec
from benchmarks.readme import newest_groups
from conftest import ROOT
from gramvec.server.settings import Settings, environment_variable
from support.http import RunningServer

pytestmark = pytest.mark.slow

CHART = ROOT / "deploy" / "helm" / "gramvec"
VARIANTS = {"cpu": [], "monitored": ["values-monitored.yaml"], "gpu": ["values-gpu.yaml"]}
# The oldest version that knows preStop's sleep without a feature gate, and the newest that the validator knows.
VERSIONS = ("1.30", kubernetes_validate.latest_version())
# Its schema is the Prometheus operator's.
FOREIGN = {"ServiceMonitor"}
ALL_OPTIONS = {"keysSecret": "mine", "nodeSelector": {"a": "b"}, "image": {"pullSecrets": [{"name": "registry"}]}}
Values = dict[str, Any]

# What people set, each rendered and validated: one case a kind of cluster or habit.
CASES: dict[str, Values] = {
    "nothing": {},
    "openshift": {"podSecurityContext": {"runAsUser": None, "runAsGroup": None}},
    "own contexts": {
        "podSecurityContext": {"fsGroup": 2000, "supplementalGroups": [3000]},
        "securityContext": {"runAsUser": 1000, "seccompProfile": {"type": "Localhost", "localhostProfile": "a.json"}},
    },
    "own models": {
        "settings": {"GRAMVEC_MODEL": "/data/mine", "GRAMVEC_INDEX": "tickets=/data/tickets.gvi"},
        "extraVolumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "models"}}],
        "extraVolumeMounts": [{"name": "data", "mountPath": "/data", "readOnly": True}],
    },
    "keys and volumes": {
        "keysSecret": "mine",
        "extraVolumes": [{"name": "a", "emptyDir": {}}, {"name": "b", "emptyDir": {"medium": "Memory"}}],
        "extraVolumeMounts": [{"name": "a", "mountPath": "/a"}, {"name": "b", "mountPath": "/b"}],
        "extraEnv": [{"name": "OTEL_SERVICE_NAME", "value": "x"},
                     {"name": "TOKEN", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}],
    },
    "https": {
        "settings": {"GRAMVEC_TLS_CERTIFICATE": "/tls/tls.crt", "GRAMVEC_TLS_KEY": "/tls/tls.key"},
        "extraVolumes": [{"name": "tls", "secret": {"secretName": "tls"}}],
        "extraVolumeMounts": [{"name": "tls", "mountPath": "/tls"}],
        "serviceMonitor": {"enabled": True, "tlsConfig": {"insecureSkipVerify": True}},
    },
    "clients' certificates": {
        "settings": {"GRAMVEC_TLS_CERTIFICATE": "/tls/tls.crt", "GRAMVEC_TLS_CLIENT_CA": "/tls/ca.crt"},
    },
    "labels and annotations": {
        "commonLabels": {"team": "search"}, "podLabels": {"sidecar.istio.io/inject": "false"},
        "podAnnotations": {"prometheus.io/scrape": "true"}, "service": {"annotations": {"a.b/c": "d", "e": "1"}},
    },
    "placing": {
        "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
            {"matchExpressions": [{"key": "arch", "operator": "In", "values": ["amd64"]}]}]}}},
        "tolerations": [{"key": "spot", "operator": "Exists"}], "nodeSelector": {"pool": "cpu"},
        "priorityClassName": "high",
    },
    "ingress": {"ingress": {
        "enabled": True, "className": "nginx", "annotations": {"nginx.ingress.kubernetes.io/proxy-body-size": "8m"},
        "hosts": [{"host": "e.example.com", "paths": [{"path": "/"}, {"path": "/v1", "pathType": "Exact"}]},
                  {"host": "*.example.org", "paths": [{"path": "/"}]}],
        "tls": [{"secretName": "tls", "hosts": ["e.example.com"]}]}},
    "image by digest": {"image": {"digest": f"sha256:{0:064}", "pullPolicy": "Always", "pullSecrets": [{"name": "r"}]}},
    "monitored with a key": {"serviceMonitor": {
        "enabled": True, "labels": {"release": "kube-prometheus-stack"},
        "authorization": {"credentials": {"name": "gramvec-keys", "key": "metrics"}}}},
    "no hook": {"lifecycle": None},
}  # fmt: skip


def merged(base: Values, over: Values) -> Values:
    """Merge values as Helm does: maps by their keys, null removes a key, everything else replaced."""
    made = dict(base)
    for key, value in over.items():
        if value is None:
            made.pop(key, None)
            continue
        both = isinstance(value, dict) and isinstance(base.get(key), dict)
        made[key] = merged(base[key], value) if both else value
    return made


def values(*more: Values | str) -> Values:
    made = yaml.safe_load((CHART / "values.yaml").read_text())
    for one in more:
        made = merged(made, yaml.safe_load((CHART / one).read_text()) if isinstance(one, str) else one)
    return made


def rendered(*more: Values | str, name: str = "gramvec") -> dict[str, Values]:
    """Return the chart's documents by kind, from helm or from Go's templates, which are Helm's."""
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    printed = printed_by_go(json.dumps({"Values": values(*more), "Release": {"Name": name}, "Chart": chart}))
    found = [document for document in yaml.safe_load_all(printed) if document]
    by_kind = {document["kind"]: document for document in found}
    assert len(by_kind) == len(found)
    return by_kind


@cache
def printed_by_go(given: str) -> str:
    if shutil.which("helm") is not None:
        parsed = json.loads(given)
        command = ["helm", "template", parsed["Release"]["Name"], str(CHART), "--values", "-"]
        given = json.dumps(parsed["Values"])
    elif shutil.which("go") is not None:
        command = ["go", "run", str(ROOT / "tests" / "deploy" / "helm_render.go"), str(CHART)]
    else:
        pytest.skip("neither helm nor go is installed")
    done = subprocess.run(command, input=given, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def pod(objects: dict[str, Values]) -> tuple[Values, Values]:
    """Return the pods' spec and their one container."""
    spec = objects["Deployment"]["spec"]["template"]["spec"]
    (container,) = spec["containers"]
    return spec, container


@pytest.mark.parametrize("variant", VARIANTS)
def test_every_object_is_valid(variant: str) -> None:
    objects = rendered(*VARIANTS[variant], ALL_OPTIONS)
    kinds = {"ConfigMap", "Deployment", "PodDisruptionBudget", "Service"}
    kinds |= {"cpu": {"HorizontalPodAutoscaler"}, "gpu": set[str]()}.get(
        variant, {"HorizontalPodAutoscaler", "NetworkPolicy", "ServiceMonitor"}
    )
    assert objects.keys() == kinds
    for version in VERSIONS:
        for kind, document in objects.items():
            if kind not in FOREIGN:
                kubernetes_validate.validate(document, version, strict=True)


@pytest.mark.parametrize("case", CASES)
def test_what_people_set_is_valid(case: str) -> None:
    schema = json.loads((CHART / "values.schema.json").read_text())
    jsonschema.validate(values(CASES[case]), schema)
    objects = rendered(CASES[case])
    for version in VERSIONS:
        for kind, document in objects.items():
            if kind not in FOREIGN:
                kubernetes_validate.validate(document, version, strict=True)


def test_what_people_set_is_there() -> None:
    spec, _ = pod(rendered(CASES["openshift"]))
    assert spec["securityContext"] == {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
    spec, container = pod(rendered(CASES["keys and volumes"]))
    assert [volume["name"] for volume in spec["volumes"]] == ["keys", "a", "b"]
    assert [mount["mountPath"] for mount in container["volumeMounts"]] == ["/etc/gramvec", "/a", "/b"]
    assert [one["name"] for one in container["env"]] == ["GRAMVEC_API_KEY_FILE", "OTEL_SERVICE_NAME", "TOKEN"]
    objects = rendered(CASES["https"])
    _, container = pod(objects)
    for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
        assert container[probe]["httpGet"]["scheme"] == "HTTPS"
        assert pod(rendered(CASES["clients' certificates"]))[1][probe]["tcpSocket"] == {"port": "http"}
    assert objects["ServiceMonitor"]["spec"]["endpoints"][0]["scheme"] == "https"
    objects = rendered(CASES["labels and annotations"])
    assert all(one["metadata"]["labels"]["team"] == "search" for one in objects.values())
    assert objects["Service"]["spec"]["selector"] == {"app.kubernetes.io/name": "gramvec"}
    assert objects["Deployment"]["spec"]["template"]["metadata"]["annotations"]["prometheus.io/scrape"] == "true"
    _, container = pod(rendered(CASES["image by digest"]))
    assert container["image"] == "gramvec@sha256:" + "0" * 64
    assert container["imagePullPolicy"] == "Always"
    (rule, other) = rendered(CASES["ingress"])["Ingress"]["spec"]["rules"]
    assert [path["pathType"] for path in rule["http"]["paths"]] == ["Prefix", "Exact"]
    assert other["host"] == "*.example.org"
    monitor = rendered(CASES["monitored with a key"])["ServiceMonitor"]
    assert monitor["metadata"]["labels"]["release"] == "kube-prometheus-stack"
    assert monitor["spec"]["endpoints"][0]["authorization"] == {
        "credentials": {"name": "gramvec-keys", "key": "metrics"}
    }
    assert "lifecycle" not in pod(rendered(CASES["no hook"]))[1]


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_variant_is_what_its_name_says(variant: str) -> None:
    objects = rendered(*VARIANTS[variant])
    spec, container = pod(objects)
    gpu = variant == "gpu"
    assert container["image"] == ("gramvec:gpu" if gpu else "gramvec:cpu")
    # A fixed number of replicas and an autoscaler would take turns.
    assert ("replicas" in objects["Deployment"]["spec"]) == gpu
    assert ("nvidia.com/gpu" in container["resources"]["limits"]) == gpu
    settings = objects["ConfigMap"]["data"]
    assert settings.get("GRAMVEC_DEVICE") == ("cuda" if gpu else None)
    assert set(settings) <= {environment_variable(name) for name in Settings.model_fields}
    sleep = container["lifecycle"]["preStop"]["sleep"]["seconds"]
    grace = float(settings["GRAMVEC_GRACEFUL_SHUTDOWN_SECONDS"])
    assert spec["terminationGracePeriodSeconds"] >= sleep + grace + 5


def test_the_pods_may_only_serve() -> None:
    spec, container = pod(rendered())
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


def test_the_probes_ask_for_paths_and_the_port_that_the_service_has() -> None:
    _, container = pod(rendered())
    (port,) = container["ports"]
    assert port["containerPort"] == Settings().port
    probes = {name: container[f"{name}Probe"]["httpGet"] for name in ("startup", "readiness", "liveness")}
    assert {name: one["path"] for name, one in probes.items()} == {
        "startup": "/ready", "readiness": "/ready", "liveness": "/health",
    }  # fmt: skip
    assert {one["port"] for one in probes.values()} == {port["name"]}


def test_the_pods_have_the_memory_that_was_measured() -> None:
    groups, _ = newest_groups()
    rows = groups["memory"]["rows"]
    measured = next(row["rss_mb"] for row in rows if row["name"] == "gramvec serve, native: 1 worker") * 1e6
    resources = pod(rendered())[1]["resources"]
    request, limit = (int(resources[kind]["memory"].removesuffix("Mi")) * 2**20 for kind in ("requests", "limits"))
    assert measured < request < limit
    assert limit >= measured + 200e6


def test_the_queue_metric_is_made_of_one_that_the_service_exposes(plain_server: RunningServer) -> None:
    rules = yaml.safe_load((CHART.parent / "prometheus-adapter.yaml").read_text())
    (rule,) = rules["rules"]["custom"]
    series = rule["name"]["matches"].strip("^$")
    httpx.post(f"{plain_server.url}/embed", json={"inputs": "a"}).raise_for_status()
    assert f"\n{series}" in httpx.get(f"{plain_server.url}/metrics").text
    assert rule["seriesQuery"].startswith(series + "{")
    metrics = rendered("values-monitored.yaml")["HorizontalPodAutoscaler"]["spec"]["metrics"]
    assert [one["pods"]["metric"]["name"] for one in metrics if one["type"] == "Pods"] == [rule["name"]["as"]]


def test_two_releases_do_not_select_each_others_pods() -> None:
    for name in ("one", "other"):
        objects = rendered("values-monitored.yaml", name=name)
        assert {document["metadata"]["name"] for document in objects.values()} == {name, f"{name}-settings"}
        labels = objects["Deployment"]["spec"]["template"]["metadata"]["labels"]
        assert labels == objects["Service"]["spec"]["selector"] == {"app.kubernetes.io/name": name}
        assert objects["Deployment"]["spec"]["selector"]["matchLabels"] == labels
        assert objects["PodDisruptionBudget"]["spec"]["selector"]["matchLabels"] == labels
        assert objects["NetworkPolicy"]["spec"]["podSelector"]["matchLabels"] == labels
        assert objects["HorizontalPodAutoscaler"]["spec"]["scaleTargetRef"]["name"] == name


def test_keys_are_read_from_a_mounted_secret() -> None:
    spec, container = pod(rendered(ALL_OPTIONS))
    (key_file,) = container["env"]
    assert key_file["name"] == environment_variable("api_key_file")
    (mount,) = container["volumeMounts"]
    assert key_file["value"].startswith(mount["mountPath"] + "/")
    assert spec["volumes"] == [{"name": mount["name"], "secret": {"secretName": "mine"}}]


def test_another_setting_rolls_the_pods_over_and_is_text() -> None:
    def checksum(objects: dict[str, Values]) -> Any:
        return objects["Deployment"]["spec"]["template"]["metadata"]["annotations"]["checksum/settings"]

    after = rendered({"settings": {"GRAMVEC_WORKERS": "2", "GRAMVEC_MODEL": 'a"b'}})
    assert checksum(rendered()) != checksum(after)
    assert after["ConfigMap"]["data"]["GRAMVEC_WORKERS"] == "2"
    assert after["ConfigMap"]["data"]["GRAMVEC_MODEL"] == 'a"b'


def test_the_chart_has_our_version() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert (chart["version"], chart["appVersion"]) == (gramvec.__version__, gramvec.__version__)


def test_templates_ask_for_values_that_exist() -> None:
    templates = "".join(template.read_text() for template in (CHART / "templates").iterdir())
    asked = set(re.findall(r"\.Values\.([\w.]+)", templates))
    # Settings are as they are named; the chart has a default for two of them only.
    asked -= {f"settings.GRAMVEC_{name}" for name in ("TLS_CERTIFICATE", "TLS_CLIENT_CA")}
    for path in asked:
        found = values()
        for part in path.split("."):
            assert part in found, path
            found = found[part]
    assert {path.partition(".")[0] for path in asked} == set(values())


@pytest.mark.parametrize(
    "wrong",
    [
        {"replica": 3},
        {"settings": {"model": "sif"}},
        {"settings": {"GRAMVEC_PORT": 1}},
        {"autoscaling": {"max": 3}},
        {"replicas": "two"},
        {"settings": {"GRAMVEC_API_KEY": "a key in a ConfigMap"}},
        {"extraEnv": [{"name": "GRAMVEC_API_KEY", "value": "a key in a Deployment"}]},
    ],
)
def test_the_schema_of_values_refuses_misspellings(wrong: Values) -> None:
    schema = json.loads((CHART / "values.schema.json").read_text())
    jsonschema.Draft7Validator.check_schema(schema)
    for more in VARIANTS.values():
        jsonschema.validate(values(*more), schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(values(wrong), schema)
