"""The dashboard and the alerts of docker/: they ask for metrics that the run has, with labels that these have."""

import json
import re
from pathlib import Path

import pytest
from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families

from applier.telemetry.metric import DURATION, DURATION_LABELS, registry_of
from tests.builders.run_state import STATE

DOCKER = Path(__file__).parents[2] / "docker"
DASHBOARD = json.loads((DOCKER / "grafana" / "dashboards" / "applier.json").read_text(encoding="utf-8"))
RUNBOOK = (DOCKER.parent / "docs" / "runbook.md").read_text(encoding="utf-8")
METRICS = (DOCKER.parent / "docs" / "metrics.md").read_text(encoding="utf-8")
ALERTS = (DOCKER / "prometheus" / "alerts.yml").read_text(encoding="utf-8")
METRIC = re.compile(r"\b(applier_[a-z_]+|process_[a-z_]+)\b(?!\()")
OF_THE_PROCESS = {"process_resident_memory_bytes"}
RARE = {"applier_stalled_seconds"}
"""Absent while nothing is stalled, as in the builder's state."""
NEEDED_ALERTS = {
    "ApplierWatermarkLags",
    "ApplierStreamStalled",
    "ApplierQuarantineNotEmpty",
    "ApplierFenced",
    "ApplierFailing",
    "ApplierPaused",
    "ApplierRetriesGoOn",
    "ApplierStopped",
}


def panels():
    return [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]


def exported():
    text = generate_latest(registry_of(lambda: STATE)).decode()
    found = {sample.name: set(sample.labels) for family in text_string_to_metric_families(text) for sample in family.samples}
    return found | {f"{DURATION}_bucket": {*DURATION_LABELS, "le"}}


def queries():
    return [target["expr"] for panel in panels() for target in panel["targets"]]


@pytest.mark.parametrize("query", [*queries(), *re.findall(r"expr: (.*)", ALERTS)])
def test_every_query_asks_for_metrics_that_the_run_has(query):
    asked = set(METRIC.findall(query)) - OF_THE_PROCESS
    assert asked <= exported().keys() | RARE
    assert asked or "process_" in query or query.startswith("up{")


@pytest.mark.parametrize("panel", panels(), ids=lambda panel: panel["title"])
def test_every_label_of_a_legend_is_one_of_its_metric(panel):
    for target in panel["targets"]:
        known = set().union(*(exported().get(name, set()) for name in METRIC.findall(target["expr"])))
        assert set(re.findall(r"{{(\w+)}}", target["legendFormat"])) <= known


def test_the_panels_cover_the_dashboard_without_overlap():
    taken = [(x, y) for panel in DASHBOARD["panels"] for x, y in cells(panel["gridPos"])]
    assert len(taken) == len(set(taken))
    assert {panel["id"] for panel in DASHBOARD["panels"]} == set(range(1, len(DASHBOARD["panels"]) + 1))


def cells(place):
    return ((place["x"] + x, place["y"] + y) for x in range(place["w"]) for y in range(place["h"]))


def test_every_variable_of_a_query_is_declared():
    declared = {variable["name"] for variable in DASHBOARD["templating"]["list"]} | {"__rate_interval"}
    assert set(re.findall(r"\$\{?(\w+)", json.dumps(DASHBOARD))) <= declared


def test_every_condition_that_needs_a_person_has_an_alert():
    assert set(re.findall(r"alert: (\w+)", ALERTS)) == NEEDED_ALERTS


def test_every_alert_names_its_section_of_the_runbook():
    alerts = re.findall(r"alert: (\w+)", ALERTS)
    assert re.findall(r"runbook: docs/runbook\.md#(\w+)", ALERTS) == [alert.casefold() for alert in alerts]
    assert set(alerts) <= set(re.findall(r"^### (\w+)$", RUNBOOK, re.MULTILINE))


def test_the_document_of_the_metrics_lists_the_alerts():
    rows = re.findall(r"^\| `(Applier\w+)` \|", METRICS, re.MULTILINE)
    assert rows == re.findall(r"alert: (\w+)", ALERTS)
