"""Records that other programs have loaded the sink: the position at which it equals upstream, and who says so.

Nothing is loaded or compared. ``applier verify`` compares, when the replica has caught up.
"""

from pathlib import Path

from applier.config import Config
from applier.dump.into_sink import check_replica, place_in_log, starting_ts_of
from applier.model.errors import ConfigError
from applier.model.position import NO_TS, Ts
from applier.model.remedy import Remedy
from applier.sinks.loaded_dump import DECLARED, LoadedDump
from applier.sinks.registry import open_sink
from applier.sources.binlog.settings import BinlogSettings
from applier.sources.binlog.start import GTIDS
from applier.sources.binlog.state import SourceState
from applier.telemetry.wording import operator


def declare_loaded(config: Config, directory: Path | None, given: Ts | None) -> LoadedDump:
    """Record the position of the dump, or the configured one. ConfigError, SourceError, NeedsOperator: there is no such position."""
    directory = None if directory is None else directory.resolve()
    if directory is not None:
        start_ts, told = starting_ts_of(config, directory, given), str(directory)
    else:
        start_ts, told = _configured(config, given)
    dump = LoadedDump(start_ts=start_ts, directory=told, loader=DECLARED, loaded_by=operator())
    with open_sink(config.sink_settings(retries=2)) as sink:
        check_replica(sink, directory or Path("DUMP"), overwrite=False)
        sink.loaded_dump.declare(dump)
    return dump


def _configured(config: Config, given: Ts | None) -> tuple[Ts, str]:
    """Return the configured position, and the text that names it more exactly."""
    settings = config.source_settings()
    if isinstance(settings, BinlogSettings):
        if given is not None:
            raise ConfigError(
                "--start-ts is a TSO, and the source is a binlog",
                remedy=Remedy("dump.give-place-or-dump", "Set source.start to the place, or give the dump"),
            )
        start_ts, state = place_in_log(settings)
        return start_ts, told_by(settings.start, state)
    configured = Ts(config.source.start_ts)
    if given is not None and configured not in {NO_TS, given}:
        raise ConfigError(
            "--start-ts and source.start_ts differ",
            remedy=Remedy("dump.remove-start-ts-or-dump", "Remove one of them"),
            configured=configured,
            given=given,
        )
    start_ts = configured if given is None else given
    if not start_ts:
        raise ConfigError(
            "the position at which the sink equals upstream is missing",
            remedy=Remedy("dump.give-start-ts-or-dump", "Give its TSO with --start-ts, or the directory of the dump"),
        )
    return start_ts, ""


def told_by(start: str, state: SourceState | None) -> str:
    """Return the text to store: the set of GTIDs, where the server has logged some of them behind others; else ``start``."""
    return start if state is None or not state.has_gaps else f"{GTIDS}{state.gtid_set}"
