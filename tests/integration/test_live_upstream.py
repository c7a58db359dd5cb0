"""The simulated upstream of the containers: its database holds what it has sent, a comparison holds it, a new start leaves nothing."""

from contextlib import closing
from threading import Event, Thread

import pytest
from typer.testing import CliRunner

from applier.demo.simulator.live_log import LiveLog
from applier.model.errors import ApplierError, ConfigError
from applier.sinks.registry import open_sink
from applier.sinks.settings import SinkSettings
from tests.rig.live_upstream import comparison
from tests.rig.live_upstream.__main__ import app
from tests.rig.live_upstream.comparison import tables_after
from tests.rig.live_upstream.feed import FeedPace, UpstreamFeed
from tests.rig.live_upstream.upstream_copy import UpstreamCopy
from tests.rig.mysql_oracle import STATE_SCHEMA, MysqlOracle, connect

PREFIX = "oracle_live_"
ONE_SERVER = "the feed knows no dialect of its own: one server shows all"


@pytest.fixture
def copy(mysql_url):
    with UpstreamCopy(mysql_url, PREFIX) as opened:
        opened.prepare()
        yield opened
        for schema in opened.schemas():
            opened.drop(schema)
    with closing(connect(mysql_url)) as connection, connection.cursor() as cursor:
        cursor.execute(f"DROP DATABASE {STATE_SCHEMA}")


def a_feed(copy, servers, topic):
    log = LiveLog(topic, 4)
    feed = UpstreamFeed(copy, log, servers, FeedPace(rows_per_s=300, resolved_every_s=0.2))
    feed.start_over()
    return feed, log


def run_for(feed, seconds):
    stopped = Event()
    thread = Thread(target=feed.run, args=(stopped,))
    thread.start()
    thread.join(seconds)
    stopped.set()
    thread.join()


@pytest.mark.on_one_server("mariadb", reason=ONE_SERVER)
def test_the_database_holds_what_was_sent_and_a_new_start_drops_it(copy, mysql_url, mock_kafka):
    feed, log = a_feed(copy, mock_kafka, "live-upstream-1")
    run_for(feed, 1.5)
    state = copy.state()
    assert state.steps > 0
    assert log.promised > state.last_ts
    with MysqlOracle(mysql_url, PREFIX) as oracle:
        assert set(oracle.facts().tables) == set(tables_after(state))

    _, newer = a_feed(copy, mock_kafka, "live-upstream-1")
    assert copy.schemas() == []
    assert copy.state().seed == state.seed + 1
    assert newer.promised > log.promised


@pytest.mark.on_one_server("mariadb", reason=ONE_SERVER)
def test_while_a_comparison_holds_it_nothing_happens_but_its_promises_go_on(copy, mysql_url, mock_kafka, tmp_path, monkeypatch):
    feed, log = a_feed(copy, mock_kafka, "live-upstream-2")
    before, promised = copy.state(), log.promised
    with UpstreamCopy(mysql_url, PREFIX) as holder:
        assert holder.hold(5)
        run_for(feed, 1.0)
        assert copy.state() == before
    assert log.promised > promised
    assert copy.hold(5), "the lock ends with its session, as soon as the server has seen that end"

    # Another comparison waits for the end of this one, then for the replica.
    monkeypatch.setattr(comparison, "HOLD_TIMEOUT_S", 0)
    replica = SinkSettings(url=f"sqlite:///{tmp_path}/replica.db")
    with open_sink(replica) as sink:
        sink.migrate()
    with pytest.raises(ApplierError, match="cannot be held"):
        comparison.compare_live(mysql_url, replica, within_s=0.1, prefix=PREFIX)
    copy.release()
    with pytest.raises(ApplierError, match="the replica has not caught up in time"):
        comparison.compare_live(mysql_url, replica, within_s=0.1, prefix=PREFIX)


@pytest.mark.on_one_server("mariadb", reason=ONE_SERVER)
def test_schemas_of_others_are_dropped_only_on_command_and_never_without_the_prefix(copy, mysql_url):
    copy.refuse_foreign(may_drop=False)
    with closing(connect(mysql_url)) as connection, connection.cursor() as cursor:
        cursor.execute(f"CREATE DATABASE {PREFIX}mine")
        command = ["run", "--database", mysql_url, "--kafka", "127.0.0.1:1", "--prefix", PREFIX]
        refused = CliRunner().invoke(app, command)
        assert isinstance(refused.exception, ConfigError)
        assert (refused.exception.facts["schemas"], "--yes-drop" in refused.exception.remedy) == (f"{PREFIX}mine", True)
        cursor.execute("SHOW DATABASES")
        assert (f"{PREFIX}mine",) in cursor.fetchall()
    copy.refuse_foreign(may_drop=True)
    with UpstreamCopy(mysql_url, "oracle_other_") as other:
        other.refuse_foreign(may_drop=False)
