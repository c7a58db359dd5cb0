"""Nobody but a source's folder and the registry knows it: what the rest needs of a source it asks the kit."""

import ast
from pathlib import Path

import pytest

from applier.config import load_config
from applier.model.errors import ConfigError
from applier.model.position import Ts
from applier.sources.factory import kit_of
from applier.sources.kit import AskedRecords

ROOT = Path(__file__).parents[3]
KINDS = ("binlog", "kafka")
FORMATS = ("canal_json", "claim_check", "open_protocol", "simple", "ticdc")
"""What reads the records of topics."""
REGISTRY = {"sources/factory.py", "sources/formats.py", "sources/changefeed.py"}

SECTIONS = "a section of the configuration is checked when it is read, by the rules of its source"
EXCEPTIONS = {
    "config/source.py": "the registry of the sections",
    "config/load.py": "names the keys of the other section",
    "config/draft.py": "writes sections for `applier init`",
    "config/binlog_source.py": SECTIONS,
    "config/kafka_source.py": SECTIONS,
    "config/selection.py": SECTIONS,
    "cli/init.py": "asks for the kind, and writes its section",
    "check/primary.py": "the checks of a primary",
    "check/kafka.py": "the checks of topics",
    "dataframe/__init__.py": "the registry of the formats",
    "dataframe/options.py": "the options of both formats",
}
"""Modules above the sources that belong to one of them, or list them; each with its reason."""


def modules():
    for path in sorted((ROOT / "applier").rglob("*.py")):
        name = path.relative_to(ROOT / "applier").as_posix()
        if not name.startswith(("demo/", *(f"sources/{kind}/" for kind in (*KINDS, *FORMATS)))) and name not in {*REGISTRY, *EXCEPTIONS}:
            yield name, ast.parse(path.read_text(encoding="utf-8"))


def imported(tree):
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


MODULES = list(modules())


def test_nobody_else_imports_the_binlog():
    assert [name for name, tree in MODULES if any(one.startswith("applier.sources.binlog") for one in imported(tree))] == []


def test_nobody_else_compares_the_name_of_a_kind_or_of_its_stream():
    found = []
    for name, tree in MODULES:
        for node in ast.walk(tree):
            if isinstance(node, ast.Compare):
                compared = [one for part in (node.left, *node.comparators) for one in ast.walk(part)]
                if any(isinstance(one, ast.Constant) and one.value in KINDS for one in compared) or any(
                    isinstance(one, ast.Name) and one.id in {"STREAM", "BINLOG", "KAFKA"} for one in compared
                ):
                    found.append(f"{name}:{node.lineno}")
    assert found == []


def test_nobody_else_asks_for_the_class_of_a_source_or_of_its_settings():
    found = []
    for name, tree in MODULES:
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "isinstance":
                asked = {one.id for one in ast.walk(node.args[1]) if isinstance(one, ast.Name)}
                if any(one.startswith(("Binlog", "Kafka")) for one in asked):
                    found.append(f"{name}:{node.lineno}")
    assert found == []


def test_each_exception_is_one():
    for name in EXCEPTIONS:
        text = (ROOT / "applier" / name).read_text(encoding="utf-8")
        assert any(f"applier.sources.{one}" in text or f'"{one}"' in text or one.upper() in text for one in (*KINDS, *FORMATS)), name


BINLOG = {"kind": "binlog", "url": "mysql+pymysql://applier@127.0.0.1:1/", "start": "now"}
TOPICS = {"bootstrap_servers": "127.0.0.1:1", "topics": ["feed"]}


def kit(source):
    return kit_of(load_config(None, {"source": source, "sink": {"url": "sqlite:///unused.db"}}, environment={}).source_settings())


@pytest.mark.parametrize(("source", "text", "number"), [(BINLOG, "b.000001:4", (1 << 32) + 4), (TOPICS, "458173202432000001", None)])
def test_a_kit_reads_what_its_timeline_writes(source, text, number):
    found = kit(source).ts(text, None)
    assert found == (number or int(text))
    assert kit(source).ts(str(found), None) == found


def test_a_kit_refuses_the_positions_of_another_kind():
    with pytest.raises(ConfigError, match="the source is Kafka"):
        kit(TOPICS).ts("b.000001:4", None)
    with pytest.raises(ConfigError, match="the source is Kafka"):
        kit(TOPICS).record_position("b.000001:4", None, None)
    with pytest.raises(ConfigError, match="--ts is for topics"):
        kit(BINLOG).records(AskedRecords(ts=Ts(458173202432000001)))
    with pytest.raises(ConfigError, match="--start-ts is for topics"):
        kit(BINLOG).refuse_start_ts(Ts(458173202432000001))
