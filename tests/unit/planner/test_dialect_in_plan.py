"""What the planner asks of a dialect."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from applier.model.errors import FatalSinkError, InvariantViolation, ProtocolError
from applier.sinks.mysql.dialect import MysqlDialect
from tests.builders.planning import INT, KEY, TEXT, PlainDialect, gone, packed, plan, put, shape, sink_column, sink_table, written

ID, NAME = sink_column("id", sql_type="int"), sink_column("name", sql_type="text")


@dataclass(frozen=True)
class Losing(PlainDialect):
    """Loses the last row."""

    def replaces(self, table: Any, columns: Any, rows: Any) -> Iterator[tuple[str, int]]:
        for text, count in super().replaces(table, columns, rows):
            yield text, count - 1


def test_a_dialect_that_loses_rows_is_a_defect_and_not_a_smaller_segment() -> None:
    with pytest.raises(InvariantViolation) as caught:
        plan(packed(put(5, 1, "x"), put(5, 2, "x")), dialect=Losing())
    assert (caught.value.facts["rows"], caught.value.facts["rendered"]) == (2, 1)


def test_a_row_of_one_column_out_of_several_is_a_row() -> None:
    generated = sink_table("id", sink_column("name", generated=True))
    assert written(packed(put(5, 1, "x")), tables=[generated]) == [["replace", "orders", ["id"], [[1]]]]


def test_a_segment_for_mysql_reads_as_sql() -> None:
    turned = shape(("name", TEXT, 64), ("raw", 252, 65), ("id", INT, KEY))
    table = sink_table(ID, NAME, sink_column("raw", sql_type="blob", binary=True, nullable=True))
    data = packed(put(5, "it's", "AP8=", 1, shape=turned), put(6, "plain", None, 2, shape=turned), gone(7, "x", None, 3, shape=turned))
    statements, _ = plan(data, tables=[table], dialect=MysqlDialect())
    assert [statement.text for statement in statements] == [
        b"DELETE FROM `shop`.`orders` WHERE `id` IN (3)",
        b"REPLACE INTO `shop`.`orders` (`id`,`name`,`raw`) VALUES (1,'it\\'s',x'00ff'),(2,'plain',NULL)",
    ]


def test_a_mysql_row_too_large_for_a_packet_is_named_by_its_place() -> None:
    rows = packed(put(5, 1, "x"), put(6, 2, "y" * 100, offset=9))
    with pytest.raises(FatalSinkError, match="max_allowed_packet") as caught:
        plan(rows, tables=[sink_table(ID, NAME)], dialect=MysqlDialect(max_packet_bytes=120))
    assert (caught.value.facts["commit_ts"], caught.value.facts["offset"]) == (6, 9)


def test_a_null_in_a_column_that_cannot_be_null_stops_with_its_place() -> None:
    table = sink_table(ID, sink_column("number", sql_type="int"))
    nulled = shape(("id", INT, KEY), ("number", INT, 1))
    with pytest.raises(ProtocolError) as caught:
        plan(packed(put(6, 2, None, shape=nulled, offset=9)), tables=[table], dialect=MysqlDialect())
    assert {"kind": "value_type", "commit_ts": 6, "offset": 9, "table": "shop.orders"}.items() <= caught.value.facts.items()
