"""Chunks: runs of cached rows of one bucket, as bytes; the unit that Spark stores and moves.

Columnar inside, so that packing and unpacking cost some tens of nanoseconds per row. The bucket of a row is a CRC of its table and key and
not Python's ``hash``: that one differs from process to process, and all versions of a row must meet in one bucket.
"""

from typing import NamedTuple
from zlib import crc32

import msgspec

from applier.model.events import Shape
from applier.model.position import Stream


# gc=False: a chunk holds no cycles, and the cyclic collector would visit the tens of thousands of objects in its lists.
class Chunk(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """Rows of one bucket, of any streams and tables; the lists run in parallel, one entry per row.

    ``origin`` indexes ``origins``; ``index``: of the event in its record; ``key`` and ``image`` as in ``PlacedRow``. The rows of one
    stream are in the order of their offsets.
    """

    origins: list[tuple[Stream, Shape]]
    origin: list[int]
    commit_ts: list[int]
    kind: list[int]
    offset: list[int]
    index: list[int]
    key: list[bytes]
    image: list[bytes]


class PackedChunk(NamedTuple):
    """A chunk as Spark stores it: what a segment selects it by, and its bytes."""

    bucket: int
    min_ts: int
    max_ts: int
    rows: int
    data: bytes


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(Chunk)


def pack(bucket: int, chunk: Chunk) -> PackedChunk:
    """Pack a chunk that holds at least one row."""
    return PackedChunk(bucket, min(chunk.commit_ts), max(chunk.commit_ts), len(chunk.commit_ts), _encoder.encode(chunk))


def unpack(data: bytes) -> Chunk:
    """Read the bytes of ``PackedChunk.data``."""
    return _decoder.decode(data)


def bucket_seed(shape: Shape) -> int:
    """Return the seed of the bucket hash of one table. It depends on the folded name only, never on columns or flags."""
    # surrogateescape: a name on the wire may hold bytes that are not UTF-8, and they arrive as lone surrogates.
    return crc32(f"{shape.schema.casefold()}\0{shape.table.casefold()}".encode("utf-8", "surrogateescape"))


def bucket_of(seed: int, key: bytes, buckets: int) -> int:
    """Return the bucket of a row: all versions of a row meet in one."""
    return crc32(key, seed) % buckets


def split_of(seed: int, key: bytes, buckets: int, splits: int) -> int:
    """Return the bucket of a row where each bucket is split: split 0 of every bucket keeps its number, the others are numbered on."""
    value = crc32(key, seed)
    return value % buckets + buckets * (value // buckets % splits)
