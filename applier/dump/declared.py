"""Records that other programs have loaded the sink: the position at which it equals upstream, and who says so.

Nothing is loaded or compared. ``applier verify`` compares, when the replica has caught up.
"""

from pathlib import Path

from applier.config import Config
from applier.dump.into_sink import check_replica, starting_ts_of
from applier.model.position import Ts
from applier.sinks.loaded_dump import DECLARED, LoadedDump
from applier.sinks.registry import open_sink
from applier.sources.factory import kit_of
from applier.telemetry.log import use_timeline
from applier.telemetry.wording import operator


def declare_loaded(config: Config, directory: Path | None, given: Ts | None) -> LoadedDump:
    """Record the position of the dump, or the configured one. ConfigError, SourceError, NeedsOperator: there is no such position."""
    directory = None if directory is None else directory.resolve()
    if directory is not None:
        start_ts, told = starting_ts_of(config, directory, given), str(directory)
    else:
        start_ts, told, timeline = kit_of(config.source_settings()).declared_start(given, Ts(config.source.start_ts))
        use_timeline(timeline)
    dump = LoadedDump(start_ts=start_ts, directory=told, loader=DECLARED, loaded_by=operator())
    with open_sink(config.sink_settings(retries=2)) as sink:
        check_replica(sink, directory or Path("DUMP"), overwrite=False)
        sink.bookkeeping.loaded_dump.declare(dump)
    return dump
