"""Makes the sessions of a comparison: the one place that knows which readers there are."""

from collections.abc import Callable
from dataclasses import replace

from applier.sinks.registry import kit_of
from applier.sinks.settings import SinkSettings
from applier.verify.mysql_reader import MysqlReader
from applier.verify.reader import Sides
from applier.verify.sqlite_reader import SqliteReader


def sides_opener(upstream: SinkSettings, sink: SinkSettings, *, statement_timeout_s: int) -> Callable[[], Sides]:
    """Return the function that makes a session on each side. They connect when they are used."""
    is_server = not kit_of(sink.url).local
    # A file holds the text of a TIMESTAMP in the zone of the wire. Between servers UTC: with another zone two moments may have one text.
    zone = "UTC" if is_server else sink.time_zone
    upstream, sink = replace(upstream, time_zone=zone), replace(sink, time_zone=zone)

    def open_sides() -> Sides:
        return Sides(
            MysqlReader(upstream, is_upstream=True, statement_timeout_s=statement_timeout_s),
            MysqlReader(sink, is_upstream=False, statement_timeout_s=statement_timeout_s) if is_server else SqliteReader(sink),
        )

    return open_sides
