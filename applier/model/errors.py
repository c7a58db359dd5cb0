"""The error tree. Each error carries facts and a remedy, survives pickling, and maps to one exit code."""

from collections.abc import Callable
from typing import Any, ClassVar

from applier.model.position import Place


class ApplierError(Exception):
    """Anything that stops the applier. ``facts`` name the place (topic, partition, offset, table, commit_ts, …)."""

    exit_code: ClassVar[int] = 1

    def __init__(self, message: str, *, remedy: str = "", **facts: Any) -> None:
        super().__init__(message)
        self.message = message
        self.remedy = remedy
        self.facts = facts

    def __reduce__(self) -> tuple[Callable[..., "ApplierError"], tuple[Any, ...]]:
        """Pickle with remedy and facts: errors cross from executors to the driver."""
        return _rebuild, (type(self), self.message, self.remedy, self.facts)

    def __str__(self) -> str:
        """Give the message, the facts in brackets, and the remedy."""
        facts = ", ".join(f"{name}={value}" for name, value in self.facts.items())
        return self.message + (f" [{facts}]" if facts else "") + (f". {self.remedy}" if self.remedy else "")


def _rebuild(kind: type[ApplierError], message: str, remedy: str, facts: dict[str, Any]) -> ApplierError:
    return kind(message, remedy=remedy, **facts)


class InvariantViolation(ApplierError):
    """The program contradicts itself: a defect of ours."""


class ConfigError(ApplierError):
    """Usage or configuration."""

    exit_code = 2


class SourceError(ApplierError):
    """Kafka, or what was read from it."""

    exit_code = 3


_UNREADABLE = (
    "Look at the record with `applier inspect`. If only the changefeed writes to the topic, report it; `applier skip` leaves this one out, "
    'source.on_unreadable = "quarantine" all like it. If something else writes to the topic, give the changefeed one of its own, and make '
    "the replica anew from a dump (README)"
)
_UNREADABLE_BY_KIND = {
    "version": "Set protocol=open-protocol in the changefeed's sink URI, with a new topic, and make the replica anew from a dump (README)",
}


class ProtocolError(SourceError):
    """A record that is not the Open Protocol. ``facts['kind']`` is one of the words of tests/data/vectors."""

    def __init__(self, message: str, *, remedy: str = "", **facts: Any) -> None:
        super().__init__(message, remedy=remedy or _UNREADABLE_BY_KIND.get(facts.get("kind", ""), _UNREADABLE), **facts)

    @classmethod
    def at(cls, place: Place | None, kind: str, message: str, **facts: Any) -> "ProtocolError":
        """Make the error of ``kind`` for the record at ``place``."""
        where: dict[str, Any] = {"kind": kind}
        if place is not None:
            where |= place.facts
        return cls(message, **(where | facts))


class RangeChanged(SourceError):
    """A cached range was read again and is not what its listener had reported: the cache is rebuilt from the sink's progress."""


class JobLost(ApplierError):
    """Spark gave a whole job up (its executors were lost too often). What it wrote is known to the sink only: everything is rebuilt."""


class InputCut(JobLost):
    """The input of a task ended before the marker that counts it: nothing of it may become durable."""


class SparkEnded(ApplierError):
    """Spark itself is gone: no further job can run in this process. What was written is known to the sink only."""


class SparkKeepsEnding(ApplierError):
    """Spark has ended so often lately that another start would not help."""


class SinkError(ApplierError):
    """The database."""

    exit_code = 4


class RetryableSinkError(SinkError):
    """The transaction was rolled back, and a repetition may succeed (deadlock, lock wait, lost connection)."""


class FatalSinkError(SinkError):
    """A repetition would fail again."""


class SinkFull(SinkError):
    """The database has no room left: what failed was rolled back. Repeating at once is useless; an operator may free space meanwhile."""


class RowRefused(FatalSinkError):
    """The sink refuses rows for their values; the same statement without them may succeed."""


class UnknownOutcome(SinkError):
    """The connection was lost after COMMIT was sent: the write may or may not have happened."""


_OWNED = (
    "`applier status` names the run that owns the replica: leave it at that, or stop it, or take over from it with --take-over "
    "(`applier run`, `applier catchup`)"
)


class Fenced(ApplierError):
    """Another run owns the replica."""

    exit_code = 5

    def __init__(self, message: str, *, remedy: str = "", **facts: Any) -> None:
        super().__init__(message, remedy=remedy or _OWNED, **facts)


class NeedsOperator(ApplierError):
    """Something that only an operator may decide."""

    exit_code = 6
