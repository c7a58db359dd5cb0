"""Events as plain JSON values, for ``applier inspect`` and for tests: the form of tests/data/vectors/README.md."""

from base64 import b64encode
from typing import Any, assert_never

from applier.model.events import AdminEvent, DdlEvent, Event, Image, ResolvedEvent, RowEvent, Value


def event_to_json(event: Event) -> dict[str, Any]:
    """Return the event as dicts, strings, integers (unsigned 64 bit), booleans and None."""
    match event:
        case RowEvent():
            return _row_to_json(event)
        case DdlEvent(commit_ts=ts, schema=schema, table=table, query=query, ddl_type=ddl_type):
            return {"type": "ddl", "commit_ts": ts, "schema": schema, "table": table, "query": query, "ddl_type": ddl_type}
        case ResolvedEvent(ts=ts):
            return {"type": "resolved", "ts": ts}
        case AdminEvent(ts=ts, partition=partition):
            return {"type": "admin", "ts": ts, "partition": partition}
        case _:
            assert_never(event)


def _row_to_json(row: RowEvent) -> dict[str, Any]:
    return {
        "type": "row",
        "commit_ts": row.commit_ts,
        "schema": row.schema,
        "table": row.table,
        "partition_id": row.partition_id,
        "op": row.operation.value,
        "only_handle_key": row.only_handle_key,
        "claim_check": row.claim_check,
        "after": _image_to_json(row.after),
        "before": _image_to_json(row.before),
    }


def _image_to_json(image: Image | None) -> dict[str, Any] | None:
    if image is None:
        return None
    return {
        name: {"mysql_type": column.mysql_type, "flags": column.flags, "value": value_to_json(column.value)}
        for name, column in image.items()
    }


def value_to_json(value: Value) -> dict[str, str] | None:
    """Return a value with its type spelled out; numbers as text, so that no reader rounds them."""
    match value:
        case None:
            return None
        case int():
            return {"int": str(value)}
        case float():
            return {"float": repr(value)}
        case str():
            return {"str": value}
        case bytes():
            return {"bytes_b64": b64encode(value).decode("ascii")}
        case _:
            assert_never(value)
