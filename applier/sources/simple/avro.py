"""Reads the Avro encoding: one fixed schema of twelve records, no registry, no schema id (canal_json_and_simple.md 4.4).

Written out here and not read by a library: the schema never changes, and what ``fastavro`` raises for damaged bytes is not one family of
errors.

A number is a zigzag varint of at most ten bytes, a text its length and UTF-8, a map or an array blocks of a count and as many entries, the
last with the count 0. Nothing is reserved by what a count or a length claims: each entry takes bytes of its own.
"""

from collections.abc import Callable
from struct import Struct, error
from typing import Any, Final, NamedTuple, NoReturn, TypeVar

from applier.model.errors import ProtocolError
from applier.sources.simple.table_version import WireColumnSchema, WireIndex, WireTable, WireType

MESSAGE: Final = b"\x16"
"""How each message begins: the twelfth record of the schema."""
KINDS: Final = ("WATERMARK", "BOOTSTRAP", "DDL", "DML")
DDL_TYPES: Final = ("CREATE", "ALTER", "ERASE", "RENAME", "TRUNCATE", "CINDEX", "DINDEX", "QUERY")
ROW_TYPES: Final = ("INSERT", "UPDATE", "DELETE")

_float32, _float64 = Struct("<f"), Struct("<d")
MAX_UINT64: Final = 2**64 - 1
_MOST_SHIFT: Final = 63
_LEAST_NORMAL: Final = 1.2e-38

T = TypeVar("T")


class AvroMessage(NamedTuple):
    """A message; ``new`` and ``old``: column -> value, with what a value says of its type already used.

    ``zones``: the zones that its TIMESTAMP values name.
    """

    kind: str
    version: int
    commit_ts: int = 0
    built_ms: int = 0
    database: str = ""
    table: str = ""
    table_id: int = 0
    schema_version: int = 0
    sql: str = ""
    new: dict[str, Any] | None = None
    old: dict[str, Any] | None = None
    is_reduced: bool = False
    claim_check: str | None = None
    is_corrupted: bool = False
    schema: WireTable | None = None
    schema_before: WireTable | None = None
    zones: frozenset[str] = frozenset()


def read_avro(data: bytes) -> AvroMessage:
    """Read a plain message. ProtocolError (avro)."""
    reader = _Reader(data)
    try:
        message = reader.message()
    except (IndexError, error, UnicodeDecodeError) as cause:
        raise _refuse("the message is cut off, or a name or a statement is not text") from cause
    if reader.at != len(data):
        raise _refuse("the message is followed by something else")
    return message


def read_float32(data: bytes, at: int) -> float:
    """Return the FLOAT that begins here, in double precision. struct.error: the bytes end."""
    number: float = _float32.unpack_from(data, at)[0]
    return number


def nearest_float32(number: float) -> float:
    """Return the number with the fewest digits that is the same as a FLOAT: what JSON has for it."""
    # Of numbers near zero, fewer digits may do.
    for digits in range(6 if abs(number) > _LEAST_NORMAL else 1, 9):
        short = float(f"{number:.{digits}g}")
        try:
            if _float32.unpack(_float32.pack(short))[0] == number:
                return short
        except OverflowError:  # rounded up beyond the greatest
            continue
    return float(f"{number:.9g}")


def _refuse(message: str) -> ProtocolError:
    return ProtocolError.at(None, "avro", message)


def _refuse_union() -> NoReturn:
    raise _refuse("the message has a type or a member that the simple protocol does not have")


class _Reader:
    """Reads one message from its beginning; IndexError, struct.error and UnicodeDecodeError where the bytes end or are no text."""

    __slots__ = ("_data", "_zones", "at")

    def __init__(self, data: bytes) -> None:
        self._data, self.at = data, 0
        self._zones: set[str] = set()

    # --- records ---------------------------------------------------------------------------------------------------

    def message(self) -> AvroMessage:
        """Read the union, the enum and the payload."""
        if self._data[:1] != MESSAGE:
            _refuse_union()
        self.at = 1
        kind = self._word(KINDS)
        if self._word(KINDS) != kind:
            _refuse_union()
        match kind:
            case "WATERMARK":
                version, commit_ts, built_ms = self._long(), self._unsigned(), self._long()
                return AvroMessage(kind, version, commit_ts, built_ms)
            case "BOOTSTRAP":
                version, built_ms = self._long(), self._long()
                return AvroMessage(kind, version, built_ms=built_ms, schema=self._table())
            case "DDL":
                return self._ddl()
            case _:
                return self._row()

    def _ddl(self) -> AvroMessage:
        version, _, sql = self._long(), self._word(DDL_TYPES), self._text()
        commit_ts, built_ms = self._unsigned(), self._long()
        after, before = self._optional(self._table), self._optional(self._table)
        return AvroMessage("DDL", version, commit_ts, built_ms, sql=sql, schema=after, schema_before=before)

    def _row(self) -> AvroMessage:
        version, database, table, table_id = self._long(), self._text(), self._text(), self._long()
        kind, commit_ts, built_ms, schema_version = self._word(ROW_TYPES), self._unsigned(), self._long(), self._unsigned()
        claim_check, is_reduced = self._optional(self._text), self._optional(self._flag)
        is_corrupted = self._optional(self._checksum)
        new, old = self._optional(self._values), self._optional(self._values)
        return AvroMessage(
            kind=kind,
            version=version,
            commit_ts=commit_ts,
            built_ms=built_ms,
            database=database,
            table=table,
            table_id=table_id,
            schema_version=schema_version,
            new=new or None,
            old=old or None,
            is_reduced=bool(is_reduced),
            claim_check=claim_check,
            is_corrupted=bool(is_corrupted),
            zones=frozenset(self._zones),
        )

    def _checksum(self) -> bool:
        """Read the checksum; return whether TiCDC found the row to be corrupted."""
        self._long()
        is_corrupted = self._flag()
        self._long()
        self._long()
        return is_corrupted

    def _table(self) -> WireTable:
        schema, table, table_id, version = self._text(), self._text(), self._long(), self._unsigned()
        return WireTable(schema, table, table_id, version, self._array(self._column), self._array(self._index))

    def _column(self) -> WireColumnSchema:
        name, mysql_type = self._text(), self._text()
        self._text()  # charset
        self._text()  # collate
        self._long()  # length
        self._optional(self._long)  # decimal
        self._optional(self._foreign_texts)  # elements
        is_unsigned = self._optional(self._flag)
        self._optional(self._flag)  # zerofill
        is_nullable = self._flag()
        self._optional(self._foreign_text)  # default
        return WireColumnSchema(name, WireType(mysql_type, is_unsigned), is_nullable)

    def _index(self) -> WireIndex:
        name, is_unique, is_primary, is_nullable = self._text(), self._flag(), self._flag(), self._flag()
        return WireIndex(name, is_unique, is_primary, is_nullable, self._texts())

    def _texts(self) -> list[str]:
        return self._array(self._text)

    def _foreign_texts(self) -> list[str]:
        return self._array(self._foreign_text)

    # --- the images of a row: nearly all of the time ----------------------------------------------------------------

    def _values(self) -> dict[str, Any]:
        values: dict[str, Any] = {}
        data = self._data
        while count := self._count():
            for _ in range(count):
                # Written out: a name and its kind take one byte and a slice, and a call for each would be a third of the cost of a row.
                at = self.at
                size = data[at]
                if size < 128 and not size & 1:
                    end = at + 1 + (size >> 1)
                    name = data[at + 1 : end].decode()
                    self.at = end
                else:
                    name = self._text()
                values[name] = self._value()
        return values

    def _value(self) -> Any:
        data, at = self._data, self.at
        kind = data[at]
        self.at = at + 1
        if kind == 8:  # text; the numbers are the positions in the union, doubled
            size = data[at + 1]
            end = at + 2 + (size >> 1)
            if size < 128 and not size & 1 and end <= len(data):
                self.at = end
                return data[at + 2 : end].decode("utf-8", "surrogateescape")
            return self._foreign_text()
        if kind == 2:
            return self._long()
        if kind == 0:
            return None
        return self._rare(kind)

    def _rare(self, kind: int) -> Any:
        if kind == 4:
            return nearest_float32(self._number(_float32))
        if kind == 6:
            return self._number(_float64)
        if kind == 10:
            return self._bytes()
        if kind == 12:
            self._zones.add(self._text())
            return self._foreign_text()
        if kind == 14:
            return self._unsigned()
        return _refuse_union()

    # --- primitives ------------------------------------------------------------------------------------------------

    def _long(self) -> int:
        data, at = self._data, self.at
        byte = data[at]
        at += 1
        number = byte & 0x7F
        shift = 7
        while byte >= 128:
            if shift > _MOST_SHIFT:
                raise _refuse("a number has more than 64 bits")
            byte = data[at]
            at += 1
            number |= (byte & 0x7F) << shift
            shift += 7
        if number > MAX_UINT64:
            raise _refuse("a number has more than 64 bits")
        self.at = at
        return (number >> 1) ^ -(number & 1)

    def _unsigned(self) -> int:
        return self._long() & MAX_UINT64

    def _number(self, form: Struct) -> float:
        number: float = form.unpack_from(self._data, self.at)[0]
        self.at += form.size
        return number

    def _flag(self) -> bool:
        byte = self._data[self.at]
        self.at += 1
        if byte > 1:
            raise _refuse("a boolean is neither 0 nor 1")
        return bool(byte)

    def _bytes(self) -> bytes:
        size = self._long()
        end = self.at + size
        if size < 0 or end > len(self._data):
            raise _refuse("a length points beyond the end of the message")
        found = self._data[self.at : end]
        self.at = end
        return found

    def _text(self) -> str:
        return self._bytes().decode()

    def _foreign_text(self) -> str:
        """Read text of users, whose column may be declared with a wrong charset."""
        return self._bytes().decode("utf-8", "surrogateescape")

    def _word(self, words: tuple[str, ...]) -> str:
        place = self._long()
        if not 0 <= place < len(words):
            _refuse_union()
        return words[place]

    def _optional(self, read: Callable[[], T]) -> T | None:
        match self._long():
            case 0:
                return None
            case 1:
                return read()
            case _:
                _refuse_union()

    def _count(self) -> int:
        count = self._long()
        if count < 0:
            self._long()  # the size of the block in bytes
            count = -count
        return count

    def _array(self, read: Callable[[], T]) -> list[T]:
        found: list[T] = []
        while count := self._count():
            found.extend(read() for _ in range(count))
        return found
