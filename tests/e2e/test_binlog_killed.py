"""``kill -9`` of a daemon that follows a binlog, at random moments: after each the sink is the primary at one moment, then identical."""

import random
import time
from contextlib import ExitStack
from random import Random

import pytest

from applier.demo.simulator.history import History, HistoryOptions
from applier.demo.simulator.table_family import ACCOUNTS, WALLETS
from applier.sinks.ledger_entry import DdlState
from applier.sinks.registry import open_sink
from applier.sinks.settings import SinkSettings
from applier.sources.binlog.settings import BinlogSettings
from tests.rig.binlog_replica import BinlogReplica
from tests.rig.database import Kind
from tests.rig.key_actions import CHECKED, KEYS, ROWS, rows, run_random
from tests.rig.oltp import MONEY, TABLES, TOTAL, oltp_load
from tests.rig.primary import own_primary
from tests.rig.primary_comparison import differences_from
from tests.rig.primary_history import happening, moments
from tests.rig.program import catchup, daemon, run, write_binlog_config
from tests.rig.totals import watching_totals
from tests.rig.upstream import NAME, clear_sink, fence_of

STARTING_SHARE = 0.25
STARTING_S, INSIDE_S = 6.0, 0.5
WINDOWS = 15
ENDLESS = 10**9
LOAD_DDLS = 1 + len(TABLES)
"""The load makes its schema and its tables."""
NATIVE = {Kind.MARIADB: "", Kind.MYSQL: "--innodb-native-foreign-keys=ON"}
"""InnoDB executes the actions of foreign keys below the log."""
SEGMENTS = 5
HISTORY = History(21, HistoryOptions(transactions=ENDLESS, ddl_share=0.1, live_rows=40))

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(3600),
    pytest.mark.usually_on("mysql", reason="test_binlog_run has the other server, and each kill costs a start of Spark"),
]


def kill_somewhere(program, rng, url):
    """Kill the driver while it starts, or some windows after it has begun to write, at any instant of the next one."""
    windows, within_s = (0, STARTING_S) if rng.random() < STARTING_SHARE else (rng.randint(1, WINDOWS), INSIDE_S)
    begun = fence_of(url)[1]
    assert program.reaches(lambda: fence_of(url)[1] >= begun + windows), program.said()
    time.sleep(rng.uniform(0, within_s))
    assert program.kill(), program.said()


def look(url):
    """Return the checkpoint; 0 before there is one."""
    with open_sink(SinkSettings(url=url, name=NAME)) as sink:
        progress = sink.load() if fence_of(url)[0] else None
        return 0 if progress is None else progress.checkpoint_ts


def ddls_of(url):
    with open_sink(SinkSettings(url=url, name=NAME)) as sink:
        entries = sink.bookkeeping.ledger()
    assert {entry.state for entry in entries} <= {DdlState.DONE}
    return [entry.ddl.commit_ts for entry in entries]


@pytest.fixture
def sink_url(request, databases, tmp_path):
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/replica.db"
    url = databases.plain(request.param).url
    clear_sink(url)
    return url


LONG = pytest.mark.soak(reason="each kill is a start of Spark: 12 s")
"""`pytest --soak tests/e2e/test_binlog_killed.py`: fifty on each pair of servers."""


@pytest.mark.parametrize(
    ("sink_url", "number"),
    [("sqlite", 3), pytest.param("sqlite", 50, marks=LONG), pytest.param("mariadb", 50, marks=LONG)],
    indirect=["sink_url"],
)
def test_a_replica_of_a_binlog_outlives_kills_at_random_moments_and_no_money_is_torn(database_kind, sink_url, number, tmp_path):
    rng, killed = random.Random(number), []
    with ExitStack() as stack:
        primary = stack.enter_context(own_primary(database_kind))
        config = write_binlog_config(tmp_path, primary=primary.url, start=primary.place(), url=sink_url, rows=500)
        totals = stack.enter_context(watching_totals(sink_url, (ACCOUNTS, WALLETS), MONEY))
        with oltp_load(primary, pause_s=0.05), happening(primary, HISTORY, steps_per_s=6) as history:
            compared = stack.enter_context(moments(history, sink_url))
            for _ in range(number):
                killed.append(stack.enter_context(daemon(config)))
                kill_somewhere(killed[-1], rng, sink_url)
                # Every second time start again at once: a writer that the dead driver left may still be at work.
                if len(killed) % 2:
                    assert [program.orphans() for program in killed] == [[]] * len(killed)
                    assert compared.wrong_at(look(sink_url)) == []
                if len(killed) % 10 == 0:
                    primary.rotate()
        ended = run(config)
        assert ended.code == 0, ended.stderr
        assert differences_from(primary, sink_url, history.tables | {table.name: table for table in TABLES}) == []
    assert len(ddls_of(sink_url)) == sum(len(piece.step.ddls) for piece in history.pieces) + LOAD_DDLS
    assert [seen.torn(total) for seen, total in zip(totals, (HISTORY.money_total(), TOTAL), strict=True)] == [[], []]


@pytest.mark.usually_on("mariadb", reason="the sink's actions are those of integration/binlog/test_foreign_key_actions.py on each pair")
def test_kills_among_rows_whose_foreign_keys_act_change_nothing(database_kind, databases, tmp_path):
    sink = databases.plain(database_kind)
    clear_sink(sink.url)
    with own_primary(database_kind, NATIVE[database_kind]) as primary:
        place = primary.place()
        config = write_binlog_config(tmp_path, primary=primary.url, start=place, url=sink.least_privileged_url, rows=20)
        config.write_text(config.read_text().replace("[run]", 'keyless = "best_effort"\n[run]'))
        # Without Spark, whose start costs more than all the rest.
        without_spark = BinlogReplica(sink.least_privileged_url, BinlogSettings(url=primary.url, start=place), writes_keyless=True)
        primary.run(CHECKED, *KEYS, *ROWS)
        without_spark.catch_up()
        states = [rows(primary.url), *run_random(primary, Random(21), 300)]
        begun = fence_of(sink.url)[1]
        # Each writer dies at its third segment, and the whole program among the next ones.
        with catchup(config, APPLIER_FAILPOINT="write.after_commit:3") as program:
            assert program.reaches(lambda: fence_of(sink.url)[1] >= begun + SEGMENTS), program.said()
            program.kill_all()
            assert "JobAborted" in program.said()
        assert 0 < states.index(rows(sink.url)) < len(states) - 1
        without_spark.catch_up()
        assert rows(sink.url) == rows(primary.url) == states[-1]
