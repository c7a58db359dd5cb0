"""What single checks find, without servers."""

import os
import sys
import time

import pytest
from pyspark import SparkConf
from sqlalchemy.exc import OperationalError

from applier.check.everything import examine
from applier.check.machine import (
    disk_findings,
    examine_spark,
    java_finding,
    machine_memory,
    memory_finding,
    python_finding,
    size_of,
    speculation_finding,
)
from applier.check.shared_facts import SharedFacts
from applier.check.sink import lacking_keys
from applier.check.time_zone import zone_findings
from applier.check.topic_events import TopicTail, resolved_findings
from applier.config import load_config
from applier.model.errors import ConfigError, Remedy, SinkError
from applier.model.events import FoldedName, TableName
from applier.model.finding import Severity, of_error, ok
from applier.model.position import Stream, Ts
from applier.mysql.grants import Grants
from applier.planner.ordered_rows import KeyLink
from applier.planner.table_check import Acceptance, DifferenceKind
from applier.run.preflight import stopping
from applier.selection import EVERYTHING
from applier.sinks.kit import SinkDemand
from applier.sinks.mysql import server_check
from applier.sinks.mysql.server_check import BOOKKEEPING, LATER, MIGRATION, _of_schema, server_without_shared_locks, version_finding
from applier.sources.ticdc.tso import TSO_TIMELINE
from applier.spark import session as speculation

GIB = 1024**3
STREAMS = [Stream("cdc", partition) for partition in range(3)]


def config(**source):
    known = {"bootstrap_servers": "127.0.0.1:1", "topics": ["cdc"], **source}
    return load_config(None, {"source": known, "sink": {"url": "sqlite:///x.db"}}, environment={})


def levels(findings):
    return [finding.level for finding in findings]


# --- groups


def test_a_group_that_fails_is_a_finding_and_the_others_go_on():
    def refused():
        yield ok("first", "well")
        raise SinkError("the database refused", remedy=Remedy("test.remedy", "Ask it again"), code=1)

    def broken():
        raise ZeroDivisionError

    found = list(examine({"one": refused, "two": broken, "three": lambda: [ok("last", "well")]}, within_s=10))
    assert [(finding.check, finding.level) for finding in found] == [
        ("first", Severity.OK),
        ("one", Severity.ERROR),
        ("two", Severity.ERROR),
        ("last", Severity.OK),
    ]


def test_a_group_that_takes_too_long_is_not_examined():
    began = time.monotonic()
    (found,) = examine({"slow": lambda: time.sleep(5) or []}, within_s=0.1)
    assert (found.level, found.is_examined, found.detail) == (Severity.ERROR, False, "not examined: no answer in time")
    assert time.monotonic() - began < 3


def test_what_is_not_examined_fails_the_check_and_does_not_keep_a_run_from_its_start():
    def broken():
        raise ZeroDivisionError

    found = list(examine({"slow": lambda: time.sleep(5) or [], "broken": broken}, within_s=0.2))
    assert levels(found) == [Severity.ERROR] * 2
    assert all(finding.detail.startswith("not examined: ") for finding in found)
    assert stopping(found) == []


def test_a_group_that_waits_in_vain_for_another_one_is_not_examined():
    def waiting():
        yield ok("first", "well")
        yield ok("tables", str(SharedFacts().tables(0)))

    def asking():
        yield ok("positions", str(SharedFacts().progress(0)))

    found = list(examine({"sink": waiting, "Kafka": asking}, within_s=10))
    assert [(finding.check, finding.detail) for finding in found] == [
        ("first", "well"),
        ("sink", "not examined: the tables of upstream are not known"),
        ("Kafka", "not examined: the positions of the replica are not known"),
    ]


def test_a_finding_of_an_error_has_its_facts_and_its_remedy():
    finding = of_error("sink", SinkError("the database refused", remedy=Remedy("test.remedy", "Ask it again"), code=1, table=None))
    assert finding.as_object() == {"check": "sink", "level": "error", "detail": "the database refused (code=1)", "remedy": "Ask it again"}


# --- machine


@pytest.mark.parametrize(
    ("text", "size"), [("1g", GIB), ("512m", GIB // 2), ("1024", GIB), ("2GB", 2 * GIB), ("1 tb", 1024 * GIB), ("x", None)]
)
def test_a_size_is_read_as_spark_writes_it(text, size):
    assert size_of(text) == size


@pytest.mark.parametrize(
    ("heap", "machine", "level"),
    [
        ("1g", 4 * GIB, Severity.OK),
        ("1g", 3 * GIB // 2, Severity.WARNING),
        ("8g", 4 * GIB, Severity.WARNING),
        ("much", GIB, Severity.ERROR),
        ("1g", None, Severity.WARNING),
    ],
)
def test_the_heap_is_compared_with_the_machine(heap, machine, level):
    assert memory_finding(heap, machine, is_local=True, cores=2).level is level


def test_a_cluster_has_its_workers_elsewhere():
    assert memory_finding("1g", 2 * GIB, is_local=False, cores=64).level is Severity.OK


def test_the_limit_of_a_container_counts(tmp_path):
    (tmp_path / "memory.max").write_text("1048576\n")
    (tmp_path / "none").write_text("max\n")
    assert machine_memory([tmp_path / "memory.max", tmp_path / "none", tmp_path / "absent"]) == 1048576


def test_one_usable_directory_is_enough_for_spark(tmp_path):
    (tmp_path / "file").touch()
    assert levels(disk_findings([tmp_path / "file", tmp_path / "made" / "later"], needed=1)) == [Severity.WARNING, Severity.OK]
    assert levels(disk_findings([tmp_path / "file"], needed=1)) == [Severity.ERROR]


def test_little_disk_is_a_warning(tmp_path):
    assert levels(disk_findings([tmp_path], needed=10**18)) == [Severity.WARNING]


# --- Spark


def test_java_is_found_where_spark_env_names_it(tmp_path):
    for version, level in (("1.8.0_202", Severity.ERROR), ("17.0.1", Severity.OK)):
        java = tmp_path / version / "bin" / "java"
        java.parent.mkdir(parents=True)
        java.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n")
        java.chmod(0o755)
        (tmp_path / "spark-env.sh").write_text(f"JAVA_HOME={tmp_path / version}\n")
        environment = {**os.environ, "SPARK_CONF_DIR": str(tmp_path), "JAVA_HOME": "/nowhere"}
        assert java_finding(environment).level is level


def test_a_java_that_is_killed_while_it_is_asked_is_no_missing_java(tmp_path):
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text("#!/bin/sh\nkill -9 $$\n")
    java.chmod(0o755)
    found = java_finding({**os.environ, "JAVA_HOME": str(tmp_path)})
    assert (found.level, found.detail) == (Severity.WARNING, "its version is not known: signal 9 ended it")


def test_a_missing_java_is_an_error():
    assert java_finding({**os.environ, "JAVA_HOME": "/nowhere"}).level is Severity.ERROR


@pytest.mark.parametrize(("value", "level"), [("true", Severity.ERROR), (" True", Severity.ERROR), ("false", Severity.OK)])
def test_copies_of_tasks_that_write_rows_ahead_are_refused(value, level):
    spark = {"conf": {"spark.speculation": value}}
    source = {"bootstrap_servers": "127.0.0.1:1", "topics": ["cdc"], "dispatcher": "table"}
    given = {"source": source, "spark": spark, "sink": {"url": "sqlite:///x.db", "consistency": "row"}}
    found = {finding.check: finding for finding in examine_spark(load_config(None, given, environment={}))}
    assert found["Spark: speculation"].level is level
    given["sink"]["consistency"] = "transaction"
    assert "Spark: speculation" not in {finding.check for finding in examine_spark(load_config(None, given, environment={}))}
    # The remedy: without it.
    assert speculation_finding({}).level is Severity.OK


class Speculating:
    """A Spark whose spark-defaults.conf has switched speculation on."""

    def getConf(self):  # noqa: N802 - PySpark's name
        return SparkConf(loadDefaults=False, _jvm=None).set("spark.speculation", "true")


def test_a_spark_that_has_started_with_copies_of_tasks_is_ended(monkeypatch):
    ended = []
    monkeypatch.setattr(speculation, "end_context", ended.append)
    context = Speculating()
    with pytest.raises(ConfigError, match="repeats tasks"):
        speculation.refuse_started_speculation(context)
    assert ended == [context]


@pytest.mark.parametrize(
    ("version", "variables", "name"),
    [
        ("8.0.11-TiDB-v8.5.0", {}, "TiDB"),
        ("10.11.8-MariaDB", {"wsrep_on": "on", "wsrep_provider": "/usr/lib/galera/libgalera_smm.so"}, "a Galera cluster"),
        ("8.0.36-28.1", {"wsrep_on": "on", "wsrep_provider": "/usr/lib64/galera4/libgalera_smm.so"}, "a Galera cluster"),
        ("10.11.8-MariaDB", {"wsrep_on": "off", "wsrep_provider": "none"}, None),
        ("10.11.8-MariaDB", {"wsrep_on": "on", "wsrep_provider": "none"}, None),
        ("9.7.0", {}, None),
    ],
)
def test_servers_whose_shared_locks_do_not_hold_are_known_by_name(version, variables, name):
    assert server_without_shared_locks(version, variables) == name


def test_another_python_is_named_before_spark_starts():
    finding = python_finding({"spark.pyspark.python": "/no/python"})
    assert finding.level is Severity.ERROR
    assert "python=/no/python" in finding.detail
    assert "PYSPARK_PYTHON" in finding.remedy
    assert python_finding({"spark.pyspark.python": sys.executable}).level is Severity.OK


# --- events


@pytest.mark.parametrize(("fresh", "level"), [((0, 1, 2), Severity.OK), ((), Severity.WARNING), ((0, 1), Severity.ERROR)])
def test_a_partition_that_never_resolves_is_an_error_while_others_do(fresh, level):
    tail = TopicTail(EVERYTHING, TSO_TIMELINE, resolved={STREAMS[2]: Ts(1_700_000_000_000 << 18)})
    found = list(resolved_findings(STREAMS, frozenset(STREAMS[p] for p in fresh), tail, 1.0))
    assert levels(found) == [level]
    if level is Severity.ERROR:
        assert "cdc/2 (last 2023-11-14" in found[0].detail


HOURS_8 = [28800.5, 28799.0, 28803.0, 12.0 * 3600 * 30]


def test_times_of_another_zone_are_a_warning():
    assert levels(zone_findings(config(), HOURS_8)) == [Severity.WARNING]
    assert "UTC+08:00" in zone_findings(config(), HOURS_8)[0].detail


@pytest.mark.parametrize("zone", ["+08:00", "Asia/Singapore"])
def test_times_of_the_configured_zone_are_right(zone):
    assert zone_findings(config(time_zone=zone), HOURS_8)[-1].level is Severity.OK


def test_few_rows_or_odd_times_say_nothing_of_the_zone():
    assert levels(zone_findings(config(time_zone="Etc/UTC"), [28800.0, 28800.0, 400.0, -400.0, 500.0])) == [Severity.OK]


# --- server


@pytest.mark.parametrize(
    ("version", "level"),
    [
        ("10.11.19-MariaDB-0+deb12u1", Severity.OK),
        ("9.7.0", Severity.OK),
        ("8.4.2", Severity.OK),
        ("5.7.44-log", Severity.WARNING),
        ("10.3.1-MariaDB", Severity.WARNING),
        ("8.0.11-TiDB-v8.5.0", Severity.WARNING),
    ],
)
def test_the_version_of_a_server_is_judged(version, level):
    assert version_finding(version).level is level


class ZonelessServer:
    """A server without zone tables: it knows offsets alone."""

    def execute(self, statement, values):
        if not values["zone"].startswith(("+", "-")):
            raise OperationalError(str(statement), values, Exception(1298))

    def rollback(self):
        pass


def test_a_server_without_zone_tables_knows_the_zone_as_an_offset():
    found = server_check._zone(ZonelessServer(), "Asia/Singapore")
    assert found.level is Severity.ERROR
    assert "give source.time_zone as an offset" in found.remedy
    assert server_check._zone(ZonelessServer(), "+08:00").level is Severity.OK


@pytest.mark.parametrize(
    "grant",
    ["GRANT SELECT,INSERT ON shop.* TO 'a'@'%'", "GRANT SELECT,INSERT ON `shop`.* TO 'a'@'%'", "GRANT INSERT ON shop.orders TO 'a'@'%'"],
)
def test_grants_are_read_as_tidb_writes_them(grant):
    assert Grants([grant]).allows("INSERT", TableName("shop", "orders"))
    assert not Grants([grant]).allows("DELETE", TableName("shop", "orders"))


@pytest.mark.parametrize(
    ("grants", "level"),
    [
        (["GRANT SELECT, INSERT, UPDATE, DELETE ON `applier`.`progress` TO `u`@`%`"], Severity.WARNING),
        (["GRANT SELECT ON `applier`.`progress` TO `u`@`%`"], Severity.ERROR),
        (["GRANT ALL PRIVILEGES ON *.* TO `u`@`%`", "REVOKE INSERT ON `applier`.* FROM `u`@`%`"], Severity.ERROR),
        (["GRANT ALL PRIVILEGES ON `other`.`progress` TO `u`@`%`"], Severity.ERROR),
    ],
)
def test_privileges_that_were_granted_table_by_table_refuse_no_replica_that_runs(grants, level):
    assert _of_schema(Grants(grants), "u@%", "applier", BOOKKEEPING, LATER).level is level


def test_a_new_replica_needs_only_the_privileges_that_make_its_bookkeeping():
    grants = ["GRANT SELECT, INSERT, UPDATE, DELETE, CREATE, ALTER, INDEX ON `applier`.* TO `u`@`%`"]
    assert _of_schema(Grants(grants), "u@%", "applier", (*BOOKKEEPING, *MIGRATION), LATER).level is Severity.WARNING


class ServerOfAnybody:
    """Its sessions are of the user u."""

    def execute(self, _query):
        return self

    def scalar_one(self):
        return "u@%"


@pytest.mark.parametrize(("updates_rows", "missing"), [(True, ["GRANT UPDATE ON `shop`.* TO 'u'@'%'"]), (False, [])])
def test_update_is_missed_only_where_foreign_keys_may_have_rows_updated(updates_rows, missing):
    rows = "SELECT, INSERT, DELETE, CREATE, ALTER, INDEX, DROP, REFERENCES, CREATE VIEW, SHOW VIEW, TRIGGER"
    grants = Grants(
        [f"GRANT {rows} ON `shop`.* TO `u`@`%`", "GRANT ALL PRIVILEGES ON `applier`.* TO `u`@`%`", "GRANT PROCESS ON *.* TO `u`@`%`"]
    )
    demand = SinkDemand(is_new=False, updates_rows=updates_rows, schemas=lambda: ["shop"])
    found = [one for one in server_check._privileges(ServerOfAnybody(), grants, "applier", demand) if one.level is not Severity.OK]
    assert [(one.level, one.remedy) for one in found] == [(Severity.WARNING, remedy) for remedy in missing]
    assert all("rows of tables with ON DELETE CASCADE" in one.detail for one in found)


def test_a_key_that_the_sink_lacks_is_named():
    child, parent = FoldedName("shop", "child"), FoldedName("shop", "parent")
    key = KeyLink("of", child, parent, "CASCADE", "RESTRICT")
    changes = {child: str(key), parent: str(key)}
    assert list(lacking_keys([key], changes, Acceptance())) == []
    assert list(lacking_keys([], changes, Acceptance({"shop.*": (DifferenceKind.FOREIGN_KEY,)}))) == []
    (found,) = lacking_keys([key._replace(on_delete="RESTRICT")], changes, Acceptance())
    assert (found.level, found.detail) == (Severity.WARNING, f"the sink lacks {key}")
    (found,) = lacking_keys(None, changes, Acceptance())
    assert (found.level, found.detail) == (Severity.ERROR, f"the sink does not execute {key}")
