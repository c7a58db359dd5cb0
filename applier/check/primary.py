"""Examines the server whose binlog is followed: version, privileges, what its binlog must hold, how long it keeps it, server ids."""

import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Final

from applier.check.shared_facts import SharedFacts
from applier.config import Config
from applier.model.errors import ApplierError, InvariantViolation, Remedy, SourceError
from applier.model.events import FoldedName, TableName
from applier.model.finding import CheckFinding, of_error, ok, problem, warning
from applier.model.position import Ts
from applier.mysql.grants import EVERYWHERE, SHOWS_KEYS, Grants, account_of, grant
from applier.planner.table_check import DifferenceKind, silent_change
from applier.replica.sink_tables import NOT_EXECUTED
from applier.selection import TableSelection
from applier.sinks.progress import Progress
from applier.sources.binlog.catalogue import UpstreamCatalogue, chosen_tables
from applier.sources.binlog.event_stream import EventStream
from applier.sources.binlog.kit import BinlogKit
from applier.sources.binlog.position import BinlogPosition, file_name
from applier.sources.binlog.server import IN_FILES, LogEnd, LogFile, Server, address_of, lacks
from applier.sources.binlog.settings import COPY, BinlogSettings
from applier.sources.binlog.timeline import read_state
from applier.sources.start import ReplicaPosition
from applier.telemetry.wording import MOST_NAMED, count, duration, named_some

REACHED: Final = "primary"
VERSION: Final = "primary: version"
PRIVILEGES: Final = "primary: privileges"
BINLOG: Final = "primary: binlog"
RETENTION: Final = "primary: retention"
SERVER_IDS: Final = "primary: server ids"
PLACE: Final = "primary: position"
KEYS: Final = "primary: foreign keys"

OLDEST: Final = {True: (10, 5), False: (8, 0)}
"""Before these, a binlog does not say the names of columns."""
TESTED: Final = ("10.11.", "9.7.")
NEEDED: Final = {
    "REPLICATION SLAVE": ("REPLICATION SLAVE",),
    "REPLICATION CLIENT": ("REPLICATION CLIENT", "BINLOG MONITOR", "SUPER"),
}
"""Privilege -> the names under which SHOW GRANTS may list it. MariaDB calls the second one BINLOG MONITOR, and takes either name."""
SHORT_S: Final = 24 * 3600
"""A retention below this is shorter than a night's trouble."""
DAY_S: Final = 24 * 3600


def examine(config: Config, shared: SharedFacts, *, patience_s: float, wait_s: float | None = None) -> Iterator[CheckFinding]:
    """Implement ``Examination`` for the binlog of a server."""
    settings = config.source_settings()
    if not isinstance(settings, BinlogSettings):
        raise InvariantViolation("the checks of another source", settings=type(settings).__name__)
    yield from examine_primary(config, settings, shared, patience_s=patience_s, is_whole=wait_s is not None)


def examine_primary(
    config: Config, settings: BinlogSettings, shared: SharedFacts, *, patience_s: float, is_whole: bool = True
) -> Iterator[CheckFinding]:
    """Examine the server. ``is_whole``: also what a start examines itself: the replica's position, which needs the sink's progress."""
    try:
        with Server(replace(settings, unreachable_after_s=patience_s)) as server:
            version = str(server.value("version", "SELECT VERSION()"))
            yield ok(REACHED, f"{address_of(settings)} answers")
            yield version_finding(version)
            missing = list(_privileges(server, config.source.selection()))
            yield from missing or [ok(PRIVILEGES, f"{_user(server)} may read the binlog")]
            if missing:
                yield from settings_findings(server)
                return
            yield from log_findings(server)
            yield from _server_ids(server, settings, config.spark.buckets)
            if is_whole:
                shared.set_tables(upstream_tables(server, config.source.selection()))
                changes = UpstreamCatalogue(
                    server, config.source.selection(), partial(EventStream, settings, bodies=False)
                ).silent_changes()
                shared.set_silent_changes(changes)
                yield from foreign_key_findings(config, changes)
                yield from place_findings(settings, server, shared.progress(2 * patience_s), shared)
    except SourceError as error:
        yield of_error(REACHED, error)
    finally:
        shared.set_tables(frozenset())
        shared.set_silent_changes({})


def version_finding(version: str) -> CheckFinding:
    """Judge the version of the server by its own text."""
    is_mariadb = "mariadb" in version.casefold()
    kind, oldest = "MariaDB" if is_mariadb else "MySQL", OLDEST[is_mariadb]
    # MariaDB may put 5.5.5- before its version, for old replicas.
    digits = version.removeprefix("5.5.5-").partition("-")[0].split(".")[:2]
    if tuple(int(part) if part.isdecimal() else 0 for part in digits) < oldest:
        words = ".".join(map(str, oldest))
        return problem(
            VERSION,
            f"{kind} {version}: its binlog does not say the names of columns",
            Remedy("check.use-newer-primary", f"Use {kind} {words} or newer"),
        )
    known = (
        "tested" if version.removeprefix("5.5.5-").startswith(TESTED) else "this version is not tested; 10.11 (MariaDB) and 9.7 (MySQL) are"
    )
    return ok(VERSION, f"{kind} {version} ({known})")


def _user(server: Server) -> str:
    return str(server.value("user", "SELECT CURRENT_USER()"))


def _privileges(server: Server, selection: TableSelection) -> Iterator[CheckFinding]:
    grants = Grants(str(row[0]) for row in server.rows("privileges", "SHOW GRANTS"))
    missing = [name for name, names in NEEDED.items() if not any(grants.allows(known, EVERYWHERE) for known in names)]
    user = _user(server)
    why = ""
    if _hides_keys(server, grants, selection):
        missing.append(SHOWS_KEYS[0])
        why = ": without the last one the server hides its foreign keys. On the replicated schemas it is enough"
    if missing:
        yield problem(
            PRIVILEGES, f"{user} lacks {', '.join(missing)}{why}", Remedy("check.grant-on-primary", grant(missing, "", *account_of(user)))
        )


def _hides_keys(server: Server, grants: Grants, selection: TableSelection) -> bool:
    """Return whether foreign keys of chosen tables are not shown to this user: then none would be found, as if there were none."""
    if not any(map(grants.allows_somewhere, SHOWS_KEYS)):
        return True
    if any(grants.allows(known, EVERYWHERE) for known in SHOWS_KEYS):
        return False
    return any(not any(grants.allows(known, name) for known in SHOWS_KEYS) for name in chosen_tables(server, selection))


def settings_findings(server: Server) -> Iterator[CheckFinding]:
    """Examine what the binlog holds, with what any user may ask: everything that an administrator must change is named in one round."""
    yield from (problem(BINLOG, lack.problem, lack.remedy) for lack in lacks(server))


def log_findings(server: Server) -> Iterator[CheckFinding]:
    """Examine what the binlog holds, where it ends, and how long the server keeps it."""
    # First: of a binlog that is kept in another way, nothing else can be asked.
    lacking = lacks(server)
    yield from (problem(BINLOG, lack.problem, lack.remedy) for lack in lacking)
    if any(lack.remedy == IN_FILES for lack in lacking) or (end := server.end()) is None:
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
    """Return for how long the server keeps its files; 0: until someone purges them."""
    rows = server.rows("retention", "SHOW GLOBAL VARIABLES WHERE Variable_name IN ('binlog_expire_logs_seconds', 'expire_logs_days')")
    found = {str(name): float(value) for name, value in rows}
    return int(found.get("binlog_expire_logs_seconds", 0) or found.get("expire_logs_days", 0) * DAY_S)


def retention_finding(keeps_s: int) -> CheckFinding:
    """Judge for how long the server keeps its binlog: a replica that was stopped for longer is lost."""
    if not keeps_s:
        return ok(RETENTION, "the server keeps its files until they are purged")
    kept = f"the server keeps its files for {keeps_s / 3600:.1f} h"
    if keeps_s < SHORT_S:
        remedy = Remedy("check.set-binlog-expire-seconds", "SET GLOBAL binlog_expire_logs_seconds = 604800, also in its configuration")
        return warning(RETENTION, f"{kept}: a replica that is stopped for longer cannot continue", remedy)
    return ok(RETENTION, kept)


def upstream_tables(server: Server, selection: TableSelection) -> frozenset[TableName]:
    """Return the tables that the replica will have, under the sink's names."""
    return frozenset(map(selection.name, chosen_tables(server, selection)))


def foreign_key_findings(config: Config, changes: Mapping[FoldedName, str]) -> Iterator[CheckFinding]:
    """Tell which tables the server changes without an entry in its binlog: the sink must do the same."""
    found = sorted(table for table in changes if not config.acceptance.accepts(table, DifferenceKind.FOREIGN_KEY))
    if not found:
        yield ok(KEYS, "none changes rows that the binlog does not show")
    elif config.sink.kit.local:
        for table in found[:MOST_NAMED]:
            yield of_error(KEYS, silent_change(changes[table], remedy=NOT_EXECUTED).as_error(table=str(table)))
    else:
        have, are = ("has", "is") if len(found) == 1 else ("have", "are")
        yield ok(
            KEYS,
            f"{count(len(found), 'table')} {have} actions that the binlog does not show, and {are} written row by row: {named_some(found)}",
        )


def place_findings(settings: BinlogSettings, server: Server, progress: Progress | None, shared: SharedFacts) -> Iterator[CheckFinding]:
    """Examine whether the log still holds what the replica reads next, with the checks of a start."""
    try:
        with BinlogKit(settings).open() as source:
            if progress is None and not shared.is_loaded and settings.start == COPY:
                yield ok(PLACE, "a new replica begins at the end of the log, with a copy")
                return
            if progress is None:
                place = named_position(server, source.position.start_point(shared.start_ts, shared.declared).start_ts)
                yield ok(PLACE, f"the log holds what a new replica needs, from {place} on")
                return
            source.position.resume(
                ReplicaPosition(checkpoint_ts=progress.checkpoint_ts, positions=progress.positions, state=progress.source_state)
            )
            yield ok(PLACE, f"the log holds what the replica reads next, from {source.timeline.text(progress.checkpoint_ts)} on")
    except ApplierError as error:
        yield of_error(PLACE, error)
        return
    behind_s, keeps_s = behind_of(progress, time.time()), _keeps_s(server)
    if keeps_s and behind_s > keeps_s / 2:
        detail = f"the last transaction of the replica is {duration(behind_s)} old, and the server keeps its files for {duration(keeps_s)}"
        yield warning(
            RETENTION,
            detail,
            Remedy(
                "check.keep-binlogs-longer",
                "Start the replica, or let the server keep its files longer: SET GLOBAL binlog_expire_logs_seconds",
            ),
        )


def named_position(server: Server, ts: Ts) -> str:
    """Spell a position in the log of the server."""
    return BinlogPosition.of(ts).text(server.files()[0].base_name)


def behind_of(progress: Progress, now_s: float) -> float:
    """Return how old the last transaction is that the replica has applied; 0 where that is not known."""
    state = read_state(progress.source_state)
    return 0.0 if state is None or state.last is None else max(0.0, now_s - state.last.time_ms / 1000)


def _server_ids(server: Server, settings: BinlogSettings, tasks: int) -> Iterator[CheckFinding]:
    first, last = settings.server_ids
    names = [f"applier.server_id.{number}" for number in range(first, last + 1)]
    free = int(server.value("server ids", "SELECT " + " + ".join(["IS_FREE_LOCK(%s)"] * len(names)), *names))
    needed = tasks + 1
    taken = sorted(number for number in _replicas(server) if first <= number <= last)
    if len(names) < needed:
        enough = first + max(needed, 64) - 1
        remedy = Remedy("check.give-more-server-ids", f'Give more in source.server_ids, for instance "{first}-{enough}"')
        yield warning(SERVER_IDS, f"{first}-{last} are {len(names)}, but {needed} connections may read at the same time", remedy)
    elif len(taken) > len(names) - free:
        others = ", ".join(map(str, taken[:3]))
        yield problem(
            SERVER_IDS,
            f"another replica has an id of {first}-{last}: {others}",
            Remedy("check.give-unused-server-ids", "Give unused ids in source.server_ids"),
        )
    else:
        yield ok(SERVER_IDS, f"{free} of {len(names)} are free")


def _replicas(server: Server) -> list[int]:
    """Return the ids of the replicas that the server knows; none where the user may not ask."""
    try:
        return [int(row[0]) for row in server.rows("replicas", "SHOW SLAVE HOSTS" if server.is_mariadb else "SHOW REPLICAS")]
    except SourceError:
        return []
