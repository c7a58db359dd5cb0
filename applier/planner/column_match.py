"""Which value of an image goes to which column of the sink's table.

The sink's catalogue decides, never the flags of the wire alone: they may be stale (open_protocol.md 2.5). Nor does the previous row: a
column may be present or absent in rows around its DDL (DESIGN.md 9). Names match without regard to case, as in TiDB. Generated columns
are those that the sink generates.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, NamedTuple

from applier.model.chunk import Chunk
from applier.model.errors import FatalSinkError, NeedsOperator, ProtocolError
from applier.model.events import STRING_TYPES, ColumnShape, FoldedName, Shape
from applier.model.position import Stream
from applier.model.remedy import Remedy
from applier.planner.catalogue import ColumnDescription, TableDescription
from applier.planner.table_check import extra_unique_index, generated_difference, unique_index_difference

MAX_SHAPES: Final = 4096
"""Shapes whose key is kept."""

_HASH: Final = re.compile(r"DB_ROW_HASH_\d+", re.ASCII)
_OF_HISTORY: Final = frozenset({"row_start", "row_end"})
VERSIONED: Final = "tables with SYSTEM VERSIONING are not replicated: each server writes their history itself"
_LEAVE_OUT: Final = Remedy(
    "planner.exclude-table-or-plain-key", "Leave the table out by source.tables, or make it a table without versioning upstream"
)

LACKS_COLUMN: Final = "the sink's table lacks a column"
ADD_COLUMN: Final = Remedy(
    "planner.add-column-by-hand",
    "A DDL was skipped, or the table was altered by hand. Add the column as upstream has it, and fill it from upstream at the sink's "
    "checkpoint: existing rows lack its values, and are not sent again. Or create the replica again from a dump: `applier docs start_over`",
)


UNKNOWN_COLUMN: Final = Remedy(
    "planner.add-column-first",
    "If the source is a changefeed and an ADD COLUMN of it runs upstream, TiCDC has sent the column too early (pingcap/tiflow issue "
    "12760): start the applier again when it has ended. Else: a DDL was skipped, or the table was altered by hand. Add the column as "
    "upstream has it, and "
    "fill it from upstream as of the sink's checkpoint: existing rows lack its values, and are not sent again. Or create the replica "
    "again from a dump (`applier docs start_over`)",
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
    """List the origins of a chunk."""
    return [Origin(*origin) for origin in chunk.origins]


def columns_of(description: TableDescription) -> dict[str, ColumnDescription]:
    """Index a table's columns by casefolded name."""
    return {column.name.casefold(): column for column in description.columns}


# Asked for each table of each segment, of the same few shapes.
@lru_cache(maxsize=MAX_SHAPES)
def key_names(shape: Shape) -> tuple[str, ...]:
    """Return the casefolded names of the handle key, in the order of a row's key values."""
    return tuple(column.name.casefold() for column in shape.handle_key)


@lru_cache(maxsize=MAX_SHAPES)
def bytes_key_names(shape: Shape) -> tuple[str, ...]:
    """Return the casefolded names of the key columns whose values are bytes: equal rows have equal keys only under equal ones."""
    return tuple(column.name.casefold() for column in shape.handle_key if column.is_bytes)


@lru_cache(maxsize=MAX_SHAPES)
def unique_names(shape: Shape) -> tuple[str, ...]:
    """Return the casefolded names of the members of unique indexes that are NOT NULL, sorted; () if they are the handle key.

    Where the handle key is not known, any column may be a member of it.
    """
    sent = [column.name for column in shape.columns]
    known = sent if shape.has_unknown_key else [name for name in shape.keys.identifying if name in sent]
    names = tuple(sorted(map(str.casefold, known)))
    return () if names == key_names(shape) else names


def reported_key(shape: Shape) -> tuple[str, ...] | None:
    """Return the casefolded names of the handle key as a report has them: None if it is not known."""
    return None if shape.has_unknown_key else key_names(shape)


def with_bytes_of_sink(shape: Shape, description: TableDescription) -> Shape:
    """Let a column's values be bytes where the sink's column holds bytes and stale flags deny it, so that the image is read as bytes.

    The producer escapes a value by the column's type, not by the flag that it sends (open_protocol.md 2.5, ticdc's flag cache).
    """
    sink = columns_of(description)
    return shape._replace(columns=tuple(_as_in_sink(column, sink) for column in shape.columns))


def _as_in_sink(column: ColumnShape, sink: Mapping[str, ColumnDescription]) -> ColumnShape:
    found = sink.get(column.name.casefold())
    if found is None or not found.binary or column.mysql_type not in STRING_TYPES:
        return column
    return column._replace(is_bytes=True)


@dataclass(frozen=True, slots=True)
class MatchedColumn:
    """A column of an image, and the column of the sink that it fills. ``index`` is its position among the image's values."""

    index: int
    wire: ColumnShape
    sink: ColumnDescription


def check_unique_indexes(shape: Shape, description: TableDescription, facts: Mapping[str, Any]) -> None:
    """Raise NeedsOperator if the sink has a unique index that upstream lacks.

    REPLACE deletes every row that collides with the new one in any unique index, so one row of upstream would replace another.
    """
    index = extra_unique_index(shape, description.unique_indexes)
    if index is not None:
        raise unique_index_difference(index.name, is_told=shape.keys.unique is not None).as_error(index=index.name, **facts)


def check_generated(shape: Shape, description: TableDescription, facts: Mapping[str, Any]) -> None:
    """Raise NeedsOperator if the sink computes what upstream has stored and sent, and may compute something else."""
    sink = columns_of(description)
    for column in shape.columns:
        found = sink.get(column.name.casefold())
        # A format that does not tell sends stored columns only: whatever upstream has there, its value is lost.
        if column.is_generated is not False and found is not None and found.computes_otherwise:
            raise generated_difference(found.name).as_error(column=found.name, **facts)


def is_partial(shape: Shape, description: TableDescription) -> bool:
    """Whether images of a shape lack columns that a row of the sink has. Placeholders are whole once they are read from upstream."""
    sent = {column.name.casefold() for column in shape.columns}
    return not shape.placeholder and any(column.name.casefold() not in sent for column in description.columns if not column.generated)


def match_row(shape: Shape, description: TableDescription, facts: Mapping[str, Any]) -> tuple[MatchedColumn, ...]:
    """Match the columns that a whole row writes, in the order of the sink's table.

    FatalSinkError if the sink lacks a column of the image; NeedsOperator if the image lacks a column of the sink: REPLACE would
    silently reset it. ``facts`` name the row in the error.
    """
    _refuse_unknown_columns(shape, description, facts)
    return match_columns(shape, description, written_columns(description), facts)


def written_columns(description: TableDescription) -> tuple[str, ...]:
    """Return the columns that a whole row writes."""
    return tuple(column.name for column in description.columns if not column.generated)


def match_part(shape: Shape, description: TableDescription, facts: Mapping[str, Any]) -> tuple[MatchedColumn, ...]:
    """Match the columns that a partial row writes. FatalSinkError if the sink lacks a column of the image."""
    _refuse_unknown_columns(shape, description, facts)
    sent = {column.name.casefold() for column in shape.columns}
    return match_columns(shape, description, [name for name in written_columns(description) if name.casefold() in sent], facts)


def _refuse_unknown_columns(shape: Shape, description: TableDescription, facts: Mapping[str, Any]) -> None:
    sink = columns_of(description)
    for column in shape.columns:
        if column.name.casefold() not in sink.keys() | description.early_columns and not is_of_server(column):
            if column.name in _OF_HISTORY and _keeps_history(shape):
                raise NeedsOperator(VERSIONED, remedy=_LEAVE_OUT, column=column.name, **facts)
            raise FatalSinkError(
                LACKS_COLUMN,
                remedy=UNKNOWN_COLUMN,
                column=column.name,
                **facts,
            )


def _keeps_history(shape: Shape) -> bool:
    """Return whether a table has MariaDB's SYSTEM VERSIONING, by its hidden columns: the end of a row's time is a part of the key."""
    return {column.name for column in shape.columns} >= _OF_HISTORY and "row_end" in (shape.keys.primary or ())


def is_of_server(column: ColumnShape) -> bool:
    """Return whether upstream's server has made a column for itself: MariaDB's hash of a long unique key, which no statement shows."""
    return bool(column.is_generated) and _HASH.fullmatch(column.name) is not None


def match_columns(shape: Shape, description: TableDescription, names: Sequence[str], facts: Mapping[str, Any]) -> tuple[MatchedColumn, ...]:
    """Match the columns ``names``, in that order.

    FatalSinkError if the sink lacks one, NeedsOperator if the image lacks one, ProtocolError if the image has one twice.
    """
    # By name, never by position: upstream and sink may have their columns in another order after ADD COLUMN … FIRST.
    wire = {column.name.casefold(): index for index, column in enumerate(shape.columns)}
    if len(wire) != len(shape.columns):
        raise ProtocolError("an image has two columns with the same name", kind="json", **facts)
    sink = columns_of(description)
    folded = [name.casefold() for name in names]
    if absent := [name for name in folded if name not in sink]:
        raise FatalSinkError(
            "the sink's table lacks key columns",
            remedy=ADD_COLUMN,
            columns=",".join(absent),
            **facts,
        )
    # Of a key, as a rule: other columns that an image lacks make a partial row.
    if absent := [sink[name].name for name in folded if name not in wire]:
        raise NeedsOperator(
            "the row lacks columns that the sink's table has",
            remedy=Remedy(
                "planner.send-key-columns",
                "Let upstream send them: a changefeed with them in its column-selectors and "
                "delete-only-output-handle-key-columns = false, a server with binlog_row_image = FULL. "
                "Or give the sink's table the primary or unique key that it has upstream",
            ),
            columns=",".join(absent),
            **facts,
        )
    return tuple(MatchedColumn(wire[name], shape.columns[wire[name]], sink[name]) for name in folded)
