"""The binlog's side of the source's port: what executors and the driver are given to read records with."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

from applier.model.errors import InvariantViolation
from applier.model.events import Event, Shape, Value
from applier.model.position import Place, Stream
from applier.planner.port import RowLookup
from applier.selection import EVERYTHING, TableSelection
from applier.sources.binlog.image_codec import image_decoder, images_decoder
from applier.sources.binlog.placer import BinlogPlacer
from applier.sources.binlog.whole_event import whole_events
from applier.sources.port import Record
from applier.sources.row_key import decode_key


@dataclass(frozen=True, slots=True)
class BinlogDecoder:
    """Implements ``Decoder``. What is compiled is shared by the process.

    ``selection``: what its placers give of upstream, and under which names. ``events`` shows everything, as it came.
    """

    selection: TableSelection = EVERYTHING

    # A transaction may delete and write one key in any order, and its rows come so.
    keeps_order: ClassVar[bool] = True

    # The functions themselves, not methods that call them: keys and images are decoded once per row.
    image_decoder = staticmethod(image_decoder)
    images_decoder = staticmethod(images_decoder)
    decode_key = staticmethod(decode_key)

    @property
    def row_lookup(self) -> RowLookup | None:
        """Rows of a binlog are never placeholders."""
        return None

    def placer(self, stream: Stream) -> BinlogPlacer:
        """Make the placer of one range."""
        return BinlogPlacer(stream, self.selection)

    def encode_image(self, shape: Shape, values: Sequence[Value]) -> bytes:
        """Raise InvariantViolation: only placeholders are replaced by rows from elsewhere."""
        raise InvariantViolation("rows of a binlog are never placeholders", schema=shape.schema, table=shape.table, values=len(values))

    def events(self, record: Record, place: Place) -> Sequence[Event]:
        """Return the whole events of one record."""
        return whole_events(record, place)

    def whole_events(self, record: Record, place: Place) -> Sequence[Event]:
        """Return the whole events of one record: no row is too large for a binlog."""
        return whole_events(record, place)


BINLOG: Final = BinlogDecoder()
