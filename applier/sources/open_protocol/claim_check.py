"""Claim-check objects: a large row kept in a file, announced in Kafka by a placeholder with its handle key (open_protocol.md 2.9)."""

from binascii import a2b_base64
from typing import Any

from applier.model.errors import ProtocolError
from applier.model.events import Image, RowEvent, RowOperation
from applier.model.position import Place
from applier.sources.open_protocol.document import parse_object
from applier.sources.open_protocol.event import decode_record


def decode_claim_check(content: bytes, announced: RowEvent, place: Place | None = None) -> RowEvent:
    """Return the row that the object holds, which must be the one that the record at ``place`` announced.

    ProtocolError (claim_check) if the content cannot be read or is another row.
    """
    try:
        row = _read_object(content)
        _compare(announced, row)
    except ProtocolError as cause:
        facts = {
            "schema": announced.schema,
            "table": announced.table,
            "commit_ts": announced.commit_ts,
            "claim_check": announced.claim_check,
        }
        message = f"the claim-check object cannot be used: {cause.message}"
        error = ProtocolError.at(place, "claim_check", message, **facts, reason=cause.facts["kind"])
        error.remedy = "Restore the object in the claim-check storage, or load the row from upstream and skip the record"
        raise error from cause
    return row


def _read_object(content: bytes) -> RowEvent:
    members = parse_object(content)
    events = decode_record(_read_base64(members, "key"), _read_base64(members, "value"))
    match events:
        case [RowEvent(claim_check=None, only_handle_key=False) as row]:
            return row
        case _:
            raise _differ("it does not hold exactly one whole row")


def _read_base64(members: dict[str, Any], name: str) -> bytes:
    text = members.get(name)
    if not isinstance(text, str):
        raise ProtocolError.at(None, "field_type", f"it has no {name}")
    try:
        return a2b_base64(text, strict_mode=True)
    except ValueError as cause:
        raise ProtocolError.at(None, "base64", f"its {name} is not base64") from cause


def _compare(announced: RowEvent, row: RowEvent) -> None:
    for name in ("commit_ts", "schema", "table", "partition_id"):
        if getattr(announced, name) != getattr(row, name):
            raise _differ(f"its {name} differs")
    # Insert or update is not compared: a placeholder's p may be empty where the whole row's is not, and the other way round.
    if (announced.operation is RowOperation.DELETE) != (row.operation is RowOperation.DELETE):
        raise _differ("its operation differs")
    if row.operation is RowOperation.DELETE:
        _compare_images(announced.before, row.before)
    else:
        _compare_images(announced.after, row.after)


def _compare_images(announced: Image | None, image: Image | None) -> None:
    """Check that what the placeholder says (handle-key columns) is found in the object."""
    whole = image or {}
    for name, column in (announced or {}).items():
        if whole.get(name) != column:
            raise _differ(f"its column {name} differs")


def _differ(message: str) -> ProtocolError:
    return ProtocolError.at(None, "claim_check", message)
