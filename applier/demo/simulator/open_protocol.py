"""Open Protocol as a wire of the simulator: which images and flags each event of ``encoder`` has."""

from collections.abc import Sequence

from applier.demo.simulator.encoder import EncodedColumn, Encoder, ImageWriter, frame, record_length
from applier.demo.simulator.item import DdlItem, ImageOptions, RowItem
from applier.demo.simulator.json_text import Flavour
from applier.demo.simulator.mysql_text import DdlWriter
from applier.demo.simulator.operation import Row, action_type, event_name
from applier.demo.simulator.schema import Table
from applier.demo.simulator.schema_versions import VersionedTable
from applier.demo.simulator.wire_format import KeyExtras, SentImages, WireEvent
from applier.model.events import TableName
from applier.model.position import Ts
from applier.sources.column_flags import Flag


class OpenProtocolWire:
    """Implements ``Wire``."""

    broadcasts_ddls = True
    announces_keyless_rows = False

    def __init__(self, flavour: Flavour, compression: str, images: ImageOptions) -> None:
        self.flavour = flavour
        self._encoder = Encoder(flavour, compression)
        self._ddl_text = DdlWriter(flavour)
        self._columns = _ColumnWriter(images)

    def row(self, item: RowItem, images: SentImages, extras: KeyExtras, built_ms: int) -> WireEvent:
        """Write a row. Nothing tells when it was built."""
        del built_ms
        key = self._encoder.row_key(item.ts, item.name.schema, item.name.table, extras)
        writer = self._encoder.image_writer(self._columns.of(item.table))
        before = None if images.before is None else _write(writer, item.before or (), images.before)
        if images.after is None:
            return WireEvent(key, self._encoder.row_value(deleted=before))
        return WireEvent(key, self._encoder.row_value(after=_write(writer, item.after or (), images.after), previous=before))

    def ddl(self, item: DdlItem, built_ms: int) -> WireEvent:
        """Write a DDL, under its new name."""
        del built_ms
        return self._encoder.ddl(item.ts, event_name(item.ddl), self._ddl_text.write(item.ddl), action_type(item.ddl))

    def watermark(self, ts: Ts, built_ms: int) -> WireEvent:
        """Write a resolved event."""
        del built_ms
        return self._encoder.resolved(ts)

    def admin(self, partitions: int) -> WireEvent:
        """Write the admin event of the founding design."""
        return self._encoder.admin(partitions)

    def bootstrap(self, schema: VersionedTable, built_ms: int) -> None:
        """Nothing: rows carry their types."""
        del schema, built_ms

    frame = staticmethod(frame)
    length = staticmethod(record_length)


def _write(writer: ImageWriter, row: Row, places: Sequence[int]) -> str:
    return writer.write(row) if len(places) == len(row) else writer.write_some(row, places)


def wire_columns(table: Table) -> tuple[EncodedColumn, ...]:
    """Return the columns of a table as the wire describes them."""
    return tuple(EncodedColumn(column.name, column.type.code, flags) for column, flags in zip(table.columns, table.flags, strict=True))


class _ColumnWriter:
    """The columns of each table, with the flags that this owner writes."""

    def __init__(self, images: ImageOptions) -> None:
        self._images = images
        self._made: dict[Table, tuple[EncodedColumn, ...]] = {}
        self._first: dict[TableName, Table] = {}

    def of(self, table: Table) -> tuple[EncodedColumn, ...]:
        found = self._made.get(table)
        if found is None:
            found = self._made[table] = tuple(column._replace(written=self._written(table, column)) for column in wire_columns(table))
        return found

    def _written(self, table: Table, column: EncodedColumn) -> int | None:
        if not self._images.flags:
            return 0
        if not self._images.stale_flags or column.flags & Flag.HANDLE_KEY:  # a stale handle key is for tests by hand
            return None
        first = self._first.setdefault(table.name, table)
        place = first.position.get(column.name)
        return 0 if place is None else first.flags[place]
