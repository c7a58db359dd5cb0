"""Chooses the sink by the URL's dialect. Each dialect's package is imported only if it is chosen."""

from difflib import get_close_matches

from sqlalchemy import make_url
from sqlalchemy.exc import ArgumentError

from applier.errors import ConfigError
from applier.sinks.port import Sink, SinkSettings

MYSQL = ("mysql+pymysql", "mariadb+pymysql")
SQLITE = ("sqlite",)


def open_sink(settings: SinkSettings) -> Sink:
    """Return the sink that ``settings.url`` names. It connects when it is first used. ConfigError: no such sink."""
    try:
        drivername = make_url(settings.url).drivername
    except (ArgumentError, ValueError):
        message = "the sink's url cannot be read"
        # Not chained: SQLAlchemy's words may hold the password.
        raise ConfigError(message, remedy="Write [sink] url like mysql+pymysql://user@host:3306/ or sqlite:///replica.db") from None
    if drivername in MYSQL:
        from applier.sinks.mysql.sink import MysqlSink  # noqa: PLC0415 -- see above

        return MysqlSink(settings)
    if drivername in SQLITE:
        from applier.sinks.sqlite.sink import SqliteSink  # noqa: PLC0415 -- see above

        return SqliteSink(settings)
    raise _unknown(drivername)


def _unknown(drivername: str) -> ConfigError:
    choices = [*MYSQL, *SQLITE]
    nearest = get_close_matches(drivername, choices, n=1, cutoff=0.0)
    message = f"there is no sink {drivername!r}"
    return ConfigError(message, remedy=f"Did you mean {nearest[0]}? There are: {', '.join(choices)}")
