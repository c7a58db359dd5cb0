"""What a primary may do to its replica: crash, rotate, purge, be cut off, be replaced. Nothing is lost, or the run says what is missing."""

import time
from contextlib import closing

import pytest
from sqlalchemy import make_url

from applier.demo.simulator.history import History, HistoryOptions
from applier.model.errors import NeedsOperator
from applier.model.events import TableName
from applier.sinks.registry import open_sink
from applier.sinks.settings import SinkSettings
from applier.sources.binlog import reader, xa_keeper
from applier.sources.binlog.position import BinlogPosition
from applier.sources.binlog.settings import BinlogSettings
from applier.sources.binlog.state import SourceState
from applier.sources.binlog.xa_rows import XaRows
from tests.integration.tcp_proxy import proxy_to
from tests.rig.binlog_replica import BinlogReplica
from tests.rig.database import Kind
from tests.rig.mysql_oracle import connect, read_facts
from tests.rig.oltp import MONEY, TABLES, TOTAL, oltp_load
from tests.rig.oracle import read_facts as read_sink
from tests.rig.primary import own_primary
from tests.rig.primary_comparison import differences_from, execute_history, tables_of
from tests.rig.totals import watching_totals
from tests.rig.upstream import NAME, clear_sink

pytestmark = pytest.mark.timeout(300)
HISTORY = History(14, HistoryOptions(transactions=30))
LOAD_TABLES = {table.name: table for table in TABLES}
CAUGHT_UP_S = 60
APART_S = 3


def replica_of(primary, url, **more):
    return BinlogReplica(url, BinlogSettings(url=primary.url, start=primary.place(), unreachable_after_s=5, **more))


def wait_for_replica(primary, replica, tables=LOAD_TABLES):
    """Wait until a daemon has applied everything that a quiet primary holds; return what differs if it does not get there."""
    give_up = time.monotonic() + CAUGHT_UP_S
    while wrong := differences_from(primary, replica.url, tables):
        if time.monotonic() > give_up:
            return wrong
        time.sleep(0.2)
    return []


def wait_for_place(primary, replica):
    """Wait until everything is applied that a quiet primary has logged."""
    give_up = time.monotonic() + CAUGHT_UP_S
    while True:
        state = SourceState.parse(replica.progress().source_state)
        if BinlogPosition.of(state.position).text(state.base_name) == primary.place() and state.server == identity_of(primary):
            return
        assert time.monotonic() < give_up, f"the replica is at {state}"
        time.sleep(0.2)


def identity_of(primary):
    ((text,),) = primary.ask("SELECT @@server_id" if primary.kind is Kind.MARIADB else "SELECT @@server_uuid")
    return str(text)


@pytest.fixture(scope="module")
def own(database_kind):
    """A primary of this module's own: it may be killed."""
    with own_primary(database_kind) as server:
        yield server


@pytest.fixture
def mortal(own):
    own.clear()
    return own


def test_a_daemon_follows_a_primary_that_crashes_under_load_and_rotates(mortal, sqlite_sink):
    replica = replica_of(mortal, sqlite_sink)
    with replica.following(), watching_totals(sqlite_sink, MONEY) as (money,):
        with oltp_load(mortal) as load:
            time.sleep(1)
            mortal.database.crash()
            mortal.rotate()
            time.sleep(1)
            mortal.database.restart()
            before = load.committed
            time.sleep(1)
        assert load.committed > before
        assert wait_for_replica(mortal, replica) == []
    assert money.torn(TOTAL) == []


def test_a_log_that_is_reset_under_a_daemon_stops_it_and_is_said_to_be_that(mortal, sqlite_sink):
    replica = replica_of(mortal, sqlite_sink)
    mortal.run("CREATE DATABASE reset_log", "CREATE TABLE reset_log.t (id INT PRIMARY KEY)", "INSERT INTO reset_log.t VALUES (1)")
    replica.catch_up()
    with pytest.raises(NeedsOperator, match=r"was reset|is not the one that was followed") as stopped:
        reset_under(mortal, replica)
    assert "Create the replica again from a dump" in stopped.value.remedy
    assert not {"topic", "partition"} & stopped.value.facts.keys()


def test_a_log_that_is_reset_is_known_by_the_time_of_its_file_although_it_is_longer_now(mortal, sqlite_sink):
    reset = "RESET MASTER" if mortal.kind is Kind.MARIADB else "RESET BINARY LOGS AND GTIDS"
    mortal.run("CREATE DATABASE reset_log", reset)
    # Nothing is applied yet: no transaction tells the two logs apart.
    replica = replica_of(mortal, sqlite_sink)
    replica.catch_up()
    time.sleep(1.1)
    mortal.run(reset, "CREATE TABLE reset_log.t (id INT PRIMARY KEY, v TEXT)", "INSERT INTO reset_log.t VALUES (1, REPEAT('x', 5000))")
    with pytest.raises(NeedsOperator, match="is not the one that was followed") as stopped:
        replica.catch_up()
    assert "Create the replica again from a dump" in stopped.value.remedy


def reset_under(primary, replica):
    """Reset the log of a primary while a daemon follows it; raise what ends the daemon."""
    with replica.following() as ended:
        primary.run("RESET MASTER" if primary.kind is Kind.MARIADB else "RESET BINARY LOGS AND GTIDS")
        primary.run("INSERT INTO reset_log.t VALUES (2)")
        assert ended.wait(CAUGHT_UP_S)


def test_files_that_are_gone_stop_the_run_and_are_named(mortal, sqlite_sink):
    replica = replica_of(mortal, sqlite_sink)
    execute_history(mortal, HISTORY)
    replica.catch_up()
    with oltp_load(mortal):
        time.sleep(0.5)
    mortal.purge()
    with pytest.raises(NeedsOperator) as refused:
        replica.catch_up()
    assert refused.value.exit_code == 6
    assert refused.value.facts["missing"]
    assert refused.value.facts["first_file"] == mortal.files()[0]


def test_files_that_were_purged_after_they_were_applied_are_not_missed(mortal, sqlite_sink):
    replica = replica_of(mortal, sqlite_sink)
    execute_history(mortal, HISTORY)
    mortal.rotate()
    replica.catch_up()
    mortal.purge()
    with oltp_load(mortal):
        time.sleep(0.5)
    replica.catch_up()
    assert differences_from(mortal, sqlite_sink, tables_of(HISTORY)) == []


@pytest.fixture(params=["sqlite", "server"])
def any_sink(request, databases, database_kind, tmp_path):
    """URL of a file, and of a server of the primary's kind."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/replica.db"
    url = databases.plain(database_kind).url
    clear_sink(url)
    return url


def prepare(primary, name, ids):
    """Prepare a transaction in a session that ends then."""
    with closing(connect(primary.url)) as connection, connection.cursor() as cursor:
        cursor.execute(f"XA START '{name}'")
        cursor.executemany("INSERT INTO far.t VALUES (%s, %s)", [(number, "ä'\\" * 60) for number in ids])
        cursor.execute(f"XA END '{name}'")
        cursor.execute(f"XA PREPARE '{name}'")


def test_rows_of_a_prepared_transaction_are_applied_although_its_file_was_purged(mortal, any_sink, monkeypatch):
    for module in (reader, xa_keeper):
        monkeypatch.setattr(module, "PREPARED", XaRows(0))
    replica = replica_of(mortal, any_sink)
    mortal.run("CREATE DATABASE far", "CREATE TABLE far.t (id INT PRIMARY KEY, v VARCHAR(200))")
    prepare(mortal, "large", range(5_000))
    prepare(mortal, "undone", range(5_000, 5_010))
    replica.catch_up()
    state = SourceState.parse(replica.progress().source_state)
    assert len(state.prepared) == len(state.kept) == 2
    mortal.purge()
    mortal.run("INSERT INTO far.t VALUES (-1, 'later')")
    replica.catch_up()
    mortal.purge()
    mortal.run("XA COMMIT 'large'", "XA ROLLBACK 'undone'")
    replica.catch_up()
    name = TableName("far", "t")
    with closing(connect(mortal.url)) as connection:
        expected = sorted(map(tuple, read_facts(connection).tables[name].rows))
    assert len(expected) == 5_001
    assert sorted(map(tuple, read_sink(any_sink).tables[name].rows)) == expected
    assert SourceState.parse(replica.progress().source_state).prepared == {}
    # What is settled is deleted by the next run at the latest.
    mortal.run("INSERT INTO far.t VALUES (-2, 'last')")
    replica.catch_up()
    with open_sink(SinkSettings(url=any_sink, name=NAME)) as sink:
        assert dict(sink.bookkeeping.xa.sizes()) == {}


@pytest.mark.usually_on("mariadb", reason="what is lost of a connection is the same on each server")
def test_a_daemon_continues_after_the_network_was_cut_in_the_middle_of_a_load(mortal, sqlite_sink):
    where = make_url(mortal.url)
    replica = replica_of(mortal, sqlite_sink)
    with proxy_to(where.host, where.port) as proxy, oltp_load(mortal):
        port = proxy.port
        replica.moved(where.set(port=port).render_as_string(hide_password=False))
        with replica.following():
            time.sleep(1)
            for _ in range(2):
                proxy.close()
                time.sleep(APART_S)
                with proxy_to(where.host, where.port, own_port=port):
                    time.sleep(2)
            with proxy_to(where.host, where.port, own_port=port):
                time.sleep(1)
                # The load ends with the outer block; what it has written until now must arrive.
                assert replica.progress().checkpoint_ts > 0
    replica.moved(mortal.url)
    replica.catch_up()
    assert differences_from(mortal, sqlite_sink, LOAD_TABLES) == []


def test_another_server_takes_the_place_of_the_primary_and_is_found_by_its_gtids(database_kind, sqlite_sink):
    # Of its own: those of other tests have purged what a second server would need.
    with own_primary(database_kind) as primary, own_primary(database_kind, number=2) as other:
        replica = replica_of(primary, sqlite_sink)
        other.follow(primary)
        execute_history(primary, HISTORY)
        replica.catch_up()
        with oltp_load(primary):
            time.sleep(0.5)
        other.take_over(primary)
        other.run("UPDATE oltp.purses SET balance = balance + 1 WHERE id = 1", "UPDATE oltp.safes SET balance = balance - 1 WHERE id = 1")
        replica.moved(other.url)
        replica.catch_up()
        assert differences_from(other, sqlite_sink, tables_of(HISTORY)) == []


@pytest.mark.on_one_server("mysql", reason="the test before is of both, and this one takes twenty seconds")
def test_a_daemon_goes_on_where_another_server_answers_under_the_same_address(database_kind, sqlite_sink):
    with own_primary(database_kind) as primary, own_primary(database_kind, number=2) as other:
        replica = replica_of(primary, sqlite_sink)
        other.follow(primary)
        first, second = make_url(primary.url), make_url(other.url)
        with proxy_to(first.host, first.port) as proxy:
            port = proxy.port
            replica.moved(first.set(port=port).render_as_string(hide_password=False))
            with replica.following():
                execute_history(primary, HISTORY)
                with oltp_load(primary):
                    time.sleep(1)
                # At once: what the daemon has not applied yet must come from the other server.
                proxy.close()
                other.take_over(primary)
                with proxy_to(second.host, second.port, own_port=port):
                    other.run("UPDATE oltp.purses SET balance = balance + 1 WHERE id = 1")
                    wait_for_place(other, replica)
        tables = LOAD_TABLES | dict(tables_of(HISTORY))
        assert differences_from(other, sqlite_sink, tables) == []


@pytest.mark.on_one_server("mysql", reason="MariaDB has GTIDs always")
def test_without_gtids_another_server_stops_the_run(sqlite_sink):
    with own_primary(Kind.MYSQL, "--gtid-mode=OFF --enforce-gtid-consistency=OFF") as first:
        replica = replica_of(first, sqlite_sink)
        execute_history(first, HISTORY)
        replica.catch_up()
        with own_primary(Kind.MYSQL, "--gtid-mode=OFF --enforce-gtid-consistency=OFF", number=2) as second:
            replica.moved(second.url)
            with pytest.raises(NeedsOperator):
                replica.catch_up()
