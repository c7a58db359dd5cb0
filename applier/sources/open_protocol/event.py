"""Whole events: one record in, every event of it out, each value decoded. For inspection, tests, DDLs and resolved timestamps.

The applier's rows do not come this way: see ``placer``, which agrees with this module on every record.
"""

from applier.model.errors import ProtocolError
from applier.model.events import AdminEvent, DdlEvent, Event, ResolvedEvent, RowEvent
from applier.model.position import Place, Ts
from applier.sources.open_protocol.body import read_admin, read_ddl, read_row
from applier.sources.open_protocol.framing import split_record
from applier.sources.open_protocol.head import ADMIN, DDL, RESOLVED, ROW, Head, read_head


def decode_record(key: bytes | None, value: bytes | None, place: Place | None = None) -> list[Event]:
    """Return the events of one record in order; [] for an empty batch.

    ProtocolError for anything that is not the Open Protocol, version 1: ``facts`` hold its kind, the topic, partition and offset of
    ``place``, and where known the index of the event in its record, its table, timestamp and column. No other exception.
    """
    index = None
    head = None
    events: list[Event] = []
    try:
        for index, (head_json, body) in enumerate(split_record(key, value)):  # noqa: B007 - the index is used where reading fails
            head = None
            head = read_head(head_json)
            events.append(read_row_event(head, body) if head.t == ROW else read_plain(head, body))
    except ProtocolError as error:
        raise locate(error, place, index, head) from error
    return events


def read_plain(head: Head, body: bytes | None) -> DdlEvent | ResolvedEvent | AdminEvent:
    """Read an event that is not a row."""
    if head.t == RESOLVED:
        if body:
            raise ProtocolError.at(None, "framing", "a resolved event has a body")
        return ResolvedEvent(Ts(head.ts))
    if head.t == ADMIN:
        return AdminEvent(Ts(head.ts), read_admin(require_body(body)))
    query, ddl_type = read_ddl(require_body(body))
    return DdlEvent(commit_ts=Ts(head.ts), schema=head.scm, table=head.tbl, query=query, ddl_type=ddl_type)


def require_body(body: bytes | None) -> bytes:
    """Return the body of an event that needs one. ProtocolError (count_mismatch) if the record has no value."""
    if body is None:
        raise ProtocolError.at(None, "count_mismatch", "the record has event keys but no value")
    return body


def locate(error: ProtocolError, place: Place | None, index: int | None, head: Head | None) -> ProtocolError:
    """Return the error with the facts of the record and the event that it arose in."""
    facts = dict(error.facts)
    kind = facts.pop("kind")
    where: dict[str, object] = {} if index is None else {"event": index}
    if head is not None and head.t in (ROW, DDL):
        where |= {"schema": head.scm, "table": head.tbl, "commit_ts": head.ts}
    located = ProtocolError.at(place, kind, error.message, **(where | facts))
    located.remedy = error.remedy
    return located


def read_row_event(head: Head, body: bytes | None) -> RowEvent:
    """Read a row event whole. ProtocolError, without a place, as ``read_row``."""
    images = read_row(require_body(body))
    return RowEvent(
        commit_ts=Ts(head.ts),
        schema=head.scm,
        table=head.tbl,
        partition_id=head.ptn,
        operation=images.operation,
        only_handle_key=head.ohk,
        claim_check=head.ccl or None,
        after=images.after,
        before=images.before,
    )
