"""The live feed of the measurements writes rows that every decoder reads, each at the time of its commit."""

import pytest

from applier.demo.simulator.wire_format import WireFormat
from applier.model.events import PlacedRow, ResolvedEvent
from applier.model.position import Stream, Ts
from applier.selection import EVERYTHING
from applier.sources.formats import FORMATS
from applier.sources.ticdc.large_row import REFUSED
from tests.bench.suite import feeder
from tests.bench.suite.rows import order

T = 462_422_016_814_481_408
PARTITIONS = 2


@pytest.mark.parametrize("form", list(WireFormat))
def test_rows_have_the_time_of_their_commit_and_follow_their_schema(form, monkeypatch):
    monkeypatch.setattr(feeder, "ROWS", 30)
    sent = [[] for _ in range(PARTITIONS)]
    rows = feeder.rows_in(form, PARTITIONS, lambda place, record: sent[place].append(record))
    for number in range(4):
        sent[0] += rows.watermark(Ts(T + 10 * number))
        rows.commit(Ts(T + 10 * number + 5))
        rows.flush()
    # Both partitions get the same records with a watermark: the second one its schema, too.
    sent[1][:0] = sent[0][: 2 if form.sends_schemas else 1]
    decoder = FORMATS[form.protocol](REFUSED, EVERYTHING)
    times, ids = [], []
    for place, records in enumerate(sent):
        placer = decoder.placer(Stream("live", place))
        events = [event for offset, record in enumerate(records) for _, event in placer.place_each(offset, *record)]
        assert isinstance(events[0], ResolvedEvent)
        for event in events:
            if isinstance(event, PlacedRow):
                values = dict(
                    zip([column.name for column in event.shape.columns], decoder.image_decoder(event.shape)(event.image), strict=True)
                )
                assert values["note"] == order(values["id"])[5]
                times.append(event.commit_ts)
                ids.append(values["id"])
    assert sorted(times) == [T + 10 * number + 5 for number in range(4) for _ in range(feeder.PER_TRANSACTION)]
    assert sorted(ids) == sorted([*range(30), *range(10)])
