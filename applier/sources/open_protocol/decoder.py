"""The Open Protocol's side of the source's port: what executors and the driver are given to read records with."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

from applier.model.events import Event
from applier.model.position import RecordPosition, Stream
from applier.planner.port import RowLookup
from applier.selection import EVERYTHING, TableSelection
from applier.sources.open_protocol.image_codec import encode_image, image_decoder, images_decoder
from applier.sources.open_protocol.placer import OpenProtocolPlacer, whole_events
from applier.sources.open_protocol.record import decode_record
from applier.sources.port import Record
from applier.sources.row_key import decode_key
from applier.sources.ticdc.large_row import REFUSED, WholeRowSources


@dataclass(frozen=True, slots=True)
class OpenProtocolDecoder:
    """Implements ``Decoder``. What is compiled is shared by the process. ``whole_rows``: where large rows are found.

    ``selection``: what its placers give of upstream, and under which names. ``events`` shows everything, as it came.
    """

    whole_rows: WholeRowSources = REFUSED
    selection: TableSelection = EVERYTHING

    # A transaction's rows may come in any order, and on several partitions.
    keeps_order: ClassVar[bool] = False

    # The functions themselves, not methods that call them: keys and images are decoded once per row.
    image_decoder = staticmethod(image_decoder)
    images_decoder = staticmethod(images_decoder)
    decode_key = staticmethod(decode_key)
    encode_image = staticmethod(encode_image)

    @property
    def row_lookup(self) -> RowLookup | None:
        """What reads the whole rows of placeholders."""
        return self.whole_rows.lookup

    def placer(self, stream: Stream) -> OpenProtocolPlacer:
        """Make the placer of one range."""
        return OpenProtocolPlacer(stream, self.whole_rows, self.selection)

    def events(self, record: Record, position: RecordPosition) -> Sequence[Event]:
        """Return the whole events of one record."""
        return decode_record(record.key, record.value, position)

    def whole_events(self, record: Record, position: RecordPosition) -> Sequence[Event]:
        """Return the whole events of one record; claim-check rows with all of their columns."""
        return whole_events(record, position, self.whole_rows.claims)


OPEN_PROTOCOL: Final = OpenProtocolDecoder()
