"""A writer completes partial rows from the sink's rows, in its transaction, on every database."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from applier.model.chunk import Chunk, pack
from applier.model.errors import FatalSinkError, NeedsOperator
from applier.model.events import RowKind, Shape, TableName
from applier.model.position import Ts
from applier.model.rejected_event import KeptRecord, RejectedEvent
from applier.model.segment import SegmentWindow
from applier.planner import STOP, PlanTarget, QuarantinePolicy, plan_bucket
from applier.planner.port import Phase, Statement
from applier.sinks.progress import WriteOutcome, WriteState
from applier.sinks.quarantine import Quarantined
from applier.sources.column_flags import Flag, shape_of
from applier.sources.open_protocol import OPEN_PROTOCOL, encode_key
from tests.contract.replica_on_database import FEED, SHOP, DatabaseReplica

TABLE = TableName(SHOP, "wide")
KEY = int(Flag.HANDLE_KEY | Flag.PRIMARY_KEY | Flag.BINARY)
CREATE = (
    "CREATE TABLE `wide` (`id` INT, `email` VARCHAR(20) NOT NULL, `v` VARCHAR(40) NOT NULL DEFAULT 'it''s \\\\ new', `n` INT NULL,"
    " `big` BIGINT UNSIGNED NOT NULL DEFAULT 7, `b` VARBINARY(9) NULL DEFAULT 'x', `d` DOUBLE NULL, `twice` INT AS (`n` + `n`) STORED,"
    " `must` INT NOT NULL, {keys})"
)
FULL = ("id", "email", "v", "n", "big", "b", "d", "must")
TYPES = {"id": 3, "email": 15, "v": 15, "n": 3, "big": 8, "b": 15, "d": 5, "must": 3}
OLD = [
    (1, "a@x", "'\\ é😀", None, 2**64 - 1, "\\x00\\xff'", 0.1, 1),
    (2, "b@x", "", 2, 0, None, -5e-324, 2),
    (3, "c@x", "three", 3, 3, "c", 1.7976931348623157e308, 3),
]


@pytest.fixture(
    params=["PRIMARY KEY (`id`), UNIQUE KEY `e` (`email`)", "UNIQUE KEY `e` (`email`), KEY `k` (`id`)"], ids=["keyed", "key is no index"]
)
def wide(request: pytest.FixtureRequest, replica: DatabaseReplica) -> Iterator[DatabaseReplica]:
    """A replica whose table `wide` holds ``OLD``."""
    replica.run_ddl(CREATE.format(keys=request.param), 6, table="wide")
    assert apply(replica, *((RowKind.UPSERT, dict(zip(FULL, row, strict=True))) for row in OLD)).state is WriteState.COMMITTED
    return replica


def shape_with(names: tuple[str, ...]) -> Shape:
    flags = {"id": KEY, "email": int(Flag.UNIQUE_KEY), "b": int(Flag.BINARY | Flag.NULLABLE), "big": int(Flag.UNSIGNED)}
    return shape_of(*TABLE, tuple((name, TYPES[name], flags.get(name, 0)) for name in names))


def planned(replica: DatabaseReplica, *events: tuple[RowKind, dict[str, Any]], policy: QuarantinePolicy) -> list[Statement]:
    """Plan events, each a transaction of its own."""
    shapes = [shape_with(tuple(values)) for _, values in events]
    distinct = list(dict.fromkeys(shapes))
    images = [image_of(shape, values) for shape, (_, values) in zip(shapes, events, strict=True)]
    chunk = Chunk(
        origins=[(FEED, shape) for shape in distinct],
        origin=[distinct.index(shape) for shape in shapes],
        commit_ts=list(range(11, 11 + len(events))),
        kind=[int(kind) for kind, _ in events],
        offset=list(range(len(events))),
        index=[0] * len(events),
        key=[encode_key([values["id"]]) for _, values in events],
        image=images,
    )
    described = replica.sink.describe([TABLE])
    window = SegmentWindow(after_ts=Ts(10), upto_ts=Ts(99), again=False, settled_tables=frozenset())
    target = PlanTarget(described, {}, replica.sink.dialect)
    items = plan_bucket([pack(0, chunk).data], window, target, OPEN_PROTOCOL, policy)
    return sorted((item for item in items if isinstance(item, Statement)), key=lambda one: one.phase)


def image_of(shape: Shape, values: dict[str, Any]) -> bytes:
    return json.dumps({c.name: {"t": c.mysql_type, "f": c.flags, "v": values[c.name]} for c in shape.columns}).encode()


def apply(
    replica: DatabaseReplica,
    *events: tuple[RowKind, dict[str, Any]],
    policy: QuarantinePolicy = STOP,
    quarantined: Quarantined | None = None,
) -> WriteOutcome:
    return replica.write(planned(replica, *events, policy=policy), ts=99, quarantined=quarantined)


def put(**values: Any) -> tuple[RowKind, dict[str, Any]]:
    return RowKind.UPSERT, values


def gone(key: int) -> tuple[RowKind, dict[str, Any]]:
    return RowKind.DELETE, {"id": key}


def is_keyed(replica: DatabaseReplica) -> bool:
    return replica.sink.describe([TABLE])[TABLE.fold()].has_unique_key(["id"])


def stored(replica: DatabaseReplica) -> list[tuple[Any, ...]]:
    name = f'"{SHOP}.wide"' if replica.is_file else f"`{SHOP}`.`wide`"
    rows = replica.read(f"SELECT id, email, v, n, big, HEX(b), d, twice, must FROM {name} ORDER BY id")
    return [tuple(int(value) if at == 4 else value for at, value in enumerate(row)) for row in rows]


def test_a_row_keeps_every_column_that_its_image_does_not_list(wide: DatabaseReplica) -> None:
    before = stored(wide)
    outcome = apply(wide, put(id=1, n=5), put(id=2, v="new"), put(id=3, must=9))
    # Rows whose key is no unique index are deleted and inserted, and count twice.
    assert (outcome.state, outcome.rows) == (WriteState.COMMITTED, 3 if is_keyed(wide) else 6)
    first, second, third = map(list, before)
    first[3], first[7], second[2], third[8] = 5, 10, "new", 9
    assert stored(wide) == [tuple(first), tuple(second), tuple(third)]
    assert apply(wide, put(id=1, n=5), put(id=2, v="new"), put(id=3, must=9)).state is WriteState.COMMITTED
    assert stored(wide) == [tuple(first), tuple(second), tuple(third)]


def test_what_is_read_is_read_before_a_replace_of_the_segment_can_delete_it(wide: DatabaseReplica) -> None:
    """The unique addresses of three rows rotate: each REPLACE deletes a row that another partial row still needs."""
    before = stored(wide)
    assert apply(wide, put(id=1, email="b@x"), put(id=2, email="c@x"), put(id=3, email="a@x")).state is WriteState.COMMITTED
    emails = ["b@x", "c@x", "a@x"]
    assert stored(wide) == [(row[0], email, *row[2:]) for row, email in zip(before, emails, strict=True)]


def test_a_new_row_takes_the_defaults_of_the_sink(wide: DatabaseReplica) -> None:
    new = (5, "e@x", "it's \\ new", None, 7, "78", None, None, 1)
    assert apply(wide, put(id=5, email="e@x", must=1)).state is WriteState.COMMITTED
    assert stored(wide)[-1] == new
    assert apply(wide, gone(1), put(id=1, email="f@x", must=2)).state is WriteState.COMMITTED
    assert stored(wide)[0] == (1, "f@x", *new[2:8], 2)


def test_a_new_row_without_a_column_that_has_no_default_stops_and_nothing_is_written(wide: DatabaseReplica) -> None:
    before = stored(wide)
    outcome = apply(wide, put(id=1, n=1), put(id=5, email="e@x", n=2))
    assert isinstance(outcome.error, NeedsOperator)
    assert {"column": "must", "offset": 1, "commit_ts": 12}.items() <= outcome.error.facts.items()
    assert "column-selectors" in outcome.error.remedy
    assert stored(wide) == before


def test_a_row_that_the_database_refuses_once_it_is_whole_is_quarantined_with_all_of_its_events(wide: DatabaseReplica) -> None:
    before = stored(wide)
    policy = QuarantinePolicy(refused=True, trace_rows=True)
    kept: list[RejectedEvent] = []

    def record_of(event: RejectedEvent) -> KeptRecord:
        kept.append(event)
        return KeptRecord(b"key", b"value")

    quarantined = Quarantined(record_of, takes_refused=True)
    # SQLite's columns take any length, but only text that fits their type.
    refused = {"v": None} if wide.is_file else {"v": "x" * 41}
    events = (put(id=1, **refused), put(id=2, n=4), put(id=1, n=3))
    outcome = apply(wide, *events, policy=policy, quarantined=quarantined)
    assert outcome.state is WriteState.COMMITTED
    assert sorted(event.position.offset for event in kept) == [0, 2]
    *first, second, third = stored(wide)
    assert (first, third) == (before[:1] if is_keyed(wide) else [], before[2])
    assert second[3] == 4


def test_a_read_comes_after_nothing_else_on_its_table(wide: DatabaseReplica) -> None:
    statements = planned(wide, put(id=1, n=5), gone(2), policy=STOP)
    assert statements[0].phase is Phase.READ
    outcome = wide.write(reversed(statements), ts=99)
    assert outcome.state is WriteState.FAILED
    assert "order of their phases" in str(outcome.error)


def test_a_default_that_is_an_expression_is_the_servers_and_stops_in_a_file(replica: DatabaseReplica) -> None:
    columns = "`id` INT PRIMARY KEY, `email` VARCHAR(20) NOT NULL, `n` VARCHAR(40) NOT NULL DEFAULT (UUID())"
    replica.run_ddl(f"CREATE TABLE `wide` ({columns}, `d` DATETIME DEFAULT CURRENT_TIMESTAMP)", 6, table="wide")
    outcome = apply(replica, put(id=1, email="a@x"))
    if replica.is_file:
        assert isinstance(outcome.error, NeedsOperator)
        assert outcome.error.facts["column"] == "n"
    else:
        assert outcome.state is WriteState.COMMITTED
        (row,) = before = replica.read(f"SELECT * FROM `{SHOP}`.`wide`")
        assert row[:2] == (1, "a@x")
        assert all(value is not None for value in row)
        assert apply(replica, put(id=1, email="a@x")).state is WriteState.COMMITTED
        assert replica.read(f"SELECT * FROM `{SHOP}`.`wide`") == before


def test_an_error_of_a_read_is_one_of_the_sink_and_names_the_table(wide: DatabaseReplica) -> None:
    (statement,) = (one for one in planned(wide, put(id=1, n=5), policy=STOP) if one.reading is not None)
    outcome = wide.write([statement._replace(text=statement.text.replace(b"wide", b"nowhere"))], ts=99)
    assert isinstance(outcome.error, FatalSinkError)
    assert outcome.error.facts["table"] == f"{SHOP}.wide"
