"""Partial rows that cannot be written: no event that such a row consists of is lost."""

from collections.abc import Sequence
from typing import Any

import pytest

from applier.model.errors import FatalSinkError, ProtocolError, RowRefused
from applier.model.events import MARKER_IMAGE
from applier.model.position import Stream
from applier.model.rejected_event import RejectedEvent
from applier.planner import PlanTarget, QuarantinePolicy, TransactionSet, plan_bucket
from applier.planner.port import Phase, Statement, TableDescription
from applier.sources.open_protocol import OPEN_PROTOCOL
from tests.builders.partial_rows import FILLED, ONLY_A, ONLY_B, ONLY_KEY, part, ran, refuse
from tests.builders.planning import ORDERS, PlainDialect, Row, between, packed, plan, put, sink_table

EVERYTHING = QuarantinePolicy(unreadable=True, refused=True)


class Choosy(PlainDialect):
    """Refuses rows that are longer than ``longest`` as dialects do: by a row's own error."""

    def _statements(self, *arguments: Any) -> Any:
        try:
            yield from super()._statements(*arguments)
        except FatalSinkError as error:
            raise RowRefused(error.message, **error.facts) from error


def planned(
    *rows: Row, table: TableDescription = FILLED, policy: QuarantinePolicy = EVERYTHING, dialect: Any = None
) -> tuple[list[Statement], list[RejectedEvent]]:
    target = PlanTarget({ORDERS: table}, {}, dialect or PlainDialect())
    items = list(plan_bucket([packed(*rows)], between(), target, OPEN_PROTOCOL, policy))
    assert isinstance(items[-1], TransactionSet)
    return [item for item in items if isinstance(item, Statement)], [item for item in items if isinstance(item, RejectedEvent)]


def offsets(rejected: Sequence[RejectedEvent]) -> list[int]:
    return sorted(event.position.offset for event in rejected)


@pytest.mark.parametrize("bad", [0, 1, 2])
def test_where_one_image_cannot_be_read_all_that_the_row_consists_of_is_quarantined(bad: int) -> None:
    rows = [part(5, 1, offset=0), part(6, 1, shape=ONLY_A, offset=1), part(7, 1, shape=ONLY_B, offset=2), part(8, 2, offset=3)]
    rows[bad] = Row(rows[bad].commit_ts, rows[bad].kind, rows[bad].values, bad, 0, rows[bad].shape, b"rubbish")
    statements, rejected = planned(*rows)
    assert offsets(rejected) == [0, 1, 2]
    assert list(ran(statements, {})) == [2]
    with pytest.raises(ProtocolError) as caught:
        plan(packed(*rows), tables=[FILLED])
    assert caught.value.facts["offset"] == bad


@pytest.mark.parametrize("marker_ts", [5, 7])
def test_a_partial_row_is_quarantined_with_an_unreadable_version_of_its_row(marker_ts: int) -> None:
    marker = put(marker_ts, 1, shape=ONLY_KEY, image=MARKER_IMAGE, offset=1)
    statements, rejected = planned(marker, part(6, 1, shape=ONLY_A, offset=2), part(6, 2, shape=ONLY_A, offset=3))
    assert offsets(rejected) == [2]
    assert list(ran(statements, {})) == [2]


@pytest.mark.parametrize("primary", [("id",), ()])
def test_a_row_that_is_too_large_once_it_is_whole_is_quarantined_with_all_of_its_parts(primary: tuple[str, ...]) -> None:
    rows = [part(5, 1, offset=0), put(6, 1, "x" * 99, shape=ONLY_A, offset=1), part(6, 2, offset=2), part(7, 2, shape=ONLY_A, offset=3)]
    table = sink_table("id", "a", "b", "c", primary=primary)
    statements, rejected = planned(*rows, dialect=Choosy(longest=60), table=table)
    assert offsets(rejected) == [0, 1]
    assert list(ran(statements, {})) == [2]
    with pytest.raises(RowRefused) as caught:
        planned(*rows, dialect=Choosy(longest=60), policy=QuarantinePolicy())
    assert (caught.value.facts["offset"], caught.value.facts["key_columns"]) == (1, "id")


def test_statements_that_must_know_their_rows_know_all_events_that_a_row_consists_of() -> None:
    rows = [
        part(5, 1, offset=0),
        part(6, 1, shape=ONLY_A, offset=1),
        part(6, 2, shape=ONLY_A, offset=2),
        part(7, 2, shape=ONLY_B, offset=3),
    ]
    statements, _ = planned(*rows, policy=QuarantinePolicy(trace_rows=True))
    reading = next(one for one in statements if one.phase is Phase.READ)
    assert reading.reading is not None
    replaces = [*(one for one in statements if one.phase is Phase.REPLACE), *reading.reading.replaces({0: ["kept"]}, refuse)]
    sources = [one.source_rows for one in replaces]
    assert [[event.position.offset for event in source.rows] for source in sources if source] == [[1], [3]]
    assert [[event.position.offset for events in source.earlier for event in events] for source in sources if source] == [[0], [2]]
    (half,) = [half for source in sources if source for half in source.halves() if source is sources[0]]
    assert half.source_rows is not None
    assert half.source_rows.earlier == sources[0].earlier


def test_a_value_that_the_database_cannot_show_is_refused_with_its_column() -> None:
    class Mute(PlainDialect):
        def read_literal(self, value: Any) -> str | None:
            return None

    (statement,), _ = planned(part(5, 1, shape=ONLY_A, offset=4), dialect=Mute())
    refused: list[Any] = []
    assert statement.reading is not None
    assert list(statement.reading.replaces({0: [None, None]}, lambda *arguments: refused.append(arguments))) == []
    ((events, key, error),) = refused
    assert ([event.position for event in events], key) == ([(Stream("feed", 3), 4, 0)], ("id",))
    assert error.facts["column"] == "b"
