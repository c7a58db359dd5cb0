"""``applier skip``: the operator's word that one bad event is to be left out; what is left out is stored in the quarantine."""

from typing import Annotated

import typer

from applier.cli.option import DEFAULT_CONFIG, ConfigPath
from applier.cli.place import EventIndex, parse_stream
from applier.model.errors import ConfigError
from applier.model.position import MAX_TS, Offset, Ts


def skip(
    config: ConfigPath = DEFAULT_CONFIG,
    *,
    stream: Annotated[str | None, typer.Option(metavar="TOPIC/PARTITION", help="The stream of the record.")] = None,
    offset: Annotated[int | None, typer.Option(metavar="N", min=0, help="The offset of the record.")] = None,
    event: EventIndex = None,
    ts: Annotated[int | None, typer.Option(metavar="TSO", min=1, max=MAX_TS, help="Instead: all events of this commit timestamp …")] = None,
    table: Annotated[str | None, typer.Option(metavar="SCHEMA.TABLE", help="… and of this table; SCHEMA. for a DDL of a schema.")] = None,
) -> None:
    """Leave out one bad event, by its place or its timestamp."""
    from applier.cli.skip_event import skip_place, skip_time  # noqa: PLC0415 - brings sink and Kafka: --help need not wait for them

    by_place = stream is not None and offset is not None and ts is None and table is None
    by_time = ts is not None and stream is None and offset is None and event is None
    if by_place:
        skip_place(config, parse_stream(stream or ""), Offset(offset or 0), event)
    elif by_time:
        skip_time(config, Ts(ts or 0), table)
    else:
        remedy = "Give --stream and --offset (and --event), or --ts (and --table)"
        raise ConfigError("it is not clear which event is meant", remedy=remedy)
