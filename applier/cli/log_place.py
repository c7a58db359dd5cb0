"""Where a transaction of a binlog is, by what an operator says of it; and how places are written for a replica of it."""

from contextlib import suppress

from applier.cli.log_option import is_log, parse_gtid, parse_position
from applier.config import Config
from applier.model.errors import ConfigError, SinkError
from applier.model.position import Offset
from applier.sinks.port import Sink
from applier.sinks.progress import Progress
from applier.sources.binlog.one_group import LogLookup
from applier.sources.binlog.position import FIRST_POSITION, BinlogPosition
from applier.sources.binlog.server import Server
from applier.sources.binlog.settings import BinlogSettings
from applier.sources.binlog.state import SourceState
from applier.sources.binlog.stored_timeline import StoredTimeline, read_state
from applier.telemetry.log import use_timeline

IN_LOG = "`applier inspect` shows the transactions of the log with their GTIDs"


def use_places_of(settings: Config, sink: Sink) -> None:
    """Show the places of a binlog under the names of its files from now on, as far as the replica knows them."""
    if not is_log(settings):
        return
    with suppress(SinkError):  # what is asked for next says it
        progress = sink.load()
        use_timeline(StoredTimeline.of(read_state(None if progress is None else progress.source_state)))


def named_offset(settings: Config, position: str | None, gtid: str | None, progress: Progress | None) -> Offset:
    """Return the offset of the transaction that ``--position`` or ``--gtid`` names. ConfigError: the source has none such."""
    source = settings.source_settings()
    if not isinstance(source, BinlogSettings):
        raise ConfigError("--position and --gtid are for a binlog, and the source is Kafka", remedy="Use --stream and --offset, or --ts")
    state = read_state(None if progress is None else progress.source_state)
    if position is not None:
        return parse_position(position, 0 if state is None else state.generation)
    return _with_gtid(source, parse_gtid(gtid or ""), state)


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
