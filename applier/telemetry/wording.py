"""How values are written for people: counts, durations, timestamps, statements; and how people are written down."""

import getpass
import os
import socket
from collections.abc import Sequence
from typing import Final

from applier.model.position import NO_TS, Timeline, Ts, moment_of
from applier.telemetry.log import timestamp_text, utc_text

MOST_NAMED: Final = 5
"""The most things of one kind that a message or a finding names."""
WIDTH: Final = 160
"""A statement or a message is cut here where it must stay on one line."""


def count(number: int, noun: str) -> str:
    """Write ``1 row``, ``2,000 rows``."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def ddls_text(done: int, skipped: int) -> str:
    """Write ``1 DDL``, ``1 DDL (27 skipped)``."""
    return count(done, "DDL") + (f" ({skipped:,} skipped)" if skipped else "")


def named_some(names: Sequence[object]) -> str:
    """Write the first names, and how many more there are: ``a, b, c, d, e and 3 more``."""
    more = len(names) - MOST_NAMED
    return ", ".join(map(str, names[:MOST_NAMED])) + (f" and {more:,} more" if more > 0 else "")


def duration(seconds: float) -> str:
    """Write seconds as ``0.4 s``, ``12 s``, ``3 min 5 s``, ``2 h 10 min`` or ``3 d 4 h``."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    if seconds < 120:
        return f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 120:
        return f"{minutes} min {rest} s"
    hours = minutes // 60
    return f"{hours} h {minutes % 60} min" if hours < 48 else f"{hours // 24} d {hours % 24} h"


def time_text(ts: Ts, timeline: Timeline) -> str:
    """Write a timestamp as the time of its commit (UTC, milliseconds), or as a position with that time.

    ``none`` for no timestamp.
    """
    return "none" if ts == NO_TS else timestamp_text(ts, timeline)


def named_text(ts: Ts, timeline: Timeline) -> str:
    """Write a timestamp with what commands take: ``… (ts 458173202432000001)``, ``binlog.000003:20862 (…)``."""
    shown = time_text(ts, timeline)
    return f"{shown} (ts {ts})" if timeline.text(ts) == str(ts) else shown


def option_and_time(ts: Ts, timeline: Timeline) -> tuple[str, str]:
    """Write a timestamp as commands take it, and when it was; '' where the source does not know the time."""
    named, when = timeline.text(ts), moment_text(ts, timeline)
    return named, "" if when == named else when


def moment_text(ts: Ts, timeline: Timeline) -> str:
    """Write when a timestamp was (UTC, milliseconds); where its source does not know that, the timestamp as commands take it."""
    if ts == NO_TS:
        return "none"
    time_ms = timeline.time_ms(ts)
    return timeline.text(ts) if time_ms is None else utc_text(moment_of(time_ms))


def position_text(ts: Ts, timeline: Timeline) -> str:
    """Write when a timestamp was, and the timestamp as commands take it: ``… (ts 458173202432000001)``, ``… (binlog.000003:20862)``."""
    if ts == NO_TS:
        return "none"
    spelled = timeline.text(ts)
    if timeline.time_ms(ts) is None:
        return spelled
    return f"{moment_text(ts, timeline)} ({f'ts {spelled}' if spelled.isdecimal() else spelled})"


def one_line(text: str) -> str:
    """Put a text on one line, without control characters, cut at ``WIDTH`` characters."""
    line = printable(" ".join(text.split()))
    return line if len(line) <= WIDTH else line[: WIDTH - 1] + "…"


def printable(text: str) -> str:
    """Replace control characters: a statement or a value is upstream's text, and could rewrite an operator's terminal."""
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)


def operator() -> str:
    """Name the user who runs this command, for the ledger and the quarantine: ``user@host``."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # a container may run as a number without a name
        user = str(os.getuid())
    return f"{user}@{socket.gethostname()}"
