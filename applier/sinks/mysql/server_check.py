"""Examines the server of a sink before a run: its version and settings, the user's privileges, its tables, foreign keys and shared locks.

The number of statements about tables does not depend on the number of tables. Errors of the database come out as SQLAlchemy's.

With ``consistency = "row"`` writers share a lock on the progress row and on each other's window. Two servers accept the statement without
such a lock: TiDB's shared lock does not lock, and in a Galera cluster only one node knows a lock, while transactions of others are
certified by the rows that they change. There a late writer could commit after the progress has passed it, so such servers are refused.
"""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from typing import Final, NamedTuple

from sqlalchemy import Connection, text
from sqlalchemy.exc import SQLAlchemyError

from applier.ddl.generated import unportable_columns
from applier.model.errors import ConfigError, Remedy
from applier.model.events import FoldedName, TableName
from applier.model.finding import CheckFinding, of_error, ok, problem, warning
from applier.mysql.catalogue import RULES, Row, known_of, read_structures, read_view, unportable_unique_indexes
from applier.mysql.grants import Grants, TriggerVisibility, account_of, grant
from applier.mysql.names import spellings
from applier.mysql.queries import QUERIES
from applier.mysql.session import discard, limits, read_named
from applier.mysql.session_variables import SQL_MODE, zone_on_server
from applier.mysql.structure import TableStructure
from applier.planner.ordered_rows import KeyLink
from applier.planner.table_check import FoldingColumn, SinkTable
from applier.sinks.kit import SinkDemand
from applier.sinks.mysql.bulk_write import takes_loads
from applier.sinks.mysql.session import Purpose, open_session
from applier.sinks.settings import BulkLoad, SinkSettings

_ENGINES: Final = text("SELECT ENGINE FROM information_schema.ENGINES WHERE TRANSACTIONS = 'YES'")
_LABELS: Final = frozenset({"enum", "set"})
"""Types whose values are numbers, although their labels have a collation."""


def examine(connection: Connection, tables: Collection[TableName]) -> dict[FoldedName, SinkTable]:
    """Examine the tables that exist, views and the like too."""
    structures = read_structures(connection, tables)
    if not structures:
        return {}
    engines = frozenset(str(engine).casefold() for engine in connection.scalars(_ENGINES))
    # information_schema.TRIGGERS is empty for a user without TRIGGER: "no triggers" would be a guess.
    visibility = TriggerVisibility.of(connection)
    names = {name.fold(): name for name in tables}
    return {
        folded: _examined(names[folded], structure, engines, shows_triggers=visibility.shows(names[folded]))
        for folded, structure in structures.items()
    }


def _examined(name: TableName, structure: TableStructure, engines: frozenset[str], *, shows_triggers: bool) -> SinkTable:
    unique = {part.column.casefold() for index in structure.indexes if index.unique for part in index.parts if part.column is not None}
    # Other columns may have any collation: only a unique index makes two rows one.
    keys = [
        FoldingColumn(column.name, column.collation)
        for column in structure.columns
        if column.collation and column.name.casefold() in unique and column.data_type not in _LABELS
    ]
    return SinkTable(
        name=name,
        kind=structure.kind.upper(),
        engine=structure.engine,
        has_transactions=structure.engine.casefold() in engines,
        triggers=tuple(sorted(trigger.name for trigger in structure.triggers)),
        shows_triggers=shows_triggers,
        folding=tuple(key for key in keys if _folds(key.collation)),
        unportable=tuple(unportable_columns(known_of(structure))),
        unportable_indexes=tuple(unportable_unique_indexes(structure)),
        padding=tuple(key for key in keys if not _folds(key.collation) and _pads(key.collation)),
    )


def _folds(collation: str) -> bool:
    """Return whether a collation may treat texts as equal that differ in more than trailing spaces: all but the binary ones may."""
    return collation != "binary" and not collation.endswith("_bin")


def _pads(collation: str) -> bool:
    """Return whether a binary collation ignores trailing spaces: all do but ``binary``, ``utf8mb4_0900_bin`` and MariaDB's ``nopad``."""
    return collation not in {"binary", "utf8mb4_0900_bin"} and "_nopad_" not in collation


VERSION: Final = text("SELECT VERSION()")
GALERA: Final = text("SHOW GLOBAL VARIABLES WHERE Variable_name IN ('wsrep_on', 'wsrep_provider')")


def refuse_unshared_locks(connection: Connection) -> None:
    """Raise ConfigError, with the server's name, if its shared locks do not hold."""
    server = server_of_unshared_locks(connection)
    if server is not None:
        raise ConfigError(
            f'sink.consistency = "row" cannot be used with {server}: its shared locks do not stop a late writer',
            remedy=Remedy("mysql.set-transaction-consistency", 'Set sink.consistency = "transaction"'),
            server=server,
        )


def server_of_unshared_locks(connection: Connection) -> str | None:
    """Return the name of the server if its shared locks do not hold; else None."""
    variables = {str(name).casefold(): str(value).casefold() for name, value in connection.execute(GALERA)}
    return server_without_shared_locks(str(connection.execute(VERSION).scalar_one()), variables)


def server_without_shared_locks(version: str, variables: dict[str, str]) -> str | None:
    """Return the name of a server whose shared locks do not hold; None for others."""
    if "tidb" in version.casefold():
        return "TiDB"
    # MariaDB knows both variables without a cluster, too.
    is_cluster = variables.get("wsrep_on") in {"on", "1"} and variables.get("wsrep_provider", "none") not in {"", "none"}
    return "a Galera cluster" if is_cluster else None


_ALL: Final = f"SELECT * FROM {RULES.source}"  # noqa: S608 - constants


def foreign_keys(connection: Connection, tables: Collection[TableName] | None) -> list[KeyLink] | None:
    """Return the foreign keys of some tables (None: of all of the server); None on TiDB."""
    if "tidb" in str(connection.scalar(QUERIES["version"])).casefold():
        return None
    if tables is None:
        return _links(read_named(connection, _ALL))
    found = read_view(connection, RULES, set(spellings(connection, tables).values()))
    return _links(row for rows in found.values() for row in rows)


def _links(rows: Iterable[Row]) -> list[KeyLink]:
    return [
        KeyLink(
            row["CONSTRAINT_NAME"],
            TableName(row["CONSTRAINT_SCHEMA"], row["TABLE_NAME"]).fold(),
            TableName(row["UNIQUE_CONSTRAINT_SCHEMA"], row["REFERENCED_TABLE_NAME"]).fold(),
            row["DELETE_RULE"],
            row["UPDATE_RULE"],
        )
        for row in rows
    ]


PACKET: Final = 16 * 1024**2
"""TiDB's rows have 6 MiB at the most by default; as hexadecimal digits that is twice as much."""
SERVER: Final = text("SELECT VERSION() AS version, @@GLOBAL.sql_mode AS sql_mode, @@GLOBAL.read_only AS read_only")
SET_ZONE: Final = text("SET SESSION time_zone = :zone")
WRITES_ANYWAY: Final = ("SUPER", "READ_ONLY ADMIN", "CONNECTION_ADMIN")
TESTED: Final = ("10.11.", "9.7.")
OLDEST: Final = {"MariaDB": (10, 6), "MySQL": (8, 0)}


class Useful(NamedTuple):
    """Privileges that a replica can run without, and what happens then."""

    privileges: tuple[str, ...]
    harm: str


ROWS: Final = ("SELECT", "INSERT", "DELETE")
DDLS: Final = Useful(
    ("CREATE", "ALTER", "INDEX", "DROP", "REFERENCES", "CREATE VIEW", "SHOW VIEW", "TRIGGER"),
    "a DDL that needs them will stop the replica",
)
ORDERED: Final = Useful(
    (*DDLS.privileges, "UPDATE"), f"{DDLS.harm}, and without UPDATE so will rows of tables with ON DELETE CASCADE and the like"
)
"""Of a binlog, whose rows may have to be updated (``planner.ordered_rows``)."""
BOOKKEEPING: Final = (*ROWS, "UPDATE")
MIGRATION: Final = ("CREATE", "ALTER", "INDEX")
"""The privileges that creating the bookkeeping's tables needs. sql/grants.sql gives more, for migrations to come."""
LATER: Final = Useful((*MIGRATION, "DROP", "REFERENCES"), "an upgrade of the bookkeeping may need them")
ANYWHERE: Final = TableName("", "")


def examine_server(settings: SinkSettings, demand: SinkDemand) -> Iterator[CheckFinding]:
    """Examine the server over a session of its own. SinkError: it cannot be reached."""
    # In UTC: whether the server knows the zone is a question of its own.
    connection = open_session(replace(settings, time_zone="UTC"), Purpose.CONTROL)
    try:
        server = connection.execute(SERVER).one()
        yield version_finding(str(server.version))
        # Opening the session has set its variables, and read them again.
        yield ok("sink: sql_mode", f"each session sets its own ({SQL_MODE}); the server's is {server.sql_mode or 'empty'}")
        yield _zone(connection, zone_on_server(settings.time_zone))
        if demand.ddl_time_zone:
            yield _zone(connection, zone_on_server(demand.ddl_time_zone), "ddl_time_zone")
        grants = Grants.of(connection)
        if str(server.read_only).casefold() in {"1", "on"} and not any(grants.allows(name, ANYWHERE) for name in WRITES_ANYWAY):
            yield problem(
                "sink: read_only",
                "the server is read-only",
                Remedy("check.set-read-only-off", "SET GLOBAL read_only = OFF, or give the URL of the server that is written"),
            )
        yield _packet(limits(connection)[0])
        yield _loads(settings, connection)
        if settings.rows_ahead:
            yield _shared_locks(connection)
        yield from _privileges(connection, grants, settings.schema, demand)
    finally:
        discard(connection)


def version_finding(version: str) -> CheckFinding:
    """Judge the version of a server by its own text."""
    check = "sink: version"
    kind = "TiDB" if "tidb" in version.casefold() else "MariaDB" if "mariadb" in version.casefold() else "MySQL"
    if kind == "TiDB":
        return warning(
            check,
            f"{version}: TiDB as a sink is untested",
            Remedy("check.test-untested-version", "Test it with your data before you rely on it"),
        )
    if kind in OLDEST and _numbers(version) < OLDEST[kind]:
        oldest = ".".join(map(str, OLDEST[kind]))
        return warning(
            check, f"{kind} {version} is older than {oldest}", Remedy("check.use-newer-sink-server", f"Use {kind} {oldest} or newer")
        )
    known = "tested" if version.startswith(TESTED) else "this version is not tested; 10.11 (MariaDB) and 9.7 (MySQL) are"
    return ok(check, f"{kind} {version} ({known})")


def _numbers(version: str) -> tuple[int, ...]:
    digits = version.partition("-")[0].split(".")[:2]
    return tuple(int(part) if part.isdecimal() else 0 for part in digits)


def _zone(connection: Connection, zone: str, key: str = "time_zone") -> CheckFinding:
    check = "sink: time zone"
    try:
        connection.execute(SET_ZONE, {"zone": zone})
        connection.rollback()
    except SQLAlchemyError:
        remedy = Remedy(
            "check.load-zone-tables",
            f"Load the zone tables (mysql_tzinfo_to_sql /usr/share/zoneinfo | mysql mysql), or give source.{key} as an offset",
        )
        return problem(check, f"the server does not know the zone {zone}", remedy)
    return ok(check, f"the server knows {zone}")


def _packet(size: int) -> CheckFinding:
    check, detail = "sink: max_allowed_packet", f"{size / 1024**2:g} MiB"
    if size < PACKET:
        return warning(
            check,
            f"{detail}: a larger row stops the replica",
            Remedy("check.set-max-allowed-packet", "SET GLOBAL max_allowed_packet = 67108864, also in its configuration"),
        )
    return ok(check, detail)


def _shared_locks(connection: Connection) -> CheckFinding:
    check = "sink: consistency"
    try:
        refuse_unshared_locks(connection)
    except ConfigError as error:
        return of_error(check, error)
    return ok(check, 'the server can keep the writers of sink.consistency = "row" apart')


def _loads(settings: SinkSettings, connection: Connection) -> CheckFinding:
    check = "sink: local_infile"
    if settings.bulk_load is BulkLoad.OFF:
        return ok(check, "not needed: sink.bulk_load is off")
    if takes_loads(connection):
        return ok(check, "bulk loads are possible")
    return warning(
        check,
        "the server takes no bulk loads: many rows are written more slowly",
        Remedy("check.set-local-infile", "SET GLOBAL local_infile = ON"),
    )


def _privileges(connection: Connection, grants: Grants, bookkeeping: str, demand: SinkDemand) -> Iterator[CheckFinding]:
    """Examine the privileges on both kinds of schemas (sql/grants.sql)."""
    user = str(connection.execute(QUERIES["current_user"]).scalar_one())
    yield _of_schema(grants, user, bookkeeping, (*BOOKKEEPING, *(MIGRATION if demand.is_new else ())), LATER)
    if demand.schemas is None:
        return
    useful = ORDERED if demand.updates_rows else DDLS
    for schema in demand.schemas():
        yield _of_schema(grants, user, schema, ROWS, useful)
    if not grants.allows("PROCESS", ANYWHERE):
        missing = "PROCESS is missing; it is optional, and shows which session blocks a DDL"
        yield warning("sink: privileges", missing, Remedy("mysql.grant-process", grant(["PROCESS"], "", *account_of(user))))


def _granting(privileges: list[str], schema: str, user: str) -> Remedy:
    return Remedy("mysql.grant-on-schema", grant(privileges, schema, *account_of(user)))


def _of_schema(grants: Grants, user: str, schema: str, needed: tuple[str, ...], useful: Useful) -> CheckFinding:
    check, place = "sink: privileges", TableName(schema, "")
    missing = [name for name in needed if not grants.allows(name, place)]
    # Some servers are granted table by table. That is no reason to refuse a replica that runs: a table that is missing is named then.
    unknown = [name for name in missing if not grants.allows_on_a_table(name, schema)]
    absent = [name for name in useful.privileges if not grants.allows(name, place)]
    if unknown:
        # With what is useful only: an administrator is asked once.
        every = list(dict.fromkeys([*missing, *absent]))
        return problem(check, f"{user} lacks {', '.join(every)} on {schema}.*", _granting(every, schema, user))
    if absent:
        return warning(check, f"{user} lacks {', '.join(absent)} on {schema}.*: {useful.harm}", _granting(absent, schema, user))
    return ok(check, f"{user} has all on {schema}.*")
