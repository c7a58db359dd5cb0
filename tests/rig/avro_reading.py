"""Reads the simple protocol's Avro messages by their schema, written as data: the other side of the simulator's encoder, for its tests."""

import struct
from typing import Any

NULLABLE_STRING, NULLABLE_INT, NULLABLE_BOOLEAN = ("union", "null", "string"), ("union", "null", "int"), ("union", "null", "boolean")
VALUE = ("union", "null", "long", "float", "double", "string", "bytes", "Timestamp", "UnsignedBigint")
RECORDS: dict[str, list[tuple[str, Any]]] = {
    "DataType": [
        ("mysqlType", "string"),
        ("charset", "string"),
        ("collate", "string"),
        ("length", "long"),
        ("decimal", NULLABLE_INT),
        ("elements", ("union", "null", ("array", "string"))),
        ("unsigned", NULLABLE_BOOLEAN),
        ("zerofill", NULLABLE_BOOLEAN),
    ],
    "ColumnSchema": [("name", "string"), ("dataType", "DataType"), ("nullable", "boolean"), ("default", NULLABLE_STRING)],
    "IndexSchema": [
        ("name", "string"),
        ("unique", "boolean"),
        ("primary", "boolean"),
        ("nullable", "boolean"),
        ("columns", ("array", "string")),
    ],
    "TableSchema": [
        ("database", "string"),
        ("table", "string"),
        ("tableID", "long"),
        ("version", "long"),
        ("columns", ("array", "ColumnSchema")),
        ("indexes", ("array", "IndexSchema")),
    ],
    "Watermark": [("version", "int"), ("commitTs", "long"), ("buildTs", "long")],
    "Bootstrap": [("version", "int"), ("buildTs", "long"), ("tableSchema", "TableSchema")],
    "DDL": [
        ("version", "int"),
        ("type", ("enum", "CREATE", "ALTER", "ERASE", "RENAME", "TRUNCATE", "CINDEX", "DINDEX", "QUERY")),
        ("sql", "string"),
        ("commitTs", "long"),
        ("buildTs", "long"),
        ("tableSchema", ("union", "null", "TableSchema")),
        ("preTableSchema", ("union", "null", "TableSchema")),
    ],
    "Checksum": [("version", "int"), ("corrupted", "boolean"), ("current", "long"), ("previous", "long")],
    "Timestamp": [("location", "string"), ("value", "string")],
    "UnsignedBigint": [("value", "long")],
    "DML": [
        ("version", "int"),
        ("database", "string"),
        ("table", "string"),
        ("tableID", "long"),
        ("type", ("enum", "INSERT", "UPDATE", "DELETE")),
        ("commitTs", "long"),
        ("buildTs", "long"),
        ("schemaVersion", "long"),
        ("claimCheckLocation", NULLABLE_STRING),
        ("handleKeyOnly", NULLABLE_BOOLEAN),
        ("checksum", ("union", "null", "Checksum")),
        ("data", ("union", "null", ("map", VALUE))),
        ("old", ("union", "null", ("map", VALUE))),
    ],
    "Message": [("type", ("enum", "WATERMARK", "BOOTSTRAP", "DDL", "DML")), ("payload", ("union", "Watermark", "Bootstrap", "DDL", "DML"))],
}


class Reader:
    def __init__(self, raw: bytes) -> None:
        self.raw, self.at = raw, 0

    def take(self, count: int) -> bytes:
        self.at += count
        assert self.at <= len(self.raw)
        return self.raw[self.at - count : self.at]

    def long(self) -> int:
        number, shift = 0, 0
        while True:
            byte = self.take(1)[0]
            number |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return number >> 1 ^ -(number & 1)

    def string(self) -> str:
        return self.take(self.long()).decode()

    def items(self, kind: Any) -> list[Any]:
        return [self.read(kind) for count in iter(self.long, 0) for _ in range(count)]

    def read(self, kind: Any) -> Any:
        if kind in SCALARS:
            return SCALARS[kind](self)
        match kind:
            case ("enum", *words):
                return words[self.long()]
            case ("union", *kinds):
                return self.read(kinds[self.long()])
            case ("array", item):
                return self.items(item)
            case ("map", item):
                return {self.string(): self.read(item) for count in iter(self.long, 0) for _ in range(count)}
        return {name: self.read(field) for name, field in RECORDS[kind]}


SCALARS: dict[Any, Any] = {
    "null": lambda _: None,
    "int": Reader.long,
    "long": Reader.long,
    "string": Reader.string,
    "bytes": lambda reader: reader.take(reader.long()),
    "boolean": lambda reader: bool(reader.take(1)[0]),
    "float": lambda reader: struct.unpack("<f", reader.take(4))[0],
    "double": lambda reader: struct.unpack("<d", reader.take(8))[0],
}


def read_message(raw: bytes) -> dict[str, Any]:
    """Return a message; every byte belongs to it."""
    reader = Reader(raw)
    assert reader.long() == 11
    message = reader.read("Message")
    assert reader.at == len(raw)
    return message
