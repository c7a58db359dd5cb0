"""RENAME chains at one ts, on real servers: each piece is an event of its own, and they run in their order, once."""

from collections.abc import Iterator

import pytest

from applier.demo.simulator.producer import LogRecord
from applier.model.position import Stream
from applier.sinks.ledger_entry import DdlState
from applier.sinks.mysql.ddl import runner
from tests.builders.wire import column, head, record
from tests.integration.mysql_replica import read
from tests.rig.clean_server import clean_server
from tests.rig.fake_source import FakeSource
from tests.rig.faulty_sink import DeathError
from tests.rig.local_replica import Replica

STREAMS = (Stream("feed", 0), Stream("feed", 1))
CHAIN = (("a", "tmp"), ("b", "a"), ("tmp", "b"))
ROTATION = (("a", "tmp"), ("b", "a"), ("c", "b"), ("tmp", "c"))

FORMS = ("RENAME TABLE `lab`.`{old}` TO `lab`.`{new}`", "ALTER TABLE `{old}` RENAME TO `{new}`")


@pytest.fixture
def url(mysql_url: str) -> Iterator[str]:
    clean_server(mysql_url, "lab")
    yield mysql_url
    clean_server(mysql_url, "lab")


def feed(chain: tuple[tuple[str, str], ...], form: str, *, replayed: bool = False) -> FakeSource:
    """Three tables with a row each, the chain at ts 300 on both partitions, then a row more in each."""
    log: list[LogRecord] = []

    def write(streams: tuple[Stream, ...], key: dict[str, object], value: object) -> None:
        log.extend(LogRecord(stream, *record((key, value)), 1000) for stream in streams)

    def ddl(ts: int, table: str, query: str, kind: int) -> None:
        write(STREAMS, head(ts, schema="lab", table=table, t=2), {"q": query, "t": kind})

    def row(ts: int, table: str, key: int) -> None:
        write(STREAMS[key % 2 :][:1], head(ts, schema="lab", table=table), {"u": {"id": column(3, 11, key)}})

    ddl(100, "", "CREATE DATABASE `lab`", 1)
    for number, table in enumerate("abc", 1):
        ddl(100 + number, table, f"CREATE TABLE `{table}` (`id` INT PRIMARY KEY)", 3)
        row(200, table, number)
    for _ in range(2 if replayed else 1):
        for old, new in chain:
            ddl(300, new, form.format(old=old, new=new), 14)
    for number, table in enumerate("abc", 1):
        row(400, table, 10 * number)
    write(STREAMS, {"ts": 500, "t": 3}, b"")
    return FakeSource(log)


def rows(url: str) -> dict[str, list[int]]:
    return {table: [int(key) for (key,) in read(url, f"SELECT id FROM lab.{table} ORDER BY id")] for table in "abc"}


AFTER = {CHAIN: {"a": [2, 10], "b": [1, 20], "c": [3, 30]}, ROTATION: {"a": [2, 10], "b": [3, 20], "c": [1, 30]}}


@pytest.mark.parametrize("chain", AFTER, ids=["swap", "rotation"])
@pytest.mark.parametrize(
    "form", ["RENAME TABLE `lab`.`{old}` TO `lab`.`{new}`", "ALTER TABLE `{old}` RENAME TO `{new}`"], ids=["rename", "alter"]
)
def test_s3_d12_the_pieces_of_a_chain_run_in_their_order_and_a_replay_runs_none(
    url: str, chain: tuple[tuple[str, str], ...], form: str
) -> None:
    replica = Replica(url, feed(chain, form, replayed=True))
    replica.catch_up()
    assert rows(url) == AFTER[chain]
    assert [entry.state for entry in replica.ledger() if entry.ddl.commit_ts == 300] == [DdlState.DONE] * len(chain)
    replica.catch_up()
    assert rows(url) == AFTER[chain]


@pytest.mark.parametrize("point", ["ddl.after_intent", "ddl.after_statement", "ddl.after_done"])
def test_s3_a_chain_is_finished_by_the_next_runs_wherever_one_dies(url: str, point: str, monkeypatch: pytest.MonkeyPatch) -> None:
    left = {"a", "b", "tmp"}

    def reach(reached: str) -> None:
        queries = [entry.ddl.table for entry in replica.ledger() if entry.ddl.commit_ts == 300] if reached == point else []
        if queries and queries[-1] in left:
            left.remove(queries[-1])
            raise DeathError

    replica = Replica(url, feed(CHAIN, "RENAME TABLE `{old}` TO `{new}`"))
    monkeypatch.setattr(runner, "reach", reach)
    for _ in CHAIN:
        with pytest.raises(DeathError):
            replica.catch_up()
    replica.catch_up()
    assert not left
    assert rows(url) == AFTER[CHAIN]
