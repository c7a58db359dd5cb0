"""The time zone of upstream's sessions: not UTC, and not that of the sink's server, so that a DDL that runs in a wrong zone shows.

TIMESTAMPs are points in time: the simulator keeps them as UTC, as the wire does. What a session writes or derives is in its own zone.
"""

from datetime import datetime, timedelta
from typing import Final

SESSION_ZONE: Final = "+08:00"
_OFFSET: Final = timedelta(hours=8)
_LENGTH: Final = len("2025-11-24 00:00:00")


def in_session(utc: str) -> str:
    """Return a TIMESTAMP of UTC as a session shows it; a zero one and its fraction stay as they are."""
    return _moved(utc, _OFFSET)


def _moved(text: str, offset: timedelta) -> str:
    if text.startswith("0000"):
        return text
    moved = datetime.fromisoformat(text[:_LENGTH]) + offset
    return f"{moved:%Y-%m-%d %H:%M:%S}{text[_LENGTH:]}"
