"""The error tree. Each error carries facts and a remedy, survives pickling, and maps to one exit code.

An error's class says what may be done about it: try again, reload the state from the checkpoint, restart Spark, or stop. Raise the class
whose docstring describes the situation; the message says what failed, the remedy what an operator does.

A remedy has an identifier, and its wording is free. Its commands name the position of their error, so that an operator can run them as they
stand. A remedy writes ``…`` for the value of an option. What the facts of the error know is filled in when the remedy is read.
"""

import re
import shlex
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final, Literal, Self

from applier.model.failure import FailureKind, RecordFault
from applier.model.position import RecordPosition, Timeline

INSPECT_RECORD: Final = "applier inspect --topic … --partition … --from … --limit 1"
SKIP_RECORD: Final = "applier skip --stream … --offset …"

_OPEN: Final = re.compile(r"--([a-z-]+) …")
_FACT_OF: Final = {
    "ts": "commit_ts",
    "until-ts": "commit_ts",
    "table": "table",
    "topic": "topic",
    "partition": "partition",
    "offset": "offset",
    "from": "offset",
    "gtid": "gtid",
    "position": "position",
}
_OF_LOG: Final = {"--topic … --partition … --from …": "--from …", "--stream … --offset …": "--position …"}
"""What names a record of a topic, and what names the same of a binlog."""


class Remedy(str):
    """The text of a remedy, and its identifier: ``id`` is stable, in kebab case, and begins with its area (``kafka.grant-read``).

    A remedy is made once in the code, with a literal identifier: ``tests/remedies/register.toml`` says which test follows it.
    """

    __slots__ = ("id",)

    id: str

    def __new__(cls, identifier: str, text: str) -> Self:
        """Make a remedy; both arguments are literals, except what the text fills in."""
        made = super().__new__(cls, text)
        made.id = identifier
        return made

    def __getnewargs__(self) -> tuple[str, str]:  # type: ignore[override] # a str has one argument
        """Pickle both: errors cross from executors to the driver."""
        return self.id, str(self)

    def filled_in(self, facts: Mapping[str, Any]) -> "Remedy":
        """Return this remedy with the options of its commands filled in from the facts of its error."""
        if "…" not in self:
            return self
        text = str(self)
        if "position" in facts:  # of a binlog
            for words, of_log in _OF_LOG.items():
                text = text.replace(words, of_log)
        return Remedy(self.id, _OPEN.sub(lambda found: _option(found[0], found[1], facts), text))

    def then(self, other: "Remedy") -> "Remedy":
        """Return this remedy and a second one, with both identifiers: ``a+b``."""
        return Remedy(f"{self.id}+{other.id}", f"{self}{'' if self.endswith(('.', '?')) else '.'} {other}") if self else other


NO_REMEDY: Final = Remedy("", "")
"""Of an error that no one can mend, or whose message says what to do."""


def _option(whole: str, option: str, facts: Mapping[str, Any]) -> str:
    value = _value(option, facts)
    return whole if value is None else f"--{option} {shlex.quote(str(value))}"


def _value(option: str, facts: Mapping[str, Any]) -> Any:
    if option == "stream":
        return f"{facts['topic']}/{facts['partition']}" if facts.keys() >= {"topic", "partition"} else facts.get("stream")
    if option == "from" and "position" in facts:
        return facts["position"]
    if option == "ts" and "commit_position" in facts:
        return str(facts["commit_position"]).partition(" ")[0]  # its time stands after it
    value = facts.get(_FACT_OF.get(option, ""))
    # A schema is named with a dot after it, and what has no name by a dot alone: half a name of a table would match nothing.
    return f"{value}." if option == "table" and value is not None and "." not in str(value) else value


class ApplierError(Exception):
    """Anything that stops the applier. ``kind`` decides what the engine does (``REACTIONS``).

    ``facts`` name the position (topic, partition, offset, table, commit_ts, …), and the kind too: they are for people.
    """

    exit_code: int = 1
    timeline: Timeline | None = None
    """What the timestamps among the facts mean, as ``errors_spelled_by`` says. None: only their digits are known."""

    def __init__(self, message: str, *, remedy: Remedy = NO_REMEDY, kind: FailureKind | None = None, **facts: Any) -> None:
        super().__init__(message)
        self.message = message
        self.kind = kind
        self.facts = facts if kind is None else {"kind": kind, **facts}
        self._remedy = remedy

    @property
    def remedy(self) -> Remedy:
        """What to do. Its commands name the position of this error, so that they can be run as they stand."""
        return self._remedy.filled_in(self.facts)

    @remedy.setter
    def remedy(self, remedy: Remedy) -> None:
        self._remedy = remedy

    def remedy_with(self, facts: Mapping[str, Any]) -> Remedy:
        """Return the remedy with its own facts, and the facts that are known where the error is shown."""
        return self._remedy.filled_in({**self.facts, **facts})

    def __reduce__(self) -> tuple[Callable[..., "ApplierError"], tuple[Any, ...]]:
        """Pickle with remedy and facts: errors cross from executors to the driver."""
        # BaseException would pickle its ``args`` only: remedy and facts would be lost on the way to the driver.
        return _rebuild, (type(self), self.message, self._remedy, self.kind, self.facts)

    def __str__(self) -> str:
        """Give the message, the facts in brackets, and the remedy."""
        facts = ", ".join(f"{name}={value}" for name, value in self.facts.items())
        return self.message + (f" [{facts}]" if facts else "") + (f". {self.remedy}" if self.remedy else "")


def _rebuild(
    made: Callable[..., ApplierError], message: str, remedy: Remedy, kind: FailureKind | RecordFault | None, facts: dict[str, Any]
) -> ApplierError:
    others = {name: value for name, value in facts.items() if name != "kind"}
    error = made(message, remedy=remedy, **others) if kind is None else made(message, remedy=remedy, kind=kind, **others)
    error.facts = facts
    return error


@contextmanager
def errors_spelled_by(timeline: Timeline) -> Iterator[None]:
    """Have the positions in errors of the block shown as ``timeline`` spells them. An inner block, which knows more, goes first."""
    try:
        yield
    except ApplierError as error:
        error.timeline = error.timeline or timeline
        raise


class InvariantViolation(ApplierError):
    """The program contradicts itself: a defect of ours."""

    def __init__(self, message: str, *, remedy: Remedy = NO_REMEDY, **facts: Any) -> None:
        super().__init__(
            message,
            remedy=remedy or Remedy("record.report-defect", "This is a defect of applier: please report it with these lines and the log"),
            **facts,
        )


class ConfigError(ApplierError):
    """The command line or the configuration is wrong."""

    exit_code = 2


class SourceError(ApplierError):
    """Kafka failed, or what was read from it is wrong."""

    exit_code = 3


_SKIP_OR_QUARANTINE = (
    f"Look at the record: `{INSPECT_RECORD}`. If the replica can do without it, skip it: `{SKIP_RECORD}`. "
    'source.on_unreadable = "quarantine" quarantines all such records'
)
_UNREADABLE = Remedy(
    "record.skip-or-quarantine-record", f"{_SKIP_OR_QUARANTINE}. If only the changefeed writes to the topic, report a defect"
)
_AGAIN = "Use a new topic, and create the replica again from a dump"
_FOREIGN_WRITERS = f"If others write to the topic too, skip the record: `{SKIP_RECORD}`. Such records are not quarantined"


def source_protocol(name: str) -> Remedy:
    """Return the remedy for records of a protocol that is read, but is not the configured one."""
    text = f'The changefeed writes protocol={name}: set protocol = "{name}" under [source]. {_FOREIGN_WRITERS}'
    return Remedy("record.set-source-protocol", text)


def readable_protocol(lacks: str) -> Remedy:
    """Return the remedy for records of a protocol that cannot be applied. ``lacks``: why."""
    text = (
        f"{lacks}. Set protocol=open-protocol in the changefeed's sink URI (or simple, or canal-json with enable-tidb-extension=true). "
        f"{_AGAIN}. {_FOREIGN_WRITERS}"
    )
    return Remedy("record.use-open-protocol", text)


NULL_VALUE = Remedy(
    "rows.compare-not-null",
    "Compare the column with upstream's. If it is NOT NULL there too: in canal-json, TiCDC's new architecture up to v8.5.4 writes the text "
    "'null' as NULL (pingcap/ticdc issue 3958)",
)
"""Where a column of the sink that is NOT NULL refuses a NULL."""
TIDB_EXTENSION = Remedy(
    "record.enable-tidb-extension",
    "Set enable-tidb-extension=true in the changefeed's sink URI: without it there is no commit timestamp and no watermark. "
    f"{_AGAIN}. {_FOREIGN_WRITERS}",
)
_NO_PROTOCOL = Remedy(
    "record.check-topic-is-changefeed",
    f"{_SKIP_OR_QUARANTINE}. If no record of the topic can be read, it is not a changefeed's: source.topics or "
    "source.bootstrap_servers names another one, or the changefeed writes another protocol than source.protocol says",
)
_UNREADABLE_BY_KIND = {"version": _NO_PROTOCOL}


class ProtocolError(SourceError):
    """A record that is not of the protocol that is read. ``fault`` says why; no kind of failure: another attempt reads the same."""

    def __init__(self, message: str, *, remedy: Remedy = NO_REMEDY, kind: RecordFault | Literal[""] = "", **facts: Any) -> None:
        super().__init__(message, remedy=remedy or _UNREADABLE_BY_KIND.get(kind, _UNREADABLE), **facts)
        self.fault: RecordFault | None = kind or None
        if kind:
            self.facts = {"kind": kind, **facts}

    def __reduce__(self) -> tuple[Callable[..., ApplierError], tuple[Any, ...]]:
        """Pickle with the fault."""
        return _rebuild, (type(self), self.message, self._remedy, self.fault, self.facts)

    @classmethod
    def at(cls, position: RecordPosition | None, kind: RecordFault, message: str, **facts: Any) -> "ProtocolError":
        """Make the error of ``kind`` for the record at ``position``."""
        where: dict[str, Any] = {"kind": kind}
        if position is not None:
            where |= position.facts
        return cls(message, **(where | facts))


class RangeChanged(SourceError):
    """A cached range was read again and differs from its listener's report: state is reloaded from the checkpoint."""


class JobAborted(ApplierError):
    """Spark aborted a job (it lost executors too often). Only the sink knows what the job wrote: state is reloaded from the checkpoint."""


class IncompleteInput(JobAborted):
    """The input of a task ended before the marker that counts it. No part of it may become durable.

    Spark ends the input of a Python worker early, without an error, when an executor dies or a shuffle file is cut: 39,914 of 60,000
    rows were committed before each input was counted.
    """


class DamagedData(JobAborted):
    """What a task or the driver got is not what was sent: a byte has changed on a disk or on the way. No part of it may become durable."""


class SparkSessionLost(ApplierError):
    """Spark's JVM or context ended. Only the sink knows what was written: Spark is started again, and state is reloaded."""


class SparkRestartedTooOften(ApplierError):
    """Spark has ended so often in a short time that another start would not help."""


class SinkError(ApplierError):
    """The database failed or refused."""

    exit_code = 4


class RetryableSinkError(SinkError):
    """The transaction was rolled back, and a retry may succeed (deadlock, lock wait, lost connection)."""


class FatalSinkError(SinkError):
    """A retry would fail again."""


class SinkFull(SinkError):
    """The database has no space left; what failed was rolled back. Only a later retry can succeed, when an operator has freed space."""


class RowRefused(FatalSinkError):
    """The sink refuses rows because of their values; the same statement without them may succeed."""


class BulkRefused(FatalSinkError):
    """A bulk load was refused, or has not written exactly its rows; it was rolled back. The same rows by REPLACE may succeed.

    If they do not, REPLACE says what is wrong with which row: bulk loads turn errors into warnings.
    """


class BulkUnavailable(BulkRefused):
    """The server does not take bulk loads: in this run, none is tried again."""


class UnknownOutcome(SinkError):
    """The connection was lost after COMMIT was sent: the transaction may have committed or not."""


_OWNED = Remedy(
    "record.take-over-replica",
    "`applier status` names the run that owns the replica. Let it run, or stop it, or take over from it: "
    "`applier run --take-over`, or `applier catchup --take-over`",
)


class Fenced(ApplierError):
    """Another run owns the replica."""

    exit_code = 5

    def __init__(self, message: str, *, remedy: Remedy = NO_REMEDY, **facts: Any) -> None:
        super().__init__(message, remedy=remedy or _OWNED, **facts)


class NeedsOperator(ApplierError):
    """Only an operator can decide what to do; the remedy names the choices."""

    exit_code = 6


_CHANGED: Final = Remedy(
    "copy.copy-again-without-ddl",
    "Run no DDL on the tables that are copied until the copy has ended, and begin it again: `applier copy --again`",
)


class DefinitionChanged(NeedsOperator):
    """A DDL of upstream has changed a table while its rows were copied: the rows that are there have the definition of before."""

    def __init__(self, message: str, *, remedy: Remedy = NO_REMEDY, **facts: Any) -> None:
        super().__init__(message, remedy=remedy or _CHANGED, **facts)
