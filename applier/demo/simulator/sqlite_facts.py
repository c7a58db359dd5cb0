"""Reads what an SQLite database holds, for comparison: an oracle's file or a sink's."""

import sqlite3
from contextlib import closing
from pathlib import Path
from urllib.parse import unquote

from applier.demo.simulator.compare import ColumnFacts, DatabaseFacts, IndexFacts, TableFacts
from applier.demo.simulator.table_family import ACCOUNTS, WALLETS
from applier.model.events import TableName

_BOOKKEEPING = "applier_"


def quote(name: str) -> str:
    """Quote an identifier of SQLite."""
    return '"' + name.replace('"', '""') + '"'


def money_total(connection: sqlite3.Connection) -> int | None:
    """Return the sum of all balances in an SQLite database (oracle or sink); None before the accounts exist."""
    present = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    names = [str(ACCOUNTS), str(WALLETS)]
    if not present.issuperset(names):
        return None
    sums = " UNION ALL ".join(f"SELECT balance FROM {quote(name)}" for name in names)
    return int(connection.execute(f"SELECT COALESCE(SUM(balance), 0) FROM ({sums})").fetchone()[0])


def read_facts(connection: sqlite3.Connection) -> DatabaseFacts:
    """Describe an SQLite database for comparison; the sink's own bookkeeping is left out."""
    connection.text_factory = lambda raw: raw.decode("utf-8", "surrogateescape")
    found = connection.execute("SELECT name, type FROM sqlite_master WHERE type IN ('table', 'view')").fetchall()
    names = [(name, kind) for name, kind in found if "." in name and not name.startswith((_BOOKKEEPING, "sqlite_"))]
    tables = {_table_name(name): _table_facts(connection, name) for name, kind in names if kind == "table"}
    return DatabaseFacts(tables=tables, views=frozenset(_table_name(name) for name, kind in names if kind == "view"))


def _table_name(stored: str) -> TableName:
    """Split ``shop.orders``; dots and percent signs inside a part are written %2E and %25."""
    schema, table = stored.split(".", 1)
    return TableName(unquote(schema), unquote(table))


def read_file_facts(path: Path | str) -> DatabaseFacts:
    """Describe the SQLite database in a file."""
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
        return read_facts(connection)


def _table_facts(connection: sqlite3.Connection, name: str) -> TableFacts:
    described = connection.execute('SELECT name, "notnull", pk FROM pragma_table_xinfo(?) ORDER BY cid', (name,)).fetchall()
    columns = tuple(ColumnFacts(name=column, nullable=not notnull and not pk) for column, notnull, pk in described)
    listed = ",".join(quote(column.name) for column in columns)
    rows = connection.execute(f"SELECT {listed} FROM {quote(name)}").fetchall()
    keys = tuple(column for column, _, pk in sorted(described, key=lambda row: row[2]) if pk)
    return TableFacts(columns=columns, indexes=_index_facts(connection, name, keys), rows=rows)


def _index_facts(connection: sqlite3.Connection, name: str, keys: tuple[str, ...]) -> frozenset[IndexFacts]:
    facts = {IndexFacts(name="PRIMARY", columns=keys, unique=True, primary=True)} if keys else set()
    listed = connection.execute('SELECT name, "unique", origin, partial FROM pragma_index_list(?)', (name,)).fetchall()
    for index, is_unique, origin, partial in listed:
        if origin == "pk":
            continue
        columns = tuple(row[0] for row in connection.execute("SELECT name FROM pragma_index_info(?) ORDER BY seqno", (index,)))
        if partial or None in columns:  # an index of an expression, or the name of one: not every database has it
            continue
        short = "" if index.startswith("sqlite_autoindex_") else unquote(index.removeprefix(name + "."))
        facts.add(IndexFacts(name=short, columns=columns, unique=bool(is_unique), primary=False))
    return frozenset(facts)
