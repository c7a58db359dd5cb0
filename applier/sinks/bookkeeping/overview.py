"""Reads the state of one replica from its bookkeeping, without owning it, changing it or waiting for a writer."""

from collections.abc import Callable

from sqlalchemy import Connection

from applier.sinks.bookkeeping import migration
from applier.sinks.bookkeeping.bookkeeping import as_datetime
from applier.sinks.bookkeeping.ledger import Ledger
from applier.sinks.bookkeeping.owner_table import OwnerRow, OwnerTable
from applier.sinks.bookkeeping.pause_table import read_pause
from applier.sinks.bookkeeping.progress_table import ProgressTable
from applier.sinks.bookkeeping.quarantine import Quarantine
from applier.sinks.bookkeeping.run_end_table import RunEndTable
from applier.sinks.overview import Overview, OwnerView


def read_overview(connection: Connection, ledger: Ledger, judge: Callable[[OwnerRow], OwnerView]) -> Overview:
    """Read the bookkeeping of one replica; FatalSinkError if the tables are missing, or have another version.

    ``judge`` decides, as this database shows it, whether the owner lives.
    """
    books = ledger.bookkeeping
    migration.check(connection, books)
    updated = connection.execute(books.query("progress_updated"), {"name": books.name}).scalar_one_or_none()
    owner = OwnerTable(books).read(connection)
    return Overview(
        progress=ProgressTable(books).load(connection),
        updated_at=None if updated is None else as_datetime(updated),
        owner=None if owner is None else judge(owner),
        undecided=tuple(ledger.intents(connection)),
        quarantined=Quarantine(books).count(connection),
        last_end=RunEndTable(books).read(connection),
        pause=read_pause(connection, books),
    )
