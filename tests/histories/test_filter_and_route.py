"""A replica with a filter and routes equals the projection of upstream: random histories, and streams written by hand (on SQLite)."""

import sqlite3
from contextlib import closing

import pytest

from applier.coordinator.policy import RowPolicy
from applier.demo.simulator.producer import LogRecord
from applier.model.errors import FatalSinkError, NeedsOperator
from applier.model.events import TableName
from applier.model.position import Ts
from applier.sinks.ledger_entry import DdlState
from applier.sinks.quarantine import SkipRule
from tests.builders.handwritten import CREATE_SCHEMA, KEY, ONE, PLAIN, ddl, everywhere, log_of, resolved, row, rows_of
from tests.builders.wire import column, head, record
from tests.histories.test_any_history_ends_identical import world
from tests.rig.fake_source import FakeSource
from tests.rig.faulty_sink import DeathError, Faults, FaultySink
from tests.rig.local_replica import sqlite_replica
from tests.rig.programs import PROGRAMS, catch_up
from tests.rig.seeds import seeds
from tests.rig.selected import SELECTIONS, differences_from_projection, selection_of


def selected_world(seed):
    history, producer, log = world(seed)
    source = FakeSource(log)
    source.selection = SELECTIONS[seed % len(SELECTIONS)]
    return history, producer, source


@pytest.mark.parametrize("seed", seeds(range(48), daily=12))
def test_the_sink_is_the_projection_of_the_oracle(seed, tmp_path):
    history, producer, source = selected_world(seed)
    replica = sqlite_replica(tmp_path, source)
    assert replica.catch_up().checkpoint_ts == producer.final_ts
    assert differences_from_projection(history, producer.final_ts, replica.url, source.selection) == []
    left_out = [entry for entry in replica.ledger() if entry.state is DdlState.SKIPPED]
    assert bool(left_out) == bool(source.selection.tables.rules)


@pytest.mark.parametrize("seed", [0, 1, 4, 5])
def test_in_row_mode_the_sink_is_the_projection_of_the_oracle_too(seed, tmp_path):
    history, producer, source = selected_world(seed)
    rows = RowPolicy(by_table=seed % 4 == 0, most_rows=50, settle_span=0)
    replica = sqlite_replica(tmp_path, source, rows=rows)
    assert replica.catch_up().checkpoint_ts == producer.final_ts
    assert differences_from_projection(history, producer.final_ts, replica.url, source.selection) == []


@pytest.mark.parametrize("seed", seeds(range(100, 118), daily=6))
def test_deaths_and_lost_answers_change_nothing(seed, tmp_path):
    history, producer, source = selected_world(seed)
    faults = Faults(seed, rate=0.05, deaths=0.15)
    replica = sqlite_replica(tmp_path, source, wrap=lambda sink: FaultySink(sink, faults))
    for _ in range(60):
        try:
            assert replica.catch_up().checkpoint_ts == producer.final_ts
            break
        except DeathError:
            continue
    assert sum(faults.counts.values()) > 0
    assert differences_from_projection(history, producer.final_ts, replica.url, source.selection) == []


CREATED = ddl(10, "CREATE TABLE orders (id INT PRIMARY KEY, n INT)")
LOG = ddl(11, "CREATE TABLE log_1 (id INT, n INT)", table="log_1")
RULES = ["shop.*", "!shop.log_*"]


def numbered(ts, key, table="orders", **more):
    return row(ts, table, id=column(3, KEY, key), n=column(3, PLAIN, ts), **more)


def updated(ts, key, table="orders"):
    columns = {"id": column(3, KEY, key), "n": column(3, PLAIN, ts)}
    return head(ts, table=table), {"u": columns, "p": columns}


def replica_of(tmp_path, *placed, **selected):
    source = FakeSource(log_of(*everywhere(CREATE_SCHEMA), *everywhere(CREATED), *everywhere(LOG), *placed))
    source.selection = selection_of(**selected)
    return sqlite_replica(tmp_path, source)


def states(replica):
    return {(entry.ddl.commit_ts, str(entry.ddl.name)): entry.state for entry in replica.ledger()}


@pytest.mark.parametrize("program", PROGRAMS)
def test_nothing_about_a_table_that_is_left_out_can_stop_the_run(tmp_path, program):
    keyless = row(20, "log_1", n=column(3, PLAIN, 1))
    replica = replica_of(
        tmp_path,
        (ONE, keyless),
        (ONE, (head(21, table="log_1", ohk=True), keyless[1])),
        (ONE, (head(22, table="log_1", ccl="/gone.json"), keyless[1])),
        (ONE, (head(23, table="log_1"), b"no JSON")),
        (ONE, (head(24, table="Log_1"), {"u": {"id": {"t": 3, "f": KEY, "v": {}}}})),
        (ONE, numbered(25, 1)),
        *everywhere(ddl(26, "ALTER TABLE log_1 nonsense of another database", table="log_1", t=99)),
        *everywhere(resolved(30)),
        tables=RULES,
    )
    program(replica)
    assert rows_of(tmp_path) == [(1, 25)]
    assert states(replica) == {
        (5, "shop"): DdlState.DONE,
        (10, "shop.orders"): DdlState.DONE,
        (11, "shop.log_1"): DdlState.SKIPPED,
        (26, "shop.log_1"): DdlState.SKIPPED,
    }
    # Its DDLs are known at the next start, and are no missed ones.
    replica.source.extend(log_of(*everywhere(LOG), *everywhere(resolved(40))))
    program(replica)
    assert rows_of(tmp_path) == [(1, 25)]


@pytest.mark.parametrize("together", [False, True])
def test_rows_of_both_kinds_of_tables_in_one_record_are_told_apart(tmp_path, together):
    events = [numbered(20 + number, number, "log_2" if number % 3 == 1 else "orders") for number in range(12)]
    replica = replica_of(tmp_path, tables=RULES)
    records = [LogRecord(ONE, *record(*events), 1)] if together else log_of(*((ONE, event) for event in events))
    replica.source.extend([*records, *log_of(*everywhere(resolved(40)))])
    replica.catch_up()
    assert [key for key, _ in rows_of(tmp_path)] == [number for number in range(12) if number % 3 != 1]


def test_a_table_that_is_renamed_out_of_the_filter_keeps_its_rows_and_gets_no_more(tmp_path):
    replica = replica_of(
        tmp_path,
        (ONE, numbered(20, 1)),
        *everywhere(ddl(25, "RENAME TABLE orders TO log_orders", table="log_orders", t=14)),
        (ONE, numbered(26, 2, "log_orders")),
        *everywhere(ddl(27, "CREATE TABLE orders (id INT PRIMARY KEY, n INT)")),
        (ONE, numbered(28, 3)),
        *everywhere(resolved(30)),
        tables=RULES,
    )
    replica.catch_up()
    assert (rows_of(tmp_path), rows_of(tmp_path, "shop.log_orders")) == ([(3, 28)], [(1, 20)])


def rotation(ts, key):
    renamed = "RENAME TABLE orders TO log_orders"
    return [
        (ONE, numbered(ts, key)),
        *everywhere(ddl(ts + 1, "DROP TABLE IF EXISTS log_orders", table="log_orders", t=4)),
        *everywhere(ddl(ts + 2, renamed, table="log_orders", t=14)),
        *everywhere(ddl(ts + 3, "CREATE TABLE orders (id INT PRIMARY KEY, n INT)")),
    ]


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_log_that_rotates_out_of_the_filter_keeps_every_row_under_a_name_of_its_own(tmp_path, program):
    placed = [event for ts, key in ((20, 1), (30, 2), (40, 3)) for event in rotation(ts, key)]
    replica = replica_of(tmp_path, *placed, (ONE, numbered(50, 4)), *everywhere(resolved(60)), tables=RULES)
    program(replica)
    assert rows_of(tmp_path) == [(4, 50)]
    kept = [rows_of(tmp_path, name) for name in ("shop.log_orders_32", "shop.log_orders_42", "shop.log_orders")]
    assert kept == [[(1, 20)], [(2, 30)], [(3, 40)]]


def like_rotation(ts, key, *between):
    return [
        (ONE, numbered(ts, key)),
        *everywhere(ddl(ts + 1, "DROP TABLE IF EXISTS log_orders", table="log_orders", t=4)),
        *everywhere(ddl(ts + 2, "RENAME TABLE orders TO log_orders", table="log_orders", t=14)),
        *(event for query in between for event in everywhere(ddl(ts + 3, query, table="log_orders", t=5))),
        *everywhere(ddl(ts + 4, "CREATE TABLE orders LIKE log_orders")),
    ]


@pytest.mark.parametrize("routes", [(), [("shop.*", "archive.{table}_2026")]])
@pytest.mark.parametrize("program", PROGRAMS)
def test_a_new_log_like_the_one_that_was_rotated_out_is_made(tmp_path, program, routes):
    replica = replica_of(tmp_path, *like_rotation(20, 1), *everywhere(resolved(28)), tables=RULES, routes=routes)
    program(replica)
    # The next run reads from the ledger which table has left.
    program(again(replica, *like_rotation(30, 2), (ONE, numbered(40, 3)), *everywhere(resolved(50)), tables=RULES, routes=routes))
    names = ["log_orders_32", "log_orders", "orders"] if not routes else ["log_orders_2026_32", "log_orders_2026", "orders_2026"]
    schema = "archive" if routes else "shop"
    assert [rows_of(tmp_path, f"{schema}.{name}") for name in names] == [[(1, 20)], [(2, 30)], [(3, 40)]]


@pytest.mark.parametrize("query", ["ALTER TABLE log_orders ADD x INT", "DROP TABLE log_orders", "RENAME TABLE log_x TO log_orders"])
def test_a_new_log_like_one_that_has_changed_where_nobody_looked_stops(tmp_path, query):
    replica = replica_of(tmp_path, *like_rotation(20, 1, query), *everywhere(resolved(28)), tables=RULES)
    for _ in range(2):
        with pytest.raises(NeedsOperator, match=r"reads a table that source\.tables excludes"):
            replica.catch_up()


def test_a_table_that_the_replica_has_not_made_stops_a_rename_out_of_the_filter(tmp_path):
    replica = replica_of(tmp_path, *rotation(20, 1), *everywhere(resolved(60)), tables=RULES)
    with closing(sqlite3.connect(tmp_path / "replica.db")) as connection:
        connection.execute('CREATE TABLE "shop.log_orders" (id INT)')
    with pytest.raises(FatalSinkError, match="a name that already exists in the sink"):
        replica.catch_up()


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_table_that_is_renamed_into_the_filter_stops_the_run_until_the_operator_has_skipped_the_ddl(tmp_path, program):
    renamed = ddl(25, "RENAME TABLE log_1 TO bills", table="bills", t=14)
    replica = replica_of(tmp_path, (ONE, numbered(20, 1)), *everywhere(renamed), *everywhere(resolved(30)), tables=RULES)
    for _ in range(2):
        with pytest.raises(NeedsOperator, match="never read: RENAME TABLE log_1 TO bills") as caught:
            program(replica)
        assert caught.value.facts["commit_ts"] == 25
        assert rows_of(tmp_path) == [(1, 20)]
    replica.skip(SkipRule(commit_ts=Ts(25), decided_by="me"))
    program(replica)
    assert states(replica)[25, "shop.bills"] is DdlState.SKIPPED


def test_an_event_filter_leaves_row_changes_of_a_table_out_by_what_they_do_upstream(tmp_path):
    placed = [
        (ONE, numbered(20, 1)),
        (ONE, numbered(21, 2)),
        (ONE, numbered(22, 2, deleted=True)),
        (ONE, updated(23, 1)),
        (ONE, (head(24), {"u": {"id": column(3, KEY, 5), "n": column(3, PLAIN, 24)}, "p": {"id": column(3, KEY, 1)}})),
        *everywhere(resolved(30)),
    ]
    left = {}
    for ignored in ("insert", "update", "delete", "all dml"):
        (tmp_path / ignored).mkdir()
        replica_of(tmp_path / ignored, *placed, event_filters=[(["shop.orders"], [ignored])]).catch_up()
        left[ignored] = rows_of(tmp_path / ignored)
    # An update that changes the key is an update, whatever it does to the sink's rows.
    assert left == {"insert": [(5, 24)], "update": [(1, 20)], "delete": [(2, 21), (5, 24)], "all dml": []}


def test_a_table_of_which_all_rows_are_ignored_still_gets_its_ddls(tmp_path):
    replica = replica_of(
        tmp_path,
        (ONE, numbered(20, 1)),
        *everywhere(resolved(25)),
        event_filters=[(["shop.orders"], ["all_dml"])],
    )
    replica.catch_up()
    altered = ddl(30, "ALTER TABLE orders ADD x INT", t=5)
    replica.source.extend(log_of((ONE, numbered(28, 2)), *everywhere(altered), (ONE, numbered(31, 2)), *everywhere(resolved(40))))
    replica.catch_up()
    assert rows_of(tmp_path) == []
    assert states(replica)[30, "shop.orders"] is DdlState.DONE


def test_rows_and_ddls_have_the_names_of_their_route(tmp_path):
    replica = replica_of(
        tmp_path,
        (ONE, numbered(20, 1)),
        *everywhere(ddl(25, "ALTER TABLE orders ADD x INT DEFAULT 7", t=5)),
        *everywhere(ddl(26, "CREATE VIEW few AS SELECT shop.orders.id FROM shop.orders", table="few", t=21)),
        (ONE, numbered(27, 2, deleted=True)),
        *everywhere(resolved(30)),
        routes=[("shop.*", "archive.{table}_2026")],
    )
    replica.catch_up()
    assert rows_of(tmp_path, "archive.orders_2026") == [(1, 20, 7)]
    assert rows_of(tmp_path, "archive.few_2026") == [(1,)]
    assert [entry.ddl.query for entry in replica.ledger()][-2:] == [
        "ALTER TABLE `orders_2026` ADD x INT DEFAULT 7",
        "CREATE VIEW `few_2026` AS SELECT `archive`.`orders_2026`.id FROM `archive`.`orders_2026`",
    ]


def test_a_skip_rule_and_the_quarantine_speak_of_the_sinks_names(tmp_path):
    replica = replica_of(
        tmp_path,
        (ONE, numbered(20, 1)),
        (ONE, (head(21), {"u": {"id": column(3, KEY, 2), "n": {"t": 3, "f": PLAIN, "v": {}}}})),
        (ONE, numbered(22, 3)),
        *everywhere(resolved(30)),
        routes=[("shop.*", "archive.{table}")],
    )
    replica.quarantines = frozenset({"unreadable"})
    replica.skip(SkipRule(commit_ts=Ts(20), table=TableName("archive", "orders").fold(), decided_by="me"))
    replica.catch_up()
    assert rows_of(tmp_path, "archive.orders") == [(3, 22)]
    assert {(entry.event.schema, entry.event.table) for entry in replica.quarantine().values()} == {("archive", "orders")}


def again(replica, *placed, **selected):
    """Start again with another selection, and more events behind the ones before."""
    replica.source.extend(log_of(*placed))
    replica.source.selection = selection_of(**selected)
    return replica


def refused(program, replica):
    with pytest.raises(NeedsOperator) as caught:
        program(replica)
    assert caught.value.facts["kind"] == "selection"
    return caught.value.message


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_table_that_joins_the_filter_at_a_restart_has_missed_its_history(tmp_path, program):
    keyed = ddl(12, "CREATE TABLE log_2 (id INT PRIMARY KEY, n INT)", table="log_2")
    made = ddl(40, "CREATE TABLE log_3 (id INT PRIMARY KEY, n INT)", table="log_3")
    replica = replica_of(tmp_path, *everywhere(keyed), (ONE, numbered(20, 1, "log_2")), *everywhere(resolved(30)), tables=RULES)
    program(replica)
    # One that is made after the change has its whole history.
    program(again(replica, *everywhere(made), (ONE, numbered(41, 1, "log_3")), *everywhere(resolved(50)), tables=["shop.*"]))
    assert rows_of(tmp_path, "shop.log_3") == [(1, 41)]
    for selected in ({"tables": ["shop.*"]}, {}):
        message = refused(program, again(replica, (ONE, numbered(60, 2, "log_2")), *everywhere(resolved(70)), **selected))
        assert message == "shop.log_2 was excluded until now, so a part of its history is missing"
    # It can be left out again.
    program(again(replica, tables=["shop.*", "!shop.log_2"]))
    assert rows_of(tmp_path, "shop.log_3") == [(1, 41)]


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_table_that_leaves_the_filter_at_a_restart_stays_as_it_is_and_cannot_join_again(tmp_path, program):
    replica = replica_of(tmp_path, (ONE, numbered(20, 1)), *everywhere(resolved(30)))
    program(replica)
    program(again(replica, (ONE, numbered(40, 2)), *everywhere(resolved(50)), tables=["*.*", "!shop.orders"]))
    assert rows_of(tmp_path) == [(1, 20)]
    message = refused(program, again(replica, (ONE, numbered(60, 3)), *everywhere(resolved(70))))
    assert message == "shop.orders was excluded until now, so a part of its history is missing"


@pytest.mark.parametrize("quarantines", [(), ("unreadable",)])
@pytest.mark.parametrize("kind", [{"ohk": True}, {"ccl": "/gone.json"}, {}])
def test_a_table_of_which_only_unusual_rows_are_left_out_cannot_join_again_either(tmp_path, kind, quarantines):
    replica = replica_of(tmp_path, (ONE, numbered(20, 1)), *everywhere(resolved(30)))
    replica.quarantines = frozenset(quarantines)
    replica.catch_up()
    _, body = numbered(40, 2)
    # In one record with an event that cannot be read: where such events are quarantined, each is placed by itself.
    events = [(head(40, **kind), body), (head(41, table="crm"), b"no JSON")]
    placed = LogRecord(ONE, *record(*(events if quarantines else events[:1])), 1)
    replica.source.extend([placed, *log_of(*everywhere(resolved(50)))])
    again(replica, tables=["*.*", "!shop.orders"]).catch_up()
    message = refused(catch_up, again(replica, (ONE, numbered(60, 3)), *everywhere(resolved(70))))
    assert message == "shop.orders was excluded until now, so a part of its history is missing"


@pytest.mark.parametrize("selected", [{"routes": [("shop.*", "archive.{table}")]}, {"routes": [("shop.orders", "shop.bills")]}])
def test_a_route_that_changes_at_a_restart_is_refused(tmp_path, selected):
    replica = replica_of(tmp_path, (ONE, numbered(20, 1)), *everywhere(resolved(30)))
    replica.catch_up()
    message = refused(catch_up, again(replica, (ONE, numbered(40, 2)), *everywhere(resolved(50)), **selected))
    assert message == "shop.orders had another name in the sink until now: shop.orders"
    again(replica).catch_up()
    assert rows_of(tmp_path) == [(1, 20), (2, 40)]


@pytest.mark.parametrize("mode", ["transaction", "row"])
@pytest.mark.parametrize("restarts", [False, True])
@pytest.mark.parametrize("by", ["ddl", "rows"])
def test_two_tables_that_would_be_one_are_refused(tmp_path, by, restarts, mode):
    merging = {"routes": [("shop.s?", "shop.all"), ("shop.log_1", "shop.logs")]}
    first, second = (ddl(ts, f"CREATE TABLE {name} (id INT PRIMARY KEY, n INT)", table=name) for ts, name in ((15, "s1"), (31, "s2")))
    placed = [*everywhere(first), (ONE, numbered(20, 1, "s1")), *everywhere(resolved(30))]
    then = [*(everywhere(second) if by == "ddl" else ()), (ONE, numbered(40, 1, "s2")), (ONE, resolved(50))]
    # Rows are written ahead of the watermark: the other partition has promised less.
    then += [] if (mode, by) == ("row", "rows") else everywhere(resolved(50))
    if restarts:
        replica = replica_of(tmp_path, *placed, **merging)
        replica.rows = RowPolicy(by_table=False, settle_span=0, checks_beginning=False) if mode == "row" else None
        replica.catch_up()
        again(replica, *then, **merging)
    else:
        replica = replica_of(tmp_path, *placed, *then, **merging)
        replica.rows = RowPolicy(by_table=False, settle_span=0, checks_beginning=False) if mode == "row" else None
    for _ in range(2):
        assert refused(catch_up, replica) == "two tables would be one in the sink: shop.s1 and shop.s2 are both shop.all"
        # The rows of both may be in one segment, of which nothing is written.
        assert rows_of(tmp_path, "shop.all") in ([(1, 20)], [])
