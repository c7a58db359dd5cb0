"""Positions of the command line: the options that name a transaction of a log, what timestamps mean, and how records are named."""

from contextlib import suppress
from typing import Annotated, TypeAlias

import typer

from applier.config import Config
from applier.model.errors import SinkError
from applier.model.position import Offset, Place, Stream, Ts
from applier.model.rejected_event import EventPlace
from applier.model.timeline import Timeline
from applier.sinks.port import Sink
from applier.sinks.progress import Progress
from applier.sinks.registry import open_sink
from applier.sources.factory import kit_of
from applier.sources.kit import SourceKit
from applier.telemetry.log import use_timeline

LogPosition: TypeAlias = Annotated[
    str | None, typer.Option("--position", metavar="FILE:POS", help="Of a binlog: where the transaction begins.")
]
LogGtid: TypeAlias = Annotated[str | None, typer.Option("--gtid", metavar="GTID", help="Of a binlog: the transaction's GTID.")]


def source_kit(settings: Config) -> SourceKit:
    """Return the kit of the configured source."""
    return kit_of(settings.source_settings())


def use_places_of(settings: Config, sink: Sink) -> None:
    """Show positions from now on as the replica knows them: those of a binlog under the names of its files."""
    kit = source_kit(settings)
    if not kit.has_partitions:
        use_timeline(kit.timeline(_stored(sink)))  # an error of the sink comes again with what is asked for next


def named_record(settings: Config, position: str | None, gtid: str | None, progress: Progress | None) -> Place:
    """Return the record that ``--position`` or ``--gtid`` names. ConfigError: no such transaction."""
    place, timeline = source_kit(settings).place(position, gtid, None if progress is None else progress.source_state)
    use_timeline(timeline)
    return place


def record_text(stream: Stream, offset: Offset, timeline: Timeline) -> str:
    """Name a record: ``feed/0@17``, or the position in the log where its transaction begins."""
    return timeline.text(Ts(offset)) if timeline.spells_offsets else str(Place(stream, offset))


def event_text(place: EventPlace, timeline: Timeline) -> str:
    """Name an event: ``feed/0@17#2``, ``mariadb-bin.000042:1337#2``; without a number the whole record."""
    text = record_text(place.stream, place.offset, timeline)
    return f"{text}#{place.event}" if place.event >= 0 else text


def ts_of_text(settings: Config, text: str | None, sink: Sink | None = None) -> Ts | None:
    """Return what a timestamp of the command line means: the digits of a TSO, or a position in the log that the replica follows.

    ``sink``: one that is open already. ConfigError: it is one of another kind of source, or of a file of another name.
    """
    if text is None or text.isdecimal():
        return None if text is None else Ts(int(text))
    kit = source_kit(settings)
    return kit.ts(text, None if kit.has_partitions else _state_in(settings) if sink is None else _stored(sink))


def _state_in(settings: Config) -> str | None:
    with open_sink(settings.sink_settings()) as sink:
        return _stored(sink)


def _stored(sink: Sink) -> str | None:
    """Return the state of the source in a sink; None for a replica that has not begun."""
    with suppress(SinkError):
        progress = sink.load()
        return None if progress is None else progress.source_state
    return None
