"""Event bodies: the images of a row, a DDL's statement, the admin event's number (open_protocol.md 2.4, 2.8, 2.10, 2.12)."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final, NamedTuple, TypeVar

import msgspec

from applier.model.errors import ProtocolError
from applier.model.events import Image, RowOperation
from applier.sources.open_protocol.compression import LZ4_MAGIC, unpack_lz4, unpack_snappy
from applier.sources.open_protocol.document import is_valid_text, parse, parse_object, refuse
from applier.sources.open_protocol.value import read_column, with_signed_zeros

MAX_PARTITIONS = 2**31 - 1

_Read = TypeVar("_Read")
_NOTHING = msgspec.Raw(b"null")
_OWN_FLAGS: Final[Mapping[str, int]] = MappingProxyType({})


class RowBody(msgspec.Struct, gc=False, frozen=True):
    """A row's body, its images as the bytes that came (``null`` where there is none)."""

    u: msgspec.Raw = _NOTHING
    p: msgspec.Raw = _NOTHING
    d: msgspec.Raw = _NOTHING


class RowImages(NamedTuple):
    """A row's body, whole: ``after`` is ``u``; ``before`` is ``p`` or ``d``; the bodies' bytes in parallel.

    An empty ``p`` is no image before, but its bytes show that the row was there: it is what is left of ``p`` where only changed columns
    are sent and none has changed.
    """

    operation: RowOperation
    after: Image | None
    before: Image | None
    after_json: bytes
    before_json: bytes


class DdlBody(NamedTuple):
    """The body of a DDL event."""

    query: str
    ddl_type: int


_decode_row = msgspec.json.Decoder(RowBody).decode


def read_row(body: bytes) -> RowImages:
    """Read a row's body. ProtocolError (json, compression, field_type, empty_row, and those of ``read_column``)."""
    row = split_row(body)
    after, old, deleted = (read_image(bytes(raw)) for raw in (row.u, row.p, row.d))
    if deleted and not after and not old:
        return RowImages(RowOperation.DELETE, None, deleted, b"", bytes(row.d))
    if after and not deleted:
        operation = RowOperation.UPDATE if old else RowOperation.INSERT
        return RowImages(operation, after, old or None, bytes(row.u), b"" if old is None else bytes(row.p))
    if after or old or deleted:
        raise ProtocolError.at(None, "empty_row", "the images of the row contradict one another")
    raise ProtocolError.at(None, "empty_row", "the row has no image")


def split_row(body: bytes) -> RowBody:
    """Take a row's body apart without reading its images. ProtocolError (json, compression)."""
    return _unpack(body, _split_row)


def read_image(data: bytes, known_flags: Mapping[str, int] = _OWN_FLAGS) -> Image | None:
    """Read one image, columns in the order of the wire; None for ``null``. ProtocolError (json, field_type, those of ``read_column``).

    Columns in ``known_flags`` are read under these flags and not under those of the image.
    """
    document = parse(with_signed_zeros(data))
    if document is None:
        return None
    if not isinstance(document, dict) or not all(map(is_valid_text, document)):
        raise ProtocolError.at(None, "field_type", "an image is not an object of named columns")
    return {name: read_column(name, members, known_flags.get(name)) for name, members in document.items()}


def read_ddl(body: bytes) -> DdlBody:
    """Read a DDL's body. ProtocolError (json, compression, field_type)."""
    members = _unpack(body, parse_object)
    query, ddl_type = members.get("q"), members.get("t")
    if not isinstance(query, str) or type(ddl_type) is not int or ddl_type < 0:
        raise ProtocolError.at(None, "field_type", "a DDL has no statement or no type")
    return DdlBody(query, ddl_type)


def read_admin(body: bytes) -> int:
    """Read the new number of partitions. ProtocolError (json, compression, event_type)."""
    partition = _unpack(body, parse_object).get("partition")
    if type(partition) is not int or not 0 < partition <= MAX_PARTITIONS:
        raise ProtocolError.at(None, "event_type", "an admin event (type 4) does not hold a number of partitions")
    return partition


def _split_row(body: bytes) -> RowBody:
    try:
        return _decode_row(body)
    except (ValueError, RecursionError) as cause:
        raise refuse("the body is not a JSON object") from cause


def _unpack(body: bytes, read: Callable[[bytes], _Read]) -> _Read:
    """Read a body that may be compressed. What begins like text and is nothing at all is reported as bad JSON."""
    if body.startswith(LZ4_MAGIC):
        return read(unpack_lz4(body))
    try:
        return read(body)
    except ProtocolError as plain_error:
        try:
            return read(unpack_snappy(body))
        except ProtocolError as error:
            is_text = not body or 0x20 <= body[0] < 0x7F
            raise (plain_error if is_text else error) from None
