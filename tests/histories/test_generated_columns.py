"""A changefeed's STORED columns in a file: the values that came, where SQLite would compute others."""

import re
import sqlite3
from contextlib import closing

from applier.planner.table_check import DifferenceKind
from tests.builders.generated import CHANGES, DATE, EXPECTED, PLAIN, ROWS, SELECTED, TIMESTAMP, beginning
from tests.builders.handwritten import CREATE_SCHEMA, ONE, ddl, everywhere, log_of, resolved, row, rows_of
from tests.builders.wire import column
from tests.histories.test_quarantine_retry import retry
from tests.rig.fake_source import FakeSource
from tests.rig.local_replica import Replica


def test_stored_columns_have_the_values_that_came_on_the_wire(tmp_path):
    parts = (beginning(), ROWS, CHANGES)
    source = FakeSource(log_of(*(place for part in parts for place in part)), hidden=True)
    replica = Replica(f"sqlite:///{tmp_path}/replica.db", source)
    for part in parts:
        source.advance(len(part))
        replica.catch_up()
    with closing(sqlite3.connect(tmp_path / "replica.db")) as file:
        query = re.sub(r"shop\.\w+", r'"\g<0>"', SELECTED)
        assert set(file.execute(query).fetchall()) == EXPECTED


def test_a_row_without_a_key_is_found_by_its_stored_values_too(tmp_path):
    def seen(ts, day, **more):
        columns = {"at": column(TIMESTAMP, PLAIN, "2024-05-01 17:00:00"), "day": column(DATE, PLAIN, day)}
        return ONE, row(ts, "seen", **columns, **more)

    create = "CREATE TABLE seen (at TIMESTAMP NULL, day DATE AS (DATE(at)) STORED)"
    log = [*everywhere(CREATE_SCHEMA), *everywhere(ddl(10, create, "seen")), seen(20, "2024-05-02"), seen(21, "2024-05-01")]
    log += [*everywhere(resolved(22)), seen(23, "2024-05-02", deleted=True), *everywhere(resolved(30))]
    Replica(f"sqlite:///{tmp_path}/replica.db", FakeSource(log_of(*log)), writes_keyless=True).catch_up()
    assert rows_of(tmp_path, "shop.seen") == [("2024-05-01 17:00:00", "2024-05-01")]


def test_a_quarantined_row_is_applied_later_with_its_stored_value(tmp_path):
    parts = (beginning(), [*ROWS[:1], *everywhere(resolved(30))])
    source = FakeSource(log_of(*(place for part in parts for place in part)), hidden=True)
    replica = Replica(
        f"sqlite:///{tmp_path}/replica.db", source, quarantines=frozenset({"rejected"}), accept={"shop.days": (DifferenceKind.TRIGGER,)}
    )
    source.advance(len(parts[0]))
    replica.catch_up()
    refuse = "CREATE TRIGGER refuse BEFORE INSERT ON \"shop.days\" BEGIN SELECT RAISE(ABORT, 'refused'); END"
    with closing(sqlite3.connect(tmp_path / "replica.db", isolation_level=None)) as file:
        file.execute(refuse)
        source.advance(len(parts[1]))
        replica.catch_up()
        (entry,) = replica.quarantine().values()
        file.execute("DROP TRIGGER refuse")
    retry(replica, entry.event.position)
    assert rows_of(tmp_path, "shop.days") == [(1, "2024-05-01 15:00:00", "2024-05-01")]
