"""A table that upstream has and whose CREATE is before the replica's start stops it, also if it is empty."""

import time
from contextlib import closing
from dataclasses import replace
from threading import Thread

import pytest

from applier.check.shared_facts import SharedFacts
from applier.check.sink import LISTED, examine_sink
from applier.cli.main import run
from applier.config import load_config
from applier.model.errors import NeedsOperator
from applier.model.events import TableName
from applier.model.finding import Severity
from applier.replica.missing_tables import missing_at
from applier.selection import TableFilter, TableSelection
from applier.sinks.registry import open_sink
from applier.sinks.settings import SinkSettings
from applier.sources.binlog.kit import BinlogKit
from applier.sources.binlog.position import BinlogPosition, parse_place
from applier.sources.binlog.settings import BinlogSettings
from tests.rig.binlog_replica import BinlogReplica
from tests.rig.database import Kind
from tests.rig.mysql_oracle import connect
from tests.rig.upstream import NAME

pytestmark = pytest.mark.timeout(120)


@pytest.fixture
def declare(primary, mariadb_sink, tmp_path, capsys):
    """Declare a start; return the exit code, what was printed, and the recorded loader."""
    primary.run("DROP DATABASE IF EXISTS lacking")

    def command(start):
        path = tmp_path / "applier.toml"
        source = f'[source]\nkind = "binlog"\nurl = "{primary.url}"\nstart = "{start}"\ntables = ["lacking.*"]'
        path.write_text(f'name = "{NAME}"\n{source}\n[sink]\nurl = "{mariadb_sink}"\n', encoding="utf-8")
        code, shown = run(["load", "--declared", "--config", str(path)]), capsys.readouterr()
        with open_sink(load_config(path, environment={}).sink_settings()) as sink:
            dump = sink.bookkeeping.loaded_dump.read()
        return code, shown.out + shown.err, "" if dump is None else dump.loader

    yield command
    primary.run("DROP DATABASE IF EXISTS lacking")


def in_sink(url, *statements):
    with closing(connect(url)) as connection, connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)


def test_the_tables_of_a_declared_position_are_compared(primary, mariadb_sink, declare):
    code, shown, loader = declare("now")
    assert (code, loader) == (0, "empty"), shown
    before = primary.place()
    primary.run("CREATE DATABASE lacking", "CREATE TABLE lacking.empty (id INT PRIMARY KEY)")
    created = primary.place()
    code, shown, _ = declare("now")
    assert (code, "lacking.empty" in shown) == (6, True), shown
    # Rows of later change no table.
    primary.run("INSERT INTO lacking.empty VALUES (1)")
    assert declare(created)[0] == 6
    # The table is of later.
    code, shown, loader = declare(before)
    assert (code, loader) == (0, "declared"), shown
    in_sink(mariadb_sink, "CREATE DATABASE lacking", "CREATE TABLE lacking.empty (id INT PRIMARY KEY)")
    code, shown, loader = declare("now")
    assert (code, loader, "all 1 table" in shown) == (0, "declared", True), shown


@pytest.fixture
def lacking(primary, mariadb_sink):
    """Make ``lacking.empty`` upstream, and return a replica that begins behind it; the sink has the schema alone."""
    primary.run("DROP DATABASE IF EXISTS lacking", "CREATE DATABASE lacking", "CREATE TABLE lacking.empty (id INT PRIMARY KEY)")
    in_sink(mariadb_sink, "CREATE DATABASE lacking")
    yield BinlogReplica(mariadb_sink, BinlogSettings(url=primary.url, start=primary.place()), selection=chosen("lacking.*"))
    primary.run("DROP DATABASE IF EXISTS lacking")


def chosen(*rules):
    return TableSelection(TableFilter.parse(list(rules)))


def listed_by_check(primary, sink, *tables):
    """Return what ``applier check`` says about upstream's tables."""
    source = {"kind": "binlog", "url": primary.url, "tables": list(tables)}
    config = load_config(None, {"name": NAME, "source": source, "sink": {"url": sink}}, environment={})
    shared = SharedFacts()
    shared.set_tables(frozenset())
    shared.set_silent_changes({})
    return [finding for finding in examine_sink(config, shared, patience_s=10) if finding.check == LISTED]


def test_a_run_and_a_check_stop_for_an_empty_table_that_no_event_creates(primary, lacking):
    primary.run("CREATE TABLE lacking.later (id INT PRIMARY KEY)", "INSERT INTO lacking.later VALUES (1)")
    with pytest.raises(NeedsOperator, match="1 table that upstream has at this position") as caught:
        lacking.catch_up()
    assert caught.value.facts["tables"] == "lacking.empty"
    (found,) = listed_by_check(primary, lacking.url, "lacking.*")
    assert (found.level, "lacking.empty" in found.detail, found.remedy) == (Severity.ERROR, True, caught.value.remedy)
    # Either way out of the remedy: without the table, or with it.
    excluding = replace(lacking, selection=chosen("lacking.*", "!lacking.empty"))
    excluding.catch_up()
    assert listed_by_check(primary, lacking.url, "lacking.*", "!lacking.empty")[0].level is Severity.OK
    in_sink(lacking.url, "CREATE TABLE lacking.empty (id INT PRIMARY KEY)")
    primary.run("INSERT INTO lacking.later VALUES (2)")
    lacking.catch_up()
    assert listed_by_check(primary, lacking.url, "lacking.*")[0].level is Severity.OK


def test_a_daemon_stops_for_it_too(primary, lacking):
    with pytest.raises(NeedsOperator, match="1 table that upstream has at this position"), lacking.following() as ended:
        assert ended.wait(20)


def test_ddls_of_later_hide_only_the_tables_that_they_name(primary, lacking):
    position = place_of(lacking.source.start)
    primary.run("CREATE TABLE lacking.source (id INT PRIMARY KEY)", "INSERT INTO lacking.source VALUES (1)")
    # Its CREATE is inside of a transaction.
    primary.run(
        "CREATE TABLE lacking.copied (id INT PRIMARY KEY) AS SELECT id FROM lacking.source", "CREATE TABLE lacking.old (id INT PRIMARY KEY)"
    )
    primary.run("RENAME TABLE lacking.old TO lacking.new")
    found = lister(primary).listed_at(position)
    assert (list(found.names), found.is_exact, found.is_whole) == ([TableName("lacking", "empty")], False, False)
    in_sink(lacking.url, "CREATE TABLE lacking.empty (id INT PRIMARY KEY)")
    lacking.catch_up()


def lister(primary):
    return BinlogKit(BinlogSettings(url=primary.url)).upstream_tables(chosen("lacking.*"))


def place_of(text):
    _, number, position = parse_place(text)
    return BinlogPosition(0, number, position).number


def test_a_table_whose_create_runs_is_not_missing(primary, lacking):
    in_sink(lacking.url, "CREATE TABLE lacking.empty (id INT PRIMARY KEY)")
    lacking.catch_up()
    # MariaDB shows the table while the statement runs, and logs it at its end.
    creating = Thread(target=primary.run, args=["CREATE TABLE lacking.copied (slept INT PRIMARY KEY) AS SELECT SLEEP(1.5) AS slept"])
    creating.start()
    try:
        while creating.is_alive():
            with open_sink(SinkSettings(url=lacking.url, name=NAME)) as sink:
                assert not missing_at(sink, lister(primary), sink.load().checkpoint_ts)
    finally:
        creating.join()
    lacking.catch_up()


def test_a_drop_that_is_logged_and_not_yet_shown_is_not_missing(primary, lacking):
    in_sink(lacking.url, "CREATE TABLE lacking.empty (id INT PRIMARY KEY)")
    primary.run("CREATE TABLE lacking.other (id INT PRIMARY KEY)")
    lacking.catch_up()
    # MySQL waits for a replica between its binlog and its catalogue.
    word, file = ("master", "") if primary.kind is Kind.MARIADB else ("source", "semisync_source.so")
    setting = f"SET GLOBAL rpl_semi_sync_{word}"
    primary.run(*([f"INSTALL PLUGIN rpl_semi_sync_source SONAME '{file}'"] if file else []))
    try:
        primary.run(f"{setting}_wait_point = 'AFTER_SYNC'", f"{setting}_timeout = 3000", f"{setting}_enabled = 1")
        before = primary.place()
        dropping = Thread(target=primary.run, args=["DROP TABLE lacking.other"])
        dropping.start()
        while primary.place() == before:
            time.sleep(0.02)
        lacking.catch_up()
        assert dropping.is_alive(), "the replica was too slow for this test"
        dropping.join()
    finally:
        primary.run(f"{setting}_enabled = 0", *(["UNINSTALL PLUGIN rpl_semi_sync_source"] if file else []))
