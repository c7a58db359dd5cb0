"""The formats that a simulated changefeed can write, and what all encoders of them have in common."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

import cramjam
import lz4.frame

RECORD_OVERHEAD = 36
"""5 * MaxVarintLen32 + MaxVarintLen64 + 1: what tiflow allows for Kafka's own framing of a record."""


class WireFormat(StrEnum):
    """What a changefeed writes: ``protocol`` of its sink URI, and the encoding of the simple protocol."""

    OPEN_PROTOCOL = "open-protocol"
    CANAL_JSON = "canal-json"
    SIMPLE = "simple"
    SIMPLE_AVRO = "simple-avro"

    @property
    def protocol(self) -> str:
        """The name of the protocol: both encodings of simple have the same."""
        return "simple" if self is WireFormat.SIMPLE_AVRO else str(self)

    @property
    def batches(self) -> bool:
        """Whether a record holds several events; the other formats have one event in a record."""
        return self is WireFormat.OPEN_PROTOCOL

    @property
    def broadcasts_ddls(self) -> bool:
        """Whether a DDL goes to all partitions of its topic; canal-json has it on partition 0 only."""
        return self is not WireFormat.CANAL_JSON

    @property
    def sends_schemas(self) -> bool:
        """Whether the schemas of rows come in records of their own."""
        return self in {WireFormat.SIMPLE, WireFormat.SIMPLE_AVRO}


@dataclass(frozen=True, slots=True, kw_only=True)
class WireOptions:
    """How a changefeed is set up to write a format.

    ``content_compatible``: canal-json has types as SHOW COLUMNS prints them, and ``old`` has changed columns only. ``extension``:
    ``enable-tidb-extension``. ``bootstrap_ms`` and ``bootstrap_rows``: after so long or so many rows simple sends the schema of a table
    again; 0: it never sends one but in a DDL. ``bootstrap_everywhere``: to all partitions, else to partition 0. ``bootstrap_at_start``: an
    owner sends the schemas of all tables before its first watermark.
    """

    content_compatible: bool = False
    extension: bool = True
    bootstrap_ms: int = 120_000
    bootstrap_rows: int = 10_000
    bootstrap_everywhere: bool = True
    bootstrap_at_start: bool = False

    @property
    def bootstraps_rows(self) -> bool:
        """Whether the sender of rows sends schemas."""
        return self.bootstrap_ms > 0 and self.bootstrap_rows > 0

    def sends_all_at_start(self, *, by_tiflow: bool) -> bool:
        """Whether an owner sends all schemas; ticdc does not ask whether schemas are sent else."""
        return self.bootstrap_at_start and (self.bootstraps_rows or not by_tiflow)


class WireEvent(NamedTuple):
    """One event: its key JSON, and its value bytes (compressed if the producer compresses; empty for resolved).

    Formats with one event in a record have no key. ``is_placeholder``: a row that was too large, with its handle key only.
    """

    key: bytes
    value: bytes
    is_placeholder: bool = False

    @property
    def length(self) -> int:
        """Length by which producers cut batches."""
        # 16: the two length prefixes of 8 bytes each.
        return len(self.key) + len(self.value) + 16


class RecordBytes(NamedTuple):
    """Key and value of one Kafka record."""

    key: bytes | None
    value: bytes


class SentImages(NamedTuple):
    """The positions of the columns that an event has of the row after and before the change; None: it has no such image."""

    after: Sequence[int] | None
    before: Sequence[int] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyExtras:
    """Members of a row event that are rare."""

    partition_id: int | None = None
    only_handle_key: bool = False
    claim_check: str | None = None


NO_EXTRAS = KeyExtras()


def compress_lz4(body: bytes) -> bytes:
    """Compress a body as an LZ4 frame."""
    return bytes(lz4.frame.compress(body))


def compress_snappy(body: bytes) -> bytes:
    """Compress a body as a snappy block."""
    return bytes(cramjam.snappy.compress_raw(body))


COMPRESSORS: dict[str, Callable[[bytes], bytes]] = {"none": bytes, "lz4": compress_lz4, "snappy": compress_snappy}


def only_event(events: Sequence[WireEvent]) -> RecordBytes:
    """Frame the event of a format that has one in each record: the key is null."""
    (event,) = events
    return RecordBytes(None, event.value)


def length_of_value(events: Sequence[WireEvent]) -> int:
    """Return the length of a record without a key that producers compare with max-message-bytes."""
    return sum(len(event.value) for event in events) + RECORD_OVERHEAD


def utf8(text: str) -> bytes:
    """Encode a text whose lone surrogates are bytes that are no UTF-8."""
    return text.encode("utf-8", "surrogateescape")
