"""The options that name one event: ``--stream``, ``--offset`` and ``--event``, or ``--table`` beside a timestamp."""

import time
from typing import Annotated, Final, TypeAlias

import typer

from applier.cli.option import ts_text
from applier.model.errors import ConfigError
from applier.model.events import TableName
from applier.model.position import Stream, Ts
from applier.sources.kafka.tso import datetime_of
from applier.telemetry.wording import time_text

StreamName: TypeAlias = Annotated[str | None, typer.Option(metavar="TOPIC/PARTITION", help="Stream of the record.")]
RecordOffset: TypeAlias = Annotated[int | None, typer.Option(metavar="N", min=0, help="Offset of the record.")]
EventIndex: TypeAlias = Annotated[
    int | None, typer.Option(metavar="I", min=0, help="One event of the record, counted from 0. Default: the whole record.")
]

AcceptFuture: TypeAlias = Annotated[
    bool, typer.Option("--accept-future", help="With --ts: allow a timestamp that is later than now. Events that come then are skipped.")
]
AtTs: TypeAlias = Annotated[
    str | None, typer.Option("--ts", metavar="TS", parser=ts_text, help="Commit timestamp, instead of a record; of a binlog, FILE:POS.")
]
OfTable: TypeAlias = Annotated[
    str | None, typer.Option("--table", metavar="SCHEMA.TABLE", help="With --ts: only this table; SCHEMA. for a DDL of a schema.")
]
CLOCK_S: Final = 60.0
"""A machine's clock may be behind upstream's by so much."""


def refuse_future(ts: Ts) -> None:
    """Refuse a timestamp that is later than now: a mistyped digit would skip events of next year. ConfigError."""
    if datetime_of(ts).timestamp() > time.time() + CLOCK_S:
        raise ConfigError(
            "the timestamp is later than now: nothing was committed at it yet",
            remedy="Check it: `applier inspect` shows the timestamp of each event. If you mean a later event, add --accept-future",
            ts=ts,
            time=time_text(ts),
        )


def parse_stream(text: str) -> Stream:
    """Read ``topic/partition``. ConfigError if it is not of that form."""
    try:
        return Stream.parse(text)
    except ValueError as error:
        raise ConfigError(str(error), remedy="For instance: --stream changefeed/0") from None


def parse_table(text: str) -> TableName:
    """Read ``schema.table``, or ``schema.`` for the schema itself. ConfigError without a dot: half a name would match no event."""
    # At the first dot: names of tables contain dots more often than names of schemas.
    schema, dot, table = text.partition(".")
    if not (schema and dot):
        remedy = "Write SCHEMA.TABLE, or SCHEMA. with the dot for a DDL of the schema itself"
        raise ConfigError(f"--table names no schema: {text!r}", remedy=remedy)
    return TableName(schema, table)
