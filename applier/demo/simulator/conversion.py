"""Changes of a type after which old values are others, and which every server makes alike: fewer digits, ordinals, bytes, text.

What the servers do not make alike stops a replica, so it is in no history; the tests' builder ``conversions`` has those cases.
"""

from collections.abc import Callable
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Final

from applier.demo.simulator import column_type as of
from applier.demo.simulator.column_type import TypeClass, UpstreamType
from applier.demo.simulator.session_zone import in_session
from applier.model.events import Value

_DIGITS: Final = Context(prec=70, rounding=ROUND_HALF_UP)
"""A DECIMAL has 65 digits at most, and each server rounds half away from zero."""

_Convert = Callable[[Value, UpstreamType, UpstreamType], Value]


def converting_types(kind: UpstreamType) -> tuple[UpstreamType, ...]:  # noqa: PLR0911 - one case per kind of type
    """Return types that a column of ``kind`` may get."""
    match kind.kind:
        case TypeClass.DECIMAL if kind.scale > 1:
            return (of.decimal(kind.size, 1), of.integer("BIGINT"), of.varchar(60)) if kind.size < 18 else ()
        case TypeClass.DECIMAL if kind.size < 18:
            return (of.integer("BIGINT"),)
        case TypeClass.ENUM | TypeClass.BIT:
            return (of.integer("INT"),)
        case TypeClass.SET:
            return (of.varchar(60),)
        case TypeClass.DATE:
            return (of.datetime(), of.varchar(30))
        case TypeClass.DATETIME:
            return (of.varchar(30),)
        case TypeClass.TIMESTAMP:
            return (of.datetime(kind.size), of.varchar(30))
        case TypeClass.STRING if kind.sql == "VARCHAR(30)":
            return (of.varbinary(120),)
        case _:
            return ()


def converted(value: Value, old: UpstreamType, new: UpstreamType) -> Value:
    """Return what a value becomes; one that is the same in both types, or whose text it is, stays. Labels may come for ENUM and SET."""
    if value is None:
        return None
    rule = _RULES.get((old.kind, new.kind))
    return value if rule is None else rule(value, old, new)


def _rounded(value: Value, _old: UpstreamType, new: UpstreamType) -> str:
    number = Decimal(str(value)).quantize(Decimal(1).scaleb(-new.scale), context=_DIGITS)
    return f"{number or abs(number):f}"


def _whole(value: Value, old: UpstreamType, new: UpstreamType) -> int:
    return int(_rounded(value, old, new))


def _ordinal(value: Value, old: UpstreamType, _new: UpstreamType) -> Value:
    if isinstance(value, str):
        return old.labels.index(value) + 1 if value else 0
    return value


def _label_list(value: Value, old: UpstreamType, _new: UpstreamType) -> Value:
    if isinstance(value, int):
        return ",".join(label for place, label in enumerate(old.labels) if value >> place & 1)
    return value


def _encoded(value: Value, _old: UpstreamType, _new: UpstreamType) -> bytes:
    return str(value).encode()


def _midnight(value: Value, _old: UpstreamType, _new: UpstreamType) -> str:
    return str(value) + " 00:00:00"


def _in_session(value: Value, _old: UpstreamType, _new: UpstreamType) -> str:
    return in_session(str(value))


_RULES: Final[dict[tuple[TypeClass, TypeClass], _Convert]] = {
    (TypeClass.DECIMAL, TypeClass.DECIMAL): _rounded,
    (TypeClass.INTEGER, TypeClass.DECIMAL): _rounded,
    (TypeClass.DECIMAL, TypeClass.INTEGER): _whole,
    (TypeClass.ENUM, TypeClass.INTEGER): _ordinal,
    (TypeClass.SET, TypeClass.STRING): _label_list,
    (TypeClass.STRING, TypeClass.BINARY): _encoded,
    (TypeClass.DATE, TypeClass.DATETIME): _midnight,
    (TypeClass.TIMESTAMP, TypeClass.DATETIME): _in_session,
    (TypeClass.TIMESTAMP, TypeClass.STRING): _in_session,
    (TypeClass.INTEGER, TypeClass.STRING): lambda value, *_: str(value),
}
