"""Records that other programs have loaded the sink: the position at which it equals upstream, and who has declared it.

No row is loaded or compared: ``applier verify`` compares, when the replica has caught up. Where the source can list
upstream's tables at the position, the sink must have them all. If there is none, that is recorded: upstream was empty.
"""

from pathlib import Path
from typing import Final, NamedTuple

from applier.config import Config
from applier.dump.into_sink import check_replica
from applier.model.errors import Remedy, errors_spelled_by
from applier.model.position import Timeline, Ts
from applier.planner.table_check import ListedTables, TableLister
from applier.replica.missing_tables import missing_at, refuse_missing
from applier.sinks.loaded_dump import DECLARED, EMPTY, LoadedDump
from applier.sinks.port import Sink
from applier.sinks.registry import open_sink
from applier.sources.factory import kit_of
from applier.sources.kit import DeclaredStart
from applier.telemetry.wording import operator
from applier.upstream.tables import lister_of

ATTEMPTS: Final = 5
"""To find a point in time without a DDL, where the end of the source is declared."""

LOAD_ALL: Final = Remedy(
    "dump.load-missing-tables",
    "Load a dump that has them: `applier load DUMP`. If a table is empty upstream, create it in the sink as upstream has it, and repeat. "
    "Or exclude it with source.tables",
)


class Declared(NamedTuple):
    """``tables``: how many tables upstream has there, all of them in the sink; None: not compared."""

    dump: LoadedDump
    tables: int | None
    timeline: Timeline


def declare_loaded(config: Config, directory: Path | None, given: Ts | None) -> Declared:
    """Record the position of the dump, or the configured one. ConfigError, SourceError: the position does not exist.

    NeedsOperator: the sink lacks a table that upstream has there, or the replica has begun.
    """
    directory = None if directory is None else directory.resolve()
    (start_ts, told, timeline, _), lister, listed = _position(config, directory, given)
    with errors_spelled_by(timeline), open_sink(config.sink_settings(retries=2)) as sink:
        check_replica(sink, directory or Path("DUMP"), overwrite=False)
        if lister is not None and listed is not None and listed.names:
            _check_tables(sink, lister, start_ts)
        is_empty = listed is not None and listed.is_whole and not listed.names
        dump = LoadedDump(start_ts=start_ts, directory=told, loader=EMPTY if is_empty else DECLARED, loaded_by=operator())
        sink.bookkeeping.loaded_dump.declare(dump)
    return Declared(dump, None if listed is None else len(listed.names), timeline)


def _position(config: Config, directory: Path | None, given: Ts | None) -> tuple[DeclaredStart, TableLister | None, ListedTables | None]:
    """Return the position, and upstream's tables there. Of the end of a source, one without a DDL since."""
    kit, selection = kit_of(config.source_settings()), config.source.selection()
    for _ in range(ATTEMPTS):
        if directory is None:
            declared = kit.declared_start(given, Ts(config.source.start_ts))
        else:
            start_ts, timeline = kit.start_of_dump(directory, given, Ts(config.source.start_ts))
            declared = DeclaredStart(start_ts, str(directory), timeline)
        lister = lister_of(kit, config.source.upstream_settings(), selection)
        listed = None if lister is None else lister.listed_at(declared.start_ts)
        if not declared.is_end or (listed is not None and listed.is_exact):
            break
    return declared, lister, listed


def _check_tables(sink: Sink, lister: TableLister, start_ts: Ts) -> None:
    if missing := missing_at(sink, lister, start_ts):
        raise refuse_missing(missing, start_ts, LOAD_ALL)
