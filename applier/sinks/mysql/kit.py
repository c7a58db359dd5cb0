"""The kit of MySQL, MariaDB and TiDB."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Final

from sqlalchemy import URL, Connection

from applier.model.errors import SinkError
from applier.model.finding import CheckFinding
from applier.mysql.address import read_server_url
from applier.mysql.errors import NO_PRIVILEGE
from applier.mysql.grants import grants_of
from applier.mysql.names import SYSTEM_SCHEMAS
from applier.sinks.bookkeeping.bookkeeping import Bookkeeping
from applier.sinks.kit import SinkDemand, SinkKit
from applier.sinks.mysql.bookkeeping import bookkeeping_of
from applier.sinks.mysql.chunk_writer import MysqlChunkWriter
from applier.sinks.mysql.dump_loader import ServerLoader
from applier.sinks.mysql.server_check import examine_server
from applier.sinks.mysql.session import glancing
from applier.sinks.mysql.sink import MysqlSink
from applier.sinks.mysql.table_reader import MysqlReader
from applier.sinks.settings import SinkSettings


class MysqlKit(SinkKit):
    """A server of the MySQL family."""

    def read_url(self, text: str) -> URL:
        """Return the URL of a server."""
        return read_server_url(text)

    def open_sink(self, settings: SinkSettings) -> MysqlSink:
        """Return the sink."""
        return MysqlSink(settings)

    def open_glance(self, settings: SinkSettings, *, changes: bool) -> AbstractContextManager[Connection]:
        """Give a connection for one short transaction."""
        del changes
        return glancing(settings)

    def open_reader(self, settings: SinkSettings, *, is_upstream: bool, statement_timeout_s: int) -> MysqlReader:
        """Return what `verify` reads tables with."""
        return MysqlReader(settings, is_upstream=is_upstream, statement_timeout_s=statement_timeout_s)

    def loader(self, settings: SinkSettings) -> ServerLoader:
        """Return what loads dumps."""
        return ServerLoader(settings)

    def chunk_writer(self, settings: SinkSettings) -> MysqlChunkWriter:
        """Return what writes copied rows."""
        return MysqlChunkWriter(settings)

    def bookkeeping(self, settings: SinkSettings) -> Bookkeeping:
        """Return where the bookkeeping lies."""
        return bookkeeping_of(settings)

    def is_system_schema(self, name: str) -> bool:
        """Return whether the server keeps the schema for itself."""
        return name in SYSTEM_SCHEMAS

    def is_denied(self, error: SinkError) -> bool:
        """Return whether the user lacks a privilege."""
        return error.facts.get("code") in NO_PRIVILEGE

    def examine_server(self, settings: SinkSettings, demand: SinkDemand) -> Iterator[CheckFinding]:
        """Examine version, settings and privileges."""
        return examine_server(settings, demand)

    def grants(self, file: str, *, user: str, host: str, schemas: Sequence[str], bookkeeping: str) -> Iterable[str]:
        """Yield the GRANTs of a file."""
        return grants_of(file, user=user, host=host, schemas=schemas, bookkeeping=bookkeeping)


KIT: Final = MysqlKit()
