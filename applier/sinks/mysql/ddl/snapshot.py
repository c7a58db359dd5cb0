"""Tables as they are when a statement is sent. They are compared if the statement's outcome stays unknown (``comparison``).

Of each table: the text of SHOW CREATE TABLE, from which a scratch table can be made; whether it holds rows; and its storage ids.
AUTO_INCREMENT counters and creation times are not in it: they change without a DDL. Nor are a schema's tables, because a half-done
DROP DATABASE must be repeated.

Storage ids alone show an EXCHANGE PARTITION, or a RENAME between tables that look alike. They are TiDB's table and partition ids, or
InnoDB's, which need the PROCESS privilege (None without it). Ids change without a DDL too: by a GRANT, a restored dump, or a failover to
another server. So they count only together with the server or cluster that gave them.

InnoDB keeps names as file names: ``my-table`` is ``my@002dtable``. MariaDB converts names itself (``CONVERT(… USING filename)``); MySQL
knows that character set too, but lets no statement use it. So the conversion is done here, for both. Source: "Mapping of Identifiers to
File Names" in MySQL's manual.
"""

import json
import re
from collections.abc import Collection, Iterator
from functools import cache
from itertools import product
from typing import Any, Final, NamedTuple

from sqlalchemy import Connection, TextClause, text
from sqlalchemy.exc import DBAPIError

from applier.ddl import parse_ddl
from applier.model.events import DdlEvent, TableName
from applier.mysql.catalogue import PARTITIONS, TABLES, holds_row, read_view
from applier.mysql.names import quote_identifier, quote_table, schema_spelling, spellings
from applier.mysql.session import read_bytes
from applier.mysql.session_variables import asked_once
from applier.sinks.mysql.ddl.schema_default import read_schema_default

_PLAIN: Final = frozenset("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz")
_DIGITS, _EARLY, _LATE = "0123456789", "abcdefghijklmnopqrstuvwxyz", "ghijklmnopqrstuvwxyz"
# Letters of small alphabets are "@" and two characters instead of four hexadecimal digits, in the order of ``_codes``. Here are the
# letters in that order, hexadecimal: 48b+27 is every second from U+048B on, 27 of them; 1f00*8 is each; -4 leaves four codes out.
_SMALL: Final = (
    "e0*23 df f8*8 101+28 138+9 149+24 17a+3 17f -21 390 -1 3ac*35 -1 3d0*2 -3 3d5*3 3d9+12 3f0*4 3f5*2 3f8 3fb*2 -15 "
    "430*48 461+17 -1 48b+27 -1 4c2+7 -1 4d1+21 -6 501+8 -4 561*37 -2 2170*16 -4 180 183+2 188 18c*2 192 195 199*3 19e "
    "1a1+3 1a8+2 1ab+2 1b0 1b4+2 1b9*3 -1 1be 1bd 1c6 1c9 1cc+9 1dd+10 1f0 1f3+2 1f9+30 234*6 -1 23c -1 23f*2 -14 250*96 "
    "-17 1e01+75 1e96*6 -4 1ea1+45 -10 1f00*8 1f10*6 -4 1f20*8 1f30*8 1f40*6 -4 1f50*8 -4 1f60*8 1f70*14 -2 1f80*8 1f90*8 "
    "1fa0*8 1fb0*5 -1 1fb6*2 1fc2*3 -1 1fc6*2 1fd0*4 -2 1fd6*2 -1 1fe0*8 -2 1ff2*2 -2 1ff6*2 -17 ff41*26 24d0*26"
)
_CAPITAL: Final = (
    "c0*23 -1 d8*7 178 100+24 -1 132+3 -1 139+8 -1 14a+23 179+3 -24 386+2 389*2 -1 391 -1 393*5 -1 399 -1 39b*5 -1 3a1 -2 "
    "3a4*2 -1 3a7*5 38c+2 38f -1 392 398 3d2*3 3a6 3a0 -2 3da+11 39a -1 3a3 -6 3fd*3 -12 410*32 400*16 460+17 -1 48a+28 "
    "4c1+7 -1 4d0+21 -6 500+8 -4 531*37 -2 2160*16 -5 182+2 187 18b -1 191 1f6 198 23d -1 220 1a0+3 1a7 -2 1ac 1af 1b3+2 "
    "1b8 -4 1bc 1c4 1c7 1ca 1cd+8 18e 1de+9 -1 1f1 1f4 1f8+20 -1 222+9 -6 23a*2 23e -19 181 186 -1 189*2 -1 18f -1 190 -4 "
    "193 -2 194 -4 197 196 -5 19c -2 19d -2 19f -10 1a6 -2 1a9 -4 1ae -1 1b1*2 -6 1b7 -1 241 -44 1e00+48 -1 1e62+26 -5 1e60 "
    "-4 1ea0+45 -10 1f08*8 1f18*6 -4 1f28*8 1f38*8 1f48*6 -5 1f59 -1 1f5b -1 1f5d -1 1f5f -4 1f68*8 1fba*2 1fc8*4 1fda*2 "
    "1ff8*2 1fea*2 1ffa*2 -2 1f88*8 1f98*8 1fa8*8 1fb8*2 -1 1fbc -5 1fcc -4 1fd8*2 -7 1fe8*2 -3 1fec -5 1ffc -21 ff21*26 "
    "24b6*26"
)
_DEVICES: Final = frozenset(["con", "prn", "aux", "nul", *(f"{port}{number}" for port, number in product(("com", "lpt"), "123456789"))])
"""Names that Windows keeps for devices; the servers set them apart everywhere."""


def file_name(name: str) -> str:
    """Convert the name of a schema, a table or a partition."""
    letters = _letters()
    converted = "".join(char if char in _PLAIN else letters.get(char) or f"@{ord(char):04x}" for char in name)
    return f"{converted}@@@" if converted.casefold() in _DEVICES else converted


@cache
def _letters() -> dict[str, str]:
    small = dict(zip(_spelled(_SMALL), _codes(_EARLY, _LATE), strict=True))
    capital = dict(zip(_spelled(_CAPITAL), _codes(_EARLY.upper(), _LATE.upper()), strict=True))
    return {char: f"@{code}" for char, code in (small | capital).items() if char}


def _codes(early: str, late: str) -> Iterator[str]:
    yield from (first + second for first in _DIGITS for second in late)
    yield from (first + second for second in _DIGITS + _EARLY for first in late)
    yield from (f"{first}@" for first in early)
    yield from (f"@{second}" for second in early)


def _spelled(runs: str) -> Iterator[str]:
    """Yield the letters of the runs; '' for a code that no letter has."""
    for run in runs.split():
        if run[0] == "-":
            yield from [""] * int(run[1:])
            continue
        step = 2 if "+" in run else 1
        first, _, count = run.replace("+", "*").partition("*")
        yield from (chr(int(first, 16) + step * index) for index in range(int(count or "1")))


# A partition's name follows after #P# (MySQL: #p#).
_INNODB_TABLES: Final = (
    text("SELECT NAME, TABLE_ID FROM information_schema.INNODB_SYS_TABLES WHERE LEFT(NAME, CHAR_LENGTH(:name)) = :name"),
    text("SELECT NAME, TABLE_ID FROM information_schema.INNODB_TABLES WHERE LEFT(NAME, CHAR_LENGTH(:name)) = :name"),
)
_UNKNOWN_TABLE, _PRIVILEGE_NEEDED = 1109, 1227
# These identify servers without a privilege: server_uid is MariaDB's, server_uuid MySQL's. TiDB's ids belong to a cluster; its datadir
# holds the addresses of PD.
_SERVER: Final = text("SHOW VARIABLES WHERE Variable_name IN ('server_uid', 'server_uuid', 'hostname', 'port', 'datadir')")
_CLUSTER: Final = text("SHOW VARIABLES WHERE Variable_name = 'datadir'")


class Storage(NamedTuple):
    """Storage ids of a table (key ``''``) and its partitions (key: name), and the server or cluster that gave them."""

    ids: dict[str, int]
    server: str


def read_storage(connection: Connection, actual: TableName) -> Storage | None:
    """Read the ids of a table that exists; None if the server does not show them."""
    (table,) = read_view(connection, TABLES, [actual])[actual]
    # Looked for in the row, not derived from a version: TiDB says "8.0.11-TiDB-…" under a name that a setting changes.
    if table.get("TIDB_TABLE_ID") is None:
        innodb = _innodb_ids(connection, actual)
        return None if innodb is None else Storage(innodb, asked_once(connection, "server", lambda: _variables(connection, _SERVER)))
    ids = {"": int(table["TIDB_TABLE_ID"])}
    for partition in read_view(connection, PARTITIONS, [actual])[actual]:
        if partition["PARTITION_NAME"] is not None and partition.get("TIDB_PARTITION_ID") is not None:
            ids[str(partition["PARTITION_NAME"]).casefold()] = int(partition["TIDB_PARTITION_ID"])
    return Storage(ids, _variables(connection, _CLUSTER))


def _variables(connection: Connection, query: TextClause) -> str:
    return json.dumps(sorted((str(name).casefold(), str(value)) for name, value in connection.execute(query)))


def _innodb_ids(connection: Connection, actual: TableName) -> dict[str, int] | None:
    # InnoDB keeps file names, not identifiers: my-table is my@002dtable.
    prefix = f"{file_name(actual.schema)}/{file_name(actual.table)}"
    ids = {}
    for name, table_id in _innodb_tables(connection, prefix):
        rest = name[len(prefix) :].casefold()
        if name.startswith(prefix) and (not rest or rest.startswith("#p#")):
            ids[rest.removeprefix("#p#")] = int(table_id)
    return ids or None


def _innodb_tables(connection: Connection, prefix: str) -> list[tuple[str, int]]:
    # MariaDB has the first view, MySQL the second; 1109 says that a server does not have it.
    for statement in _INNODB_TABLES:
        try:
            return [(name, table_id) for name, table_id in connection.execute(statement, {"name": prefix})]
        except DBAPIError as error:
            code = error.orig.args[0] if error.orig is not None and error.orig.args else None
            if code == _PRIVILEGE_NEEDED:
                return []
            if code != _UNKNOWN_TABLE:
                raise
    return []


# Both count rows that were inserted: no DDL changes them, and each write of the applier may.
_COUNTERS: Final = re.compile(r" AUTO_INCREMENT=\d+| /\*T!\[auto_rand_base\] AUTO_RANDOM_BASE=\d+ \*/")


class States:
    """The tables and schemas (table ``''``) of one snapshot. ``name in states``: it was there."""

    def __init__(self, states: dict[str, dict[str, Any] | None]) -> None:
        self._states = states

    def __contains__(self, name: TableName) -> bool:
        """Return whether the table or schema was there."""
        return self._states.get(str(name.fold())) is not None

    def definition(self, name: TableName) -> str:
        """Return the text of SHOW CREATE TABLE of a table that was there."""
        return str(self._of(name)["create"])

    def body(self, name: TableName) -> str:
        """Return the definition without the table's name."""
        # The first line is CREATE TABLE `name` (. SHOW CREATE TABLE breaks the line after it on each server.
        return self.definition(name).partition("\n")[2]

    def has_same_definitions(self, other: "States", names: Collection[TableName]) -> bool:
        """Return whether the same tables are there, with the same definitions, as the same server words them."""
        is_there = [name for name in names if name in self]
        if is_there != [name for name in names if name in other]:
            return False
        return all(self.definition(name) == other.definition(name) for name in is_there if name.table)

    def is_view(self, name: TableName) -> bool:
        """Return whether it was a view."""
        return "has_rows" not in self._of(name)

    def has_rows(self, name: TableName) -> bool:
        """Return whether a table that was there held a row."""
        return bool(self._of(name).get("has_rows"))

    def storage(self, name: TableName) -> Storage | None:
        """Return the storage of a table that was there; None if it is not known."""
        state = self._of(name)
        return Storage(state["storage_ids"], state["server"]) if state.get("server") is not None and state["storage_ids"] else None

    def places(self) -> dict[tuple[str, str], tuple[str, int]] | None:
        """Return server and storage id of each table (partition ``''``) and partition; None if one is not known."""
        states = {name: state for name, state in self._states.items() if state is not None}
        if any(state.get("server") is None for state in states.values()):
            return None
        return {
            (name, partition): (state["server"], number)
            for name, state in states.items()
            for partition, number in state["storage_ids"].items()
        }

    def _of(self, name: TableName) -> dict[str, Any]:
        return self._states[str(name.fold())] or {}


def states_of(description: str) -> States:
    """Read what ``snapshot`` returned."""
    return States(json.loads(description))


def described_tables(ddl: DdlEvent) -> list[TableName]:
    """Return the tables (and the schema, as table '') that show whether the DDL has run."""
    statement = parse_ddl(ddl)
    names = [ddl.name] if ddl.table else []
    if statement is not None:
        renamed = [name for pair in statement.renames for name in pair]
        names += [*statement.needs, *statement.creates, *statement.drops, *renamed]
        names += [TableName(statement.schema, "")] if statement.schema else []
    return list({name.fold(): name for name in names}.values())


def snapshot(connection: Connection, names: Collection[TableName]) -> str:
    """Describe the tables (and schemas: table ``''``) as JSON, for ``states_of``."""
    tables = spellings(connection, [name for name in names if name.table])
    states: dict[str, Any] = {}
    # One by one, two to five statements each: a DDL names a few tables, and SHOW CREATE TABLE has no plural.
    for name in names:
        if not name.table:
            states[str(name.fold())] = _schema(connection, name.schema)
        else:
            actual = tables.get(name.fold())
            states[str(name.fold())] = None if actual is None else _table(connection, actual)
    # In ASCII: bytes that are no text have become halves of surrogate pairs, which no column of a server takes.
    return json.dumps(states, sort_keys=True)


def has_moved(were: States, now: States) -> bool | None:
    """Return whether tables and partitions have changed positions; None: the storage ids do not show it.

    They show nothing if one side is not known, if another server gave them, or if a table was created again.
    """
    before, present = were.places(), now.places()
    if before is None or present is None or sorted(before.values()) != sorted(present.values()):
        return None
    return before != present


def _schema(connection: Connection, schema: str) -> dict[str, Any] | None:
    actual = schema_spelling(connection, schema)
    if actual is None:
        return None
    character_set, collation = read_schema_default(connection, actual)
    return {"schema": actual, "character_set": character_set, "collation": collation}


def _table(connection: Connection, actual: TableName) -> dict[str, Any]:
    # A view's text omits the session's current schema. So the session enters the view's own, or two sessions would get two texts.
    read_bytes(connection, "USE " + quote_identifier(actual.schema))
    ((_, definition, *of_view),) = read_bytes(connection, "SHOW CREATE TABLE " + quote_table(actual.schema, actual.table))
    facts = {"table": str(actual), "create": _COUNTERS.sub("", definition.decode("utf-8", "surrogateescape"))}
    if of_view:
        # These are a view's character set and collation. Its rows are its tables' rows; it cannot be read at all once those have changed.
        return facts
    storage = read_storage(connection, actual)
    return facts | {"has_rows": holds_row(connection, actual), "storage_ids": storage and storage.ids, "server": storage and storage.server}
