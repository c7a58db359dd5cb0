"""Examines the server of a sink before a run: its version, the settings that matter, and the user's privileges."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Final, NamedTuple

from sqlalchemy import Connection, text
from sqlalchemy.exc import SQLAlchemyError

from applier.model.errors import ConfigError
from applier.model.events import TableName
from applier.model.finding import CheckFinding, of_error, ok, problem, warning
from applier.model.remedy import Remedy
from applier.mysql.grants import Grants, account_of, grant
from applier.mysql.queries import QUERIES
from applier.mysql.session import discard, limits
from applier.mysql.session_variables import SQL_MODE, zone_on_server
from applier.sinks.kit import SinkDemand
from applier.sinks.mysql.bulk_write import takes_loads
from applier.sinks.mysql.session import Purpose, open_session
from applier.sinks.mysql.shared_locks import refuse_unshared_locks
from applier.sinks.settings import BulkLoad, SinkSettings

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
"""What making the tables of the bookkeeping takes. sql/grants.sql gives more, for migrations to come."""
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
