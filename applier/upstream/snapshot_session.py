"""A session of upstream that reads at one timestamp. It is opened for that, and closed with it: no session keeps a snapshot.

A failure of upstream means: wait, stop with the remedy, or the address is wrong. The time zone of upstream's sessions is what the operator
says, else the zone that upstream gives to sessions that set none.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from sqlalchemy import text
from sqlalchemy.exc import SQLAlchemyError

from applier.ddl.zone_use import ZONE_REMEDY
from applier.model.errors import SKIP_RECORD, ApplierError, ConfigError, NeedsOperator, Remedy, SourceError
from applier.model.failure import FailureKind
from applier.mysql.errors import BELOW_GC, DENIED, NOT_THERE, NoSession, code_of, may_pass, shown_text
from applier.mysql.session import discard, open_reader, read_named, read_undecoded
from applier.upstream.settings import UpstreamSettings

UNKNOWN_VARIABLE: Final = 1193

GC_REMEDY: Final = Remedy(
    "upstream.load-removed-row",
    "Upstream has removed the row's version. Load the row as it is now from upstream into the sink, and skip the record: "
    f"`{SKIP_RECORD}`. Or create the replica again from a dump (`applier docs start_over`). "
    "Set tidb_gc_life_time longer than the applier may lag. Or use claim-check messages",
)
_ADDRESS: Final = Remedy("upstream.use-cluster-of-changefeed", "Set source.upstream to the TiDB cluster that the changefeed reads")


def explained(error: Exception, doing: str, **facts: Any) -> ApplierError:
    """Return the error of the applier for a failure of upstream, without row values."""
    cause: BaseException = error
    if isinstance(error, NoSession):
        doing, cause, facts = error.doing, error.__cause__ or error, {**facts, **error.facts}
    code = code_of(cause)
    facts = {**facts, **({} if code is None else {"code": code})}
    if code == BELOW_GC:
        return NeedsOperator("upstream no longer has the rows of this time", remedy=GC_REMEDY, **facts)
    if code == UNKNOWN_VARIABLE:
        return ConfigError("source.upstream is not a TiDB server", remedy=_ADDRESS, key="source.upstream", **facts)
    if code in NOT_THERE:
        return NeedsOperator("upstream has no such table at this time", remedy=_ADDRESS, **facts)
    if code in DENIED:
        remedy = Remedy(
            "upstream.check-user-and-grant-select",
            "Check user and password of source.upstream, and grant the user SELECT on the replicated tables",
        )
        return SourceError("upstream refuses access", remedy=remedy, kind=FailureKind.UPSTREAM, **facts)
    # The session itself is refused: its variables are not what they were set to.
    if isinstance(cause, NoSession):
        return SourceError(f"upstream: {doing}", remedy=cause.remedy, kind=FailureKind.UPSTREAM, **facts)
    words = shown_text(cause)
    message = f"upstream failed while {doing}" + (f": {words}" if words else "")
    remedy = Remedy("upstream.check-host-port-tls", "Check source.upstream: host, port and TLS, and whether the server runs")
    return SourceError(message, remedy=remedy, kind=FailureKind.UNREACHABLE if may_pass(cause) else FailureKind.UPSTREAM, **facts)


def is_passing(error: Exception) -> bool:
    """Whether a retry may succeed."""
    return isinstance(error, SourceError) and error.kind is FailureKind.UNREACHABLE


_FAILURES: Final = (SQLAlchemyError, NoSession, OSError)

STATEMENT_TIMEOUT_S: Final = 300
"""A statement reads some megabytes by key; one that takes longer has hung."""

Fetched = tuple[bytes | None, ...]


@contextmanager
def failures_explained(doing: str, **facts: Any) -> Iterator[None]:
    """Raise what the database or the network does in the block as the applier's own errors."""
    try:
        yield
    except _FAILURES as error:
        raise explained(error, doing, **facts) from error


class SnapshotSession:
    """Reads tables of upstream at ``ts``. ApplierError, as ``failure.explained`` says, for whatever fails."""

    def __init__(self, settings: UpstreamSettings, ts: int) -> None:
        self._ts = ts
        with failures_explained("connecting to upstream", snapshot=ts):
            self._connection = open_reader(settings.server, settings.time_zone, STATEMENT_TIMEOUT_S)
        try:
            self._set_snapshot()
        except BaseException:
            self.abandon()
            raise

    def _set_snapshot(self) -> None:
        with failures_explained("setting tidb_snapshot", snapshot=self._ts):
            # As text: TiDB takes digits for a TSO.
            self._connection.execute(text("SET SESSION tidb_snapshot = :ts"), {"ts": str(self._ts)})
            found = self._connection.execute(text("SELECT @@tidb_snapshot")).scalar_one()
            self.max_packet_bytes = int(self._connection.execute(text("SELECT @@max_allowed_packet")).scalar_one())
        if str(found) != str(self._ts):
            remedy = Remedy("upstream.connect-without-proxy", "Connect to TiDB directly, not through a proxy that shares sessions")
            raise SourceError(
                "upstream has not taken the snapshot", remedy=remedy, kind=FailureKind.UPSTREAM, snapshot=self._ts, found=found
            )

    def shown(self, query: str) -> list[dict[str, Any]]:
        """Return the rows of a SHOW by column name, in upper case."""
        with failures_explained("reading upstream's table", snapshot=self._ts):
            return read_named(self._connection, query)

    def rows(self, query: str) -> list[Fetched]:
        """Return the rows of a query, every value as the bytes that were sent."""
        with failures_explained("reading upstream's rows", snapshot=self._ts):
            return read_undecoded(self._connection, query)

    def end(self) -> None:
        """Close the session, without its snapshot: a proxy may give the server's session to someone else."""
        try:
            with failures_explained("ending the snapshot", snapshot=self._ts):
                self._connection.rollback()  # TiDB sets no snapshot within a transaction
                self._connection.execute(text("SET SESSION tidb_snapshot = ''"))
        finally:
            self.abandon()

    def abandon(self) -> None:
        """Close a session whatever its state."""
        discard(self._connection)


_ABBREVIATIONS: Final = frozenset({"CET", "EET", "EST", "GMT", "HST", "MET", "MST", "WET"})
"""Names of the IANA database that clocks in other zones show too."""
_ZONE: Final = text("SELECT @@GLOBAL.time_zone, @@GLOBAL.system_time_zone")


class SessionZone:
    """Asked by the driver when a DDL may depend on the zone; the first answer counts for the run."""

    def __init__(self, configured: str, upstream: UpstreamSettings | None) -> None:
        self._zone, self._upstream = configured, upstream

    def __call__(self) -> str:
        """Return a name or an offset; '' if it is not known. ApplierError: upstream does not answer. NeedsOperator: no such zone."""
        if not self._zone and self._upstream is not None:
            self._zone = _asked(self._upstream)
        return self._zone


def _asked(upstream: UpstreamSettings) -> str:
    with failures_explained("asking for its time zone"):
        connection = open_reader(upstream.server, upstream.time_zone, STATEMENT_TIMEOUT_S)
        try:
            of_sessions, of_system = connection.execute(_ZONE).one()
        finally:
            discard(connection)
    is_system = str(of_sessions).upper() == "SYSTEM"
    zone = str(of_system if is_system else of_sessions)
    if not _is_known(zone) or (is_system and _is_abbreviation(zone)):
        raise NeedsOperator("upstream names a time zone that is not known here", remedy=ZONE_REMEDY, time_zone=zone)
    return zone


def _is_abbreviation(zone: str) -> bool:
    """Return whether the name of a server's zone may be what its clock shows at the time (%Z), which has no rules.

    EST is what New York shows in winter, and a zone of its own without summer time; +03 has been Moscow, with and without. UTC is one.
    """
    return zone in _ABBREVIATIONS or zone[:1] in {"+", "-"}


def _is_known(zone: str) -> bool:
    if zone[:1] in {"+", "-"}:
        return True
    try:
        ZoneInfo(zone)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return False
    return True
