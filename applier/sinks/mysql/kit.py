"""The kit of MySQL, MariaDB and TiDB."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Final

from sqlalchemy import URL, Connection

from applier.model.finding import CheckFinding
from applier.mysql.address import read_server_url
from applier.mysql.grant_text import grants_of
from applier.mysql.system_schema import SYSTEM_SCHEMAS
from applier.sinks.bookkeeping.bookkeeping import Bookkeeping
from applier.sinks.kit import SinkDemand, SinkKit
from applier.sinks.mysql.bookkeeping import bookkeeping_of
from applier.sinks.mysql.server_check import examine_server
from applier.sinks.mysql.session import glancing
from applier.sinks.mysql.sink import MysqlSink
from applier.sinks.settings import SinkSettings


class MysqlKit(SinkKit):
    """A server of the MySQL family."""

    comparison = "applier.verify.mysql_reader"
    loading = "applier.dump.row_session"

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

    def bookkeeping(self, settings: SinkSettings) -> Bookkeeping:
        """Return where the bookkeeping lies."""
        return bookkeeping_of(settings)

    def is_system_schema(self, name: str) -> bool:
        """Return whether the server keeps the schema for itself."""
        return name in SYSTEM_SCHEMAS

    def examine_server(self, settings: SinkSettings, demand: SinkDemand) -> Iterator[CheckFinding]:
        """Examine version, settings and privileges."""
        return examine_server(settings, demand)

    def grants(self, file: str, *, user: str, host: str, schemas: Sequence[str], bookkeeping: str) -> Iterable[str]:
        """Yield the GRANTs of a file."""
        return grants_of(file, user=user, host=host, schemas=schemas, bookkeeping=bookkeeping)


KIT: Final = MysqlKit()
