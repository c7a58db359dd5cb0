"""Where a transaction of a binlog is, by what an operator says of it; and how places are written for a replica of it."""

from contextlib import suppress

from applier.cli.log_option import is_log, parse_gtid, parse_position
from applier.config import Config
from applier.model.errors import ConfigError, SinkError
from applier.model.position import Offset, Place, Stream, Ts
from applier.model.rejected_event import EventPlace
from applier.model.remedy import Remedy
from applier.sinks.port import Sink
from applier.sinks.progress import Progress
from applier.sinks.registry import open_sink
from applier.sources.binlog.position import FIRST_POSITION, BinlogPosition
from applier.sources.binlog.server import Server
from applier.sources.binlog.settings import BinlogSettings
from applier.sources.binlog.state import SourceState
from applier.sources.binlog.timeline import StoredTimeline, read_state
from applier.sources.binlog.walk import LogLookup
from applier.telemetry.log import timeline_in_use, use_timeline
from applier.telemetry.wording import option_text

IN_LOG = Remedy("cli.inspect-gtids", "`applier inspect` shows the transactions of the log with their GTIDs")


def use_places_of(settings: Config, sink: Sink) -> None:
    """Show the places of a binlog under the names of its files from now on, as far as the replica knows them."""
    if not is_log(settings):
        return
    use_timeline(StoredTimeline.of(_stored(sink)))  # an error of the sink comes again with what is asked for next


def named_offset(settings: Config, position: str | None, gtid: str | None, progress: Progress | None) -> Offset:
    """Return the offset of the transaction that ``--position`` or ``--gtid`` names. ConfigError: no such transaction."""
    source = settings.source_settings()
    if not isinstance(source, BinlogSettings):
        raise ConfigError(
            "--position and --gtid are for a binlog, and the source is Kafka",
            remedy=Remedy("cli.use-stream-not-position", "Use --stream and --offset, or --ts"),
        )
    state = read_state(None if progress is None else progress.source_state)
    if position is not None:
        offset = _offset_at(position, state)
        if state is None:  # a new replica: nothing but the option says how the files are called
            use_timeline(StoredTimeline(base_name=position.rpartition(".")[0]))
        return offset
    return _with_gtid(source, parse_gtid(gtid or ""), state)


def record_text(stream: Stream, offset: Offset) -> str:
    """Name a record: ``feed/0@17``, or the place in the log where its transaction begins."""
    return option_text(Ts(offset)) if timeline_in_use().spells_offsets else str(Place(stream, offset))


def event_text(place: EventPlace) -> str:
    """Name an event: ``feed/0@17#2``, ``mariadb-bin.000042:1337#2``; without a number the whole record."""
    text = record_text(place.stream, place.offset)
    return f"{text}#{place.event}" if place.event >= 0 else text


def ts_of_text(settings: Config, text: str | None, sink: Sink | None = None) -> Ts | None:
    """Return what a timestamp of the command line means: the digits of a TSO, or a place in the log that the replica follows.

    ``sink``: one that is open already. ConfigError: a place, and the source is Kafka; or a file of another name.
    """
    if text is None or text.isdecimal():
        return None if text is None else Ts(int(text))
    if not is_log(settings):
        raise ConfigError(
            f"{text!r} is a place in a binlog, and the source is Kafka",
            remedy=Remedy("cli.give-tso", "Give a TSO, such as 458173202432000001"),
        )
    return Ts(_offset_at(text, _state_in(settings) if sink is None else _stored(sink)))


def _state_in(settings: Config) -> SourceState | None:
    with open_sink(settings.sink_settings()) as sink:
        return _stored(sink)


def _stored(sink: Sink) -> SourceState | None:
    """Return the state of the source in a sink; None for a replica that has not begun."""
    with suppress(SinkError):
        progress = sink.load()
        return read_state(None if progress is None else progress.source_state)
    return None


def _offset_at(position: str, state: SourceState | None) -> Offset:
    return parse_position(position) if state is None else parse_position(position, state.generation, state.base_name)


def _with_gtid(settings: BinlogSettings, gtid: str, state: SourceState | None) -> Offset:
    """Search behind the replica's place: what lies before it is applied."""
    with Server(settings) as server:
        end, files = server.end(), server.files()
    if end is None or not files:
        raise ConfigError("the server writes no binlog", remedy=IN_LOG)
    generation = 0 if state is None else state.generation
    since = BinlogPosition(0, files[0].number, FIRST_POSITION).number if state is None else state.place
    upto = BinlogPosition(generation, end.number, end.position).number
    found = LogLookup(settings, end.base_name).begin_of(gtid, since, upto)
    if found is None:
        raise ConfigError("the log has no such transaction behind the place of the replica", remedy=IN_LOG, gtid=gtid)
    return found
