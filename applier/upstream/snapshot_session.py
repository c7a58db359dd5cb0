"""A session of upstream that reads as of one timestamp. It is opened for that, and closed with it: no session keeps a snapshot."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from sqlalchemy import text
from sqlalchemy.exc import SQLAlchemyError

from applier.model.errors import SourceError
from applier.model.failure import FailureKind
from applier.model.remedy import Remedy
from applier.mysql.errors import NoSession
from applier.mysql.session import discard, open_reader, read_named, read_undecoded
from applier.upstream.failure import explained
from applier.upstream.settings import UpstreamSettings

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
    """Reads tables of upstream as of ``ts``. ApplierError, as ``failure.explained`` says, for whatever fails."""

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
        """Close the session, without its snapshot: a proxy may give the server's session to somebody else."""
        try:
            with failures_explained("ending the snapshot", snapshot=self._ts):
                self._connection.rollback()  # TiDB sets no snapshot within a transaction
                self._connection.execute(text("SET SESSION tidb_snapshot = ''"))
        finally:
            self.abandon()

    def abandon(self) -> None:
        """Close a session whatever its state."""
        discard(self._connection)
