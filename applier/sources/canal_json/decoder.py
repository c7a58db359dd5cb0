"""canal-json's side of the source's port: what executors and the driver are given to read records with."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

from applier.model.events import Event
from applier.model.position import RecordPosition, Stream
from applier.planner.port import RowLookup
from applier.selection import EVERYTHING, TableSelection
from applier.sources.canal_json.image_codec import encode_image, image_decoder, images_decoder
from applier.sources.canal_json.placer import CanalJsonPlacer, events, whole_events
from applier.sources.port import Record
from applier.sources.row_key import decode_key
from applier.sources.ticdc.large_row import REFUSED, WholeRowSources


@dataclass(frozen=True, slots=True)
class CanalJsonDecoder:
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

    def placer(self, stream: Stream) -> CanalJsonPlacer:
        """Make the placer of one range."""
        return CanalJsonPlacer(stream, self.whole_rows, self.selection)

    def events(self, record: Record, position: RecordPosition) -> Sequence[Event]:
        """Return the event of one record."""
        return events(record, position)

    def whole_events(self, record: Record, position: RecordPosition) -> Sequence[Event]:
        """Return the event of one record; a claim-check row with all of its columns."""
        return whole_events(record, position, self.whole_rows.claims)


CANAL_JSON: Final = CanalJsonDecoder()
