"""The options that name one event: ``--stream``, ``--offset`` and ``--event``, or ``--table`` beside a timestamp."""

from typing import Annotated, TypeAlias

import typer

from applier.model.errors import ConfigError
from applier.model.events import TableName
from applier.model.position import Stream

StreamName: TypeAlias = Annotated[str, typer.Option(metavar="TOPIC/PARTITION", help="The stream of the record.")]
RecordOffset: TypeAlias = Annotated[int, typer.Option(metavar="N", min=0, help="The offset of the record.")]
EventIndex: TypeAlias = Annotated[
    int | None, typer.Option(metavar="I", min=0, help="One event of the record, counted from 0; else all of it.")
]


def parse_stream(text: str) -> Stream:
    """Read ``topic/partition``. ConfigError if it is not of that form."""
    try:
        return Stream.parse(text)
    except ValueError as error:
        raise ConfigError(str(error), remedy="For instance: --stream changefeed/0") from None


def parse_table(text: str) -> TableName:
    """Read ``schema.table``, or ``schema.`` for the schema itself. ConfigError without a dot: a word on half a name would never be met."""
    schema, dot, table = text.partition(".")
    if not (schema and dot):
        remedy = "Write SCHEMA.TABLE, or SCHEMA. with the dot for a DDL of the schema itself"
        raise ConfigError(f"--table does not say which schema the table is in: {text!r}", remedy=remedy)
    return TableName(schema, table)
