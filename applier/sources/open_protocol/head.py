"""Event keys: which event, when, of which table (open_protocol.md 2.2)."""

from typing import Any, TypeVar

import msgspec

from applier.model.errors import ProtocolError
from applier.sources.open_protocol.document import is_valid_text, parse_object

MAX_UINT64 = 2**64 - 1
ROW, DDL, RESOLVED, ADMIN = 1, 2, 3, 4

_Member = TypeVar("_Member")


class Head(msgspec.Struct, gc=False, frozen=True):
    """An event key. ``ohk`` is the effective only-handle-key flag (the last one counts where it is repeated)."""

    ts: int
    t: int
    scm: str = ""
    tbl: str = ""
    ptn: int | None = None
    ohk: bool = False
    ccl: str | None = None


_decode = msgspec.json.Decoder(Head).decode


def read_head(data: bytes) -> Head:
    """Read an event key. ProtocolError (json, event_type, field_type)."""
    try:
        head = _decode(data)
    except (ValueError, RecursionError):  # ValueError: msgspec's errors and UnicodeDecodeError
        return _read_unusual(data)
    if head.ts >> 64 or not ROW <= head.t <= ADMIN:
        return _read_unusual(data)
    return head


def _read_unusual(data: bytes) -> Head:
    """Read a key that the typed decoder does not take: null members are absent ones, as for Go; anything else says what is wrong."""
    members = {name: member for name, member in parse_object(data).items() if member is not None}
    event_type = members.get("t")
    if type(event_type) is not int or not ROW <= event_type <= ADMIN:
        raise ProtocolError.at(None, "event_type", "the event has an unknown type", event_type=event_type)
    # The founding design's admin event has no timestamp; every other event does.
    ts = _member(members, "ts", int, 0 if event_type == ADMIN else None)
    if not 0 <= ts <= MAX_UINT64:
        raise _refuse("ts")
    for name in ("scm", "tbl"):
        if not is_valid_text(_member(members, name, str, "")):
            raise _refuse(name)
    return Head(
        ts=ts,
        t=event_type,
        scm=_member(members, "scm", str, ""),
        tbl=_member(members, "tbl", str, ""),
        ptn=_member(members, "ptn", int, 0) if "ptn" in members else None,
        ohk=_member(members, "ohk", bool, default=False),
        ccl=_member(members, "ccl", str, "") or None,
    )


def _member(members: dict[str, Any], name: str, kind: type[_Member], default: _Member | None) -> _Member:
    member = members.get(name, default)
    if type(member) is not kind:
        raise _refuse(name)
    return member


def _refuse(name: str) -> ProtocolError:
    return ProtocolError.at(None, "field_type", "a member of the event key has the wrong type or range", member=name)
