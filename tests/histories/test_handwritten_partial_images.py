"""S20 and S21, written by hand: what each option of the changefeed leaves out of images, and the row that the sink then holds."""

import sqlite3
from contextlib import closing

import pytest

from applier.model.errors import NeedsOperator
from applier.model.position import Offset
from applier.model.rejected_event import EventPosition
from applier.planner.table_check import Acceptance
from applier.replica.quarantine_retry import QuarantineRetry
from applier.sinks.registry import open_sink
from applier.sinks.settings import SinkSettings
from tests.builders.handwritten import CREATE_SCHEMA, KEY, ONE, PLAIN, TWO, UNIQUE, ddl, everywhere, log_of, resolved, row, rows_of
from tests.builders.wire import column, head
from tests.rig.fake_source import FakeSource
from tests.rig.local_replica import STRICT, sqlite_replica

CREATE = ddl(10, "CREATE TABLE orders (id INT PRIMARY KEY, code INT NOT NULL UNIQUE, note VARCHAR(20) NOT NULL DEFAULT 'none', n INT)")
BEGINNING = (*everywhere(CREATE_SCHEMA), *everywhere(CREATE))


def number(value, flags=PLAIN):
    return column(3, flags, value)


def note(value):
    return column(15, 0, value)


def whole(key, code, words, n):
    return {"id": number(key, KEY), "code": number(code, 17), "note": note(words), "n": number(n)}


def update(ts, after, before=None, table="orders"):
    return head(ts, table=table), {"u": after, **({} if before is None else {"p": before})}


def gone(ts, **columns):
    return row(ts, deleted=True, **columns)


def caught_up(tmp_path, *placed, beginning=BEGINNING):
    sqlite_replica(tmp_path, FakeSource(log_of(*beginning, *placed))).catch_up()
    return rows_of(tmp_path)


OLD = ((ONE, row(20, **whole(1, 7, "seven", 70))), (ONE, row(21, **whole(2, 8, "eight", 80))), *everywhere(resolved(30)))


# --- S20: an update that changes the key -------------------------------------------------------------------------------


@pytest.mark.parametrize("before", [whole(1, 7, "seven", 70), {"id": number(1, KEY)}], ids=["p", "only-output-updated-columns"])
def test_s20_a_raw_update_of_the_key_leaves_the_new_row_alone(tmp_path, before):
    placed = (*OLD, (TWO, update(40, whole(5, 7, "seven", 70), before)), *everywhere(resolved(50)))
    assert caught_up(tmp_path, *placed) == [(2, 8, "eight", 80), (5, 7, "seven", 70)]


def test_s20_a_split_update_of_the_key_needs_no_old_value(tmp_path):
    """The default: output-raw-change-event = false. So output-old-value = false is safe."""
    placed = (*OLD, (TWO, row(40, **whole(5, 7, "seven", 70))), (ONE, gone(40, id=number(1, KEY))), *everywhere(resolved(50)))
    assert caught_up(tmp_path, *placed) == [(2, 8, "eight", 80), (5, 7, "seven", 70)]


def test_s20_a_raw_update_of_the_key_without_old_value_looks_like_an_insert(tmp_path):
    """Nobody can tell it from one: docs/changefeed.md says which option to set. Here a unique key of the sink still tells."""
    placed = (*OLD, (TWO, update(40, whole(5, 7, "seven", 71))), (TWO, update(41, whole(6, 9, "nine", 90))), *everywhere(resolved(50)))
    assert caught_up(tmp_path, *placed) == [(2, 8, "eight", 80), (5, 7, "seven", 71), (6, 9, "nine", 90)]


# --- S21: a column selector over a table of full width -----------------------------------------------------------------


def test_s21_an_update_keeps_the_columns_that_the_selector_leaves_out(tmp_path):
    placed = (*OLD, (ONE, update(40, {"id": number(1, KEY), "n": number(71)}, {"n": number(70)})), *everywhere(resolved(50)))
    assert caught_up(tmp_path, *placed) == [(1, 7, "seven", 71), (2, 8, "eight", 80)]


def test_s21_a_new_row_takes_defaults_and_a_restart_changes_nothing(tmp_path):
    selected = {"id": number(5, KEY), "code": number(9, 17)}
    log = log_of(
        *BEGINNING, *OLD, (ONE, row(40, **selected)), *everywhere(resolved(40)), (ONE, row(40, **selected)), *everywhere(resolved(50))
    )
    replica = sqlite_replica(tmp_path, FakeSource(log))
    replica.catch_up(until_ts=40)
    expected = [(1, 7, "seven", 70), (2, 8, "eight", 80), (5, 9, "none", None)]
    assert rows_of(tmp_path) == expected
    replica.catch_up()
    assert rows_of(tmp_path) == expected


def test_s21_a_column_that_a_ddl_adds_and_the_selector_leaves_out_keeps_what_the_sink_puts_there(tmp_path):
    added = ddl(35, "ALTER TABLE orders ADD COLUMN extra INT NOT NULL DEFAULT 3", t=5)
    placed = (*OLD, *everywhere(added), (ONE, row(40, **whole(1, 7, "new", 71))), *everywhere(resolved(50)))
    assert caught_up(tmp_path, *placed) == [(1, 7, "new", 71, 3), (2, 8, "eight", 80, 3)]


def test_s21_rows_without_the_handle_key_are_told_apart_by_a_unique_key_of_the_sink(tmp_path):
    def selected(code, words):
        return {"code": number(code, 17), "note": note(words)}

    placed = (
        *OLD,
        (ONE, update(40, selected(7, "new"), selected(7, "seven"))),
        (ONE, update(41, selected(7, "newer"), {"note": note("new")})),
        (ONE, gone(42, **selected(8, "eight"))),
        *everywhere(resolved(50)),
    )
    assert caught_up(tmp_path, *placed) == [(1, 7, "newer", 70)]


def test_s21_a_new_row_without_the_handle_key_stops_with_the_option_to_change(tmp_path):
    placed = (*OLD, (ONE, row(40, code=number(9, 17), note=note("nine"))), *everywhere(resolved(50)))
    with pytest.raises(NeedsOperator, match="no default") as caught:
        caught_up(tmp_path, *placed)
    assert (caught.value.facts["column"], caught.value.facts["table"], caught.value.facts["commit_ts"]) == ("id", "shop.orders", 40)
    assert "column-selectors" in caught.value.remedy


def test_s21_rows_without_any_whole_unique_key_stop(tmp_path):
    with pytest.raises(NeedsOperator, match="no key"):
        caught_up(tmp_path, *OLD, (ONE, row(40, note=note("nine"))), *everywhere(resolved(50)))


# --- other reductions --------------------------------------------------------------------------------------------------


def test_a_delete_by_its_handle_key_alone_is_whole(tmp_path):
    """delete-only-output-handle-key-columns = true."""
    assert caught_up(tmp_path, *OLD, (TWO, gone(40, id=number(1, KEY))), *everywhere(resolved(50))) == [(2, 8, "eight", 80)]


def test_a_delete_by_a_stale_handle_key_alone_stops_with_the_option_to_change(tmp_path):
    """The sink's key is not in the image, and the key that is in it is not unique: other rows would be deleted too."""
    placed = (*OLD, (TWO, gone(40, n=number(70, UNIQUE))), *everywhere(resolved(50)))
    with pytest.raises(NeedsOperator, match="lacks columns") as caught:
        caught_up(tmp_path, *placed)
    assert caught.value.facts["columns"] == "id"
    assert "delete-only-output-handle-key-columns" in caught.value.remedy


def test_the_oldest_producers_send_no_flags_and_the_sinks_column_says_what_is_binary(tmp_path):
    created = ddl(10, "CREATE TABLE orders (id VARBINARY(20) PRIMARY KEY, b VARBINARY(20), words VARCHAR(20))")

    def old(ts, name, value, words):
        columns = {"id": {"t": 15, "h": True, "v": name}, "b": {"t": 15, "v": value}, "words": {"t": 15, "v": words}}
        return row(ts, **columns)

    placed = (
        (ONE, old(20, "a\\x00", "\\\\ \\xff'", "\\x00")),
        (ONE, old(21, "b", "1", "2")),
        (ONE, row(22, deleted=True, id={"t": 15, "h": True, "v": "b"})),
        *everywhere(resolved(30)),
    )
    assert caught_up(tmp_path, *placed, beginning=(*everywhere(CREATE_SCHEMA), *everywhere(created))) == [(b"a\0", b"\\ \xff'", "\\x00")]


def test_an_old_value_of_changed_columns_alone_or_none_changes_nothing(tmp_path):
    """only-output-updated-columns, output-old-value = false, and ticdc's empty ``p``."""
    placed = (
        *OLD,
        (ONE, update(40, whole(1, 7, "seven", 71), {"n": number(70)})),
        (ONE, update(41, whole(2, 8, "eight", 81), {})),
        (ONE, update(42, whole(2, 8, "eight", 82))),
        *everywhere(resolved(50)),
    )
    assert caught_up(tmp_path, *placed) == [(1, 7, "seven", 71), (2, 8, "eight", 82)]


# --- quarantine --------------------------------------------------------------------------------------------------------


def test_parts_of_one_row_are_quarantined_together_and_one_alone_is_not_retried(tmp_path):
    def part(ts, **columns):
        return row(ts, id=number(1, KEY), **columns)

    log = log_of(
        *BEGINNING,
        *OLD,
        (ONE, part(40, n=number(71))),
        (ONE, part(41, note={"t": 15, "f": 0, "v": 5})),
        (ONE, part(42, code=number(9, 17))),
        (ONE, row(43, **whole(2, 8, "new", 80))),
        *everywhere(resolved(50)),
    )
    replica = sqlite_replica(tmp_path, FakeSource(log), quarantines=frozenset({"unreadable"}))
    replica.catch_up(until_ts=30)
    replica.catch_up()
    assert rows_of(tmp_path) == [(1, 7, "seven", 70), (2, 8, "new", 80)]
    assert sorted(entry.event.position.offset for entry in replica.quarantine().values()) == [5, 6, 7]
    with open_sink(SinkSettings(url=replica.url, name=replica.name, lock_timeout_s=0.2)) as sink:
        sink.acquire()
        with pytest.raises(NeedsOperator, match="another event of the row is quarantined too"):
            QuarantineRetry(replica.source, sink, "me@here", Acceptance(replica.accept)).retry(EventPosition(ONE, Offset(7), 0))


def test_a_row_that_the_sink_refuses_once_it_is_whole_is_quarantined(tmp_path):
    log = log_of(
        *BEGINNING,
        *OLD,
        (ONE, row(40, id=number(1, KEY), n=number(71))),
        (ONE, row(41, id=number(2, KEY), n=number(3))),
        *everywhere(resolved(50)),
    )
    source = FakeSource(log, hidden=True)
    source.advance(len(BEGINNING) + len(OLD))
    replica = sqlite_replica(tmp_path, source, quarantines=frozenset({"rejected"}), accept=STRICT)
    replica.catch_up()
    with closing(sqlite3.connect(tmp_path / "replica.db", isolation_level=None)) as connection:
        connection.execute(
            "CREATE TRIGGER strict BEFORE INSERT ON \"shop.orders\" WHEN NEW.n > 70 BEGIN SELECT RAISE(ABORT, 'too much'); END"
        )
    source.advance(99)
    replica.catch_up()
    assert rows_of(tmp_path) == [(1, 7, "seven", 70), (2, 8, "eight", 3)]
    assert [entry.event.position.offset for entry in replica.quarantine().values()] == [5]
