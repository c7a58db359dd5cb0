"""Makes the sessions of a comparison. Which readers there are, the kits of the databases know."""

from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from typing import cast

from applier.sinks.registry import kit_of
from applier.sinks.settings import SinkSettings
from applier.verify.reader import Reader, Sides


def sides_opener(upstream: SinkSettings, sink: SinkSettings, *, statement_timeout_s: int) -> Callable[[], Sides]:
    """Return the function that makes a session on each side. They connect when they are used."""
    # A local database holds the text of a TIMESTAMP in the zone of the wire. Between servers UTC: elsewhere two points in time may have
    # one text.
    zone = sink.time_zone if kit_of(sink.url).local else "UTC"
    upstream, sink = replace(upstream, time_zone=zone), replace(sink, time_zone=zone)

    def open_sides() -> Sides:
        return Sides(_reader(upstream, statement_timeout_s, is_upstream=True), _reader(sink, statement_timeout_s, is_upstream=False))

    return open_sides


def _reader(settings: SinkSettings, statement_timeout_s: int, *, is_upstream: bool) -> Reader:
    module = import_module(kit_of(settings.url).comparison)
    return cast("Reader", module.open_reader(settings, is_upstream=is_upstream, statement_timeout_s=statement_timeout_s))
