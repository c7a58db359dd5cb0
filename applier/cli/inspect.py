"""``applier inspect``: show the events that the source holds, without applying them. After an unreadable record it continues."""

import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Annotated, Final

import typer

from applier.cli.inspected import (
    EventTable,
    Inspected,
    Inspection,
    InspectOptions,
    ShownEvents,
    as_lines,
    as_objects,
    decode,
    inspection_of,
)
from applier.cli.option import AsJson, ConfigPath, LogGtid, LogPosition, read_config, source_kit, tso
from applier.cli.output import DEFAULT_CONFIG, print_json, print_line, stderr_console
from applier.config import Config
from applier.model.errors import ConfigError, NeedsOperator, ProtocolError, errors_spelled_by
from applier.model.position import Stream
from applier.model.remedy import Remedy
from applier.sources.kit import Records, SourceKit
from applier.sources.peek import PeekChoice, follow, present_ranges, read_range
from applier.sources.port import Source
from applier.telemetry.wording import count

__all__ = ["Inspected", "as_lines", "as_objects", "decode", "inspect", "read"]

PATIENCE_S: Final = 10.0
"""Shorter than in a run: a person waits for the answer."""
LIMIT: Final = 20
"""Records of each partition that a person is shown without ``--limit``. A program (``--json``) gets all."""


def inspect(  # noqa: PLR0913 - one option each
    config: ConfigPath = DEFAULT_CONFIG,
    *,
    topic: Annotated[str | None, typer.Option(metavar="T", help="Show only this topic.")] = None,
    partition: Annotated[int | None, typer.Option(metavar="P", min=0, help="Show only this partition.")] = None,
    start: Annotated[str | None, typer.Option("--from", metavar="O", help="Start at this offset; of a binlog, FILE:POS.")] = None,
    table: Annotated[str | None, typer.Option(metavar="SCHEMA.TABLE", help="Show only rows and DDLs of this table.")] = None,
    key: Annotated[
        list[str] | None, typer.Option(metavar="[COLUMN=]VALUE", help="Show only rows with this key; once for each column of the key.")
    ] = None,
    ts: Annotated[int | None, typer.Option(metavar="TSO", parser=tso, help="Show only events of this commit timestamp.")] = None,
    position: LogPosition = None,
    gtid: LogGtid = None,
    since: Annotated[str | None, typer.Option(metavar="TIME", help="Show only events from this time on, as 2025-06-01T12:00:00Z.")] = None,
    until: Annotated[str | None, typer.Option(metavar="TIME", help="Show only events up to this time.")] = None,
    resolved: Annotated[bool, typer.Option("--resolved", help="Show resolved events too. With --json they are always shown.")] = False,
    limit: Annotated[
        int | None,
        typer.Option(metavar="N", min=0, help=f"Show at most N records of each partition; 0: all. Default: {LIMIT}, with --json all."),
    ] = None,
    follows: Annotated[bool, typer.Option("--follow", "-f", help="Wait for new events and show them, until Ctrl-C.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show the events of the source without applying them."""
    settings = read_config(config)
    options = InspectOptions(
        topic=topic,
        partition=partition,
        start=start,
        table=table,
        keys=tuple(key or ()),
        ts=ts,
        position=position,
        gtid=gtid,
        since=since,
        until=until,
        resolved=resolved or as_json,
    )
    if follows and limit:
        raise ConfigError("--follow and --limit exclude one another", remedy=Remedy("cli.remove-one-inspect-option", "Remove one of them"))
    inspection = inspection_of(settings, options)
    default = None if follows or as_json else LIMIT
    _show(settings, replace(inspection, limit=default if limit is None else limit or None, follows=follows), as_json)


def _show(settings: Config, inspection: Inspection, as_json: bool) -> None:  # noqa: FBT001 - the option's value
    kit = source_kit(settings)
    of_log = not kit.has_partitions
    table, unreadable, records = EventTable.of_terminal(kit.timeline(), of_log=of_log), 0, 0
    left_out: dict[Stream, bool] = {}
    write = _write_objects if as_json else _lines_of(table)
    try:
        for inspected in read_shown(settings, inspection, left_out):
            records += 1
            unreadable += isinstance(inspected.content, ProtocolError | NeedsOperator)
            write(inspected)
    except KeyboardInterrupt:
        if not inspection.follows:
            raise
    except BrokenPipeError:
        # `applier inspect | head`: who reads has seen enough. Python must not try to write again when it ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return
    if not as_json:
        # Not on standard output, which holds events only: it may be piped into another program.
        problems = f", {unreadable:,} unreadable" if unreadable else ""
        of_each = "" if of_log else " of each partition"
        more = f" (the first {inspection.limit}{of_each}; --limit 0 shows all)" if any(left_out.values()) else ""
        # A topic that is quiet holds resolved events alone.
        is_all = inspection.shown.resolved or inspection.shown.is_search or of_log
        hidden = "" if records or is_all else "; --resolved shows resolved events too"
        stderr_console().print(f"{count(records, 'record')}{problems}{more}{hidden}", highlight=False, soft_wrap=True)


def _write_objects(inspected: Inspected) -> None:
    for value in as_objects(inspected):
        print_json(value)


def _lines_of(table: EventTable) -> Callable[[Inspected], None]:
    has_header = False

    def write(inspected: Inspected) -> None:
        nonlocal has_header
        lines = list(table.lines(inspected))
        if not has_header:
            # After the first lines are made: the columns are as wide as they need.
            print_line(table.header())
            has_header = True
        for line in lines:
            print_line(line)

    return write


def read(settings: Config, choice: PeekChoice, patience_s: float = PATIENCE_S) -> Iterator[Inspected]:
    """Read and decode the chosen records; SourceError if nothing comes from Kafka for ``patience_s``."""
    yield from read_shown(settings, Inspection(choice=choice, shown=ShownEvents(resolved=True)), {}, patience_s)


def read_shown(
    settings: Config, inspection: Inspection, left_out: dict[Stream, bool], patience_s: float = PATIENCE_S
) -> Iterator[Inspected]:
    """Yield what is shown, stream by stream. ``left_out`` gets the streams that have more than ``limit``."""
    kit = source_kit(settings).with_patience(patience_s)
    # What the selection excludes stops no run, and no look at a log either.
    decoder = None if kit.has_partitions else kit.decoder(settings.source.selection())
    with errors_spelled_by(kit.timeline()), kit.open(decoder) as source, errors_spelled_by(source.timeline):
        decoded = partial(_decoded, kit, source, inspection)
        ranges = present_ranges(source, inspection.choice)
        is_tail = inspection.follows and inspection.choice.start is None and inspection.choice.since_ms is None
        for range_id in [] if is_tail else ranges:
            yield from _first(decoded(read_range(source, range_id)), range_id.stream, inspection, left_out)
        if inspection.follows:
            ends = {one.stream: one.end for one in ranges}
            yield from filter(None, map(inspection.shown.of, decoded(follow(source, inspection.choice, ends))))


def _first(found: Iterator[Inspected], stream: Stream, inspection: Inspection, left_out: dict[Stream, bool]) -> Iterator[Inspected]:
    """Yield the first records of a range that are shown; read no further."""
    number = 0
    for inspected in found:
        chosen = inspection.shown.of(inspected)
        if chosen is None:
            continue
        number += 1
        if inspection.limit is not None and number > inspection.limit:
            left_out[stream] = True
            return
        yield chosen


def _decoded(kit: SourceKit, source: Source, inspection: Inspection, records: Records) -> Iterator[Inspected]:
    return decode(source.decoder, inspection.records(records), kit.origin_of(source))
