"""The starting point of a replica: Kafka must still hold every change since, and the sink must equal upstream there (DESIGN.md 3).

REPLACE and DELETE by key end at the right state only if the sink equals upstream at the checkpoint. A sink with rows of
others, or a gap in the topic, would end at a wrong state without an error, so both are refused before the first row.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from applier.model.errors import NeedsOperator, Remedy
from applier.model.events import DdlIdentity, FoldedName, TableName
from applier.model.failure import FailureKind
from applier.model.position import Listing, Offset, Stream, StreamPosition, Ts

FROM_DUMP_TO_REPLICA = Remedy(
    "coordinator.create-from-dump",
    "To make a replica of an upstream that already holds data: "
    "1. dump the upstream; "
    "2. load the dump with `applier load`; or by hand: then set source.start_ts to its TSO (Pos in Dumpling's file `metadata`), "
    "of a binlog source.start to its position, and run `applier load --declared`; "
    "3. run `applier catchup` again. "
    "The topic or binlog must hold every change since the dump, and the new replica must get another `name`",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class StartingPoint:
    """The durable state from which a coordinator begins, read from the sink."""

    checkpoint_ts: Ts
    start_ts: Ts
    positions: dict[Stream, StreamPosition] = field(default_factory=dict)
    settled: frozenset[DdlIdentity] = frozenset()
    """Identities of the ledger at or above checkpoint_ts, done and skipped. Intents are settled before a stream is read."""
    ddl_touched_at_checkpoint: frozenset[FoldedName] | None = frozenset()
    """Names that the ledger's DDLs at checkpoint_ts touched; a schema is given as (schema, ''); None: everything."""
    ahead_tables: frozenset[FoldedName] = frozenset()
    """Tables whose rows are in the sink up to their stream's applied_ts."""


def streams_that_begin_late(listing: Listing, positions: Iterable[Stream]) -> list[Stream]:
    """Name the streams without a stored position whose earliest offset is not 0: what they held before may matter."""
    known = set(positions)
    return sorted(s for s, extent in listing.extents.items() if s not in known and extent.earliest > 0)


def check_beginning(late: Iterable[Stream], listing: Listing, start_ts: Ts, holds_all_since: Callable[[Stream, Offset, Ts], bool]) -> None:
    """Refuse a stream if records after ``start_ts`` may have expired; ``holds_all_since`` is the source's. NeedsOperator."""
    for stream in late:
        earliest = listing.extents[stream].earliest
        # Without a dump (start_ts 0) every record since the first one is needed, whatever its time.
        if start_ts and holds_all_since(stream, earliest, start_ts):
            continue
        raise NeedsOperator(
            "the beginning of the partition has expired: changes that the replica needs may be missing",
            remedy=Remedy(
                "coordinator.dump-and-load-upstream",
                FROM_DUMP_TO_REPLICA + ". If you know that the missing records do not matter, run with --accept-gap",
            ),
            kind=FailureKind.GAP,
            topic=stream.topic,
            partition=stream.partition,
            missing_offsets=f"0..{earliest - 1}",
            start_ts=start_ts,
        )


def refuse_rows_of_others(table: TableName) -> NeedsOperator:
    """Make the error for a table that holds rows before the replica's first event on it, without a start_ts."""
    return NeedsOperator(
        "the sink's table already has rows, and the replica has no start_ts",
        remedy=FROM_DUMP_TO_REPLICA,
        kind=FailureKind.NOT_EMPTY,
        table=str(table),
    )


def unknown_tables(tables: Iterable[TableName], known: frozenset[FoldedName]) -> list[TableName]:
    """Name the tables that the replica has not touched before, once each."""
    found = {table.fold(): table for table in tables if table.table and table.fold() not in known}
    return list(found.values())
