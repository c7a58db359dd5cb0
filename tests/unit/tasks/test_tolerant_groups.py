"""A tolerant listener places many small rows together, and few large ones: they may be claim-check objects of megabytes."""

from dataclasses import dataclass, field

from applier.model.position import Offset
from applier.sources.open_protocol import OpenProtocolPlacer
from applier.sources.port import Record
from applier.tasks import tolerance
from applier.tasks.tolerance import Tolerance, TolerantPlacer
from tests.builders.handwritten import ONE
from tests.builders.wire import head, integer_key, record, text


@dataclass
class Counting:
    """The usual decoder, which notes how many records are placed together."""

    together: list = field(default_factory=list)

    def placer(self, stream):
        placer, noted = OpenProtocolPlacer(stream), self.together

        class Noting:
            def place_all(self, records):
                noted.append(len(records))
                return placer.place_all(records)

        return Noting()


def placed_together(sizes):
    decoder = Counting()
    records = [
        Record(Offset(offset), *record((head(), {"u": {"id": integer_key(offset), "c": text("x" * size)}})))
        for offset, size in enumerate(sizes)
    ]
    rows = sum(len(placed.key) for placed in TolerantPlacer(ONE, Tolerance(unreadable=True), decoder).place_all(records))
    assert (rows, sum(decoder.together)) == (len(sizes), len(sizes))
    return decoder.together


def test_small_rows_are_placed_together():
    assert placed_together([10] * 300) == [128, 128, 44]


def test_fewer_rows_are_placed_together_while_they_are_large(monkeypatch):
    monkeypatch.setattr(tolerance, "TOGETHER_BYTES", 10_000)
    assert placed_together([1000] * 200 + [10] * 100) == [128, 32, 8, 16, 4, 8, 16, 32, 56]
