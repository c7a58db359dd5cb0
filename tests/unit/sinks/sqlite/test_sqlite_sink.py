"""What a sink on a file promises beyond the port's contract: a DDL is one transaction, and a killed process leaves all or nothing."""

import pytest

from applier.model.errors import (
    FatalSinkError,
    NeedsOperator,
)
from applier.model.position import Ts
from applier.sinks.ledger_entry import DdlState
from applier.sinks.progress import WriteState
from applier.sinks.sqlite.sink import SqliteSink
from tests.unit.sinks.sqlite.sqlite_replica import ALTER, commit, contents, killed, rows, run, settings, start


def test_keys_beyond_63_bits_are_written_exactly(sink, fence, path):
    assert sink.writer.write(fence, rows("(1,'a')", "('18446744073709551615','b')"), commit(9)).state is WriteState.COMMITTED
    assert contents(path) == [(1, "a"), ("18446744073709551615", "b")]


@pytest.mark.parametrize(
    ("query", "error"),
    [("RECOVER TABLE `t`", NeedsOperator), ("TRUNCATE TABLE `nope`", FatalSinkError), ("CREATE TABLE `t` (`x` INT)", FatalSinkError)],
)
def test_a_ddl_that_fails_leaves_no_trace(sink, fence, query, error):
    with pytest.raises(error) as raised:
        run(sink, fence, query, 6)
    assert query in str(raised.value)
    assert len(sink.bookkeeping.ledger()) == 1
    assert sink.load().fence == fence
    assert sink.bookkeeping.resolve_ddl(Ts(6), "shop", "t", DdlState.DONE) == 0


def test_unnamed_indexes_have_upstreams_names(sink, fence, path):
    queries = [
        "ALTER TABLE t ADD INDEX (v), ADD FOREIGN KEY (v) REFERENCES p (i)",
        "ALTER TABLE t DROP INDEX v, ADD UNIQUE (v), ADD INDEX ((LOWER(v)))",
        "ALTER TABLE t DROP INDEX fk_1, ADD FOREIGN KEY (v) REFERENCES p (i), ADD INDEX ((UPPER(v)))",
    ]
    for ts, query in enumerate(queries, start=6):
        fence = run(sink, fence, query, ts)
    names = [name for (name,) in contents(path, "SELECT name FROM sqlite_master WHERE type = 'index' AND tbl_name = 'shop.t' ORDER BY 1")]
    assert [name for name in names if "autoindex" not in name] == ["shop.t.expression_index", "shop.t.expression_index_2", "shop.t.v_2"]
    assert "ADD UNIQUE `v_2` (v)" in sink.bookkeeping.ledger()[2].ddl.query


@pytest.mark.parametrize("failpoint", ["ddl.before_intent", "ddl.after_statement", "ddl.before_done"])
def test_a_ddl_that_is_killed_before_its_commit_did_not_happen_and_runs_at_the_next_start(left, failpoint):
    killed(left, "ddl", failpoint)
    assert contents(left) == [(1, "old")]
    assert contents(left, "SELECT count(*) FROM applier_ddl_ledger") == [(1,)]
    with SqliteSink(settings(left)) as sink:
        sink.acquire()
        run(sink, sink.settle(sink.load().fence), ALTER, 6)
    assert contents(left) == [(5, 1, "old")]


def test_a_ddl_that_is_killed_after_its_commit_is_done(left):
    killed(left, "ddl", "ddl.after_done")
    assert contents(left) == [(5, 1, "old")]
    with SqliteSink(settings(left)) as sink:
        sink.acquire()
        assert [entry.state for entry in sink.bookkeeping.ledger()] == [DdlState.DONE, DdlState.DONE]
        assert sink.load().checkpoint_ts == 6


@pytest.mark.parametrize(
    ("failpoint", "expected"), [("write.before_commit", [(1, "old")]), ("write.after_commit", [(1, "new"), (2, "new")])]
)
def test_a_write_that_is_killed_is_whole_or_absent_with_its_progress(left, failpoint, expected):
    killed(left, "write", failpoint)
    assert contents(left) == expected
    with SqliteSink(settings(left)) as sink:
        assert sink.load().checkpoint_ts == (6 if len(expected) == 2 else 5)


def test_a_commit_that_fails_is_an_unknown_outcome_and_the_sink_shows_what_holds(left):
    with start(left, "full") as process:
        state, _, message = process.stdout.read().decode().strip().partition(" UnknownOutcome ")
        assert state == "reload"
        assert message == "COMMIT failed with an unknown outcome: the database file cannot be read or written"
        assert process.wait() == 0
    assert contents(left) == [(1, "old")]
    with SqliteSink(settings(left)) as sink:
        sink.acquire()
        assert sink.raise_epoch().checkpoint_ts == 5
