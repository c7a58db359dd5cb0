"""The streams of a replica as lines of text: as wide as the terminal, and never without the number of a partition."""

from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

from applier.model.position import NO_TS, Stream, Ts
from applier.sources.kafka.tso import datetime_of
from applier.status.replica_status import StreamSummary
from applier.telemetry.wording import count, duration, time_text

MOST: Final = 20
"""Streams that are shown one by one, unless all are asked for."""
UNKNOWN: Final = "?"
LEAST_NAME: Final = 12
ELLIPSIS: Final = "…"


class Line(NamedTuple):
    """A line, and whether its stream holds back the watermark."""

    text: str
    is_holding: bool = False


class StreamColumn(NamedTuple):
    """A heading, and what stands below it."""

    heading: str
    cell: Callable[[StreamSummary], str]
    is_number: bool = False


def _number(value: int | None, otherwise: str = UNKNOWN) -> str:
    return otherwise if value is None else f"{value:,}"


def short_time(ts: Ts) -> str:
    """Write the time of a TSO in few characters: without its year, to the second."""
    return "none" if ts == NO_TS else f"{datetime_of(ts):%m-%d %H:%M:%S}Z"


def _remarks(each: StreamSummary) -> Iterator[str]:
    if each.holds_watermark:
        yield "holds back the watermark"
    if each.applied_ts:
        yield f"rows are written up to {time_text(each.applied_ts)}"


def _short_remarks(each: StreamSummary) -> Iterator[str]:
    if each.holds_watermark:
        yield "holds back"
    if each.applied_ts:
        yield f"rows to {datetime_of(each.applied_ts):%H:%M:%S}Z"


NAME: Final = StreamColumn("stream", lambda each: str(each.stream))
NEXT: Final = StreamColumn("next offset", lambda each: _number(each.next_offset, "not read"), is_number=True)
END: Final = StreamColumn("end", lambda each: _number(each.end_offset), is_number=True)
BEHIND: Final = StreamColumn("behind", lambda each: _number(each.behind), is_number=True)
RESOLVED: Final = StreamColumn("resolved", lambda each: time_text(each.resolved_ts))
RESOLVED_SHORT: Final = StreamColumn("resolved", lambda each: short_time(each.resolved_ts))
LAG: Final = StreamColumn("lag", lambda each: "" if each.lag_s is None else duration(each.lag_s), is_number=True)
REMARK: Final = StreamColumn("", lambda each: "; ".join(_remarks(each)))
REMARK_SHORT: Final = StreamColumn("", lambda each: "; ".join(_short_remarks(each)))

LAYOUTS: Final = (
    (NAME, NEXT, END, BEHIND, RESOLVED, LAG, REMARK),
    (NAME, BEHIND, RESOLVED, LAG, REMARK),
    (NAME, BEHIND, RESOLVED_SHORT, LAG, REMARK_SHORT),
)
"""From wide to narrow: the first that fits is taken."""


def stream_lines(streams: Sequence[StreamSummary], width: int | None, *, shows_all: bool = False) -> list[Line]:
    """Return a heading and a line per stream, at most ``width`` characters each (None: as wide as they are).

    Of many streams the ones that are furthest behind are shown, and what the others have in common.
    """
    shown = streams if shows_all or len(streams) <= MOST else sorted(sorted(streams, key=_urgency)[:MOST], key=lambda each: each.stream)
    columns, cells, widths = _fitting(shown, width)
    lines = [Line(_aligned([column.heading for column in columns], columns, widths))]
    lines += [Line(_aligned(row, columns, widths), each.holds_watermark) for row, each in zip(cells, shown, strict=True)]
    if len(shown) < len(streams):
        chosen = {each.stream for each in shown}
        lines += [Line(text) for text in _summary([each for each in streams if each.stream not in chosen])]
    return lines


def _urgency(each: StreamSummary) -> tuple[bool, Ts, int]:
    return not each.holds_watermark, each.resolved_ts, -(each.behind or 0)


def _fitting(shown: Sequence[StreamSummary], width: int | None) -> tuple[Sequence[StreamColumn], list[list[str]], list[int]]:
    for columns in LAYOUTS:
        cells, widths = _cells(shown, columns)
        if width is None or _total(widths) <= width:
            return columns, cells, widths
    # Names give way, in their middle.
    room = max(LEAST_NAME, widths[0] - (_total(widths) - (width or 0)))
    for row, each in zip(cells, shown, strict=True):
        row[0] = _shortened(each.stream, room)
    return columns, cells, [room, *widths[1:]]


def _cells(shown: Sequence[StreamSummary], columns: Sequence[StreamColumn]) -> tuple[list[list[str]], list[int]]:
    cells = [[column.cell(each) for column in columns] for each in shown]
    return cells, [max(len(text) for text in (column.heading, *(row[at] for row in cells))) for at, column in enumerate(columns)]


def _total(widths: Sequence[int]) -> int:
    used = [width for width in widths if width]
    return sum(used) + 2 * (len(used) - 1)


def _shortened(stream: Stream, room: int) -> str:
    """Shorten a topic's name: its partition is what tells streams apart."""
    name, end = str(stream), f"/{stream.partition}"
    if len(name) <= room:
        return name
    kept = room - len(end) - len(ELLIPSIS)
    head = kept - kept // 2
    return stream.topic[:head] + ELLIPSIS + stream.topic[len(stream.topic) - kept // 2 :] + end


def _aligned(row: Sequence[str], columns: Sequence[StreamColumn], widths: Sequence[int]) -> str:
    cells = (
        f"{text:>{width}}" if column.is_number else f"{text:{width}}" for text, column, width in zip(row, columns, widths, strict=True)
    )
    return "  ".join(cells).rstrip()


def _summary(others: Sequence[StreamSummary]) -> list[str]:
    behind = [each.behind for each in others if each.behind is not None]
    told = f", {count(sum(behind), 'record')} behind" if behind else ""
    times = [each.resolved_ts for each in others]
    return [
        f"and {count(len(others), 'more stream')}{told}: --all shows them",
        f"  resolved from {short_time(min(times))} to {short_time(max(times))}",
    ]
