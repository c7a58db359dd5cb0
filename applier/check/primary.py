"""Examines the server whose binlog is followed: version, privileges, what its binlog must hold, how long it keeps it, server ids."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from applier.check.finding import CheckFinding, of_error, ok, problem, warning
from applier.check.shared_facts import SharedFacts
from applier.config import Config
from applier.model.errors import SourceError
from applier.model.events import TableName
from applier.sinks.mysql.grants import Grants
from applier.sources.binlog.position import file_name
from applier.sources.binlog.server import LogEnd, LogFile, Server, address_of
from applier.sources.binlog.settings import BinlogSettings
from applier.telemetry.wording import count

REACHED: Final = "primary"
VERSION: Final = "primary: version"
PRIVILEGES: Final = "primary: privileges"
BINLOG: Final = "primary: binlog"
RETENTION: Final = "primary: retention"
SERVER_IDS: Final = "primary: server ids"

OLDEST: Final = {True: (10, 5), False: (8, 0)}
"""Before these, a binlog does not say the names of columns."""
TESTED: Final = ("10.11.", "9.7.")
EVERYWHERE: Final = TableName("", "")
NEEDED: Final = {
    "REPLICATION SLAVE": ("REPLICATION SLAVE",),
    "REPLICATION CLIENT": ("REPLICATION CLIENT", "BINLOG MONITOR", "SUPER"),
}
"""Privilege -> the names under which SHOW GRANTS may list it. MariaDB calls the second one BINLOG MONITOR, and takes either name."""
SHORT_S: Final = 24 * 3600
"""A retention below this is shorter than a night's trouble."""
DAY_S: Final = 24 * 3600


def examine_primary(config: Config, settings: BinlogSettings, shared: SharedFacts, *, patience_s: float) -> Iterator[CheckFinding]:
    """Examine the server. What a start examines itself (the position) comes last, because it needs the sink's progress."""
    try:
        with Server(replace(settings, unreachable_after_s=patience_s)) as server:
            version = str(server.value("version", "SELECT VERSION()"))
            yield ok(REACHED, f"{address_of(settings)} answers")
            yield version_finding(version)
            missing = list(_privileges(server))
            yield from missing or [ok(PRIVILEGES, f"{_user(server)} may read the binlog")]
            if not missing:
                yield from _log(server)
                yield from _server_ids(server, settings, config.spark.buckets)
    except SourceError as error:
        yield of_error(REACHED, error)
    finally:
        shared.set_tables(frozenset())


def version_finding(version: str) -> CheckFinding:
    """Judge the version of the server by its own text."""
    is_mariadb = "mariadb" in version.casefold()
    kind, oldest = "MariaDB" if is_mariadb else "MySQL", OLDEST[is_mariadb]
    # MariaDB may put 5.5.5- before its version, for old replicas.
    digits = version.removeprefix("5.5.5-").partition("-")[0].split(".")[:2]
    if tuple(int(part) if part.isdecimal() else 0 for part in digits) < oldest:
        words = ".".join(map(str, oldest))
        return problem(VERSION, f"{kind} {version}: its binlog does not say the names of columns", f"Use {kind} {words} or newer")
    known = (
        "tested" if version.removeprefix("5.5.5-").startswith(TESTED) else "this version is not tested; 10.11 (MariaDB) and 9.7 (MySQL) are"
    )
    return ok(VERSION, f"{kind} {version} ({known})")


def _user(server: Server) -> str:
    return str(server.value("user", "SELECT CURRENT_USER()"))


def _privileges(server: Server) -> Iterator[CheckFinding]:
    grants = Grants(str(row[0]) for row in server.rows("privileges", "SHOW GRANTS"))
    missing = [name for name, names in NEEDED.items() if not any(grants.allows(known, EVERYWHERE) for known in names)]
    if missing:
        user, _, host = _user(server).rpartition("@")
        remedy = f"GRANT {', '.join(missing)} ON *.* TO '{user}'@'{host}'"
        yield problem(PRIVILEGES, f"{user}@{host} lacks {', '.join(missing)}", remedy)


def _log(server: Server) -> Iterator[CheckFinding]:
    end = server.end()
    if end is None:
        yield problem(BINLOG, "the server writes no binlog", "Start it with log_bin, and with binlog_format = ROW")
        return
    files = server.files()
    yield ok(
        BINLOG,
        f"{count(len(files), 'file')}, {_names(files)}, {sum(file.size for file in files) / 1024**2:,.0f} MiB; it ends at {_at(end)}",
    )
    yield retention_finding(_keeps_s(server))


def _names(files: list[LogFile]) -> str:
    return " to ".join(dict.fromkeys(file_name(file.base_name, file.number) for file in (files[0], files[-1])))


def _at(end: LogEnd) -> str:
    return f"{file_name(end.base_name, end.number)}:{end.position}"


def _keeps_s(server: Server) -> int:
    """Return for how long the server keeps its files; 0: until somebody purges them."""
    rows = server.rows("retention", "SHOW GLOBAL VARIABLES WHERE Variable_name IN ('binlog_expire_logs_seconds', 'expire_logs_days')")
    found = {str(name): float(value) for name, value in rows}
    return int(found.get("binlog_expire_logs_seconds", 0) or found.get("expire_logs_days", 0) * DAY_S)


def retention_finding(keeps_s: int) -> CheckFinding:
    """Judge for how long the server keeps its binlog: a replica that was stopped for longer is lost."""
    if not keeps_s:
        return ok(RETENTION, "the server keeps its files until they are purged")
    kept = f"the server keeps its files for {keeps_s / 3600:.1f} h"
    if keeps_s < SHORT_S:
        remedy = "SET GLOBAL binlog_expire_logs_seconds = 604800, also in its configuration"
        return warning(RETENTION, f"{kept}: a replica that stands still for longer cannot go on", remedy)
    return ok(RETENTION, kept)


def _server_ids(server: Server, settings: BinlogSettings, tasks: int) -> Iterator[CheckFinding]:
    first, last = settings.server_ids
    names = [f"applier.server_id.{number}" for number in range(first, last + 1)]
    free = int(server.value("server ids", "SELECT " + " + ".join(["IS_FREE_LOCK(%s)"] * len(names)), *names))
    needed = tasks + 1
    taken = sorted(number for number in _replicas(server) if first <= number <= last)
    if len(names) < needed:
        enough = first + max(needed, 64) - 1
        remedy = f'Give more in source.server_ids, for instance "{first}-{enough}"'
        yield warning(SERVER_IDS, f"{first}-{last} are {len(names)}, but {needed} connections may read at the same time", remedy)
    elif len(taken) > len(names) - free:
        others = ", ".join(map(str, taken[:3]))
        yield problem(SERVER_IDS, f"another replica has an id of {first}-{last}: {others}", "Give unused ids in source.server_ids")
    else:
        yield ok(SERVER_IDS, f"{free} of {len(names)} are free")


def _replicas(server: Server) -> list[int]:
    """Return the ids of the replicas that the server knows; none where the user may not ask."""
    try:
        return [int(row[0]) for row in server.rows("replicas", "SHOW SLAVE HOSTS" if server.is_mariadb else "SHOW REPLICAS")]
    except SourceError:
        return []
