"""What a run tells about itself while it runs: snapshots for a display, and log lines.

The engine makes a ``Snapshot`` after each step and hands it to an ``Observer``; how it is shown is decided at the edge (cli). Nothing
here decides anything, and nothing holds row values, secrets or connection strings.
"""

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final, Protocol, TextIO

from stamina.instrumentation import RetryDetails, get_on_retry_hooks, set_on_retry_hooks

from applier.errors import ApplierError
from applier.position import NO_TS, Ts

LOGGER_NAME: Final = "applier"
NOISY_LOGGERS: Final = ("py4j", "pyspark", "sqlglot", "alembic", "sqlalchemy")
"""Libraries whose progress chatter is not the operator's business; their warnings are."""

KAFKA_LOGGER_NAME: Final = "applier.kafka"
REPETITION_S: Final = 10.0

_PLAIN_RECORD: Final = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}
"""Attributes that every log record has; the others are the facts given in ``extra``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """A run at one moment. ``records_total`` are the records up to the known end offsets; 0 while they are not known."""

    phase: str
    """``starting``, ``listening``, ``applying``, ``ddl``, ``waiting`` (something is being retried) or ``done``."""
    records_read: int = 0
    records_total: int = 0
    rows_applied: int = 0
    transactions: int = 0
    ddls: int = 0
    watermark: Ts = NO_TS
    checkpoint_ts: Ts = NO_TS
    lag_s: float | None = None
    """Seconds between the upstream commit time of the checkpoint and now; None before the first checkpoint."""
    current_ddl: str = ""
    """Text of the DDL that runs now."""
    holding_stream: str = ""
    """The stream that holds the watermark, as ``topic/partition``."""
    elapsed_s: float = 0.0


class Observer(Protocol):
    """Who watches a run. Called from the engine's thread, after each step: must be quick and must not raise."""

    def update(self, snapshot: Snapshot) -> None:
        """Take the newest state; older ones may be forgotten."""
        ...

    def note(self, message: str, /, **facts: Any) -> None:
        """Take one thing that happened and must not be missed: a DDL, a retry, a resumed checkpoint."""
        ...


class Watcher(Protocol):
    """Whom the engine tells. Called from the engine's thread: must be quick and must not raise."""

    def changed(self) -> None:
        """Hear that the engine has made a step: its state may be looked at."""
        ...

    def note(self, message: str, /, **facts: Any) -> None:
        """Take one thing that happened, as an ``Observer`` does."""
        ...


class SilentObserver:
    """Shows nothing: for callers that only want the result."""

    def update(self, snapshot: Snapshot) -> None:
        """Forget it."""

    def note(self, message: str, /, **facts: Any) -> None:
        """Forget it."""


class FactFormatter(logging.Formatter):
    """One line: time, level, logger, the constant message, and the facts of ``extra`` as ``name=value``."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s: %(message)s")

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - the name that logging calls
        """Append the facts to the line, before a traceback if there is one."""
        facts = sorted((name, value) for name, value in vars(record).items() if name not in _PLAIN_RECORD)
        return super().formatMessage(record) + "".join(f" {name}={_quoted(value)}" for name, value in facts)


class StderrHandler(logging.StreamHandler[TextIO]):
    """Writes to the ``sys.stderr`` of the moment, so that a live display that borrows it shows log lines above itself."""

    def __init__(self) -> None:
        logging.Handler.__init__(self)

    @property
    def stream(self) -> TextIO:  # type: ignore[override] # an attribute in StreamHandler, a look-up here
        """The standard error stream as it is now."""
        return sys.stderr


class RepetitionFilter(logging.Filter):
    """Lets a line of librdkafka pass once in ``REPETITION_S``: it says hundreds of times in a second that a broker is down."""

    def __init__(self) -> None:
        super().__init__()
        self._passed: dict[str, float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Tell whether this line is new, or old enough to be said again. Lines of others pass."""
        if record.name != KAFKA_LOGGER_NAME:
            return True
        line = record.getMessage().partition(" (after ")[0]  # what follows is how long the attempt took
        self._passed = {passed: at for passed, at in self._passed.items() if record.created - at < REPETITION_S}
        if line in self._passed:
            return False
        self._passed[line] = record.created
        return True


def configure_logging(level: int = logging.WARNING) -> None:
    """Send the program's log lines of at least ``level`` to standard error, and quieten chatty libraries. May be repeated."""
    root = logging.getLogger()
    for handler in [h for h in root.handlers if isinstance(h, StderrHandler)]:
        root.removeHandler(handler)
    handler = StderrHandler()
    handler.setFormatter(FactFormatter())
    handler.addFilter(RepetitionFilter())
    root.addHandler(handler)
    logging.getLogger(LOGGER_NAME).setLevel(level)
    for name in NOISY_LOGGERS:
        logging.getLogger(name).setLevel(logging.WARNING)
    # The library's own hooks write warnings with the arguments of what is retried, or go to standard output (structlog).
    set_on_retry_hooks([_log_retry])


@contextmanager
def retries_noted(watcher: Watcher) -> Iterator[None]:
    """Note each failure after which something is tried again, instead of what ``configure_logging`` has set for them."""

    def note(details: RetryDetails) -> None:
        watcher.note("retry", **_retry_facts(details))

    before = get_on_retry_hooks()
    set_on_retry_hooks([note])
    try:
        yield
    finally:
        set_on_retry_hooks(before)


def _log_retry(details: RetryDetails) -> None:
    logging.getLogger(LOGGER_NAME).info("retry", extra=_retry_facts(details))


def _retry_facts(details: RetryDetails) -> dict[str, Any]:
    """Name the failure by its class and by our own words; other libraries' words and the arguments may hold values."""
    error = details.caused_by
    facts = {"error": type(error).__name__, "attempt": details.retry_num, "wait_s": round(details.wait_for, 2)}
    if isinstance(error, ApplierError):
        facts |= {"code": error.facts["code"]} if "code" in error.facts else {}
        facts["reason"] = error.message
    return facts


def _quoted(value: Any) -> str:
    text = str(value)
    return repr(text) if not text or any(c.isspace() for c in text) else text
