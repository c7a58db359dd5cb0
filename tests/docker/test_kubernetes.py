"""docker/kubernetes/: every object by the schema of its kind, the configuration by the program's own rules, and names that match."""

import json
import re
from itertools import chain
from pathlib import Path

import jsonschema
import kubernetes_validate
import pytest
import yaml

from applier.config import load_config

KUBERNETES = Path(__file__).parents[2] / "docker" / "kubernetes"
SCHEMA_VERSION = "1.33"
POD_MONITOR = json.loads((Path(__file__).parent / "pod_monitor.schema.json").read_text(encoding="utf-8"))
OBJECTS = {
    f"{file.name}-{found['kind']}": found
    for file in sorted(KUBERNETES.glob("*.yaml"))
    for found in yaml.safe_load_all(file.read_text(encoding="utf-8"))
}


def check(found):
    if found["kind"] == "PodMonitor":
        jsonschema.validate(found, POD_MONITOR)
    else:
        kubernetes_validate.validate(found, SCHEMA_VERSION, strict=True)


def of_kind(kind):
    return next(found for found in OBJECTS.values() if found["kind"] == kind)


def pods():
    return [of_kind("Deployment")["spec"]["template"], of_kind("Pod")]


def containers(pod):
    return chain(pod["spec"].get("initContainers", ()), pod["spec"]["containers"])


@pytest.mark.parametrize("name", OBJECTS)
def test_every_object_is_valid_by_the_schema_of_its_kind(name):
    check(OBJECTS[name])


@pytest.mark.parametrize("name", ["deployment.yaml-Deployment", "podmonitor.yaml-PodMonitor"])
def test_a_misspelled_field_is_seen(name):
    misspelled = OBJECTS[name] | {"spec": OBJECTS[name]["spec"] | {"selectr": 1}}
    with pytest.raises((jsonschema.ValidationError, kubernetes_validate.ValidationError)):
        check(misspelled)


def test_the_configuration_is_one_that_the_program_reads(tmp_path, monkeypatch):
    for name, text in of_kind("ConfigMap")["data"].items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    # A Secret's files are not there; the environment comes before the file.
    monkeypatch.setenv("APPLIER_SINK__PASSWORD_FILE", str(KUBERNETES / "secret.yaml"))
    config = load_config(tmp_path / "applier.toml")
    assert config.sink.password_file is not None


def test_there_are_as_many_tasks_as_requested_cores():
    (container,) = of_kind("Deployment")["spec"]["template"]["spec"]["containers"]
    # Without a limit, local[*] would start a task per core of the node, in the memory of a few.
    assert f'master = "local[{container["resources"]["requests"]["cpu"]}]"' in of_kind("ConfigMap")["data"]["applier.toml"]


def test_every_secret_file_of_the_configuration_is_in_the_secret():
    config = of_kind("ConfigMap")["data"]["applier.toml"]
    assert set(re.findall(r"/run/secrets/applier/([\w-]+)", config)) == set(of_kind("Secret")["stringData"])


def test_labels_names_and_ports_match():
    deployment, monitor, service = of_kind("Deployment"), of_kind("PodMonitor"), of_kind("Service")
    labels = deployment["spec"]["template"]["metadata"]["labels"]
    selectors = (deployment["spec"]["selector"]["matchLabels"], monitor["spec"]["selector"]["matchLabels"], service["spec"]["selector"])
    assert all(selector.items() <= labels.items() for selector in selectors)
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    assert {endpoint["port"] for endpoint in monitor["spec"]["podMetricsEndpoints"]} <= {port["name"] for port in container["ports"]}
    for pod in pods():
        volumes = {volume["name"]: volume for volume in pod["spec"]["volumes"]}
        assert volumes["config"]["configMap"]["name"] == of_kind("ConfigMap")["metadata"]["name"]
        assert volumes["secret"]["secret"]["secretName"] == of_kind("Secret")["metadata"]["name"]
        assert all(mount["name"] in volumes for one in containers(pod) for mount in one["volumeMounts"])


def test_no_container_runs_as_root_or_may_become_it():
    for pod in pods():
        assert pod["spec"]["securityContext"]["runAsNonRoot"] is True
        for one in containers(pod):
            assert one["securityContext"]["allowPrivilegeEscalation"] is False
            assert one["securityContext"]["capabilities"]["drop"] == ["ALL"]


def test_the_submit_line_names_the_ports_and_the_template_that_are_there():
    line = (KUBERNETES / "spark_submit.sh").read_text(encoding="utf-8")
    set_to = dict(re.findall(r"--conf ([\w.]+)=(\S+)", line))
    ports = {port["port"] for port in of_kind("Service")["spec"]["ports"]}
    assert {int(set_to["spark.driver.port"]), int(set_to["spark.driver.blockManager.port"])} == ports
    assert set_to["spark.driver.host"] == of_kind("Service")["metadata"]["name"]
    assert (KUBERNETES / Path(set_to["spark.kubernetes.executor.podTemplateFile"]).name).exists()
    assert set_to["spark.kubernetes.executor.podTemplateContainerName"] == of_kind("Pod")["spec"]["containers"][0]["name"]
