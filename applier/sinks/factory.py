"""Chooses the sink by the URL's dialect: the one place that knows which sinks there are."""

from applier.sinks.address import MYSQL, sink_url
from applier.sinks.mysql.sink import MysqlSink
from applier.sinks.port import Sink
from applier.sinks.settings import SinkSettings
from applier.sinks.sqlite.sink import SqliteSink


def open_sink(settings: SinkSettings) -> Sink:
    """Return the sink that ``settings.url`` names. It connects when it is first used. ConfigError: no such sink."""
    # Both dialects are imported, whichever is used: the second one costs 0.05 s of 0.95 s (SQLAlchemy is the rest).
    return MysqlSink(settings) if sink_url(settings.url).drivername in MYSQL else SqliteSink(settings)
