"""Chooses the sink by the URL's dialect. Each dialect's package is imported only if it is chosen."""

from applier.sinks.address import MYSQL, sink_url
from applier.sinks.port import Sink
from applier.sinks.settings import SinkSettings


def open_sink(settings: SinkSettings) -> Sink:
    """Return the sink that ``settings.url`` names. It connects when it is first used. ConfigError: no such sink."""
    if sink_url(settings.url).drivername in MYSQL:
        from applier.sinks.mysql.sink import MysqlSink  # noqa: PLC0415 -- see above

        return MysqlSink(settings)
    from applier.sinks.sqlite.sink import SqliteSink  # noqa: PLC0415 -- see above

    return SqliteSink(settings)
