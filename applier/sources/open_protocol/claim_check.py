"""Claim-check objects: a large row kept in a file, announced in Kafka by a placeholder with its handle key (open_protocol.md 2.9).

Where the objects are is not known here: ``ClaimCheckStore`` is the port of what reads them.
"""

from binascii import a2b_base64
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple, Protocol

from applier.model.errors import ProtocolError, SourceError
from applier.model.events import Image, RowEvent, RowOperation
from applier.model.position import Place
from applier.model.remedy import SKIP_RECORD
from applier.sources.open_protocol.document import parse_object
from applier.sources.open_protocol.event import read_row_event
from applier.sources.open_protocol.framing import split_record
from applier.sources.open_protocol.head import ROW, Head, read_head

RESTORE: Final = f"Restore the object in the claim-check storage. Or load the row from upstream, and skip the record: `{SKIP_RECORD}`"


class ClaimCheckStore(Protocol):
    """Reads the objects of one changefeed. Frozen and picklable: it crosses to executors with the decoder."""

    def read(self, names: Sequence[str]) -> Iterator[bytes | SourceError]:
        """Yield the content of each object in the order of ``names``, or why there is none; several are read at once, in bounds.

        ProtocolError: the object is missing or too large. Any other SourceError: the storage failed. ConfigError is raised. Called for
        the objects of some hundred records at most; the caller may close the iterator early.
        """
        ...


class ClaimedRow(NamedTuple):
    """The row that an object holds, and the head and the body of its event as they came."""

    row: RowEvent
    head: Head
    body: bytes


def object_name(location: str) -> str:
    """Return the name of the object at ``location``, the storage being configured. ProtocolError (claim_check) if it has none."""
    # The directory is the producer's, and no path from the wire is followed.
    name = location.replace("\\", "/").rpartition("/")[2]
    if name in {"", ".", ".."} or "\0" in name:
        raise ProtocolError.at(None, "claim_check", "the row's claim check names no object", claim_check=location)
    return name


def read_claim_check(content: bytes, announced: RowEvent, place: Place | None = None) -> ClaimedRow:
    """Return the row that the object holds, which must be the one that the record at ``place`` announced.

    ProtocolError (claim_check) if the content cannot be read or is another row.
    """
    try:
        claimed = _read_object(content)
        _compare(announced, claimed.row)
    except ProtocolError as cause:
        facts = {
            "schema": announced.schema,
            "table": announced.table,
            "commit_ts": announced.commit_ts,
            "claim_check": announced.claim_check,
        }
        message = f"the claim-check object cannot be used: {cause.message}"
        error = ProtocolError.at(place, "claim_check", message, **facts, reason=cause.facts["kind"])
        error.remedy = RESTORE
        raise error from cause
    return claimed


def _read_object(content: bytes) -> ClaimedRow:
    members = parse_object(content)
    match split_record(_read_base64(members, "key"), _read_base64(members, "value")):
        case [(head_json, bytes(body))] if (head := read_head(head_json)).t == ROW and not head.ohk and not head.ccl:
            return ClaimedRow(read_row_event(head, body), head, body)
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
