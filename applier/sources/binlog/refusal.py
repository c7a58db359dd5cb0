"""What a server that ends a dump means by it, and what is wrong with what it has sent."""

import re
from collections.abc import Callable
from typing import Final

from applier.model.errors import NeedsOperator, Remedy, SourceError
from applier.model.failure import FailureKind
from applier.mysql.errors import DENIED

_PURGED: Final = re.compile(rb"could not find|could not open log file|purged|too old|which is not in the", re.IGNORECASE)
_BEYOND: Final = re.compile(
    # The last two: what a server reads from the middle of an event has any size, and a wrong checksum.
    rb"position > file size|impossible position|bogus data|read error|truncated|corrupt|exceeded max_allowed_packet|crc check",
    re.IGNORECASE,
)
_SOURCE_FATAL: Final = 1236
_PURGED_CODES: Final = frozenset({1373, 1789, 1945})

_LOAD: Final = Remedy(
    "binlog.create-again-keep-binlogs-longer",
    "Create the replica again from a dump. Keep binlogs longer than the applier may lag (binlog_expire_logs_seconds)",
)
_WAIT: Final = Remedy("binlog.check-source-url", "Check that the server runs, and that source.url reaches it")
_GRANT: Final = Remedy("binlog.grant-replication-slave", "GRANT REPLICATION SLAVE ON *.* TO the user of source.url")
OTHER_LOG: Final = Remedy(
    "binlog.create-again-after-reset",
    "The server's binlog is not the one that was read before. It was reset or restored, or a crash has cut its end (sync_binlog = 1 "
    "prevents that). Create the replica again from a dump",
)


def reset_log(at: str = "") -> SourceError:
    """Make the error for a log that ends before a position that it had: what was read there is not what is there now."""
    message = "the server's binlog ends before a position that was read: it was reset"
    return SourceError(message, remedy=OTHER_LOG, kind=FailureKind.OTHER_LOG, **({"at": at} if at else {}))


def is_about_content(error: SourceError) -> bool:
    """Return whether an error is about what a server has sent. A dump that was open at a reset continues in a file of other events."""
    return error.kind not in {FailureKind.UNREACHABLE, FailureKind.REFUSED, FailureKind.OTHER_SERVER, FailureKind.PURGED}


def explained(error: SourceError, end: Callable[[], int], known: int, at: str = "") -> SourceError:
    """Return the error of a reset instead of the errors that it causes: they look damaged.

    ``end`` asks the server where its log ends; it was read up to ``known`` before.
    """
    try:
        return reset_log(at) if is_about_content(error) and end() < known else error
    except (SourceError, NeedsOperator):
        return error


def is_refusal(payload: memoryview) -> bool:
    """Whether a packet says why the server ends the dump."""
    return bytes(payload[:1]) == b"\xff"


def refused(payload: bytes, at: str) -> SourceError:
    """Read the packet with which a server ends a dump."""
    code = int.from_bytes(payload[1:3], "little")
    text = payload[9:] if payload[3:4] == b"#" else payload[3:]
    cause = text.decode(errors="replace")
    facts = {"at": at, "code": code, "cause": cause}
    if code in _PURGED_CODES or (code == _SOURCE_FATAL and _PURGED.search(text)):
        return SourceError("the server has no binlog from this position on", remedy=_LOAD, kind=FailureKind.PURGED, **facts)
    if code == _SOURCE_FATAL and _BEYOND.search(text):
        return SourceError("the server cannot read its binlog at this position", remedy=OTHER_LOG, kind=FailureKind.OTHER_LOG, **facts)
    if code in DENIED:
        return SourceError("the user may not read the binlog", remedy=_GRANT, kind=FailureKind.REFUSED, **facts)
    return ended("the server has ended the dump", at, code=code, cause=cause)


def ended(message: str, at: str, **facts: object) -> SourceError:
    """Make the error for a dump that has ended, and may be begun again."""
    return SourceError(message, remedy=_WAIT, kind=FailureKind.UNREACHABLE, at=at, **facts)


def wrong(message: str, at: str, *, remedy: Remedy = OTHER_LOG, kind: FailureKind = FailureKind.OTHER_LOG, **facts: object) -> SourceError:
    """Make the error for events that cannot be followed."""
    return SourceError(message, remedy=remedy, kind=kind, at=at, **facts)
