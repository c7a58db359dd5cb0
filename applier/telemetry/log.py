"""Log lines on standard error: a constant event with its facts, as text for people or as JSON for collectors.

A collector reads every line as JSON. So all other text on ``sys.stderr`` (a traceback of a library's thread, a warning) becomes events of a
JSON log. Lines that C code writes to the descriptor itself (a crash of the process) stay as they are.
"""

import atexit
import io
import json
import logging
import re
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from threading import local
from typing import Any, Final, Literal, TextIO, TypeAlias

from applier.model.position import DIGITS, Timeline, Ts, moment_at
from applier.spark.foreign_output import ForeignOutput, kafka_facts
from applier.telemetry.log_event import LogEvent
from applier.telemetry.retries import log_retries


class LogWriter(io.TextIOBase):
    """Replaces ``sys.stderr``, and logs the lines that are written to it. The log itself writes to ``target``."""

    def __init__(self, target: TextIO) -> None:
        self.target: Final = target
        self._entries = ForeignOutput("python")
        self._rest = ""
        self._here = local()

    def write(self, text: str) -> int:
        """Add text; whole lines are logged."""
        # A log handler that fails writes its traceback here: it must not be given to the handler again.
        if getattr(self._here, "is_logging", False):
            return self.target.write(text)
        *lines, self._rest = (self._rest + text).split("\n")
        self._here.is_logging = True
        try:
            for line in lines:
                self._entries.feed(f"{line}\n")
        finally:
            self._here.is_logging = False
        return len(text)

    def flush(self) -> None:
        """Flush the target. An entry ends when no more lines follow."""
        self.target.flush()

    def end(self) -> None:
        """Log the line that has not ended yet."""
        if self._rest:
            self.write("\n")
        self._entries.flush()

    def fileno(self) -> int:
        """Return the target's descriptor, for processes that inherit it."""
        return self.target.fileno()

    def isatty(self) -> bool:
        """Return False: nothing is drawn into a JSON log."""
        return False


def capture_stderr() -> None:
    """Log from now on what is written to ``sys.stderr``. May be repeated."""
    if not isinstance(sys.stderr, LogWriter):
        writer = LogWriter(sys.stderr)
        sys.stderr = writer
        atexit.register(writer.end)


LogFormat: TypeAlias = Literal["text", "json"]

LOGGER_NAME: Final = "applier"
UNASKED: Final = logging.WARNING
"""The level where the command line asks for no other."""
NOISY_LOGGERS: Final = ("py4j", "pyspark", "sqlglot", "alembic", "sqlalchemy")
"""Libraries whose info lines no operator needs; their warnings are logged."""

PY4J_MODULES: Final = frozenset({"java_gateway", "clientserver"})

KAFKA_LOGGER_NAME: Final = "applier.kafka"
REPETITION_S: Final = 10.0

_PLACE: Final = re.compile(r"(.+_)?(?:ts|offset)")
"""Facts that are positions of the source."""

_PLAIN_RECORD: Final = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName", "timeline"}
"""Attributes that every log record has, and what ``extra_of`` adds; the others are the facts given in ``extra``."""


class FactFormatter(logging.Formatter):
    """One line: time (UTC), level, logger, the event, and the facts of ``extra`` as ``name=value``, a TSO with its time."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s: %(message)s")

    def formatTime(self, record: logging.LogRecord, _datefmt: str | None = None) -> str:  # noqa: N802 - the name that logging calls
        """Write the time as every other time that is shown: in UTC, whatever the zone of the machine."""
        return utc_text(datetime.fromtimestamp(record.created, UTC))

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - the name that logging calls
        """Append the facts to the line, before a traceback if there is one."""
        # The whole output of another program is for collectors: a person sees its first line and its cause.
        timeline = _timeline(record)
        facts = spelled({name: value for name, value in _facts(record).items() if name != "output"}, timeline)
        return super().formatMessage(record) + "".join(f" {name}={_shown(name, value, timeline)}" for name, value in sorted(facts.items()))


class JsonFormatter(logging.Formatter):
    """One JSON object on one line: ``time``, ``level``, ``logger``, ``message``, the facts, ``traceback`` if there is one. ASCII only."""

    def format(self, record: logging.LogRecord) -> str:
        """Write the object; facts that JSON has no type for as text."""
        entry = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            entry["traceback"] = self.formatException(record.exc_info)
        # The entry comes last: a fact must not replace time, level or event. ASCII, since a fact may hold bytes of a wrong
        # encoding.
        return json.dumps(_with_positions(_facts(record), _timeline(record)) | entry, default=str)


class StderrHandler(logging.StreamHandler[TextIO]):
    """Writes to the present ``sys.stderr``, so that a live display, which replaces it, shows log lines above itself."""

    def __init__(self) -> None:
        logging.Handler.__init__(self)

    @property
    def stream(self) -> TextIO:  # type: ignore[override] # an attribute in StreamHandler, a look-up here
        """The standard error stream as it is now."""
        return sys.stderr.target if isinstance(sys.stderr, LogWriter) else sys.stderr


class RepetitionFilter(logging.Filter):
    """Passes a line of librdkafka once in ``REPETITION_S``: it logs hundreds of times in a second that a broker is down."""

    def __init__(self) -> None:
        super().__init__()
        self._passed: dict[str, float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether this line is new, or was last passed long enough ago. Lines of other loggers pass."""
        if record.name != KAFKA_LOGGER_NAME:
            return True
        line = record.getMessage().partition(" (after ")[0]  # what follows is how long the attempt took
        self._passed = {passed: at for passed, at in self._passed.items() if record.created - at < REPETITION_S}
        if line in self._passed:
            return False
        self._passed[line] = record.created
        return True


def in_log_form(record: logging.LogRecord) -> bool:
    """Give a line of librdkafka the form of an event: a constant name, and facts."""
    if record.name == KAFKA_LOGGER_NAME and (facts := kafka_facts(record.getMessage())) is not None:
        record.msg, record.args = LogEvent.KAFKA_CLIENT, ()
        vars(record).update(facts)
    return True


def is_not_of_py4j(record: logging.LogRecord) -> bool:
    """Exclude the tracebacks that py4j logs when its JVM has ended: the program reports that itself."""
    return not (record.name == "root" and record.module in PY4J_MODULES)


def is_no_interrupt(record: logging.LogRecord) -> bool:
    """Exclude the tracebacks of Ctrl-C that a library logs where it has come in between: the command says what it means."""
    return record.exc_info is None or not isinstance(record.exc_info[1], KeyboardInterrupt)


def configure_logging(level: int = UNASKED) -> None:
    """Send the program's log lines of at least ``level`` to standard error, and reduce the log of verbose libraries. May be repeated."""
    root = logging.getLogger()
    # Replaced, not added: commands of one process would write each line twice.
    for handler in _handlers():
        root.removeHandler(handler)
    handler = StderrHandler()
    handler.setFormatter(FactFormatter())
    handler.addFilter(RepetitionFilter())
    handler.addFilter(is_not_of_py4j)
    handler.addFilter(is_no_interrupt)
    handler.addFilter(in_log_form)  # after the filter of repetitions, which compares whole lines
    root.addHandler(handler)
    logging.getLogger(LOGGER_NAME).setLevel(level)
    for name in NOISY_LOGGERS:
        logging.getLogger(name).setLevel(logging.WARNING)
    # stamina installs its own hooks at the first retry unless others are set.
    log_retries()


def use_format(log_format: LogFormat) -> None:
    """Write the lines from now on in this format: that of the configuration, which is read after the first line may be written."""
    for handler in _handlers():
        handler.setFormatter(JsonFormatter() if log_format == "json" else FactFormatter())


def level_of(name: str) -> int:
    """Return the level of ``debug``, ``info``, ``warning`` or ``error``."""
    return logging.getLevelNamesMapping()[name.upper()]


def use_level(level: int) -> None:
    """Log lines of at least ``level`` from now on, or of the level given to ``configure_logging`` if that shows more."""
    logger = logging.getLogger(LOGGER_NAME)
    logger.setLevel(level if logger.level == UNASKED else min(logger.level, level))


def utc_text(when: datetime) -> str:
    """Write a time in UTC as people are shown it, to the millisecond."""
    return f"{when:%Y-%m-%d %H:%M:%S.%f}"[:-3] + "Z"


def extra_of(facts: Mapping[str, Any], timeline: Timeline = DIGITS) -> dict[str, Any]:
    """Return facts as ``extra`` takes them: names that a log record uses itself get a trailing underscore.

    ``timeline``: what the timestamps among them mean.
    """
    return {f"{name}_" if name in _PLAIN_RECORD else name: value for name, value in facts.items()} | {"timeline": timeline}


def is_json() -> bool:
    """Whether lines are written as JSON."""
    return any(isinstance(handler.formatter, JsonFormatter) for handler in _handlers())


def _handlers() -> list[StderrHandler]:
    return [handler for handler in logging.getLogger().handlers if isinstance(handler, StderrHandler)]


def _facts(record: logging.LogRecord) -> dict[str, Any]:
    return {name: value for name, value in vars(record).items() if name not in _PLAIN_RECORD}


def _timeline(record: logging.LogRecord) -> Timeline:
    timeline: Timeline = vars(record).get("timeline", DIGITS)
    return timeline


def _is_ts(name: str, value: Any) -> bool:
    return name.endswith("_ts") and isinstance(value, int) and value > 0


def spelled(facts: Mapping[str, Any], timeline: Timeline) -> dict[str, Any]:
    """Return facts as people know the positions in them: of a binlog a file and a position instead of numbers, a topic and a partition."""
    found: dict[str, Any] = {}
    for name, value in facts.items():
        position = _position(name, value, timeline)
        if position is None:
            found[name] = value
        else:
            found[position[0]] = timestamp_text(Ts(value), timeline) if _is_ts(name, value) else position[1]
    return found if found.keys() == facts.keys() else {name: value for name, value in found.items() if name not in {"topic", "partition"}}


def _with_positions(facts: dict[str, Any], timeline: Timeline) -> dict[str, Any]:
    """Add to each number that is a position how commands take it: ``checkpoint_position``, ``position``."""
    return facts | dict(position for name, value in facts.items() if (position := _position(name, value, timeline)) is not None)


def _position(name: str, value: Any, timeline: Timeline) -> tuple[str, str] | None:
    """Return the name of a fact as a position, and the position; None if it is not a position, or is known by its number."""
    found = _PLACE.fullmatch(name)
    if found is None or not isinstance(value, int) or value <= 0 or (text := timeline.text(Ts(value))) == str(value):
        return None
    return f"{found[1] or ''}position", text


def timestamp_text(ts: Ts, timeline: Timeline) -> str:
    """Write a timestamp as the time of its commit (UTC, milliseconds), or as a position with that time where it is one."""
    text, moment = timeline.text(ts), moment_at(ts, timeline)
    if moment is None:
        return text
    return utc_text(moment) if text == str(ts) else f"{text} ({utc_text(moment)})"


def _shown(name: str, value: Any, timeline: Timeline) -> str:
    if _is_ts(name, value):
        shown = timestamp_text(Ts(value), timeline)
        return shown if shown == str(value) else f"{value} ({shown})"
    text = str(value)
    return repr(text) if not text or any(c.isspace() for c in text) else text
