"""What the range reader gives to the decoder: records that can be read alone, each a transaction or a part of one.

The value of a record holds version 4 events, each of 19 bytes of header and its body, without checksum, and never compressed. In a part of
a transaction the table maps that its rows events need come before them.
"""

from enum import IntEnum
from typing import Final

import msgspec

from applier.model.errors import ProtocolError

PART_BYTES: Final = 1 << 20
"""A transaction is divided into parts of about this size; an event is never divided."""

ROWS_PER_EVENT: Final = 1 << 32
"""The index of a row in its transaction is the number of its rows event, times this, plus the row's number in the event.

An event has less than 4 GiB and a row at least a byte: so many rows are in no event, and an index fits into 63 bits.
"""


class PartKind(IntEnum):
    """What a record holds."""

    ROWS = 0
    """The events of a transaction, or of a part of it; statements inside of it (SAVEPOINT, DML) come along."""
    QUERY = 1
    """One statement that is a group of its own, or that comes before the rows of its group. Its ``commit_ts`` is its end - 1."""
    PROMISE = 2
    """No events: everything up to ``commit_ts``, the end of the range, was read."""


class PartHead(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """The key of a record.

    ``first_event``: the number of the part's first rows event in its transaction; ``time_us``: when upstream wrote it, in microseconds
    since the epoch; ``gtid``: of the group, '' without; ``has_variables``: values of the session come before the statement of a QUERY
    (USER_VAR, INTVAR, RAND events), which its text needs.
    """

    kind: int
    commit_ts: int
    first_event: int
    time_us: int
    is_mariadb: bool
    gtid: str
    has_variables: bool = False


_ENCODER: Final = msgspec.msgpack.Encoder()
_DECODER: Final = msgspec.msgpack.Decoder(PartHead)


def encode_head(head: PartHead) -> bytes:
    """Return the key of a record."""
    return _ENCODER.encode(head)


def decode_head(key: bytes | None) -> PartHead:
    """Read the key of a record. ProtocolError, without a place, if it is not one."""
    try:
        return _DECODER.decode(key or b"")
    except msgspec.DecodeError as error:
        raise ProtocolError("the head of a record of the binlog cannot be read", cause=str(error)) from error
