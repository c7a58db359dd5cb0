"""What may have changed the row of a quarantined event since, in a source that keeps the order within a transaction."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import pytest

from applier.model.errors import NeedsOperator
from applier.model.position import Offset, StreamPosition, Ts
from applier.model.range_report import RangeId
from applier.model.rejected_event import EventPosition
from applier.replica.quarantine_retry import QuarantinedRow, refuse_later_events
from applier.sources.open_protocol.decoder import OpenProtocolDecoder
from applier.sources.port import Record
from tests.builders.handwritten import KEY, ONE, log_of, row
from tests.builders.wire import column
from tests.rig.fake_source import FakeSource

PLACE = EventPosition(ONE, Offset(0), 0)
APPLIED = {ONE: StreamPosition(next_offset=Offset(2), resolved_ts=Ts(0))}


class OrderedDecoder(OpenProtocolDecoder):
    keeps_order = True


class OrderedSource(FakeSource):
    @property
    def decoder(self) -> OrderedDecoder:
        return OrderedDecoder()


class OtherLog(NamedTuple):
    """Another server's, which holds nothing of what was applied before."""

    def read(self, ranges: Sequence[RangeId]) -> Iterator[tuple[RangeId, list[Record]]]:
        return ((range_id, []) for range_id in ranges)


class OtherLogSource(OrderedSource):
    @property
    def reader(self) -> OtherLog:  # type: ignore[override]  # another log
        return OtherLog()


def log(*keys):
    return log_of(*((ONE, row(5, id=column(3, KEY, key))) for key in keys))


def rows_of_place(source):
    record = log(1)[0]
    return [QuarantinedRow(event, 0, index) for index, event in source.decoder.placer(ONE).place_each(0, record.key, record.value)]


def test_a_later_change_of_the_same_transaction_counts():
    source = OrderedSource(log(1, 2))
    refuse_later_events(source, PLACE, rows_of_place(source), APPLIED)
    source = OrderedSource(log(1, 1))
    with pytest.raises(NeedsOperator, match="a later event has changed the same row"):
        refuse_later_events(source, PLACE, rows_of_place(source), APPLIED)


def test_where_the_log_of_the_event_is_gone_nothing_is_known_of_later_ones():
    source = OtherLogSource(log(1, 2))
    with pytest.raises(NeedsOperator, match="not followed any more"):
        refuse_later_events(source, PLACE, rows_of_place(source), APPLIED)
