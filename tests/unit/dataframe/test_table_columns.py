"""Which columns a table has, found in its records."""

import pytest

from applier.dataframe.table_columns import columns_of
from applier.model.errors import ConfigError
from applier.model.events import FoldedName
from applier.model.position import Offset, Stream
from applier.model.range_report import RangeId
from applier.sources.open_protocol.decoder import OPEN_PROTOCOL
from applier.sources.port import Record
from tests.builders.wire import TS, column, head, integer_key, record, text

STREAM = Stream("feed", 0)
ORDERS = FoldedName("shop", "orders")


class ListedRecords:
    def __init__(self, data):
        self.records = [Record(Offset(n), *one) for n, one in enumerate(data)]

    def read(self, ranges):
        for range_id in ranges:
            yield range_id, self.records[range_id.start : range_id.end]


def columns(*data):
    return columns_of(ORDERS, ListedRecords(data), OPEN_PROTOCOL, [RangeId(STREAM, Offset(0), Offset(len(data)))])


def row(second, table="orders", **image):
    return record((head(TS + (second * 1000 << 18), table=table), {"u": {"id": integer_key(1), **image}}))


def test_the_columns_are_those_of_the_newest_rows_and_then_those_that_only_older_ones_have():
    found = columns(row(1, dropped=text("x"), v=text("y")), row(2, v=text("y"), added=column(8, 128, 1)), row(3, "items", other=text("z")))
    assert found == "`id` INT, `v` STRING, `added` DECIMAL(20,0), `dropped` STRING"


def test_a_column_that_was_modified_holds_both_and_a_decimal_all_of_its_values():
    found = columns(
        row(1, n=column(3, 0, 1), d=column(246, 0, "1.5")),
        row(2, n=column(8, 0, 1), d=column(246, 0, "-12.3456")),
        row(3, d=column(246, 0, None)),
    )
    assert "`n` BIGINT" in found
    assert "`d` DECIMAL(38,4)" in found


def test_a_record_that_cannot_be_read_does_not_hide_the_others():
    assert columns((b"x", b"y"), row(1, v=text("y"))) == "`id` INT, `v` STRING"


def test_a_table_without_a_row_is_an_error_that_says_how_to_go_on():
    with pytest.raises(ConfigError, match="no row of the table") as caught:
        columns(row(1, "items"))
    assert "columns" in caught.value.remedy


def test_backticks_in_a_name_are_doubled():
    assert columns(row(1, **{"a`b": text("x")})) == "`id` INT, `a``b` STRING"
