"""Defects of the official consumers (D1 to D42, docs/guarantees.md) that no numbered scenario shows: what they lose, ours keeps."""

import threading
import time

import pytest

from applier.coordinator import Policy
from tests.builders.handwritten import KEY, PLAIN, ddl, resolved, row
from tests.builders.stage import P0, P1, Stage, create, gone, put, ran
from tests.builders.wire import column, head


def test_d4_a_second_start_runs_no_ddl_and_applies_no_row_again(tmp_path):
    """Theirs: a new random consumer group at each start reads the whole topic again."""
    stage = Stage(tmp_path).everywhere(create(10)).write(P0, put(20, 1, 1)).everywhere(ddl(30, "TRUNCATE TABLE `orders`", t=11))
    stage.write(P1, put(40, 2, 2)).everywhere(resolved(50))
    stage.catch_up()
    states, done = list(stage.seen), ran(stage.replica())
    stage.catch_up()
    assert (stage.seen, ran(stage.replica())) == (states, done)


def test_d10_a_schema_is_not_made_before_what_is_older(tmp_path):
    """Theirs: CREATE SCHEMA runs on arrival, ahead of an older DROP SCHEMA that another partition still has to bring."""
    made = head(40, "other", "", t=2), {"q": "CREATE DATABASE `other`", "t": 1}
    dropped = head(30, "other", "", t=2), {"q": "DROP DATABASE `other`", "t": 2}
    first = head(15, "other", "", t=2), {"q": "CREATE DATABASE `other`", "t": 1}
    stage = Stage(tmp_path).everywhere(create(10), first).write(P0, made, resolved(50)).write(P1, resolved(25))
    stage.catch_up()
    assert [ts for ts, _ in ran(stage.replica())] == [5, 10, 15]
    stage.write(P1, dropped, made, resolved(50)).write(P0, dropped, resolved(60)).write(P1, resolved(60)).catch_up()
    assert ran(stage.replica())[-2:] == [(30, "DROP DATABASE"), (40, "CREATE DATABASE")]


@pytest.mark.parametrize(
    ("statement", "kind", "left"),
    [
        ("ALTER TABLE `orders` RENAME AS `sales`", 14, "sales"),
        ("ALTER TABLE `orders` RENAME `sales`", 14, "sales"),
        ("ALTER TABLE `orders` COMMENT = 'of the shop'", 17, "orders"),
        ("ALTER TABLE `orders` ADD COLUMN `a` INT, ADD COLUMN `b` INT", 37, "orders"),
    ],
)
def test_d11_ddls_that_stop_other_consumers_run(tmp_path, statement, kind, left):
    """Theirs: kinds of DDL that the parser does not know panic, and so does ALTER TABLE … RENAME."""
    stage = Stage(tmp_path).everywhere(create(10)).write(P0, put(20, 1, 1)).everywhere(ddl(30, statement, left, t=kind), resolved(40))
    stage.catch_up()
    assert [row[:2] for row in stage.rows(left)] == [(1, 1)]
    assert ran(stage.replica())[-1][0] == 30


def test_d12_equal_statements_on_two_schemas_at_one_ts_both_run_and_never_again(tmp_path):
    """Theirs: the key that tells DDLs apart has no schema, and is in memory only."""
    other = [
        (head(6, "other", "", t=2), {"q": "CREATE DATABASE `other`", "t": 1}),
        (head(11, "other", "orders", t=2), {"q": "CREATE TABLE orders (id INT PRIMARY KEY, n INT)", "t": 3}),
    ]
    truncates = [(head(30, schema, "orders", t=2), {"q": "TRUNCATE TABLE `orders`", "t": 11}) for schema in ("shop", "other")]
    _, value = put(20, 1, 1)
    stage = Stage(tmp_path).everywhere(other[0], create(10), other[1]).write(P0, put(20, 1, 1), (head(20, "other"), value))
    stage.everywhere(*truncates).write(P0, put(35, 2, 2)).everywhere(resolved(40)).catch_up()
    assert stage.rows() == [(2, 2)]
    assert stage.rows("orders", "other") == []
    stage.everywhere(*truncates, resolved(50)).catch_up()
    assert stage.rows() == [(2, 2)]
    assert [ts for ts, _ in ran(stage.replica())].count(30) == 2


def test_d16_rows_that_come_out_of_commit_order_are_all_applied_and_the_last_commit_wins(tmp_path):
    """Theirs: a row below the greatest ts of its table and partition is taken for a replay and ignored."""
    stage = Stage(tmp_path, policy=Policy(segment_rows=1)).everywhere(create(10))
    stage.write(P0, put(40, 1, 4), put(20, 2, 2), put(30, 1, 3), put(35, 3, 3), put(20, 1, 2), put(25, 4, 4)).write(
        P1, gone(45, 4), gone(30, 2)
    )
    stage.everywhere(resolved(50)).catch_up()
    assert stage.rows() == [(1, 4), (3, 3)]


def test_d17_a_row_below_what_its_partition_has_promised_is_applied_while_the_checkpoint_is_below_it(tmp_path):
    """Theirs: compared with the partition's own resolved ts, not with what was applied: the only copy may be thrown away."""
    stage = Stage(tmp_path).everywhere(create(10)).write(P0, resolved(50), put(30, 1, 1)).write(P1, resolved(25))
    assert stage.catch_up().checkpoint_ts == 25
    stage.write(P1, resolved(50)).catch_up()
    assert stage.rows() == [(1, 1)]


def test_d20_an_update_of_a_row_that_the_sink_lacks_writes_the_row(tmp_path):
    """Theirs: UPDATE … LIMIT 1 changes no row and nobody notices."""
    _, now = put(30, 1, 2)
    _, before = put(30, 1, 1)
    stage = Stage(tmp_path).everywhere(create(10), resolved(20)).write(P0, (head(30), {"u": now["u"], "p": before["u"]}))
    stage.everywhere(resolved(40)).catch_up()
    assert stage.rows() == [(1, 2)]


@pytest.mark.parametrize("stream", [P0, P1])
def test_d25_rows_of_all_physical_partitions_are_rows_of_their_table_whatever_their_ids(tmp_path, stream):
    """Theirs: invented table ids may equal the ids of physical partitions, and names that differ in case are two tables."""
    stage = Stage(tmp_path).everywhere(create(10))

    def part(event, partition, table="orders"):
        key, value = event
        return {**key, "tbl": table, "ptn": partition}, value

    # The row moves from one physical partition to another: deleted there, inserted here.
    stage.write(P0, part(put(20, 1, 1), 1), part(put(20, 2, 2), 2, "Orders"))
    stage.write(stream, part(gone(30, 1), 1, "ORDERS"), part(put(30, 1, 9), 2)).everywhere(resolved(40)).catch_up()
    assert stage.rows() == [(1, 9), (2, 2)]


def test_d27_a_run_stays_the_owner_and_its_streams_stay_its_own_while_a_ddl_takes_long(tmp_path):
    """Theirs: DDLs run on the poll loop, so a long one loses the membership of the group. Ours has no group; its heartbeat goes on."""
    stage = Stage(tmp_path).everywhere(create(10)).write(P0, put(20, 1, 1)).everywhere(ddl(30, "TRUNCATE TABLE `orders`", t=11))
    stage.write(P1, put(40, 2, 2)).everywhere(resolved(50))
    slow, rival = stage.replica(), stage.replica()
    begun, refused = threading.Event(), []
    slow.wrap = lambda sink: _Slow(sink, begun)

    def compete():
        begun.wait(10)
        try:
            rival.catch_up()
        except Exception as error:  # noqa: BLE001 - which error it is, is what is tested
            refused.append(type(error).__name__)

    other = threading.Thread(target=compete)
    other.start()
    slow.catch_up()
    other.join()
    assert refused == ["Fenced"]
    assert stage.rows() == [(2, 2)]


class _Slow:
    """Its DDLs take longer than the lock wait of the other run, and than its lease."""

    def __init__(self, sink, begun):
        self._sink, self._begun = sink, begun

    def __getattr__(self, name):
        return getattr(self._sink, name)

    def run_ddl(self, *args, **more):
        self._begun.set()
        time.sleep(0.6)
        return self._sink.run_ddl(*args, **more)


def test_d33_nothing_of_dropped_tables_is_kept(tmp_path):
    """Theirs: the queues of tables and partitions are never freed."""
    stage = Stage(tmp_path)
    for number in range(20):
        name, ts = f"t{number}", 10 + 10 * number
        stage.everywhere(create(ts, name)).write(P0, put(ts + 1, 1, 1, name)).everywhere(
            ddl(ts + 2, f"DROP TABLE `shop`.`{name}`", name, t=4)
        )
    stage.everywhere(resolved(1000))
    replica = stage.replica()
    replica.catch_up()
    assert replica.left_cached == frozenset()
    assert stage.rows("t3") is None


def test_d39_a_row_at_the_very_ts_of_a_resolved_event_is_no_duplicate(tmp_path):
    """Theirs (the Java example): rows with ts equal to the resolved ts are filtered as duplicates."""
    stage = (
        Stage(tmp_path).everywhere(create(10)).write(P0, put(20, 1, 1), resolved(30), put(30, 2, 2)).write(P1, resolved(30), put(30, 3, 3))
    )
    stage.everywhere(resolved(40)).catch_up()
    assert stage.rows() == [(1, 1), (2, 2), (3, 3)]


def test_d41_an_insert_beside_its_replay_and_a_raw_change_of_key_in_one_batch_are_applied(tmp_path):
    """Theirs: the batch path panics on a duplicate key and on a changed one."""
    was = {"id": column(3, KEY, 1), "n": column(3, PLAIN, 1)}
    _, moved = put(30, 5, 1)
    stage = Stage(tmp_path).everywhere(create(10)).write(P0, put(20, 1, 1), put(20, 1, 1), (head(30), {"u": moved["u"], "p": was}))
    stage.write(P1, put(21, 2, 2), put(21, 2, 2)).everywhere(resolved(40)).catch_up()
    assert stage.rows() == [(2, 2), (5, 1)]


def test_d23_bits_and_sets_beyond_63_bits_are_read(tmp_path):
    """Theirs: parsed as a signed integer, 2^63 stops the consumer."""
    members = ",".join(f"'m{number}'" for number in range(64))
    stage = Stage(tmp_path).everywhere(create(10, columns=f"id BIGINT UNSIGNED PRIMARY KEY, b BIT(64), s SET({members})"))
    most = 2**64 - 1
    stage.write(P0, row(20, id=column(8, KEY | 128, most), b=column(16, 193, most), s=column(248, 64, 2**63))).everywhere(
        resolved(30)
    ).catch_up()
    assert [tuple(map(str, values)) for values in stage.rows()] == [(str(most), str(most), "m63")]
