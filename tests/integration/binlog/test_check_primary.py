"""``applier check`` examines the server whose binlog is followed, and its remedies are the statements to run."""

import pytest
from sqlalchemy import make_url

from applier.check.primary import examine_primary
from applier.check.shared_facts import SharedFacts
from applier.config import load_config
from applier.model.finding import Severity
from applier.model.position import Ts
from applier.sinks.registry import open_sink
from applier.sources.binlog.settings import BinlogSettings
from tests.rig.binlog_replica import BinlogReplica
from tests.rig.database import Kind
from tests.rig.upstream import NAME

READER, PASSWORD, WRONG = "binlog_reader", "secret", "wrong"


def findings(url, **source):
    config = load_config(
        None,
        {"source": {"kind": "binlog", "url": url, **source}, "sink": {"url": "sqlite:///r.db"}, "spark": {"master": "local[2]"}},
        environment={},
    )
    return list(examine_primary(config, config.source_settings(), SharedFacts(), patience_s=10, is_whole=False))


def problems(found):
    return [(one.check, one.level, one.remedy) for one in found if one.level is not Severity.OK]


@pytest.fixture
def reader(primary):
    """URL of a user without privileges."""
    primary.run(f"DROP USER IF EXISTS {READER}", f"CREATE USER {READER} IDENTIFIED BY '{PASSWORD}'")
    yield make_url(primary.url).set(username=READER, password=PASSWORD).render_as_string(hide_password=False)
    primary.run(f"DROP USER {READER}")


def test_a_user_gets_the_privileges_of_the_remedy(primary, reader):
    ((check, level, remedy),) = problems(findings(reader))
    assert (check, level) == ("primary: privileges", Severity.ERROR)
    primary.run(remedy)
    assert problems(findings(reader)) == []


def test_a_user_who_cannot_see_foreign_keys_is_told(primary, reader):
    primary.run(
        "CREATE DATABASE IF NOT EXISTS seen",
        "CREATE TABLE IF NOT EXISTS seen.orders (id INT PRIMARY KEY)",
        f"GRANT REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO {READER}",
        f"GRANT SELECT ON seen.* TO {READER}",
    )
    ((check, level, remedy),) = problems(findings(reader, tables=["seen.*"]))
    assert (check, level) == ("primary: privileges", Severity.ERROR)
    assert remedy == f"GRANT REFERENCES ON *.* TO '{READER}'@'%'"
    primary.run(f"GRANT REFERENCES ON seen.* TO {READER}")
    assert problems(findings(reader, tables=["seen.*"])) == []


def test_server_ids_that_another_replica_has_or_that_are_too_few_are_told(primary):
    (few,) = problems(findings(primary.url, server_ids="430000000-430000001"))
    assert few[:2] == ("primary: server ids", Severity.WARNING)
    assert problems(findings(primary.url, server_ids=few[2].split('"')[1])) == []


def test_a_server_that_does_not_answer_and_a_wrong_password_are_told(primary, reader):
    nowhere = make_url(primary.url).set(port=1)
    wrong = make_url(reader).set(password=WRONG)
    for url, words in ((nowhere, "does not answer"), (wrong, "refuses the user")):
        (found,) = findings(url.render_as_string(hide_password=False))
        assert words in found.detail
        assert WRONG not in found.detail


def test_a_log_that_is_kept_for_hours_only_is_a_warning(primary):
    kept = primary.ask("SELECT @@GLOBAL.binlog_expire_logs_seconds")[0][0]
    try:
        primary.run("SET GLOBAL binlog_expire_logs_seconds = 3600")
        ((check, level, remedy),) = problems(findings(primary.url))
        assert (check, level) == ("primary: retention", Severity.WARNING)
        primary.run(remedy.partition(",")[0])
        assert problems(findings(primary.url)) == []
    finally:
        primary.run(f"SET GLOBAL binlog_expire_logs_seconds = {kept}")


def whole(primary, sink, **source):
    """Return what is found of the primary beside a replica's own progress and tables."""
    configured = {"kind": "binlog", "url": primary.url, "start": "now", **source}
    config = load_config(None, {"name": NAME, "source": configured, "sink": {"url": sink}, "spark": {"master": "local[2]"}}, environment={})
    shared = SharedFacts()
    with open_sink(config.sink_settings()) as opened:
        shared.set_progress(opened.bookkeeping.overview().progress)
    return {one.check: one for one in examine_primary(config, config.source_settings(), shared, patience_s=10)}


def test_a_place_that_is_purged_and_foreign_keys_with_actions_are_told_before_a_run_meets_them(primary, sqlite_sink):
    replica = BinlogReplica(sqlite_sink, BinlogSettings(url=primary.url, start=primary.place()))
    primary.run("CREATE DATABASE checked", "CREATE TABLE checked.parents (id INT PRIMARY KEY)")
    replica.catch_up()
    assert "holds what the replica reads next" in whole(primary, sqlite_sink)["primary: position"].detail
    key = "FOREIGN KEY (parent) REFERENCES parents (id) ON DELETE CASCADE"
    primary.run(f"CREATE TABLE checked.children (id INT PRIMARY KEY, parent INT, {key})")
    found = whole(primary, sqlite_sink)["primary: foreign keys"]
    # MySQL writes what the actions do since 9.6.
    assert (found.level is Severity.ERROR) == (primary.kind is Kind.MARIADB)
    primary.purge()
    gone = whole(primary, sqlite_sink)["primary: position"]
    assert gone.level is Severity.ERROR
    assert "purged" in gone.detail


def test_a_declared_set_of_gtids_is_examined_as_a_run_finds_it(primary, sqlite_sink):
    primary.run("CREATE DATABASE declared_set")
    config = load_config(
        None, {"source": {"kind": "binlog", "url": primary.url, "start": "now"}, "sink": {"url": sqlite_sink}}, environment={}
    )
    shared = SharedFacts(start_ts=Ts((999_999 << 32) + 4), declared=f"gtid:{primary.gtid()}")
    shared.set_progress(None)
    found = {one.check: one for one in examine_primary(config, config.source_settings(), shared, patience_s=10)}
    assert found["primary: position"].level is Severity.OK
