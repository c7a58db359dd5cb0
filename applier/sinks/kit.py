"""The kit of a database: everything that the other packages ask of it. ``registry`` finds it by the URL; no one asks which one it is.

Each database is a folder of this package, whose ``kit`` module holds one object of a subclass. Kits hold no connection and no state.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass

from sqlalchemy import URL, Connection

from applier.copy.port import ChunkWriter
from applier.model.errors import ConfigError, Remedy, SinkError
from applier.model.finding import CheckFinding
from applier.sinks.bookkeeping.bookkeeping import Bookkeeping
from applier.sinks.dump_loader import DumpLoader
from applier.sinks.port import Sink
from applier.sinks.settings import SinkSettings
from applier.sinks.table_reader import Reader


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkDemand:
    """What a replica asks of the server of its sink, for the examination before a run."""

    is_new: bool
    """The bookkeeping does not exist yet."""
    ddl_time_zone: str | None = None
    """The zone of DDLs, if it is not that of the rows."""
    updates_rows: bool = False
    """Rows are updated too, not only deleted and inserted: rows of a binlog whose tables have foreign keys with actions."""
    schemas: Callable[[], Sequence[str]] | None = None
    """Asks for the schemas that the replica writes, which may take a while; None: examine the bookkeeping's alone."""


class SinkKit(ABC):
    """One database. A server by default; a kit of a local file says what is different there."""

    local: str = ""
    """"a … file": only processes of this machine reach it, one of them writes at a time, and it has no users. "" for a server."""

    @abstractmethod
    def read_url(self, text: str) -> URL:
        """Return the URL of a supported sink, with safe options only; BadAddress for everything else."""

    @abstractmethod
    def open_sink(self, settings: SinkSettings) -> Sink:
        """Return the sink. It connects when it is first used."""

    @abstractmethod
    def open_glance(self, settings: SinkSettings, *, changes: bool) -> AbstractContextManager[Connection]:
        """Give a connection for one short transaction on the bookkeeping; it shares nothing with a ``Sink``. ``changes``: it writes."""

    @abstractmethod
    def open_reader(self, settings: SinkSettings, *, is_upstream: bool, statement_timeout_s: int) -> Reader:
        """Return what `verify` reads tables with, of the sink or of an upstream of this kind. It connects when it is first used."""

    @abstractmethod
    def loader(self, settings: SinkSettings) -> DumpLoader:
        """Return what loads dumps into the sink."""

    def chunk_writer(self, settings: SinkSettings) -> ChunkWriter | None:
        """Return what writes the rows of an initial copy, for executors; None: a replica in this database begins with a dump."""
        del settings
        return None

    @abstractmethod
    def bookkeeping(self, settings: SinkSettings) -> Bookkeeping:
        """Return where the bookkeeping of the replica lies."""

    def is_system_schema(self, name: str) -> bool:
        """Return whether the database keeps ``name`` (a schema, casefolded) for itself."""
        del name
        return False

    def is_there(self, settings: SinkSettings) -> bool:
        """Return whether a local database exists. FatalSinkError: it cannot be made or written. A server is reached later."""
        del settings
        return True

    def is_denied(self, error: SinkError) -> bool:
        """Return whether the server has refused something to its user: it may refuse more."""
        del error
        return False

    def examine_server(self, settings: SinkSettings, demand: SinkDemand) -> Iterator[CheckFinding]:
        """Examine the server: version, settings, privileges. SinkError: it cannot be reached."""
        del settings, demand
        return iter(())

    def grants(self, file: str, *, user: str, host: str, schemas: Sequence[str], bookkeeping: str) -> Iterable[str]:
        """Yield the statements that give a user of the sink its privileges. ``file`` of ``sql/`` says what the user is for."""
        del file, user, host, schemas, bookkeeping
        raise ConfigError(
            f"{self.local} has no users",
            remedy=Remedy("cli.let-user-write-grants", "Let the applier's user of the system write the file and its directory"),
        )
