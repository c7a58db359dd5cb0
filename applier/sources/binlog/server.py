"""Sessions on the server whose binlog is followed, the questions that the driver asks it, and what its binlog must hold.

A replica follows a binlog without knowing its tables, so it needs row events with full metadata (``require``).

Only the server knows what ``time_zone = SYSTEM`` means. Replicas of a server take SYSTEM for their own zone. Here the sink's session
gets the offset that upstream's zone had when the DDL ran, so CURRENT_TIMESTAMP in old rows is upstream's. Other times in a DDL (literals of
TIMESTAMP columns, a TIMESTAMP that becomes a DATETIME) would need the rules of the zone; in a zone with several offsets such a DDL is
refused.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, Final, NamedTuple, Self, TypeVar

from pymysql.constants import ER
from sqlalchemy.engine import make_url
from sqlalchemy.exc import SQLAlchemyError

from applier.ddl.parser import BY_HAND, parse_or_none
from applier.ddl.tree import AlterTableStatement, ClauseKind
from applier.model.errors import NeedsOperator, Remedy, SourceError
from applier.model.events import DdlEvent
from applier.model.failure import FailureKind
from applier.mysql.connection import NO_SUCH_PROTOCOL
from applier.mysql.errors import DENIED, TLS_FAILED, NoSession, code_of, may_pass, server_text
from applier.mysql.session import ServerAddress, ServerSession, SessionOptions, discard, open_server_session, read_rows
from applier.sources.binlog.gtid_set import GtidSet, MariadbGtidSet, parse_gtid_set
from applier.sources.binlog.position import split_file_name
from applier.sources.binlog.settings import BinlogSettings

_REACH: Final = Remedy("binlog.check-network", "Check source.url, the network, and that the server runs")
_PORT = Remedy("binlog.check-other-program-on-port", "Check host and port of source.url: another program answers there")
_GRANT = Remedy(
    "binlog.check-user-and-password",
    "Check the user of source.url, and its password (APPLIER_SOURCE__PASSWORD or source.password_file). "
    "`applier grants binlog` prints the GRANTs that the user needs",
)
_TLS = Remedy(
    "binlog.set-tls",
    "Set source.tls_mode and source.tls_ca as the server's certificate needs it: `applier docs security`. The server must offer TLS",
)

T = TypeVar("T")

IN_FILES: Final = Remedy(
    "binlog.remove-storage-engine",
    "Remove binlog_storage_engine from the server's configuration, and restart it: only binlogs in plain files can be read",
)


END_OF_MYSQL: Final = "SHOW BINARY LOG STATUS"
END_OF_MARIADB: Final = "SHOW MASTER STATUS"
"""MySQL below 8.2 does not know the other words."""


class LogFile(NamedTuple):
    """A binlog file that the server holds."""

    base_name: str
    number: int
    size: int


class LogEnd(NamedTuple):
    """Where the server writes now: a boundary."""

    base_name: str
    number: int
    position: int
    executed: str


def connect(settings: BinlogSettings) -> ServerSession:
    """Open a session; SourceError says whether a later attempt may succeed (``kind``: UNREACHABLE or REFUSED)."""
    address = ServerAddress(url=settings.url, tls=settings.tls, name=settings.name)
    try:
        # No variables: nothing is written, and what is asked for does not depend on them.
        return open_server_session(address, {}, SessionOptions(settings.unreachable_after_s, autocommits=True))
    except NoSession as failure:
        cause = failure.__cause__ or failure
        raise failed(settings, failure.doing, cause) from cause


def failed(settings: BinlogSettings, what: str, error: BaseException) -> SourceError:
    """Say what failed, and whether a later attempt may succeed: ``mysql.errors`` has the table."""
    code = code_of(error)
    facts: dict[str, Any] = {"address": address_of(settings), "cause": server_text(error)}
    if may_pass(error):
        return SourceError(f"the server of the binlog does not answer: {what}", remedy=_REACH, kind=FailureKind.UNREACHABLE, **facts)
    facts |= {} if code is None else {"code": code}
    if code in DENIED:
        return SourceError(f"the server of the binlog refuses the user: {what}", remedy=_GRANT, kind=FailureKind.REFUSED, **facts)
    if code == NO_SUCH_PROTOCOL:
        return SourceError(f"no MySQL or MariaDB answers: {what}", remedy=_PORT, kind=FailureKind.REFUSED, **facts)
    if code == TLS_FAILED:
        return SourceError(f"no TLS to the server of the binlog: {what}", remedy=_TLS, kind=FailureKind.REFUSED, **facts)
    remedy = Remedy("binlog.look-up-error", "Look the error up in the manual of the server. `applier check` examines what the source needs")
    return SourceError(f"the server of the binlog refuses: {what}", remedy=remedy, kind=FailureKind.REFUSED, **facts)


def address_of(settings: BinlogSettings) -> str:
    """Name the server without user and password."""
    url = make_url(settings.url)
    return f"{url.host or url.query.get('unix_socket', 'localhost')}:{url.port or 3306}"


class Server:
    """Asks the server, over a session that is opened when it is needed and again when it was lost. Not thread-safe."""

    def __init__(self, settings: BinlogSettings) -> None:
        self._settings = settings
        self._session: ServerSession | None = None
        self._is_mariadb: bool | None = None

    def rows(self, what: str, statement: str, *values: object) -> list[tuple[Any, ...]]:
        """Return the rows of a statement; ``what`` names it in errors."""
        return self.ask(what, lambda session: read_rows(session, statement, values))

    def ask(self, what: str, work: Callable[[ServerSession], T]) -> T:
        """Return what ``work`` reads. A session that was lost since its last use is opened again."""
        is_used = self._session is not None
        while True:
            try:
                if self._session is None:
                    self._session = connect(self._settings)
                return work(self._session)
            except (SQLAlchemyError, OSError) as error:
                failure = failed(self._settings, what, error)
                if failure.kind is FailureKind.UNREACHABLE:
                    self.close()
                    if is_used:
                        is_used = False
                        continue
                raise failure from error

    def value(self, what: str, statement: str, *values: object) -> Any:
        """Return the only value of a statement."""
        return self.rows(what, statement, *values)[0][0]

    @property
    def address(self) -> str:
        """Host and port, for messages."""
        return address_of(self._settings)

    @property
    def is_mariadb(self) -> bool:
        """Which of the two it is."""
        if self._is_mariadb is None:
            self._is_mariadb = "mariadb" in str(self.value("version", "SELECT VERSION()")).lower()
        return self._is_mariadb

    def identity(self) -> str:
        """Return what tells it from another server: its UUID; of MariaDB, which does not have one, its server id."""
        return str(self.value("identity", "SELECT @@server_id" if self.is_mariadb else "SELECT @@server_uuid"))

    def files(self) -> list[LogFile]:
        """Return the files that it holds, ascending."""
        rows = self.rows("list of binlog files", "SHOW BINARY LOGS")
        return [LogFile(*self._split(str(row[0])), int(row[1])) for row in rows]

    def end(self) -> LogEnd | None:
        """Return where it writes now; None: it writes no binlog."""
        try:
            rows = self._end_rows()
        except SourceError as error:
            # 1064: a server that does not know the new words (MySQL below 8.2, MariaDB).
            if error.facts.get("code") != ER.PARSE_ERROR:
                raise
            rows = self.rows("end of the binlog", END_OF_MARIADB)
        if not rows:
            return None
        name, position, *rest = rows[0]
        return LogEnd(*self._split(str(name)), int(position), str(rest[2]).replace("\n", "") if len(rest) > 2 else "")

    def _split(self, name: str) -> tuple[str, int]:
        """Split the name of a binlog file. NeedsOperator: it has no number at its end, as MariaDB's files in InnoDB."""
        try:
            return split_file_name(name)
        except ValueError as error:
            raise NeedsOperator(
                f"the binlog of the server cannot be followed: {error}",
                remedy=IN_FILES
                if name.endswith(".ibb")
                else Remedy("binlog.number-binlog-files", "Let the server write its binlog into files that are numbered at their end"),
                kind=FailureKind.REQUIREMENT,
                address=self.address,
            ) from error

    def _end_rows(self) -> list[tuple[Any, ...]]:
        return self.rows("end of the binlog", END_OF_MARIADB if self.is_mariadb else END_OF_MYSQL)

    def executed(self) -> GtidSet:
        """Return its executed transactions. MariaDB: from its binlog, and for other domains from its own replication."""
        if not self.is_mariadb:
            return self.gtid_set(str(self.value("executed GTIDs", "SELECT @@GLOBAL.gtid_executed")))
        ((logged, applied),) = self.rows("executed GTIDs", "SELECT @@gtid_binlog_state, @@gtid_slave_pos")
        return logged_or_applied(str(logged), str(applied))

    def logged_or_replicated(self) -> GtidSet:
        """Return the last transactions of its log and of its own replication; MariaDB without log_slave_updates logs none of the latter."""
        if not self.is_mariadb:
            return self.executed()
        ((logged, applied),) = self.rows("replicated GTIDs", "SELECT @@gtid_binlog_state, @@gtid_slave_pos")
        return self.gtid_set(f"{logged},{applied}")

    def logs_replication(self) -> bool:
        """Whether its log has what it replicates. MySQL's set of executed transactions says all that is needed."""
        return not self.is_mariadb or bool(int(self.value("log_slave_updates", "SELECT @@log_slave_updates")))

    def purged(self) -> GtidSet:
        """Return the transactions that it has executed and whose log it does not hold; of MariaDB, the files alone say that."""
        return self.gtid_set("" if self.is_mariadb else str(self.value("purged GTIDs", "SELECT @@GLOBAL.gtid_purged")))

    def gtid_set(self, text: str) -> GtidSet:
        """Read a set in the server's notation; ValueError if it is not one."""
        return parse_gtid_set(text, is_mariadb=self.is_mariadb)

    def executed_before(self, name: str) -> GtidSet:
        """Return the transactions that were executed when a file began, as the file lists them."""
        # Behind the format description. In an encrypted file of MariaDB, one more event comes first.
        for row in self.rows(f"beginning of {name}", "SHOW BINLOG EVENTS IN %s LIMIT 3", name):
            if row[2] in {"Gtid_list", "Previous_gtids"}:
                return self.gtid_set(str(row[5]))
        return self.gtid_set("")

    def close(self) -> None:
        """Close the session."""
        session, self._session = self._session, None
        discard(session)

    def __enter__(self) -> Self:
        """Use as a context manager."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close."""
        self.close()


def logged_or_applied(logged: str, applied: str) -> MariadbGtidSet:
    """Return what MariaDB's binlog holds, with the positions as a replica of domains that its binlog does not know."""
    found, positions = MariadbGtidSet.parse(logged), MariadbGtidSet.parse(applied)
    for gtid in [positions.last(domain) for domain in positions.domains if domain not in found.domains]:
        if gtid is not None:
            found.add(gtid)
    return found


SYSTEM: Final = ("time_zone", "SYSTEM")

_OFFSET: Final = "SELECT TIMESTAMPDIFF(SECOND, '1970-01-01 00:00:00', FROM_UNIXTIME({time_s})) - {time_s}"
_PROBES: Final = tuple(range(946_684_800, 2_000_000_000, 7_889_400))
"""Each quarter of a year since 2000."""
_ZONE_REMEDY: Final = Remedy("binlog.set-session-time-zone", f"Let upstream's sessions set their time_zone. {BY_HAND}")


def in_known_zone(ddl: DdlEvent, server: Server) -> DdlEvent:
    """Return the DDL with an offset instead of SYSTEM. NeedsOperator: one offset is not enough for it. SourceError."""
    if SYSTEM not in ddl.session:
        return ddl
    time_s = (ddl.time_ms or 0) // 1000
    offset = _offsets(server, (time_s,))[0]
    if _needs_rules(ddl.query) and len(_offsets(server, (time_s, *_PROBES))) > 1:
        raise NeedsOperator(
            "the DDL converts times, and the zone of the upstream server (time_zone = SYSTEM) has several offsets",
            remedy=_ZONE_REMEDY,
            table=str(ddl.name),
            commit_ts=ddl.commit_ts,
            query=ddl.query,
        )
    zone = ("time_zone", _spelled(offset))
    return replace(ddl, session=tuple(zone if variable == SYSTEM else variable for variable in ddl.session))


def _offsets(server: Server, times_s: Sequence[int]) -> list[int]:
    """Return the different offsets at some times, in a session that has the server's zone, whatever the default of sessions is."""
    server.rows("setting a variable", "SET time_zone = 'SYSTEM'")
    # Whole numbers of our own: no text of upstream is in the statement.
    query = " UNION ".join(_OFFSET.format(time_s=time_s) for time_s in times_s)
    return [int(offset) for (offset,) in server.rows("asking for the server's time zone", query)]


def _spelled(offset_s: int) -> str:
    hours, minutes = divmod(abs(offset_s) // 60, 60)
    return f"{'-' if offset_s < 0 else '+'}{hours:02d}:{minutes:02d}"


def _needs_rules(query: str) -> bool:
    """Return whether a statement may convert other times than its own: a column changes its type, or a TIMESTAMP has a literal."""
    tree = parse_or_none(query)
    if tree is None:
        return True
    words = [token.keyword for token in tree.tokens]
    if isinstance(tree.node, AlterTableStatement) and any(
        clause.kind in {ClauseKind.MODIFY, ClauseKind.CHANGE} for clause in tree.node.clauses
    ):
        return True
    has_literal = any(one == "DEFAULT" and other == "string" for one, other in pairwise(words))
    return ("TIMESTAMP" in words and has_literal) or not {"UNIX_TIMESTAMP", "FROM_UNIXTIME"}.isdisjoint(words)


class Lack(NamedTuple):
    """What the server's settings lack, and the statement that changes it."""

    problem: str
    remedy: Remedy


class _Rule(NamedTuple):
    variable: str
    is_met: Callable[[str], bool]
    problem: str
    remedy: Remedy


_RULES: Final = (
    _Rule(
        "log_bin",
        "ON".__eq__,
        "the server writes no binlog",
        Remedy("binlog.require-log-bin", "Set log_bin and server_id in the server's configuration, and restart it"),
    ),
    _Rule(
        "binlog_storage_engine",
        "".__eq__,
        "binlog_storage_engine is set: MariaDB keeps the binlog in pages of a storage engine (.ibb files)",
        IN_FILES,
    ),
    _Rule(
        "binlog_format",
        "ROW".__eq__,
        "binlog_format is not ROW: changes are logged as statements",
        Remedy(
            "binlog.require-row-format",
            "SET GLOBAL binlog_format = ROW, also in its configuration, and let sessions that are open connect again",
        ),
    ),
    _Rule(
        "binlog_row_metadata",
        "FULL".__eq__,
        "binlog_row_metadata is not FULL: rows come without the names of their columns",
        Remedy("binlog.require-row-metadata", "SET GLOBAL binlog_row_metadata = FULL, also in its configuration"),
    ),
    _Rule(
        "binlog_row_image",
        {"FULL", "MINIMAL", "NOBLOB", "FULL_NODUP"}.__contains__,
        "binlog_row_image is one that the applier does not know",
        Remedy("binlog.require-row-image", "SET GLOBAL binlog_row_image = FULL, also in its configuration"),
    ),
    _Rule(
        "binlog_row_value_options",
        "".__eq__,
        "binlog_row_value_options is PARTIAL_JSON: updates hold parts of JSON values",
        Remedy(
            "binlog.require-no-row-value-options",
            "SET GLOBAL binlog_row_value_options = '', also in its configuration, and let sessions that are open connect again",
        ),
    ),
)
_MAY_BE_ABSENT: Final = frozenset({"binlog_format", "binlog_row_value_options", "binlog_storage_engine"})
"""MariaDB has no partial JSON, a newer MySQL may have no other format than ROW, and MariaDB has engines for the binlog from 12.3 on."""


def lacks(server: Server) -> list[Lack]:
    """Return what the server's settings lack. SourceError: it cannot be asked."""
    rows = server.rows("settings of the binlog", "SHOW GLOBAL VARIABLES WHERE Variable_name = 'log_bin' OR Variable_name LIKE 'binlog%'")
    return lacking({str(name).lower(): str(value).upper() for name, value in rows})


def lacking(variables: Mapping[str, str]) -> list[Lack]:
    """Return what some variables lack; their values in capitals."""
    return [
        Lack(rule.problem, rule.remedy)
        for rule in _RULES
        if not (rule.is_met(variables[rule.variable]) if rule.variable in variables else rule.variable in _MAY_BE_ABSENT)
    ]


def require(server: Server) -> None:
    """Refuse a server whose binlog cannot be followed. NeedsOperator with the statement to run."""
    for lack in lacks(server):
        raise NeedsOperator(
            f"the binlog of the server cannot be followed: {lack.problem}",
            remedy=Remedy("binlog.begin-after-requirement", f"{lack.remedy}. What was logged before cannot be read: begin after it"),
            kind=FailureKind.REQUIREMENT,
            address=server.address,
        )
