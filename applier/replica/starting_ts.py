"""From which timestamp a replica begins: what the operator says, what the sink was loaded from, and what the replica was created with."""

from shlex import quote
from typing import Final

from applier.model.errors import ConfigError, NeedsOperator, Remedy
from applier.model.position import NO_TS, Timeline, Ts, is_ahead
from applier.replica.context import Components
from applier.sinks.loaded_dump import LoadedDump
from applier.sinks.progress import Progress
from applier.sources.start import StartPoint

CLOCK: Final = Remedy(
    "replica.compare-clocks",
    "Compare this machine's clock with upstream's. If it is right, rows may be missing in the sink: start over with "
    "`applier replicas reset`, then load a dump",
)
LOAD: Final = Remedy(
    "replica.load-dump-first",
    "Load a dump of upstream: `applier load DUMP`. "
    "If the sink holds what upstream held at this position already, record that: `applier load --declared`",
)


def choose_start(configured: Ts, components: Components) -> StartPoint:
    """Return where the replica begins: by ``configured``, or by the source's own settings. Errors as in ``starting_ts``."""
    sink, source = components.sink, components.source
    progress = sink.load()
    dump = sink.bookkeeping.loaded_dump.read() if progress is None else None
    start = StartPoint(starting_ts(configured, progress, dump))
    # Only a new replica asks: what the settings name (a dump's directory) may be gone later.
    if progress is not None:
        return start
    if source.position is not None:
        start = source.position.start_point() if dump is None else source.position.start_point(dump.start_ts, dump.declared_as)
    if dump is None and start.start_ts:
        raise not_loaded(start.start_ts)
    return start


def refuse_future(timeline: Timeline, ts: Ts, now_ms: int) -> None:
    """Raise NeedsOperator for a checkpoint or a start that is later than the clock: every row up to it would be dropped as applied."""
    if is_ahead(ts, timeline, now_ms):
        raise NeedsOperator(
            "the checkpoint is in the future: rows up to it would be dropped as applied already", remedy=CLOCK, checkpoint_ts=ts
        )


def not_loaded(start_ts: Ts) -> NeedsOperator:
    """Make the error for a start position without a recorded load: no one has said that the sink holds the earlier rows."""
    return NeedsOperator(
        "a start position is set, but no load is recorded: the sink may lack what upstream held there",
        remedy=LOAD,
        start_ts=start_ts,
    )


def starting_ts(configured: Ts, progress: Progress | None, dump: LoadedDump | None) -> Ts:
    """Return the start_ts. ConfigError or NeedsOperator if they contradict one another, or if the dump is not loaded whole."""
    if progress is not None:
        if configured not in {NO_TS, progress.start_ts}:
            raise ConfigError(
                "start_ts differs from the one that the replica was created with",
                remedy=Remedy("replica.restore-start-ts", "Restore the old start_ts, or give a new replica another name"),
                configured=configured,
                recorded=progress.start_ts,
            )
        return progress.start_ts
    if dump is None:
        return configured
    if not dump.is_whole and dump.is_copy:
        raise NeedsOperator(
            "the sink holds a part of a copy of upstream only",
            remedy=Remedy("replica.continue-copy", 'Continue it: `applier copy`, or source.start = "copy"'),
            start_ts=dump.start_ts,
            copied_by=dump.loaded_by,
        )
    if not dump.is_whole:
        raise NeedsOperator(
            "the sink holds a part of a dump only: its load runs, or has failed",
            remedy=Remedy(
                "replica.wait-for-load",
                f"Wait for `applier load`, or load the dump again: `applier load {quote(dump.directory)} --overwrite`",
            ),
            start_ts=dump.start_ts,
            loaded_by=dump.loaded_by,
        )
    if configured not in {NO_TS, dump.start_ts}:
        raise ConfigError(
            "start_ts differs from that of the dump that the sink was loaded from",
            remedy=Remedy("replica.remove-start-ts", "Remove source.start_ts (and --start-ts): the replica then begins at the dump"),
            configured=configured,
            dump=dump.start_ts,
            directory=dump.directory,
        )
    return dump.start_ts
