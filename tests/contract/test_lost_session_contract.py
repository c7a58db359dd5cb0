"""A session may be lost at any statement. What is lost is an ordinary failure that may pass, and the end is the same as without it.

Each kind of session is ended at each of its statements: before the server gets it, and after the server has executed it. On a server whose
own settings are not ours: no statement may run on a session that we have not set up.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count
from typing import Any

import pytest
import stamina

from applier.model.errors import RetryableSinkError, UnknownOutcome
from applier.mysql.session import roll_back
from applier.sinks.ledger_entry import DdlState
from applier.sinks.mysql import ownership as heartbeat
from applier.sinks.mysql.session import open_comparison
from applier.sinks.mysql.table_reader import MysqlReader
from applier.sinks.progress import WriteState
from applier.sinks.registry import open_glance
from applier.verify.sides import Sides
from applier.verify.verification import attempt
from tests.contract.replica_on_database import SHOP, TABLE, DatabaseReplica, commit_at, settings
from tests.rig.lost_sessions import Killer, file_killer, server_killer
from tests.rig.verifying import run

HOSTILE = ("sql_mode = 'ANSI_QUOTES,STRICT_ALL_TABLES,NO_ZERO_DATE'", "time_zone = '+08:00'")
MOST = 400
"""Statements of one piece of work, at most."""


@pytest.fixture(autouse=True)
def _without_pauses() -> Iterator[None]:
    stamina.set_testing(True, attempts=4)
    yield
    stamina.set_testing(False)


@pytest.fixture
def killer(replica: DatabaseReplica, monkeypatch: pytest.MonkeyPatch) -> Iterator[Killer]:
    """Ends sessions of a replica on a database whose own settings are not ours."""
    if replica.is_file:
        with file_killer(monkeypatch) as found:
            yield found
        return
    names = [setting.partition(" ")[0] for setting in HOSTILE]
    before = replica.read("SELECT " + ", ".join(f"@@GLOBAL.{name}" for name in names))[0]
    run(replica.root_url, *(f"SET GLOBAL {setting}" for setting in HOSTILE))
    try:
        with server_killer(replica.root_url, monkeypatch) as found:
            yield found
            found.disarm()
        assert found.sessions_without_set_up() == []
    finally:
        run(replica.root_url, *(f"SET GLOBAL {name} = '{value}'" for name, value in zip(names, before, strict=True)))


@dataclass
class Run:
    """Does what the engine does with a sink: after a failure that may pass, it raises the epoch, settles, and looks at the progress."""

    replica: DatabaseReplica
    ts: int = 100

    def begin_again(self) -> None:
        for _ in range(3):
            try:
                self.replica.fence = self.replica.sink.settle(self.replica.sink.raise_epoch().fence)
            except (RetryableSinkError, UnknownOutcome):
                continue
            return
        pytest.fail("the replica cannot begin again")

    def write(self, *values: str) -> None:
        self.ts += 1
        for _ in range(3):
            outcome = self.replica.write(self.replica.replaces(*values, ts=self.ts), self.ts)
            if outcome.state is WriteState.COMMITTED:
                return
            assert isinstance(outcome.error, RetryableSinkError | UnknownOutcome), outcome
            self.begin_again()
            progress = self.replica.sink.load()
            if progress is not None and progress.checkpoint_ts == self.ts:
                return
        pytest.fail("the rows cannot be written")

    def ddl(self, query: str, table: str = "t") -> None:
        self.ts += 1
        identity, _ = self.replica.ddl(query, self.ts, table)
        for _ in range(3):
            try:
                self.replica.run_ddl(query, self.ts, table)
            except (RetryableSinkError, UnknownOutcome):
                self.begin_again()
                if any(entry.identity == identity and entry.state is DdlState.DONE for entry in self.replica.sink.bookkeeping.ledger()):
                    return
            else:
                return
        pytest.fail("the DDL cannot run")


def ended_everywhere(killer: Killer, work: Callable[[int], object], *, after: str | None = None, step: int = 1) -> int:
    """Do a piece of work again and again, each time with a session that ends one statement later. Return how often."""
    number = 0
    for has_run in (False, True):
        for at in count(0, step):
            number += 1
            killer.arm(at, has_run=has_run, after=after)
            work(number)
            if not killer.disarm():
                break
            assert at < MOST
    return number


def test_a_segment_is_written_once_wherever_a_session_is_lost(replica: DatabaseReplica, killer: Killer) -> None:
    shop = Run(replica)
    shop.write("(0,'row 0')")
    last = ended_everywhere(killer, lambda number: shop.write(f"({number},'row {number}')"))
    assert replica.rows() == [(number, f"row {number}") for number in range(last + 1)]
    assert last > 6


def test_a_ddl_runs_once_wherever_a_session_is_lost(replica: DatabaseReplica, killer: Killer) -> None:
    shop = Run(replica)
    shop.write("(1,'one')")

    def add(number: int) -> None:
        shop.ddl(f"CREATE TABLE `d{number}` (id INT PRIMARY KEY, d DATETIME NOT NULL DEFAULT '0000-00-00 00:00:00')", f"d{number}")

    last = ended_everywhere(killer, add)
    assert last > 8
    assert [entry.state for entry in replica.sink.bookkeeping.ledger()] == [DdlState.DONE] * (last + 2)


def test_a_column_has_upstreams_default_wherever_a_session_is_lost(replica: DatabaseReplica, killer: Killer) -> None:
    if replica.is_file:
        pytest.skip("SQLite has no zone of a session")
    replica.ddl_session = (("time_zone", "+00:00"),)
    shop = Run(replica)
    shop.write("(1,'one')")

    def add(number: int) -> None:
        shop.ddl(f"ALTER TABLE t ADD COLUMN c{number} TIMESTAMP NOT NULL DEFAULT '2026-01-01 00:00:00'")

    last = ended_everywhere(killer, add, step=3)
    columns = ", ".join(f"UNIX_TIMESTAMP(c{number})" for number in range(1, last + 1))
    assert replica.read(f"SELECT {columns} FROM {SHOP}.t") == [(1767225600,) * last]
    assert [entry.state for entry in replica.sink.bookkeeping.ledger()] == [DdlState.DONE] * (last + 2)


def test_a_session_that_is_lost_while_a_ddls_outcome_is_compared_is_an_ordinary_loss(replica: DatabaseReplica, killer: Killer) -> None:
    if replica.is_file:
        pytest.skip("a DDL of SQLite is part of a transaction: nothing is compared")
    shop = Run(replica)
    shop.write("(1,'one')")

    def add(number: int) -> None:
        shop.ddl(f"ALTER TABLE t ADD COLUMN c{number} INT DEFAULT 5")

    last = ended_everywhere(killer, add, after="^ALTER TABLE", step=6)
    assert replica.rows() == [(1, "one", *[5] * last)]
    assert [entry.state for entry in replica.sink.bookkeeping.ledger()] == [DdlState.DONE] * (last + 2)


def test_a_replica_is_acquired_wherever_a_session_is_lost(replica: DatabaseReplica, killer: Killer) -> None:
    replica.sink.close()

    def acquire(_: int) -> None:
        with replica.another(retries=3, lease_s=0.4) as sink:
            sink.acquire()
            fence = sink.raise_epoch().fence
            killer.disarm()
            assert sink.save(fence, commit_at(200)).state is WriteState.COMMITTED

    assert again_if_it_may_pass(replica, killer, acquire, step=7 * (not replica.is_file) or 1) > 4


def test_reads_of_the_sink_are_repeated_wherever_a_session_is_lost(replica: DatabaseReplica, killer: Killer) -> None:
    Run(replica).write("(1,'one')")

    def look(_: int) -> Any:
        sink = replica.sink
        described = sink.describe([TABLE])[TABLE.fold()]
        assert [column.name for column in described.columns] == ["id", "v"]
        assert TABLE.fold() in sink.examine([TABLE])
        assert sink.tables_with_rows([TABLE]) == {TABLE.fold()}
        assert len(sink.bookkeeping.ledger()) == 2
        assert sink.bookkeeping.overview().progress is not None

    assert again_if_it_may_pass(replica, killer, look, step=4 * (not replica.is_file) or 1) > 6


def again_if_it_may_pass(replica: DatabaseReplica, killer: Killer, work: Callable[[int], object], *, step: int = 1) -> int:
    """Do the work as ``ended_everywhere`` does. A file's sink repeats nothing by itself: its connection is not lost as a server's is."""

    def tried(number: int) -> None:
        try:
            work(number)
        except RetryableSinkError:
            assert replica.is_file
            work(number)

    return ended_everywhere(killer, tried, step=step)


def test_a_glance_is_lost_as_a_whole(replica: DatabaseReplica, killer: Killer) -> None:
    seen = []

    def look(_: int) -> None:
        try:
            with open_glance(settings(replica.url)) as connection:
                name = "progress" if not replica.is_file else "applier_progress"
                seen.append(connection.exec_driver_sql(f"SELECT COUNT(*) FROM {'applier.' * (not replica.is_file)}{name}").scalar())
        except RetryableSinkError:
            seen.append(None)

    ended_everywhere(killer, look, step=5 if not replica.is_file else 1)
    assert set(seen) == {None, 1}


def test_a_comparison_never_reads_outside_of_its_moment(replica: DatabaseReplica, killer: Killer) -> None:
    if replica.is_file:
        pytest.skip("a connection of its own, which applier never writes with")
    shop = Run(replica)
    shop.write("(1,'one')")
    read = [MysqlReader(settings(replica.url), is_upstream=is_upstream, statement_timeout_s=60) for is_upstream in (True, False)]
    sides = Sides(*read)

    def compare(_: int) -> None:
        def work(sides: Sides) -> tuple[Any, Any]:
            with sides.moment() as ts:
                return ts, [sides.sink.checkpoint_ts() for _ in range(2)]

        ts, again = attempt(sides, work)
        assert [ts, ts] == again

    assert ended_everywhere(killer, compare, step=4) > 4
    sides.close()


def test_a_session_that_compares_is_not_replaced(replica: DatabaseReplica, killer: Killer) -> None:
    if replica.is_file:
        pytest.skip("sessions of servers")
    session = open_comparison(settings(replica.url), 60)
    opened = len(killer.sent)
    killer.arm(0, has_run=False)
    for _ in range(3):
        with pytest.raises(Exception, match=r"\((2006|2013|0|1927|4031)"):
            session.exec_driver_sql("SELECT 1")
        with pytest.raises(Exception, match=r"\((2006|2013|0|1927|4031)"):
            session.commit()
        roll_back(session)
    assert session.is_lost
    assert len(killer.sent) == opened
    session.close()


def test_a_heartbeat_goes_on_wherever_its_session_is_lost(
    replica: DatabaseReplica, killer: Killer, monkeypatch: pytest.MonkeyPatch
) -> None:
    if replica.is_file:
        pytest.skip("the heartbeat of a file is a thread without a session")
    monkeypatch.setattr(heartbeat, "interval_s", lambda _lease_s: 0.01)
    replica.sink.close()
    killer.thread = "applier-heartbeat"
    with replica.another() as sink:
        sink.acquire()
        for has_run in (False, True):
            for at in (*range(6), 20, 40, 60, 80):
                killer.arm(at, has_run=has_run)
                for _ in range(1000):
                    if killer.counted > at + 4:
                        break
                    heartbeat.Event().wait(0.01)
                assert killer.disarm()
                assert sink.heartbeat_lost() is None
        assert sink.heartbeat_error is None
        assert sink.raise_epoch().fence.epoch > replica.fence.epoch
