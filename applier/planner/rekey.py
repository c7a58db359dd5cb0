"""Tables whose events cannot be trusted about the key: the sink's own key decides, and all their rows meet in one bucket.

Flags of the wire may be stale (open_protocol.md 2.5). A row's bucket follows from its handle key, so versions of one row that carry
different handle keys, or the same one as text here and as bytes there, lie in different buckets. And a handle key that all events
agree on may not be unique any more: a delete by it would hit other rows too. Such tables are routed again, whole, to the table's own
bucket; the planner then takes their key from the image.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

import msgspec

from applier.model.chunk import Chunk, PackedChunk, bucket_of, bucket_seed, pack, part_of, unpack
from applier.model.errors import NeedsOperator
from applier.model.events import FoldedName, Shape
from applier.model.position import Stream
from applier.planner.catalogue import TableDescription


class KeyedRows(Protocol):
    """The cached rows of one table in one range, as listeners report them."""

    @property
    def handle_key(self) -> tuple[str, ...]:
        """Casefolded names of the key columns, sorted."""
        ...

    @property
    def bytes_key(self) -> tuple[str, ...]:
        """Those of them whose values are read as bytes."""
        ...


def rekey_of(tables: Sequence[KeyedRows], description: TableDescription) -> tuple[str, ...] | None:
    """Return the key by which rows of one table must be told apart, or None if it is the one that the events agree on.

    ``tables`` are the reports of this one table in a segment. A handle key that is no unique key of the sink's table stands only where
    that table has none at all; rows without one are not for here. NeedsOperator if the events disagree and the sink has no key either.
    """
    handle_keys = {table.handle_key for table in tables}
    agreed = next(iter(handle_keys)) if len(handle_keys) == 1 else ()
    do_agree = len({(table.handle_key, table.bytes_key) for table in tables}) <= 1
    if do_agree and (not agreed or description.has_unique_key(agreed)):
        return None
    own = description.primary_key or next(iter(description.unique_keys), ())
    key = agreed if agreed and description.has_unique_key(agreed) else own
    if not key and do_agree:
        return None
    if not key:
        raise NeedsOperator(
            "events of one table disagree about its key, and the sink's table has none that could decide",
            remedy="Give the sink's table the primary or unique key that it has upstream",
            table=str(description.folded),
            handle_keys=" / ".join(",".join(key) or "none" for key in sorted({table.handle_key for table in tables})),
        )
    return key


class _Head(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """The first members of a Chunk: enough to see its tables without unpacking its rows."""

    stream: Stream
    shapes: list[Shape]


_head = msgspec.msgpack.Decoder(_Head)


def route(packed: PackedChunk, rekeyed: Collection[FoldedName], buckets: int, parts: int = 1) -> list[tuple[int, bytes]]:
    """Return (bucket, chunk bytes): the chunk as it is, or, where it holds rows of rekeyed tables, these apart in their table's bucket.

    With several ``parts`` per bucket, for a segment too large for buckets of the usual size, all rows are routed one by one.
    """
    if parts > 1:
        return _divide(unpack(packed.data), rekeyed, buckets, parts)
    if not rekeyed:
        return [(packed.bucket, packed.data)]
    targets = [_target(shape, packed.bucket, rekeyed, buckets) for shape in _head.decode(packed.data).shapes]
    if all(target == packed.bucket for target in targets):
        return [(packed.bucket, packed.data)]
    chunk = unpack(packed.data)
    return _split(chunk, [targets[shape] for shape in chunk.shape])


def _divide(chunk: Chunk, rekeyed: Collection[FoldedName], buckets: int, parts: int) -> list[tuple[int, bytes]]:
    """Route each row by its key; those of rekeyed tables stay together, since their keys do not tell which belong together."""
    seeds = [bucket_seed(shape) for shape in chunk.shapes]
    whole = [shape.name.fold() in rekeyed for shape in chunk.shapes]
    return _split(
        chunk,
        [part_of(seeds[shape], b"" if whole[shape] else key, buckets, parts) for shape, key in zip(chunk.shape, chunk.key, strict=True)],
    )


def _target(shape: Shape, bucket: int, rekeyed: Collection[FoldedName], buckets: int) -> int:
    return bucket_of(bucket_seed(shape), b"", buckets) if shape.name.fold() in rekeyed else bucket


def _split(chunk: Chunk, targets: list[int]) -> list[tuple[int, bytes]]:
    """Cut a chunk by the target of each row."""
    rows: dict[int, list[int]] = {}
    for row, target in enumerate(targets):
        rows.setdefault(target, []).append(row)
    return [(target, pack(target, _rows(chunk, chosen)).data) for target, chosen in rows.items()]


def _rows(chunk: Chunk, chosen: list[int]) -> Chunk:
    """Return a chunk of the chosen rows, with only the shapes that they use."""
    used = sorted({chunk.shape[row] for row in chosen})
    renumbered: Mapping[int, int] = {shape: number for number, shape in enumerate(used)}
    return Chunk(
        stream=chunk.stream,
        shapes=[chunk.shapes[shape] for shape in used],
        shape=[renumbered[chunk.shape[row]] for row in chosen],
        commit_ts=[chunk.commit_ts[row] for row in chosen],
        kind=[chunk.kind[row] for row in chosen],
        offset=[chunk.offset[row] for row in chosen],
        index=[chunk.index[row] for row in chosen],
        key=[chunk.key[row] for row in chosen],
        image=[chunk.image[row] for row in chosen],
    )
