"""Which columns a table has in the records that are read: from the shapes of its rows, without decoding them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from applier.dataframe.conversion import DECIMAL, Digits, spark_type, wider
from applier.model.errors import ConfigError, ProtocolError, Remedy
from applier.model.events import MARKER_IMAGE, ColumnShape, FoldedName, PlacedRow, Shape
from applier.model.range_report import RangeId
from applier.sources.peek import read_whole
from applier.sources.port import Decoder, PlacedEvent, PlacedRows, Placer, RangeReader, Record, Unplaced
from applier.sources.selected_events import gather_rows


@dataclass(slots=True)
class _Found:
    """A column: its newest description, its type in all shapes, and the digits of its values."""

    name: str
    shape: ColumnShape
    ts: int
    kinds: list[ColumnShape] = field(default_factory=list)
    digits: Digits = field(default_factory=Digits)


class TableColumns:
    """Collects the columns of one table."""

    def __init__(self, table: FoldedName, decoder: Decoder) -> None:
        self._table, self._decoder = table, decoder
        self._columns: dict[str, _Found] = {}

    def add(self, rows: PlacedRows) -> None:
        """Add the columns of some rows."""
        newest = dict(zip(rows.shape, rows.commit_ts, strict=True))
        for number, shape in enumerate(rows.shapes):
            if shape.upstream_name.fold() != self._table or number not in newest:
                continue
            for column in shape.columns:
                self._note(column, newest[number])
            if any(column.mysql_type == DECIMAL for column in shape.columns):
                images = [image for image, of in zip(rows.image, rows.shape, strict=True) if of == number and image != MARKER_IMAGE]
                self._note_digits(shape, images)

    def ddl(self) -> str:
        """Return the columns in Spark's DDL, in the order of the newest rows. ConfigError if the table has no row."""
        if not self._columns:
            raise ConfigError(
                "the records that are read hold no row of the table",
                remedy=Remedy(
                    "dataframe.check-table-or-name-columns",
                    'Check its name and the range, or name its columns: .option("columns", "id BIGINT, name STRING")',
                ),
                table=str(self._table),
            )
        newest = max(found.ts for found in self._columns.values())
        # Columns that the newest rows do not have any more stand at the end.
        ordered = sorted(self._columns.values(), key=lambda found: found.ts != newest)
        return ", ".join(f"`{found.name.replace('`', '``')}` {_type_of(found)}" for found in ordered)

    def _note(self, column: ColumnShape, ts: int) -> None:
        found = self._columns.setdefault(column.name.casefold(), _Found(column.name, column, ts))
        if column not in found.kinds:
            found.kinds.append(column)
        if ts >= found.ts:
            found.name, found.shape, found.ts = column.name, column, ts

    def _note_digits(self, shape: Shape, images: Sequence[bytes]) -> None:
        if not images:
            return
        columns = self._decoder.images_decoder(shape)(images)
        for column, values in zip(shape.columns, columns, strict=True):
            if column.mysql_type == DECIMAL:
                found = self._columns[column.name.casefold()]
                for value in set(values):
                    if isinstance(value, str):
                        found.digits = found.digits.with_value(value)


def _type_of(found: _Found) -> str:
    kind = spark_type(found.kinds[0], found.digits)
    for other in found.kinds[1:]:
        kind = wider(kind, spark_type(other, found.digits))
    return kind


def columns_of(table: FoldedName, reader: RangeReader, decoder: Decoder, ranges: Sequence[RangeId]) -> str:
    """Read the ranges and return the table's columns in Spark's DDL. ConfigError, SourceError."""
    columns = TableColumns(table, decoder)
    placers = {one.stream: decoder.placer(one.stream) for one in ranges}
    for range_id, records in read_whole(reader, ranges):
        for placed in _placed(placers[range_id.stream], records):
            if isinstance(placed, PlacedRows):
                columns.add(placed)
    return columns.ddl()


def _placed(placer: Placer, records: Sequence[Record]) -> Iterator[PlacedRows | PlacedEvent]:
    try:
        yield from placer.place_all(records)
    except ProtocolError:
        # What cannot be read is reported where the rows are read; here the others count.
        each = ((record.offset, index, event) for record in records for index, event in placer.place_each(*record))
        rows = ((offset, index, event) for offset, index, event in each if isinstance(event, PlacedRow) and not isinstance(event, Unplaced))
        yield from gather_rows(rows)
