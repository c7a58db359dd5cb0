"""Sessions on the server whose binlog is followed, and the questions that the driver asks it."""

from collections.abc import Callable
from typing import Any, Final, NamedTuple, Self, TypeVar

from pymysql.constants import ER
from sqlalchemy.engine import make_url
from sqlalchemy.exc import SQLAlchemyError

from applier.model.errors import NeedsOperator, SourceError
from applier.model.failure import FailureKind
from applier.model.remedy import Remedy
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
    "Check user and password of source.url. The user needs REPLICATION SLAVE and REPLICATION CLIENT: `applier check` names the GRANT",
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
        """Return what tells it from another server: its UUID; of MariaDB, which has none, its server id."""
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
            rows = self.rows("end of the binlog", "SHOW MASTER STATUS")
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
        return self.rows("end of the binlog", "SHOW MASTER STATUS" if self.is_mariadb else "SHOW BINARY LOG STATUS")

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

    def purged(self) -> GtidSet:
        """Return the transactions that it has executed and whose log it does not hold; of MariaDB, the files alone say that."""
        return self.gtid_set("" if self.is_mariadb else str(self.value("purged GTIDs", "SELECT @@GLOBAL.gtid_purged")))

    def gtid_set(self, text: str) -> GtidSet:
        """Read a set in the server's notation; ValueError if it is none."""
        return parse_gtid_set(text, is_mariadb=self.is_mariadb)

    def executed_before(self, name: str) -> GtidSet:
        """Return the transactions that were executed when a file began: it says so itself."""
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
