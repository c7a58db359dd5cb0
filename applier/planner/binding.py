"""A shape of the wire beside a table of the sink: which value goes to which column.

The sink's catalogue decides, never the flags of the wire alone: they may be stale (open_protocol.md 2.5), and what the previous row
looked like proves nothing. Names match without regard to case. Generated columns are those that the sink generates.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from applier.model.chunk import Chunk
from applier.model.errors import FatalSinkError, NeedsOperator, ProtocolError
from applier.model.events import STRING_TYPES, ColumnShape, Flag, FoldedName, Shape
from applier.model.position import Stream
from applier.planner.catalogue import ColumnDescription, TableDescription
from applier.planner.table_check import extra_unique_index, unique_index_difference

ADD_COLUMN: Final = (
    "A DDL was skipped, or the table was altered by hand: rows that are there already lack upstream's values of the column, and are not "
    "sent again. Add the column as upstream has it, and fill it from upstream as of the sink's checkpoint; or begin anew from a dump "
    "(README)"
)


class Origin(NamedTuple):
    """Where rows come from: what an error must name, and how their images look."""

    stream: Stream
    shape: Shape

    @property
    def folded(self) -> FoldedName:
        """Identity of the table."""
        return self.shape.name.fold()

    def facts(self, commit_ts: int, offset: int) -> dict[str, Any]:
        """Name the place of one row in an error."""
        return {
            "table": str(self.shape.name),
            "commit_ts": commit_ts,
            "topic": self.stream.topic,
            "partition": self.stream.partition,
            "offset": offset,
        }


def origins_of(chunk: Chunk) -> list[Origin]:
    """List the origins of a chunk, parallel to its shapes."""
    return [Origin(Stream(*chunk.stream), shape) for shape in chunk.shapes]


def columns_of(description: TableDescription) -> dict[str, ColumnDescription]:
    """Index a table's columns by casefolded name."""
    return {column.name.casefold(): column for column in description.columns}


def key_names(shape: Shape) -> tuple[str, ...]:
    """Return the casefolded names of the handle key, in the order of a row's key values."""
    return tuple(column.name.casefold() for column in shape.handle_key)


def bytes_key_names(shape: Shape) -> tuple[str, ...]:
    """Return the casefolded names of the key columns whose values are bytes: equal rows have equal keys only under equal ones."""
    return tuple(column.name.casefold() for column in shape.handle_key if column.is_bytes)


def corrected(shape: Shape, description: TableDescription) -> Shape:
    """Set the binary flag that stale flags lack, so that the image is read as bytes where the sink's column holds bytes.

    The producer escapes a value by the column's type, not by the flag that it sends (open_protocol.md 2.5, ticdc's flag cache).
    """
    sink = columns_of(description)
    return shape._replace(columns=tuple(_corrected(column, sink) for column in shape.columns))


def _corrected(column: ColumnShape, sink: Mapping[str, ColumnDescription]) -> ColumnShape:
    found = sink.get(column.name.casefold())
    if found is None or not found.binary or column.mysql_type not in STRING_TYPES:
        return column
    return column._replace(flags=column.flags | Flag.BINARY)


@dataclass(frozen=True, slots=True)
class BoundColumn:
    """A column of an image, and the column of the sink that it fills. ``index`` is its place among the image's values."""

    index: int
    wire: ColumnShape
    sink: ColumnDescription


def refuse_extra_unique_index(shape: Shape, description: TableDescription, facts: Mapping[str, Any]) -> None:
    """Stop before a row is written that a unique index of the sink, which upstream lacks, would let replace another row. NeedsOperator."""
    index = extra_unique_index(shape, description.unique_indexes)
    if index is not None:
        raise unique_index_difference(index.name).stop(index=index.name, **facts)


def bind_row(shape: Shape, description: TableDescription, facts: Mapping[str, Any]) -> tuple[BoundColumn, ...]:
    """Bind the columns that a full row writes, in the order of the sink's table.

    FatalSinkError if the sink lacks a column of the image; NeedsOperator if the image lacks a column of the sink: REPLACE would
    silently reset it. ``facts`` name the row in the error.
    """
    sink = columns_of(description)
    for column in shape.columns:
        if column.name.casefold() not in sink:
            raise FatalSinkError(
                "sink column missing",
                remedy=ADD_COLUMN,
                column=column.name,
                **facts,
            )
    return bind_columns(shape, description, tuple(c.name for c in description.columns if not c.generated), facts)


def bind_columns(shape: Shape, description: TableDescription, names: Sequence[str], facts: Mapping[str, Any]) -> tuple[BoundColumn, ...]:
    """Bind the columns ``names``, in that order.

    FatalSinkError if the sink lacks one, NeedsOperator if the image lacks one, ProtocolError if the image has one twice.
    """
    wire = {column.name.casefold(): index for index, column in enumerate(shape.columns)}
    if len(wire) != len(shape.columns):
        raise ProtocolError("an image has two columns of one name", kind="json", **facts)
    sink = columns_of(description)
    folded = [name.casefold() for name in names]
    if absent := [name for name in folded if name not in sink]:
        raise FatalSinkError(
            "the sink's table lacks key columns",
            remedy=ADD_COLUMN,
            columns=",".join(absent),
            **facts,
        )
    if absent := [sink[name].name for name in folded if name not in wire]:
        raise NeedsOperator(
            "partial image: the row lacks columns that the sink's table has",
            remedy="Let the changefeed send whole rows (no column selector, no handle-key-only messages), "
            "or remove the columns from the sink's table, if upstream does not have them or the replica need not",
            columns=",".join(absent),
            **facts,
        )
    return tuple(BoundColumn(wire[name], shape.columns[wire[name]], sink[name]) for name in folded)
