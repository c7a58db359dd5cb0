"""Statements that name rows by their keys, cut to what a server takes. The sink deletes by key, and upstream is read by key.

Conditions are lists of keys where servers find all keys of a list, and single comparisons where one of them does not.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final, TypeAlias

from applier.mysql.literals import comparable_of
from applier.mysql.names import quote_identifier
from applier.planner.port import TableDescription

TARGET_BYTES: Final = 1024 * 1024
"""Where a statement is cut: larger ones gain nothing and hold the parser's memory; a single row may be larger."""
COMMAND_BYTES: Final = 1
"""What a packet holds in addition to the text of its statement."""
MAX_KEYS: Final = 500
"""Keys per statement: MariaDB rewrites IN lists from 1000 elements on (in_predicate_conversion_threshold), and MySQL drops its
range plan beyond range_optimizer_max_mem_size."""
TooLarge: TypeAlias = Callable[[TableDescription, int, int], Exception]
"""Makes the error of a row that alone is larger than a packet, of the table, the bytes of the row, and the bytes of a packet."""


@dataclass(frozen=True, slots=True)
class Cutter:
    """Cuts rows into statements by number and by bytes."""

    table: TableDescription
    max_packet_bytes: int
    max_rows: int
    too_large: TooLarge

    def cut(self, head: str, texts: Iterable[str], separator: str, tail: str, *, doubled: bool = False) -> Iterator[tuple[str, int]]:
        """Yield (statement, rows). A row that alone is larger than a packet raises ``too_large`` after the rows before it.

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
                raise self.too_large(self.table, size, self.max_packet_bytes)
            batch.append(text)
            used += size
        if batch:
            yield _joined(head, batch, separator, tail, doubled=doubled)


def _joined(head: str, batch: list[str], separator: str, tail: str, *, doubled: bool) -> tuple[str, int]:
    # MariaDB (10.11) scans the whole table for `(a,b) IN ((1,2))`, but uses the index for two keys or more.
    texts = batch * 2 if doubled and len(batch) == 1 else batch
    return head + separator.join(texts) + tail, len(batch)


def by_key(cutter: Cutter, head: str, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[tuple[str, int]]:
    """Render ``head`` and a condition by key, in lists where servers find all keys of a list (see ``single_comparison_test``)."""
    table = cutter.table
    quoted = [quote_identifier(column) for column in columns]
    if labelled := labelled_columns(table, columns):
        rows = by_label(rows, labelled)
    listed = f"({','.join(quoted)}) IN (" if len(quoted) > 1 else f"{quoted[0]} IN ("
    # The order of the rows is kept (keyless tables depend on it): neighbours of one kind share a statement, others do not.
    for apart, group in groupby(rows, key=single_comparison_test(table, columns, frozenset(labelled))):
        if apart:
            yield from cutter.cut(head, (compared(quoted, row) for row in group), " OR ", "")
        elif len(quoted) > 1:
            yield from cutter.cut(head + listed, (f"({','.join(row)})" for row in group), ",", ")", doubled=True)
        else:
            yield from cutter.cut(head + listed, (row[0] for row in group), ",", ")")


def labelled_columns(table: TableDescription, columns: Sequence[str]) -> dict[int, Callable[[str], str]]:
    """Return how the literals of ENUM and SET columns among ``columns`` are compared, by the column's position.

    By their labels: a mask with bit 63 is equal to no unsigned number on any server. What an empty label would make ambiguous stays
    a number.
    """
    by_name = {column.name: column for column in table.columns}
    found = {place: by_name[name] for place, name in enumerate(columns) if name in by_name}
    return {place: comparable_of(column) for place, column in found.items() if column.labels}


def by_label(rows: Iterable[Sequence[str]], labelled: Mapping[int, Callable[[str], str]]) -> Iterator[Sequence[str]]:
    """Yield the rows with the literals of ``labelled`` columns as these are compared."""
    for row in rows:
        yield [labelled[place](literal) if place in labelled else literal for place, literal in enumerate(row)]


def single_comparison_test(table: TableDescription, columns: Sequence[str], labelled: Collection[int]) -> Callable[[Sequence[str]], bool]:
    """Return the test for keys that must be compared one by one, at a third of the speed of a list."""
    # ENUM and SET among several columns: MySQL (9.7) misses the row by its number, MariaDB scans the table for its label.
    if len(columns) > 1 and labelled:
        return lambda _: True
    binary = {column.name for column in table.columns if column.binary}
    texts = [index for index, column in enumerate(columns) if column not in binary]

    def needs_single_comparison(row: Sequence[str]) -> bool:
        # IN never finds NULL. One binary constant (text as hexadecimal) makes the server compare the whole list as binary.
        if "NULL" in row or any(row[index].startswith("x'") for index in texts):
            return True
        # An ENUM or SET as a number: see `labelled_columns`.
        if labelled and not row[0].startswith("'"):
            return True
        # In lists of several columns MariaDB (10.11) does not convert text beyond ASCII to the column's character set: it misses the row.
        return len(row) > 1 and not all(map(str.isascii, row))

    return needs_single_comparison


def compared(quoted: Sequence[str], row: Sequence[str]) -> str:
    """Return the condition of one key."""
    # <=> is the one comparison that finds NULL.
    return f"({' AND '.join(f'{column}<=>{value}' for column, value in zip(quoted, row, strict=True))})"
