"""Reads what the sink keeps of a prepared transaction, on an executor of the machine that holds the file."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from applier.sinks.bookkeeping.bookkeeping import Bookkeeping
from applier.sinks.bookkeeping.prepared_table import read_pieces
from applier.sinks.sqlite.session import open_engine, snapshot


@dataclass(frozen=True, slots=True)
class SqlitePreparedReader:
    """A ``PreparedReader``. Picklable; opens the file for each transaction that it reads."""

    path: Path
    bookkeeping: Bookkeeping
    lock_wait_timeout_s: int

    def read(self, place: int) -> Iterator[bytes]:
        """Yield the pieces of a transaction."""
        engine = open_engine(self.path, self.lock_wait_timeout_s)
        try:
            with snapshot(engine, self.path) as connection:
                yield from read_pieces(self.bookkeeping, connection, place)
        finally:
            engine.dispose()
