"""The table ``prepared_transaction``: what XA transactions of a binlog have changed that are prepared and not committed."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from typing import Final

from sqlalchemy import Connection

from applier.model.xa_store import XaReader
from applier.sinks.bookkeeping.bookkeeping import Bookkeeping, Transactions

PIECES: Final = 16
"""Number of pieces that are written in one transaction."""
PLACES: Final = 500
"""Number of transactions that one statement deletes."""
KEEPING: Final = "keeping prepared transactions"


def read_pieces(bookkeeping: Bookkeeping, connection: Connection, place: int) -> Iterator[bytes]:
    """Yield the pieces of a transaction, each by a statement: they need not fit into memory."""
    piece = 0
    while True:
        found = bookkeeping.run(connection, "prepared_transaction_read", place=bookkeeping.number(place), piece=piece).scalar_one_or_none()
        if found is None:
            return
        yield bytes(found)
        piece += 1


@dataclass(frozen=True, slots=True)
class XaTable:
    """A ``XaStore`` of the replica that ``bookkeeping`` is of."""

    bookkeeping: Bookkeeping
    reader: XaReader = field(repr=False)
    transactions: Transactions

    def sizes(self) -> Mapping[int, int]:
        """Return the position and size of each transaction."""

        def work(connection: Connection) -> dict[int, int]:
            return {int(row.place): int(row.size) for row in self.bookkeeping.run(connection, "prepared_transaction_sizes")}

        return self.transactions.read(work, "reading which prepared transactions are kept")

    def keep(self, place: int, pieces: Iterable[bytes]) -> None:
        """Store what a transaction has changed."""
        left, first = iter(pieces), 0
        self.forget([place])
        while some := tuple(islice(left, PIECES)):
            self.transactions.change(partial(self._write, place=place, first=first, pieces=some), KEEPING)
            first += len(some)

    def _write(self, connection: Connection, *, place: int, first: int, pieces: Collection[bytes]) -> None:
        number = self.bookkeeping.number(place)
        for piece, content in enumerate(pieces, first):
            self.bookkeeping.run(connection, "prepared_transaction_write", place=number, piece=piece, content=content)

    def forget(self, places: Collection[int]) -> None:
        """Delete transactions."""
        left = [self.bookkeeping.number(place) for place in places]
        for first in range(0, len(left), PLACES):
            some = left[first : first + PLACES]
            self.transactions.change(partial(self._forget, places=some), KEEPING)

    def _forget(self, connection: Connection, *, places: Collection[int | str]) -> None:
        self.bookkeeping.run(connection, "prepared_transaction_forget", places=places)
