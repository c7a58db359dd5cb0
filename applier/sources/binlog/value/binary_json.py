"""MySQL's binary JSON as the text that the server itself shows.

Source: MySQL's ``json_binary.h``. A value is a type and its content. Objects and arrays are tables of entries with offsets from their own
beginning: small ones have offsets of 2 bytes, large ones of 4. MariaDB's JSON is text.
"""

import json
from base64 import b64encode
from collections.abc import Sequence
from struct import Struct
from struct import error as StructError  # noqa: N812 - a class
from typing import Final

from applier.sources.binlog.value.number import decimals
from applier.sources.binlog.value.temporal import dates, times_of_day

MAX_DEPTH: Final = 100
"""MySQL's own limit."""

_SMALL_OBJECT, _LARGE_OBJECT, _SMALL_ARRAY, _LARGE_ARRAY, _LITERAL = range(5)
_STRING, _OPAQUE = 12, 15
_LITERALS: Final = {0: "null", 1: "true", 2: "false"}
_NUMBERS: Final = {kind: Struct(f"<{code}") for kind, code in enumerate("hHiIqQd", 5)}
_DOUBLE: Final = 11
_INLINED: Final = {2: frozenset({_LITERAL, 5, 6}), 4: frozenset({_LITERAL, 5, 6, 7, 8})}
"""Bytes of an offset -> types whose value is written instead."""
_DECIMAL, _DATE, _TIME, _TIMESTAMP, _DATETIME = 246, 10, 11, 7, 12


def read_json(values: Sequence[bytes]) -> Sequence[str]:
    """Read JSON documents. ValueError: one of them is invalid."""
    try:
        return [_value(value[0], value, 1, 0) if value else "null" for value in values]
    except (IndexError, KeyError, StructError) as cause:
        raise ValueError("a JSON value is invalid") from cause


def _value(kind: int, data: bytes, at: int, depth: int) -> str:
    """Write the value of a type whose content begins at ``at``."""
    if kind <= _LARGE_ARRAY:
        if depth > MAX_DEPTH:
            raise ValueError("a JSON value is nested too deep")
        return _container(kind, data, at, depth + 1)
    if kind == _LITERAL:
        return _LITERALS[data[at]]
    if kind == _STRING:
        begin, end = _counted(data, at)
        return _quoted(data[begin:end].decode("utf-8", "surrogateescape"))
    if kind == _OPAQUE:
        begin, end = _counted(data, at + 1)
        return _opaque(data[at], data[begin:end])
    (number,) = _NUMBERS[kind].unpack_from(data, at)
    return _double(number) if kind == _DOUBLE else str(number)


def _container(kind: int, data: bytes, first: int, depth: int) -> str:
    size = 4 if kind in {_LARGE_OBJECT, _LARGE_ARRAY} else 2
    is_object = kind in {_SMALL_OBJECT, _LARGE_OBJECT}
    count = _number(data, first, size)
    at = first + 2 * size
    if at + count * ((size + 2 if is_object else 0) + 1 + size) > len(data):
        raise ValueError("a JSON value has more entries than bytes")
    keys = []
    for _ in range(count if is_object else 0):
        begin = first + _number(data, at, size)
        keys.append(_quoted(_part(data, begin, _number(data, at + size, 2)).decode("utf-8", "surrogateescape")))
        at += size + 2
    values = []
    for _ in range(count):
        entry = data[at]
        # An offset points beyond the table of entries, so no value contains itself.
        place = at + 1 if entry in _INLINED[size] else first + max(_number(data, at + 1, size), 1)
        values.append(_value(entry, data, place, depth))
        at += 1 + size
    if is_object:
        return "{" + ", ".join(f"{key}: {value}" for key, value in zip(keys, values, strict=True)) + "}"
    return "[" + ", ".join(values) + "]"


def _number(data: bytes, at: int, size: int) -> int:
    return int.from_bytes(_part(data, at, size), "little")


def _part(data: bytes, at: int, size: int) -> bytes:
    found = data[at : at + size]
    if len(found) != size:
        raise IndexError
    return found


def _counted(data: bytes, at: int) -> tuple[int, int]:
    """Return where a value begins and ends whose length is written before it, seven bits a byte, the lowest first."""
    length = 0
    for number in range(5):
        byte = data[at + number]
        length |= (byte & 0x7F) << 7 * number
        if byte < 0x80:
            begin = at + number + 1
            if begin + length > len(data):
                break
            return begin, begin + length
    raise ValueError("a JSON value is too short")


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _double(number: float) -> str:
    digits, exponent, power = repr(number).partition("e")
    if not exponent:
        return digits
    return f"{digits}e{int(power)}"


def _opaque(kind: int, data: bytes) -> str:
    """Write a value of an SQL type that JSON does not have: a DECIMAL as a number, others as strings."""
    if kind == _DECIMAL:
        return decimals(data[0], data[1])([data[2:]])[0]
    if kind in {_DATE, _TIME, _TIMESTAMP, _DATETIME}:
        return f'"{_temporal(kind, int.from_bytes(_part(data, 0, 8), "little", signed=True))}"'
    return f'"base64:type{kind}:{b64encode(data).decode()}"'


def _temporal(kind: int, packed: int) -> str:
    sign, packed = ("-", -packed) if packed < 0 else ("", packed)
    whole, fraction = packed >> 24, packed & 0xFFFFFF
    if kind == _TIME:
        return f"{sign}{times_of_day[whole & 0x3FFFFF]}.{fraction:06d}"
    if kind == _DATE:
        return dates[whole >> 17]
    return f"{dates[whole >> 17]} {times_of_day[whole & 0x1FFFF]}.{fraction:06d}"
