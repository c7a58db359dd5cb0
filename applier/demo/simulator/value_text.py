"""Types and values as canal-json and simple spell them (canal_json_and_simple.md 2.3, 2.4, 4.2)."""

from applier.demo.simulator.column_type import CHARACTER_CLASSES, TypeClass, UpstreamType
from applier.demo.simulator.json_text import plain_float_text
from applier.demo.simulator.operation import ActionType
from applier.demo.simulator.wire_format import utf8
from applier.model.events import Value

_INTEGER_NAMES = {8: "tinyint", 16: "smallint", 24: "mediumint", 32: "int", 64: "bigint"}
_INTEGER_LENGTHS = {8: (4, 3), 16: (6, 5), 24: (9, 8), 32: (11, 10), 64: (20, 20)}
"""Bits -> display length, and that of the unsigned type."""
_WITH_LENGTH = frozenset({TypeClass.STRING, TypeClass.BINARY, TypeClass.BIT})
_WITH_FRACTION = frozenset({TypeClass.DATETIME, TypeClass.TIMESTAMP, TypeClass.TIME})
_FIXED_LENGTHS = {
    TypeClass.YEAR: 4,
    TypeClass.DATE: 10,
    TypeClass.DATETIME: 19,
    TypeClass.TIMESTAMP: 19,
    TypeClass.TIME: 10,
    TypeClass.FLOAT: 12,
    TypeClass.DOUBLE: 22,
}
_OUTPUT = str.maketrans({"\0": "\\0", "'": "''", "\n": "\\n", "\r": "\\r"})
"""How TiDB prints an element of ENUM or SET."""

DDL_WORDS: dict[ActionType, str] = {
    ActionType.CREATE_TABLE: "CREATE",
    ActionType.CREATE_TABLES: "CREATE",
    ActionType.DROP_TABLE: "ERASE",
    ActionType.ADD_INDEX: "CINDEX",
    ActionType.ADD_FOREIGN_KEY: "CINDEX",
    ActionType.DROP_INDEX: "DINDEX",
    ActionType.DROP_FOREIGN_KEY: "DINDEX",
    ActionType.TRUNCATE_TABLE: "TRUNCATE",
    ActionType.RENAME_TABLE: "RENAME",
    ActionType.CREATE_SCHEMA: "QUERY",
    ActionType.DROP_SCHEMA: "QUERY",
    ActionType.CREATE_VIEW: "QUERY",
    ActionType.DROP_VIEW: "QUERY",
}
"""The coarse word of a DDL; every other one is ALTER."""


def ddl_word(action: ActionType) -> str:
    """Return what both protocols call a DDL."""
    return DDL_WORDS.get(action, "ALTER")


def type_name(kind: UpstreamType) -> str:
    """Return the bare name of a type."""
    if kind.kind is TypeClass.INTEGER:
        return _INTEGER_NAMES[kind.size]
    return kind.sql.split("(")[0].split(" ")[0].lower()


def plain_type(kind: UpstreamType) -> str:
    """Return the type as canal-json has it by default: the name, and whether it is unsigned."""
    return type_name(kind) + _unsigned(kind)


def compatible_type(kind: UpstreamType) -> str:
    """Return the type as SHOW COLUMNS prints it: what ``content-compatible`` sends."""
    return type_name(kind) + _details(kind) + _unsigned(kind)


def _details(kind: UpstreamType) -> str:
    if kind.labels:
        return "(" + ",".join(f"'{label.translate(_OUTPUT)}'" for label in kind.labels) + ")"
    if kind.kind is TypeClass.INTEGER:
        return f"({_INTEGER_LENGTHS[kind.size][kind.unsigned]})"
    if kind.kind is TypeClass.DECIMAL:
        return f"({kind.size},{kind.scale})"
    if kind.kind is TypeClass.YEAR:
        return "(4)"
    return f"({kind.size})" if kind.kind in _WITH_LENGTH or (kind.kind in _WITH_FRACTION and kind.size) else ""


def _unsigned(kind: UpstreamType) -> str:
    return " unsigned" if kind.unsigned and kind.kind is not TypeClass.BIT else ""


def display_length(kind: UpstreamType) -> int:
    """Return the length that TiDB notes for a type; -1: unspecified."""
    if kind.kind is TypeClass.INTEGER:
        return _INTEGER_LENGTHS[kind.size][kind.unsigned]
    if kind.kind in _WITH_FRACTION:
        return _FIXED_LENGTHS[kind.kind] + (kind.size + 1 if kind.size else 0)
    return _FIXED_LENGTHS.get(kind.kind) or kind.size or -1


def charset_of(kind: UpstreamType) -> tuple[str, str]:
    """Return the charset and the collation of a column: binary for all types that are not text."""
    return ("utf8mb4", kind.collation) if kind.kind in CHARACTER_CLASSES else ("binary", "binary")


def is_bytes(kind: UpstreamType) -> bool:
    """Whether the values are bytes."""
    return kind.kind in {TypeClass.BINARY, TypeClass.BLOB}


def raw_bytes(value: Value) -> bytes:
    """Return the bytes of a binary value."""
    return value if isinstance(value, bytes) else utf8(str(value))


def text_of(kind: UpstreamType, value: Value) -> str:
    """Return the text of a value that is neither NULL nor binary: numbers in plain digits, ENUM and SET by their numbers."""
    if isinstance(value, float):
        return plain_float_text(value, single=kind.kind is TypeClass.FLOAT)
    return str(value)
