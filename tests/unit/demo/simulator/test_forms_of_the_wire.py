"""The forms of the wire beyond whole rows with a key: partial images, missing flags, large rows, admin events, tables without a key."""

import base64
import json
import sqlite3
from collections import Counter
from dataclasses import replace

import pytest

from applier.demo.simulator.encoder import record_length
from applier.demo.simulator.history import History, HistoryOptions
from applier.demo.simulator.item import ColumnSelector, ImageOptions, LargeRowOption, LargeRowSettings
from applier.demo.simulator.json_text import Flavour
from applier.demo.simulator.producer import Producer, ProducerOptions
from applier.demo.simulator.table_family import TableFamily
from applier.demo.simulator.wire_format import RecordBytes
from tests.rig.log_reader import events
from tests.rig.oracle import compare, open_oracle
from tests.rig.projection import seen_by_sink, unlisted_columns
from tests.rig.snapshots import Snapshots

SIZE = HistoryOptions(transactions=25, ddl_share=0.2)
HISTORY = History(3, SIZE)
SELECTOR = ColumnSelector(seed=3)
WIDE_ROWS = History(3, replace(SIZE, families=frozenset({TableFamily.TYPES, TableFamily.WORDS})))


def rows_of(options, history=HISTORY):
    return [(key, value) for record in Producer(history, options).log() for key, value in events(record) if key["t"] == 1]


def images(value):
    return [image for image in value.values() if image]


def test_a_selector_leaves_out_the_same_columns_of_every_image_and_never_the_handle_key():
    unlisted = unlisted_columns((state.table for state in HISTORY.catalogue()), ImageOptions(selector=SELECTOR))
    whole, selected = (rows_of(ProducerOptions(images=ImageOptions(selector=selector))) for selector in (None, SELECTOR))
    assert len(whole) == len(selected)
    assert sum(map(len, unlisted.values())) > 10
    for (key, before), (_, after) in zip(whole, selected, strict=True):
        for full, partial in zip(images(before), images(after), strict=True):
            assert {name for name, column in full.items() if column.get("h")} <= partial.keys()
            assert not partial.keys() & set(unlisted.get((key["scm"], key["tbl"]), ()))
            assert partial.items() <= full.items()


def test_a_handle_key_may_be_left_out_where_another_unique_key_is_complete_and_then_deletes_by_handle_are_not_sent():
    history = History(5, replace(SIZE, families=frozenset({TableFamily.SEATS}), ddl_kinds=frozenset()))
    selector = ColumnSelector(seed=1, share=1.0, keeps_handle=False)
    options = ProducerOptions(images=ImageOptions(selector=selector, delete_only_handle_key=True))
    producer = Producer(history, options)
    seats = [(k, v) for record in producer.log() for k, v in events(record) if k["t"] == 1 and k["tbl"] == "seats"]
    assert {tuple(image) for _, value in seats for image in images(value)} == {("seat",)}
    assert producer.counts["dropped delete"] > 0
    assert not any("d" in value for _, value in seats)


def test_a_sink_of_partial_images_is_what_the_projection_says(tmp_path):
    """The projection against statements of a database: INSERT and UPDATE of the listed columns only."""
    history = History(8, replace(SIZE, families=frozenset({TableFamily.ORDERS}), ddl_kinds=frozenset()))
    half = list(history)[10].ts
    wanted = open_oracle("sqlite:///:memory:")
    wanted.apply(seen_by_sink(history, ImageOptions(selector=SELECTOR), start_ts=half))
    with open_oracle(f"sqlite:///{tmp_path}/written.db") as loaded:
        loaded.apply(history, half)
    connection = sqlite3.connect(tmp_path / "written.db", isolation_level=None)
    for step in history:
        for table, before, after in step.rows if step.ts > half else ():
            listed = [table.columns[place].name for place in SELECTOR.places(table)]
            key = [table.columns[place].name for place in table.handle_places]
            row = dict(zip(table.position, after or before, strict=True))
            where, held = " AND ".join(f'"{name}" = :{name}' for name in key), {name: row[name] for name in key}
            row |= {"status": {1: "new", 2: "paid", 3: "sent", 4: "it's lost"}[row["status"]]} if "status" in row else {}
            if after is None:
                connection.execute(f'DELETE FROM "{table.name}" WHERE {where}', held)
            elif before is None:
                row |= {name: {"status": "new"}.get(name) for name in row.keys() - set(listed)}
                marks = ",".join(f":{name}" for name in row)
                connection.execute(f'INSERT INTO "{table.name}" VALUES ({marks})', row)
            else:
                pairs = ",".join(f'"{name}" = :{name}' for name in listed)
                connection.execute(f'UPDATE "{table.name}" SET {pairs} WHERE {where}', row)
    assert unlisted_columns(wanted.tables().values(), ImageOptions(selector=SELECTOR)) != {}
    assert compare(wanted, f"sqlite:///{tmp_path}/written.db") == []


def test_the_oldest_producers_write_h_and_no_f():
    columns = [
        column for _, value in rows_of(ProducerOptions(images=ImageOptions(flags=False))) for i in images(value) for column in i.values()
    ]
    assert not any("f" in column for column in columns)
    assert any(column.get("h") for column in columns)


def test_stale_flags_leave_new_columns_without_flags():
    history = History(6, replace(SIZE, transactions=60, ddl_share=0.5))
    fresh, stale = (
        rows_of(ProducerOptions(images=ImageOptions(stale_flags=stale), flavour=Flavour.TICDC), history) for stale in (False, True)
    )
    changed = [
        (new.get("f"), old.get("f"))
        for (_, before), (_, after) in zip(fresh, stale, strict=True)
        for whole, other in zip(images(before), images(after), strict=True)
        for new, old in zip(whole.values(), other.values(), strict=True)
        if new != old
    ]
    assert changed
    assert {old for _, old in changed} >= {None}


@pytest.mark.parametrize("flavour", list(Flavour))
def test_rows_beyond_the_limit_become_handle_key_only_events(flavour):
    large = LargeRowSettings(option=LargeRowOption.HANDLE_KEY_ONLY, limit=600)
    rows = rows_of(ProducerOptions(flavour=flavour, large=large), WIDE_ROWS)
    placeholders = [(key, value) for key, value in rows if key.get("ohk")]
    assert 0 < len(placeholders) < len(rows)
    assert all(column.get("h") for _, value in placeholders for image in images(value) for column in image.values())
    assert all("ccl" not in key for key, _ in placeholders)


@pytest.mark.parametrize("compression", ["none", "lz4", "snappy"])
@pytest.mark.parametrize("flavour", list(Flavour))
def test_objects_of_claim_checks_hold_the_whole_row_before_its_placeholder_is_sent(tmp_path, flavour, compression):
    large = LargeRowSettings(option=LargeRowOption.CLAIM_CHECK, limit=600, directory=tmp_path, location="s3://bucket/prefix")
    found = 0
    for record in Producer(WIDE_ROWS, ProducerOptions(flavour=flavour, large=large, compression=compression)).log():
        for key, value in events(record):
            if "ccl" not in key:
                continue
            found += 1
            assert (b'"ohk":true,"ohk":false' in record.key) == (flavour is Flavour.TICDC)
            place, name = key["ccl"].rsplit("/", 1)
            held = json.loads((tmp_path / name).read_text())
            ((whole_key, whole_value),) = events(RecordBytes(base64.b64decode(held["key"]), base64.b64decode(held["value"])))
            assert place == "s3://bucket/prefix"
            assert (whole_key["ts"], whole_key["scm"], whole_key["tbl"]) == (key["ts"], key["scm"], key["tbl"])
            assert all(part.items() <= whole_value[name].items() for name, part in value.items())
    assert found > 3


def test_a_placeholder_that_is_too_large_is_an_error_of_the_changefeed():
    large = LargeRowSettings(option=LargeRowOption.HANDLE_KEY_ONLY, limit=record_length([]) + 20)
    with pytest.raises(ValueError, match="the changefeed fails: a placeholder of"):
        rows_of(ProducerOptions(large=large))


def test_growth_is_announced_on_every_stream_of_the_topic():
    options = ProducerOptions(seed=1, partitions=2, replays=20, growth=3, admin_events=True)
    announced: dict[int, set] = {}
    for record in Producer(HISTORY, options).log():
        for key, value in events(record):
            if key["t"] == 4:
                assert key == {"t": 4}
                announced.setdefault(value["partition"], set()).add(record.stream.partition)
    assert announced == {count: set(range(count)) for count in announced}
    assert announced


KEYLESS = replace(SIZE, transactions=60, families=frozenset({TableFamily.KEYLESS}), keyless_twins=True)


@pytest.mark.parametrize("seed", range(5))
def test_equal_rows_of_tables_without_a_key_are_counted(seed):
    history = History(seed, KEYLESS)
    with open_oracle("sqlite:///:memory:") as oracle:
        oracle.apply(history)
        held = {name: Counter(facts.rows) for name, facts in oracle.facts().tables.items()}
    assert max(count for rows in held.values() for count in rows.values()) > 1
    assert {name: rows.total() for name, rows in held.items()} == {state.table.name: len(state.rows) for state in history.catalogue()}


def test_a_table_without_a_key_is_sent_whole_without_handle_columns():
    rows = rows_of(
        ProducerOptions(images=ImageOptions(delete_only_handle_key=True, selector=SELECTOR)),
        History(1, replace(KEYLESS, ddl_kinds=frozenset())),
    )
    assert not any(column.get("h") for _, value in rows for image in images(value) for column in image.values())
    assert {len(image) for key, value in rows for image in images(value)} == {3, 4}


def test_snapshots_answer_with_the_row_as_it_was():
    snapshots = Snapshots(HISTORY)
    asked = 0
    for step in HISTORY:
        for table, before, after in step.rows:
            for row, ts in ((before, step.ts - 1), (after, step.ts)):
                # A DDL at this ts may have dropped or altered the table.
                if row is not None and table.handle_places and not (step.ddls and ts == step.ts):
                    names = [column.name for column in table.columns]
                    key = {names[place]: row[place] for place in table.handle_places}
                    asked += 1
                    assert snapshots.row(table.name, key, ts) == dict(zip(names, row, strict=True))
    assert asked > 50
