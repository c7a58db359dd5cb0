"""Chooses the sink by the URL's dialect: the one place that knows which sinks there are."""

from contextlib import AbstractContextManager

from sqlalchemy import Connection

from applier.sinks.address import MYSQL, sink_url
from applier.sinks.bookkeeping.bookkeeping import Bookkeeping
from applier.sinks.mysql import session as mysql_session
from applier.sinks.mysql.sink import MysqlSink
from applier.sinks.port import Sink
from applier.sinks.settings import SinkSettings
from applier.sinks.sqlite import session as sqlite_session
from applier.sinks.sqlite.sink import SqliteSink


def open_sink(settings: SinkSettings) -> Sink:
    """Return the sink that ``settings.url`` names. It connects when it is first used. ConfigError: no such sink."""
    # Both dialects are imported, whichever is used: the second one costs 0.05 s of 0.95 s (SQLAlchemy is the rest).
    return MysqlSink(settings) if _is_mysql(settings) else SqliteSink(settings)


def open_glance(settings: SinkSettings, *, changes: bool = False) -> AbstractContextManager[Connection]:
    """Give a connection for one short transaction on the bookkeeping. It shares nothing with a ``Sink``, which is not thread-safe."""
    return mysql_session.glancing(settings) if _is_mysql(settings) else sqlite_session.glancing(settings.url, changes=changes)


def bookkeeping_of(settings: SinkSettings) -> Bookkeeping:
    """Return where the bookkeeping of the replica lies."""
    return Bookkeeping(settings.name, "mysql" if _is_mysql(settings) else "sqlite", settings.schema)


def _is_mysql(settings: SinkSettings) -> bool:
    return sink_url(settings.url).drivername in MYSQL
