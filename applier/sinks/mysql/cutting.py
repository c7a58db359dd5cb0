"""Cuts rows into statements that the server takes: by their number and by their bytes."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from applier.model.errors import RowRefused
from applier.model.remedy import Remedy
from applier.mysql.quoting import quote_identifier, quote_table
from applier.planner.catalogue import TableDescription

TARGET_BYTES: Final = 1024 * 1024
"""Where a statement is cut: larger ones gain nothing and hold the parser's memory; a single row may be larger."""
COMMAND_BYTES: Final = 1
"""What a packet holds beside the text of its statement."""


def head_of(verb: str, table: TableDescription, columns: Sequence[str]) -> str:
    """Return what an INSERT or REPLACE begins with."""
    return f"{verb} INTO {quote_table(table.schema, table.table)} ({','.join(map(quote_identifier, columns))}) VALUES "


def most_rows_of(table: TableDescription, max_rows: int, max_warnings: int) -> int:
    """Return how many rows an INSERT or REPLACE may have: an ENUM may raise a harmless warning (ordinal 0), the statement one more."""
    enums = sum(bool(column.labels) and not column.is_set for column in table.columns)
    return max_rows if not enums else max(1, min(max_rows, (max_warnings - 1) // enums))


@dataclass(frozen=True, slots=True)
class Cutter:
    """Cuts rows into statements by number and by bytes."""

    table: TableDescription
    max_packet_bytes: int
    max_rows: int

    def cut(self, head: str, texts: Iterable[str], separator: str, tail: str, *, doubled: bool = False) -> Iterator[tuple[str, int]]:
        """Yield (statement, rows). RowRefused, after the rows before it, for a row that alone is larger than a packet.

        ``doubled``: a single row is written twice.
        """
        frame = len(head.encode()) + len(tail) + COMMAND_BYTES
        target, most = min(TARGET_BYTES, self.max_packet_bytes) - frame, self.max_packet_bytes - frame
        batch: list[str] = []
        used = 0
        for text in texts:
            # The server counts bytes. isascii() is a flag of the string: it costs less than to encode each row.
            size = (len(text) if text.isascii() else len(text.encode())) + len(separator)
            if batch and (used + size > target or len(batch) == self.max_rows):
                yield _joined(head, batch, separator, tail, doubled=doubled)
                batch, used = [], 0
            if size * (2 if doubled else 1) > most:
                raise too_large(self.table, size, self.max_packet_bytes)
            batch.append(text)
            used += size
        if batch:
            yield _joined(head, batch, separator, tail, doubled=doubled)


def too_large(table: TableDescription, size: int, max_packet_bytes: int) -> RowRefused:
    """Return the error of a row that alone is larger than a packet."""
    return RowRefused(
        "a row is larger than the sink's max_allowed_packet",
        remedy=Remedy("mysql.raise-max-allowed-packet-for-row", "Raise max_allowed_packet of the sink's server, and start again"),
        table=str(table.folded),
        bytes=size,
        max_packet_bytes=max_packet_bytes,
    )


def _joined(head: str, batch: list[str], separator: str, tail: str, *, doubled: bool) -> tuple[str, int]:
    # MariaDB (10.11) scans the whole table for `(a,b) IN ((1,2))`, but uses the index for two keys or more.
    texts = batch * 2 if doubled and len(batch) == 1 else batch
    return head + separator.join(texts) + tail, len(batch)
