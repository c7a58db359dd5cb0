"""Parts of a chunk: the rows of one segment's window, of one reducer, or of one table.

Some tables' events do not give a usable key: the sink's own key decides, and all their rows meet in one bucket. Flags of the wire may be
stale (open_protocol.md 2.5). A row's bucket follows from its handle key. So versions of one row with different handle keys are in different
buckets, also versions with the same key, once as text and once as bytes. A handle key on which all events agree may no longer be
unique: a delete by it would hit other rows too. All rows of such a table ("rekeyed") are routed to one bucket, the table's own; the planner
then reads their key from the image.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from operator import itemgetter
from typing import Any, Final, NamedTuple, Protocol

import msgspec
from msgspec.structs import replace

from applier.model.chunk import Chunk, PackedChunk, bucket_of, bucket_seed, pack, split_of, unpack
from applier.model.errors import NeedsOperator, Remedy
from applier.model.events import FoldedName, Shape
from applier.model.position import Stream, Ts
from applier.model.segment import SegmentWindow, slices_of, windows_of
from applier.planner.port import TableDescription


def selected(chunk: Chunk, rows: Sequence[int]) -> Chunk:
    """Return a chunk of some rows. It names all origins of the whole one."""
    return _each_column(chunk, lambda column: list(map(column.__getitem__, rows)))


def _each_column(chunk: Chunk, part: Callable[[list[Any]], list[Any]]) -> Chunk:
    return Chunk(
        chunk.origins,
        part(chunk.origin),
        part(chunk.commit_ts),
        part(chunk.kind),
        part(chunk.offset),
        part(chunk.index),
        part(chunk.key),
        part(chunk.image),
    )


def packable(chunk: Chunk, rows: Sequence[int]) -> Chunk:
    """Return a chunk of some rows that names only the origins of these."""
    used = sorted({chunk.origin[row] for row in rows})
    renumbered: Mapping[int, int] = {origin: number for number, origin in enumerate(used)}
    part = selected(chunk, rows)
    origins = [chunk.origins[origin] for origin in used]
    return replace(part, origins=origins, origin=[renumbered[origin] for origin in part.origin])


def divided(chunk: Chunk, numbers: Iterable[int], parts: int) -> Iterator[tuple[int, Chunk]]:
    """Yield the rows of each part that has some, with its number; ``numbers``: the part of each row."""
    rows: list[list[int]] = [[] for _ in range(parts)]
    for row, number in enumerate(numbers):
        rows[number].append(row)
    # One pass per column, and then slices: parts may be many and small (a thousand tables).
    ordered = selected(chunk, list(chain.from_iterable(rows)))
    end = 0
    for number, part in enumerate(rows):
        start, end = end, end + len(part)
        if part:
            yield number, _each_column(ordered, itemgetter(slice(start, end)))


def by_window(chunk: Chunk, windows: Sequence[SegmentWindow]) -> Iterator[tuple[int, Chunk]]:
    """Yield the part of the chunk that each of some contiguous windows may hold, with the window's number.

    Rows beyond the last window are skipped. The first part may still hold rows before the first window.
    """
    # Nearly all chunks lie inside of one window: then no row is looked at.
    least, greatest = windows_of(windows, (min(chunk.commit_ts), max(chunk.commit_ts)))
    is_in_one = least == greatest
    parts = [(least, chunk)] if is_in_one else divided(chunk, windows_of(windows, chunk.commit_ts), len(windows) + 1)
    return ((number, part) for number, part in parts if number < len(windows))


# --- time slices -----------------------------------------------------------------------------------------------------


def sliced(packed: PackedChunk, bounds: Sequence[Ts]) -> Iterator[tuple[int, PackedChunk]]:
    """Yield the part of a chunk in each slice that has rows of it, with the slice's number. Rows outside of all slices are skipped."""
    least, greatest = slices_of(bounds, (packed.min_ts, packed.max_ts))
    if least == greatest:
        if 0 < least < len(bounds):
            yield least, packed
        return
    chunk = unpack(packed.data)
    rows: dict[int, list[int]] = defaultdict(list)
    for row, number in enumerate(slices_of(bounds, chunk.commit_ts)):
        rows[number].append(row)
    for number, some in rows.items():
        if 0 < number < len(bounds):
            yield number, pack(packed.bucket, packable(chunk, some))


ORDERED_BUCKET: Final = 0
"""The bucket of all rows that are written in order."""


class KeyedRows(Protocol):
    """The cached rows of one table in one range, as listeners report them."""

    @property
    def handle_key(self) -> tuple[str, ...] | None:
        """Casefolded names of the key columns, sorted; None: they are not known."""
        ...

    @property
    def bytes_key(self) -> tuple[str, ...]:
        """The key columns whose values are read as bytes."""
        ...

    @property
    def identifying(self) -> frozenset[str]:
        """Casefolded names of the columns among which a unique key identifies the rows, where the wire shows them."""
        ...


def sink_key_of(tables: Sequence[KeyedRows], description: TableDescription) -> tuple[str, ...] | None:
    """Return the sink's key that must identify the rows of one table, or None if the handle key of its events is enough.

    ``tables`` are the reports of this one table in a segment. A handle key that is not a unique key of the sink's table is accepted
    only if that table has no unique key; the same holds for events without one, which a column selector may exclude: then a unique key that
    all images hold comes first, as for rows whose format does not tell their key. NeedsOperator if the events disagree and the sink has no
    key.
    """
    handle_keys = {table.handle_key for table in tables}
    agreed = (tables[0].handle_key or ()) if len(handle_keys) == 1 else ()
    do_agree = len({(table.handle_key, table.bytes_key) for table in tables}) <= 1
    if do_agree and agreed and description.has_unique_key(agreed):
        return None
    # The agreed key, if the sink has it too: rows are then distinguished as upstream does. Else one that all images hold, the primary key
    # first. Else the primary key: stale flags do not describe it, and where images lack it, the planner says which column.
    sent = next((key for key in description.unique_keys if tables and all(_is_sent(key, table) for table in tables)), ())
    own = sent or description.primary_key or next(iter(description.unique_keys), ())
    key = agreed if agreed and description.has_unique_key(agreed) else own
    if not key and do_agree:
        return None
    if not key:
        raise NeedsOperator(
            "events of one table have different keys, and the sink's table has no unique key",
            remedy=Remedy("planner.add-upstream-key-in-sink", "Give the sink's table the primary or unique key that it has upstream"),
            table=str(description.folded),
            handle_keys=" / ".join(",".join(key) or "none" for key in sorted({table.handle_key or () for table in tables})),
        )
    return key


def _is_sent(key: Sequence[str], table: KeyedRows) -> bool:
    return table.identifying.issuperset(name.casefold() for name in key)


class _ChunkHead(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """The first member of a Chunk: enough to see its tables without unpacking its rows."""

    origins: list[tuple[Stream, Shape]]


# A chunk without rows of a rekeyed table is passed on as the bytes that came.
_head = msgspec.msgpack.Decoder(_ChunkHead)


class Moved(NamedTuple):
    """The tables whose rows change their bucket: tables that are ``rekeyed``, each as a whole, and all ``ordered`` ones together."""

    rekeyed: Collection[FoldedName]
    ordered: Collection[FoldedName] = ()

    def __bool__(self) -> bool:
        return bool(self.rekeyed or self.ordered)


def route(packed: PackedChunk, moved: Moved, buckets: int, splits: int = 1) -> list[tuple[int, bytes]]:
    """Return (bucket, chunk bytes): the chunk as it is, or cut, with rows of moved tables in the bucket that they are moved to.

    With several ``splits`` per bucket (a segment too large for buckets of the usual size), rows are routed one by one.
    """
    if splits > 1:
        return _divide(unpack(packed.data), moved, buckets, splits)
    if not moved:
        return [(packed.bucket, packed.data)]
    targets = [_target(shape, packed.bucket, moved, buckets) for _, shape in _head.decode(packed.data).origins]
    if all(target == packed.bucket for target in targets):
        return [(packed.bucket, packed.data)]
    chunk = unpack(packed.data)
    return _split(chunk, [targets[origin] for origin in chunk.origin])


def _divide(chunk: Chunk, moved: Moved, buckets: int, splits: int) -> list[tuple[int, bytes]]:
    """Route each row by its key. Rows of a moved table stay together: their keys do not show which belong together."""
    seeds = [bucket_seed(shape) for _, shape in chunk.origins]
    whole = [
        ORDERED_BUCKET if name in moved.ordered else split_of(seed, b"", buckets, splits) if name in moved.rekeyed else None
        for seed, name in zip(seeds, (shape.name.fold() for _, shape in chunk.origins), strict=True)
    ]
    targets = [
        split_of(seeds[origin], key, buckets, splits) if (target := whole[origin]) is None else target
        for origin, key in zip(chunk.origin, chunk.key, strict=True)
    ]
    return _split(chunk, targets)


def _target(shape: Shape, bucket: int, moved: Moved, buckets: int) -> int:
    name = shape.name.fold()
    if name in moved.ordered:
        return ORDERED_BUCKET
    return bucket_of(bucket_seed(shape), b"", buckets) if name in moved.rekeyed else bucket


def _split(chunk: Chunk, targets: list[int]) -> list[tuple[int, bytes]]:
    """Cut a chunk by the target of each row."""
    rows: dict[int, list[int]] = {}
    for row, target in enumerate(targets):
        rows.setdefault(target, []).append(row)
    return [(target, pack(target, packable(chunk, chosen)).data) for target, chosen in rows.items()]
