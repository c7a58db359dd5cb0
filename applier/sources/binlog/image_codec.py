"""Decoders of images, one per shape: many rows at a time, column by column. The counterpart of ``image_code``, for what it has placed."""

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, Final, TypeAlias

import msgspec

from applier.model.errors import ProtocolError
from applier.model.events import ColumnShape, Shape, Value
from applier.sources.binlog.column_code import ColumnCode
from applier.sources.binlog.image_code import decode_encoding, read_column
from applier.sources.binlog.row_code import UNREADABLE, RowReader, RowReaders, row_readers
from applier.sources.binlog.value.format import ColumnRead, ValueFormat, value_format
from applier.sources.port import ImageDecoder, ImagesDecoder

MAX_SHAPES: Final = 4096
"""Shapes whose decoders are kept."""

_Rows: TypeAlias = Callable[[Sequence[bytes]], Sequence[tuple[Any, ...]]]
"""Images -> the values of each, as they are written."""


@lru_cache(maxsize=MAX_SHAPES)
def images_decoder(shape: Shape) -> ImagesDecoder:
    """Return the function that decodes many images of ``shape``: for each column of it, the values of all images.

    ProtocolError, without a place, if one of them cannot be read.
    """
    rows_of, formats = _compiled(shape)
    reads: list[ColumnRead | None] = [form.read for form in formats]

    def decode_images(images: Sequence[bytes]) -> Sequence[Sequence[Value]]:
        if not images:
            return [[] for _ in reads]
        try:
            columns = zip(*rows_of(images), strict=True)
            return [read_column(read, column) for read, column in zip(reads, columns, strict=True)]
        except UNREADABLE as cause:
            facts = {"schema": shape.schema, "table": shape.table, "reason": str(cause) or type(cause).__name__}
            raise ProtocolError.at(None, "row_image", "an image cannot be read", **facts) from cause

    return decode_images


@lru_cache(maxsize=MAX_SHAPES)
def image_decoder(shape: Shape) -> ImageDecoder:
    """Return the function that decodes one image of ``shape`` into values in the order of its columns; it raises as ``images_decoder``."""
    decode = images_decoder(shape)
    return lambda image: [column[0] for column in decode((image,))]


def _compiled(shape: Shape) -> tuple[_Rows, Sequence[ValueFormat]]:
    try:
        encoding = decode_encoding(shape.encoding)
    except msgspec.DecodeError as cause:
        raise ProtocolError.at(None, "row_image", "a shape is not one of a binlog", schema=shape.schema, table=shape.table) from cause
    codes = [*encoding.first, *encoding.second]
    taken = encoding.taken or list(range(len(codes)))
    formats = {at: _format(codes[at], column) for at, column in zip(taken, shape.columns, strict=True)}
    every = [formats.get(at) or value_format(code, is_bytes=True) for at, code in enumerate(codes)]
    first = row_readers(every[: len(encoding.first)])
    chosen = [every[at] for at in taken]
    if not encoding.second:
        return _rows_of(first), chosen
    return _pairs_of(first, row_readers(every[len(encoding.first) :]), taken), chosen


def _format(code: ColumnCode, column: ColumnShape) -> ValueFormat:
    # The planner sets the flag where the sink's column holds bytes.
    return value_format(code, is_bytes=column.is_bytes)


def _rows_of(readers: RowReaders) -> _Rows:
    size = readers.null_bytes

    def rows_of(images: Sequence[bytes]) -> Sequence[tuple[Any, ...]]:
        rows = []
        for image in images:
            end, row = readers[image[:size]](image, size)
            if end != len(image):
                raise ValueError("an image is too short or too long")
            rows.append(row)
        return rows

    return rows_of


def _pairs_of(first: RowReaders, second: RowReaders, taken: Sequence[int]) -> _Rows:
    def rows_of(images: Sequence[bytes]) -> Sequence[tuple[Any, ...]]:
        rows = []
        for image in images:
            middle, old = _read(first, image, 0)
            end, new = _read(second, image, middle)
            if end != len(image):
                raise ValueError("an image is too short or too long")
            both = old + new
            rows.append(tuple(both[at] for at in taken))
        return rows

    return rows_of


def _read(readers: RowReaders, image: bytes, at: int) -> tuple[int, tuple[Any, ...]]:
    begin = at + readers.null_bytes
    reader: RowReader = readers[image[at:begin]]
    return reader(image, begin)
