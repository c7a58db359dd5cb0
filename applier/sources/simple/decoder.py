"""The simple protocol's side of the source's port: what executors and the driver are given to read records with."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from applier.model.errors import ProtocolError
from applier.model.events import Event, RowEvent
from applier.model.position import RecordPosition, Stream
from applier.planner.port import RowLookup
from applier.selection import EVERYTHING, TableSelection
from applier.sources.port import EventHead, LogReader, Record
from applier.sources.row_key import decode_key
from applier.sources.selected_events import located
from applier.sources.simple.image_code import encode_image, image_decoder, images_decoder
from applier.sources.simple.message import BOOTSTRAP, ROWS, SimpleMessage, read_message
from applier.sources.simple.placer import SimplePlacer, claimed_message, head_of, plain_event, row_event, zones_of
from applier.sources.simple.schema_log import SchemaSearch
from applier.sources.simple.zone import NamedZones
from applier.sources.ticdc.large_row import REFUSED, WholeRowSources, with_claimed_rows


@dataclass(frozen=True, slots=True)
class SimpleDecoder:
    """Implements ``LogDecoder``. ``whole_rows``: where large rows are found. ``log``: where schemas of rows are; None: in their range only.

    ``time_zone``: the one that TIMESTAMP values must name; '': any.
    ``selection``: what its placers give of upstream, and under which names. ``events`` shows everything, as it came.
    """

    whole_rows: WholeRowSources = REFUSED
    selection: TableSelection = EVERYTHING
    log: LogReader | None = None
    time_zone: str = ""

    # A transaction's rows may come in any order, and on several partitions.
    keeps_order: ClassVar[bool] = False

    # The functions themselves, not methods that call them: keys and images are decoded once per row.
    image_decoder = staticmethod(image_decoder)
    images_decoder = staticmethod(images_decoder)
    decode_key = staticmethod(decode_key)
    encode_image = staticmethod(encode_image)

    def in_log(self, log: LogReader) -> "SimpleDecoder":
        """Return the decoder of the records of one log."""
        return replace(self, log=log)

    def in_zone(self, time_zone: str) -> "SimpleDecoder":
        """Return the decoder of records whose TIMESTAMP values are of one zone."""
        return replace(self, time_zone=time_zone)

    @property
    def row_lookup(self) -> RowLookup | None:
        """What reads the whole rows of placeholders."""
        return self.whole_rows.lookup

    def placer(self, stream: Stream) -> SimplePlacer:
        """Make the placer of one range."""
        return SimplePlacer(stream, self.whole_rows, self.selection, self.log, self.time_zone)

    def events(self, record: Record, position: RecordPosition) -> Sequence[Event]:
        """Return the events of one record: one, or none of a BOOTSTRAP."""
        return [event for event, _ in self._read(record, position)]

    def whole_events(self, record: Record, position: RecordPosition) -> Sequence[Event]:
        """Return the events of one record; claim-check rows with all of their columns."""
        found = self._read(record, position)

        def read(content: bytes, row: RowEvent) -> RowEvent:
            del row
            ((_, message),) = found
            version = SchemaSearch(position.stream, self.log, waits=False).version(message, position.offset)
            return row_event(claimed_message(content, message, version, position), version)

        return with_claimed_rows([event for event, _ in found], position, self.whole_rows.claims, read)

    def _read(self, record: Record, position: RecordPosition) -> list[tuple[Event, SimpleMessage]]:
        schemas, head = SchemaSearch(position.stream, self.log, waits=False), None
        try:
            message = read_message(record.key, record.value)
            if message.schema is not None:
                schemas.learn(message)
            if message.kind == BOOTSTRAP:
                return []
        except ProtocolError as error:
            raise located(error, position, None, None) from error
        try:
            head = head_of(message)
            return [(self._event(message, head, schemas, position), message)]
        except ProtocolError as error:
            raise located(error, position, 0, head) from error

    def _event(self, message: SimpleMessage, head: EventHead, schemas: SchemaSearch, position: RecordPosition) -> Event:
        if message.kind in ROWS:
            version = schemas.version(message, position.offset)
            NamedZones(self.time_zone).check(zones_of(message, version))
            return row_event(message, version)
        return plain_event(message, head)
