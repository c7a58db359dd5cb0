"""Reads column definitions, types, defaults and index parts of MySQL as TiDB prints them."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from applier.sinks.sqlite.column_type import UTF8_CHARSETS, ColumnType, TypeFamily, quote_text
from applier.sinks.sqlite.definition import ColumnDefinition, Default, DefaultKind, IndexPart
from applier.sinks.sqlite.tokens import Cursor

_ALIASES: Final = {
    "integer": "int", "int1": "tinyint", "int2": "smallint", "int3": "mediumint", "middleint": "mediumint", "int4": "int", "int8": "bigint",
    "numeric": "decimal", "dec": "decimal", "fixed": "decimal", "real": "double", "float8": "double", "float4": "float",
    "character": "char", "nchar": "char", "varcharacter": "varchar", "nvarchar": "varchar", "bool": "tinyint", "boolean": "tinyint",
}  # fmt: skip
_NOW: Final = ("CURRENT_TIMESTAMP", "NOW", "LOCALTIME", "LOCALTIMESTAMP")


@dataclass(frozen=True, slots=True)
class ParsedColumn:
    """A column definition with what stands in it but belongs to the table."""

    definition: ColumnDefinition
    is_primary: bool = False
    is_unique: bool = False


def parse_mysql_definition(name: str, text: str) -> ColumnDefinition:
    """Read back what ``ColumnDefinition.mysql`` wrote."""
    return parse_column(Cursor(text), name).definition


def parse_column(cursor: Cursor, name: str) -> ParsedColumn:
    """Read a column definition behind its name, up to a comma, FIRST or AFTER."""
    if cursor.accept("SERIAL"):
        serial = ColumnDefinition(name=name, type=ColumnType(base="bigint", unsigned=True), nullable=False)
        return _options(cursor, ParsedColumn(serial, is_unique=True))
    column_type = parse_type(cursor)
    return _options(cursor, ParsedColumn(ColumnDefinition(name=name, type=column_type)))


def parse_type(cursor: Cursor) -> ColumnType:
    """Read a type with its attributes."""
    base = _base(cursor)
    if base in ("enum", "set"):
        labels = tuple(_labels(cursor.parenthesis()))
        if not labels:
            raise cursor.unexpected("labels")
        return _attributes(cursor, ColumnType(base=base, labels=labels))
    arguments = tuple(_integers(cursor.parenthesis())) if cursor.sees("(") else ()
    return _attributes(cursor, _normal(base, arguments))


def _base(cursor: Cursor) -> str:
    cursor.accept("NATIONAL")
    word = cursor.take()
    base = word.text.lower()
    if base == "long":
        base = "mediumblob" if cursor.accept("VARBINARY") else "mediumtext"
        cursor.accept_any("VARCHAR", "CHAR")
    if base == "double":
        cursor.accept("PRECISION")
    if base in ("char", "character", "nchar") and cursor.accept("VARYING"):
        base = "varchar"
    if base in ("bool", "boolean"):
        return "bool"
    base = _ALIASES.get(base, base)
    try:
        ColumnType(base=base).family  # noqa: B018 - unknown types raise KeyError here, before anything is built on them
    except KeyError:
        raise cursor.unexpected(f"a type that SQLite can hold, not {word.text},") from None
    return base


def _normal(base: str, arguments: tuple[int, ...]) -> ColumnType:
    if base == "bool":
        return ColumnType(base="tinyint", arguments=(1,))
    if base == "float" and len(arguments) == 1:
        return ColumnType(base="double" if arguments[0] > 24 else "float")
    if base == "decimal" and not arguments:
        arguments = (10, 0)
    if base == "decimal" and len(arguments) == 1:
        arguments = (arguments[0], 0)
    return ColumnType(base=base, arguments=arguments)


def _labels(inside: Cursor) -> Iterator[str]:
    while not inside.is_done:
        # TiDB and MySQL strip trailing spaces of labels.
        yield inside.string().rstrip(" ")
        inside.accept(",")


def _integers(inside: Cursor) -> Iterator[int]:
    while not inside.is_done:
        yield inside.integer()
        inside.accept(",")


def _attributes(cursor: Cursor, column: ColumnType) -> ColumnType:
    while True:
        if cursor.accept("UNSIGNED"):
            column = replace(column, unsigned=True)
        elif cursor.accept("ZEROFILL"):
            column = replace(column, unsigned=True, zerofill=True)
        elif cursor.accept("BYTE"):
            column = column.as_binary()
        elif charset := parse_charset(cursor):
            column = with_charset(column, charset)
        elif not cursor.accept_any("SIGNED", "BINARY", "ASCII", "UNICODE"):
            return column


def parse_charset(cursor: Cursor) -> str:
    """Take ``CHARACTER SET x`` or ``CHARSET x`` (with or without ``=``) and return x in lower case; '' if it does not follow."""
    if not (cursor.accept("CHARACTER", "SET") or cursor.accept("CHARSET") or cursor.accept("CHAR", "SET")):
        return ""
    cursor.accept("=")
    return cursor.take().text.lower()


def with_charset(column: ColumnType, charset: str) -> ColumnType:
    """Return the type under another character set: ``binary`` makes it a binary type, kinds of UTF-8 need no mention."""
    if column.family is not TypeFamily.CHARACTER:
        return column
    if charset == "binary":
        return column.as_binary()
    return replace(column, charset="" if charset in UTF8_CHARSETS else charset)


def _options(cursor: Cursor, column: ParsedColumn) -> ParsedColumn:
    while not (cursor.is_done or cursor.sees(",") or cursor.sees("FIRST") or cursor.sees("AFTER")):
        column = _option(cursor, column)
    return column


def _option(cursor: Cursor, column: ParsedColumn) -> ParsedColumn:
    if cursor.accept("PRIMARY", "KEY") or cursor.accept("KEY") or cursor.accept("PRIMARY"):
        return replace(column, is_primary=True)
    if cursor.accept("UNIQUE"):
        cursor.accept("KEY")
        return replace(column, is_unique=True)
    changed = _value_option(cursor, column.definition)
    if changed is None:
        _ignored_option(cursor)
        return column
    return replace(column, definition=changed)


def _value_option(cursor: Cursor, definition: ColumnDefinition) -> ColumnDefinition | None:
    """Take an option that says what values the column holds; None if another kind of option follows."""
    if cursor.accept("NOT", "NULL"):
        return replace(definition, nullable=False)
    if cursor.accept("NULL"):
        return replace(definition, nullable=True)
    if cursor.accept("DEFAULT"):
        return replace(definition, default=parse_default(cursor))
    if cursor.accept("GENERATED", "ALWAYS", "AS") or cursor.accept("AS"):
        return _generated(cursor, definition)
    if charset := parse_charset(cursor):
        return replace(definition, type=with_charset(definition.type, charset))
    return None


def _generated(cursor: Cursor, definition: ColumnDefinition) -> ColumnDefinition:
    expression = cursor.parenthesis().source()
    stored = cursor.accept_any("STORED", "VIRTUAL") == "STORED"
    return replace(definition, generated=expression, stored=stored)


def _ignored_option(cursor: Cursor) -> None:
    """Take an option that changes no value: who checks, numbers or describes rows is upstream."""
    if cursor.accept("REFERENCES"):
        skip_references(cursor)
    elif cursor.accept_any("COMMENT", "COLLATE", "COLUMN_FORMAT", "STORAGE", "SRID", "ENGINE_ATTRIBUTE", "SECONDARY_ENGINE_ATTRIBUTE"):
        cursor.accept("=")
        cursor.take()
    elif cursor.accept("ON", "UPDATE"):
        cursor.take()
        cursor.skip_parenthesis()
    elif cursor.accept("CONSTRAINT"):
        if not cursor.sees("CHECK"):
            cursor.identifier()
    elif cursor.accept_any("CHECK", "AUTO_RANDOM"):
        cursor.skip_parenthesis()
    elif not (cursor.accept("NOT", "ENFORCED") or cursor.accept_any("AUTO_INCREMENT", "VISIBLE", "INVISIBLE", "ENFORCED")):
        raise cursor.unexpected("a column option")


def skip_references(cursor: Cursor) -> None:
    """Take what follows REFERENCES: foreign keys are checked upstream."""
    cursor.identifier()
    if cursor.accept("."):
        cursor.identifier()
    if cursor.sees("("):
        cursor.parenthesis()
    while cursor.accept("MATCH") or cursor.accept("ON"):
        cursor.accept_any("DELETE", "UPDATE")
        cursor.accept_any("SET", "NO")
        cursor.take()


def parse_default(cursor: Cursor) -> Default | None:
    """Read what follows DEFAULT; None for NULL. A literal keeps MySQL's spelling."""
    if cursor.accept("NULL"):
        return None
    if cursor.sees("("):
        inside = cursor.parenthesis()
        return _default_expression(inside)
    if cursor.accept_any(*_NOW):
        digits = cursor.parenthesis().source() if cursor.sees("(") else ""
        return Default(DefaultKind.NOW, "CURRENT_TIMESTAMP" + (f"({digits})" if digits else ""))
    if cursor.accept("NEXT", "VALUE", "FOR"):
        return Default(DefaultKind.EXPRESSION, "(NEXT VALUE FOR " + _sequence(cursor) + ")")
    if cursor.peek().kind == "word" and cursor.peek(1).text == "(":
        name = cursor.take().text
        return Default(DefaultKind.EXPRESSION, f"({name}({cursor.parenthesis().source()}))")
    return Default(DefaultKind.LITERAL, _literal(cursor))


def _default_expression(inside: Cursor) -> Default:
    """Read a default in parentheses, which may be a plain literal or the current time all the same."""
    if inside.peek(1).kind == "end" and inside.peek().kind in ("string", "number", "bytes"):
        return Default(DefaultKind.LITERAL, _literal(inside))
    if inside.peek().text.upper() in _NOW and all(word.text in "()" or word.text.isdecimal() for word in inside.rest[1:]):
        found = parse_default(inside)
        if found is not None:
            return found
    return Default(DefaultKind.EXPRESSION, f"({inside.source()})")


def _sequence(cursor: Cursor) -> str:
    name = cursor.identifier()
    return f"{name}.{cursor.identifier()}" if cursor.accept(".") else name


def _literal(cursor: Cursor) -> str:
    sign = cursor.accept_any("-", "+")
    word = cursor.peek()
    if word.kind in ("string", "introducer"):
        return quote_text(cursor.string())
    cursor.take()
    if word.kind == "bytes":
        return f"X'{word.text}'"
    if word.kind == "number":
        return ("-" if sign == "-" else "") + word.text
    if word.text.upper() in ("TRUE", "FALSE"):
        return str(int(word.text.upper() == "TRUE"))
    raise cursor.unexpected("a default")


def parse_index_parts(cursor: Cursor) -> tuple[IndexPart, ...]:
    """Read the parenthesis with the parts of an index."""
    parts = tuple(_parts(cursor.parenthesis()))
    if not parts:
        raise cursor.unexpected("the columns of an index")
    return parts


def parse_mysql_parts(text: str) -> tuple[IndexPart, ...]:
    """Read back the parts that CREATE INDEX carries in its comment."""
    return tuple(_parts(Cursor(text)))


def _parts(inside: Cursor) -> Iterator[IndexPart]:
    while not inside.is_done:
        if inside.sees("("):
            yield IndexPart("", 0, inside.parenthesis().source())
        else:
            name = inside.identifier()
            yield IndexPart(name, inside.parenthesis().integer() if inside.sees("(") else 0)
        inside.accept_any("ASC", "DESC")
        if not inside.is_done:
            inside.expect(",")
