"""The definition of a table as MySQL means it, and the strict readers of a column, its type and the parts of an index.

Definitions are values that can be compared, and written in MySQL's words. A column is read after its name; an unknown option stops.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Final

from applier.ddl.column_type import UTF8_CHARSETS, ColumnType, TypeFamily, is_known_base
from applier.ddl.tokens import Cursor, quote_text
from applier.model.events import TableName

PRIMARY: Final = "PRIMARY"
"""The name of the primary key among a table's indexes."""


class DefaultKind(StrEnum):
    """What a DEFAULT clause holds."""

    LITERAL = "literal"
    NOW = "now"
    EXPRESSION = "expression"


@dataclass(frozen=True, slots=True)
class Default:
    """A DEFAULT clause: ``text`` in MySQL's words; ``DEFAULT NULL`` is no default."""

    kind: DefaultKind
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnDefinition:
    """A column in MySQL's words. ``generated`` is its expression, '' for an ordinary column."""

    name: str
    type: ColumnType
    nullable: bool = True
    default: Default | None = None
    generated: str = ""
    stored: bool = False

    @property
    def mysql(self) -> str:
        """The definition without the name, as MySQL writes it."""
        text = str(self.type) + ("" if self.nullable else " NOT NULL")
        if self.generated:
            text += f" GENERATED ALWAYS AS ({self.generated}) " + ("STORED" if self.stored else "VIRTUAL")
        if self.default is not None:
            text += f" DEFAULT {self.default.text}"
        return text


@dataclass(frozen=True, slots=True)
class IndexPart:
    """A part of an index: a column, perhaps only its first ``prefix`` characters or bytes, or an ``expression`` (then ``column`` is '')."""

    column: str
    prefix: int = 0
    expression: str = ""

    @property
    def mysql(self) -> str:
        """The part as MySQL writes it."""
        if self.expression:
            return f"({self.expression})"
        return "`" + self.column.replace("`", "``") + "`" + (f"({self.prefix})" if self.prefix else "")


@dataclass(frozen=True, slots=True)
class IndexDefinition:
    """An index apart from the primary key."""

    name: str
    parts: tuple[IndexPart, ...]
    unique: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TableDefinition:
    """A table. ``primary_key`` is empty if there is none; parts of it may have prefixes, then it is stored as a unique index."""

    name: TableName
    columns: tuple[ColumnDefinition, ...]
    primary_key: tuple[IndexPart, ...] = ()
    indexes: tuple[IndexDefinition, ...] = field(default=())

    def column(self, name: str) -> ColumnDefinition | None:
        """Find a column by its name without regard to case."""
        folded = name.casefold()
        return next((column for column in self.columns if column.name.casefold() == folded), None)

    def index(self, name: str) -> IndexDefinition | None:
        """Find an index by its name without regard to case."""
        folded = name.casefold()
        return next((index for index in self.indexes if index.name.casefold() == folded), None)

    def renamed(self, name: TableName) -> "TableDefinition":
        """Return the definition under another name."""
        return replace(self, name=name)


_ALIASES: Final = {
    "integer": "int", "int1": "tinyint", "int2": "smallint", "int3": "mediumint", "middleint": "mediumint", "int4": "int", "int8": "bigint",
    # REAL is DOUBLE unless sql_mode holds REAL_AS_FLOAT, which no event shows.
    "numeric": "decimal", "dec": "decimal", "fixed": "decimal", "real": "double", "float8": "double", "float4": "float",
    "character": "char", "nchar": "char", "varcharacter": "varchar", "nvarchar": "varchar", "bool": "tinyint", "boolean": "tinyint",
}  # fmt: skip
_SPATIAL: Final = dict.fromkeys(
    ["geometry", "point", "linestring", "polygon", "multipoint", "multilinestring", "multipolygon", "geometrycollection", "geomcollection"],
    "longblob",
)
"""A binlog has their values as the bytes that the server stores."""
_BYTES: Final = {"uuid": 16, "inet6": 16, "inet4": 4}
"""MariaDB's types of fixed bytes, which a binlog has as such."""
_LARGER_TEXT: Final = {"tinytext": "text", "text": "mediumtext", "mediumtext": "longtext"}
_CHARSET_WORDS: Final = frozenset({"CHARACTER", "CHARSET", "COLLATE", "BYTE"})


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
    if cursor.is_done:
        raise cursor.unexpected("a type")
    word = cursor.next().text
    base = word.lower()
    if base == "long":
        base = "mediumblob" if cursor.accept("VARBINARY") else "mediumtext"
        cursor.accept_any("VARCHAR", "CHAR")
    # DOUBLE PRECISION.
    if base == "double":
        cursor.accept("PRECISION")
    if base in ("char", "character", "nchar") and cursor.accept("VARYING"):
        base = "varchar"
    if base in ("bool", "boolean"):
        return "bool"
    base = _SPATIAL.get(base, _ALIASES.get(base, base))
    if base in _BYTES:
        words = [token.keyword for token in cursor.rest]
        # A literal is a text there, and the column holds bytes.
        if "DEFAULT" in words and "NULL" not in words[words.index("DEFAULT") :][1:2]:
            raise cursor.unexpected(f"a default of {word} that can be translated")
        return base
    if not is_known_base(base):
        raise cursor.unexpected(f"a type that can be translated, not {word},")
    return base


def _normal(base: str, arguments: tuple[int, ...]) -> ColumnType:
    if base in _BYTES:
        return ColumnType(base="binary", arguments=(_BYTES[base],))
    if base == "bool":
        return ColumnType(base="tinyint", arguments=(1,))
    # FLOAT(p): single precision up to 24 bits, double from 25 on, and the number itself is not kept (manual, "Floating-Point Types").
    if base == "float" and len(arguments) == 1:
        return ColumnType(base="double" if arguments[0] > 24 else "float")
    # DECIMAL is DECIMAL(10,0), and DECIMAL(5) is DECIMAL(5,0) (manual, "Fixed-Point Types").
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
            # MySQL adds UNSIGNED (manual, "Numeric Type Attributes").
            column = replace(column, unsigned=True, zerofill=True)
        elif cursor.accept("BYTE"):
            column = column.as_binary()
        elif charset := parse_charset(cursor):
            column = with_charset(column, charset)
        elif cursor.accept("COMPRESSED"):
            # MariaDB's: it says how values are stored.
            if cursor.accept("="):
                cursor.next()
        # BINARY chooses a collation here, ASCII and UNICODE a character set that is a part of UTF-8's.
        elif not cursor.accept_any("SIGNED", "BINARY", "ASCII", "UNICODE"):
            return column


def parse_charset(cursor: Cursor) -> str:
    """Take ``CHARACTER SET x`` or ``CHARSET x`` (with or without ``=``) and return x in lower case; '' if it does not follow."""
    if not (cursor.accept("CHARACTER", "SET") or cursor.accept("CHARSET") or cursor.accept("CHAR", "SET")):
        return ""
    cursor.accept("=")
    literal = cursor.literal_ahead()
    return cursor.string().lower() if literal and literal.kind == "string" else cursor.next().text.lower()


def charset_within(cursor: Cursor) -> str:
    """Return the character set that is named somewhere in what is left, in lower case; '' if none is."""
    while not cursor.is_done:
        if found := parse_charset(cursor):
            return found
        cursor.next()
    return ""


def names_charset(cursor: Cursor) -> bool:
    """Return whether what is left names a character set or collation."""
    return any(token.keyword in _CHARSET_WORDS for token in cursor.rest)


def with_charset(column: ColumnType, charset: str) -> ColumnType:
    """Return the type under another character set: ``binary`` makes it a binary type, kinds of UTF-8 need no mention."""
    if column.family is not TypeFamily.CHARACTER:
        return column
    if charset == "binary":
        return column.as_binary()
    # TiCDC sends all text as UTF-8. Only a charset that cannot hold all of it says something about the values.
    return replace(column, charset="" if charset in UTF8_CHARSETS else charset)


def converted_text(column: ColumnType, charset: str) -> ColumnType:
    """Return what CONVERT TO CHARACTER SET makes of a text type: a TEXT of another character set grows, so that each value still fits."""
    new = with_charset(column, charset)
    grows = column.charset != "" and new.family is TypeFamily.CHARACTER and new.charset == ""
    return replace(new, base=_LARGER_TEXT.get(new.base, new.base)) if grows else new


# Synonyms (manual, "Date and Time Functions"). LOCALTIME and LOCALTIMESTAMP need no parentheses, NOW does; TiDB prints the first.
_NOW: Final = ("CURRENT_TIMESTAMP", "NOW", "LOCALTIME", "LOCALTIMESTAMP")


@dataclass(frozen=True, slots=True)
class ParsedColumn:
    """A column definition with what is in it but belongs to the table."""

    definition: ColumnDefinition
    is_primary: bool = False
    is_unique: bool = False

    def with_charset(self, charset: str) -> "ParsedColumn":
        """Return the column under the character set of its table."""
        return replace(self, definition=replace(self.definition, type=with_charset(self.definition.type, charset)))


def parse_mysql_definition(name: str, text: str) -> ColumnDefinition:
    """Read back what ``ColumnDefinition.mysql`` wrote."""
    return parse_column(Cursor(text), name).definition


def parse_column(cursor: Cursor, name: str) -> ParsedColumn:
    """Read a column definition after its name, up to FIRST or AFTER."""
    if cursor.accept("SERIAL"):
        serial = ColumnDefinition(name=name, type=ColumnType(base="bigint", unsigned=True), nullable=False)
        return _options(cursor, ParsedColumn(serial, is_unique=True))
    column_type = parse_type(cursor)
    return _options(cursor, ParsedColumn(ColumnDefinition(name=name, type=column_type)))


def _options(cursor: Cursor, column: ParsedColumn) -> ParsedColumn:
    while not (cursor.is_done or cursor.sees("FIRST") or cursor.sees("AFTER")):
        column = _option(cursor, column)
    return column


def _option(cursor: Cursor, column: ParsedColumn) -> ParsedColumn:
    # KEY alone means PRIMARY KEY in a column's definition (manual, "CREATE TABLE").
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
    # PERSISTENT: MariaDB's older word.
    stored = cursor.accept_any("STORED", "PERSISTENT", "VIRTUAL") in {"STORED", "PERSISTENT"}
    return replace(definition, generated=expression, stored=stored)


def _ignored_option(cursor: Cursor) -> None:
    """Take an option that changes no value: who checks, numbers or describes rows is upstream."""
    if cursor.accept("REFERENCES"):
        skip_references(cursor)
    elif cursor.accept_any("COMMENT", "COLLATE", "COLUMN_FORMAT", "STORAGE", "SRID", "ENGINE_ATTRIBUTE", "SECONDARY_ENGINE_ATTRIBUTE"):
        cursor.accept("=")
        _value(cursor)
    # The rows on the wire carry the value that ON UPDATE has given.
    elif cursor.accept("ON", "UPDATE"):
        cursor.next()
        cursor.skip_parenthesis()
    elif cursor.accept("CONSTRAINT"):
        # A constraint may have no name.
        if not cursor.sees("CHECK"):
            cursor.name()
    elif cursor.accept_any("CHECK", "AUTO_RANDOM"):
        cursor.skip_parenthesis()
    elif not (cursor.accept("NOT", "ENFORCED") or cursor.accept_any("AUTO_INCREMENT", "VISIBLE", "INVISIBLE", "ENFORCED")):
        raise cursor.unexpected("a column option")


def _value(cursor: Cursor) -> None:
    if cursor.literal_ahead() is None:
        cursor.next()
    else:
        cursor.literal()


def skip_references(cursor: Cursor) -> None:
    """Take what follows REFERENCES: foreign keys are checked upstream."""
    cursor.name()
    if cursor.accept("."):
        cursor.name()
    cursor.skip_parenthesis()
    while cursor.accept("MATCH") or cursor.accept("ON"):
        cursor.accept_any("DELETE", "UPDATE")
        cursor.accept_any("SET", "NO")
        cursor.next()


def parse_default(cursor: Cursor) -> Default | None:
    """Read what follows DEFAULT; None for NULL. A literal keeps MySQL's spelling."""
    if cursor.accept("NULL"):
        return None
    if cursor.sees("("):
        inside = cursor.parenthesis()
        return _default_expression(inside)
    if cursor.accept_any(*_NOW):
        return _current_time(cursor)
    if cursor.accept("NEXT", "VALUE", "FOR"):
        return Default(DefaultKind.EXPRESSION, "(NEXT VALUE FOR " + _sequence(cursor) + ")")
    if cursor.is_at_name() and not cursor.sees("quoted") and cursor.keyword(1) == "(":
        name = cursor.name()
        return Default(DefaultKind.EXPRESSION, f"({name}({cursor.parenthesis().source()}))")
    return Default(DefaultKind.LITERAL, _literal(cursor))


def _current_time(cursor: Cursor) -> Default:
    digits = cursor.parenthesis().source() if cursor.sees("(") else ""
    return Default(DefaultKind.NOW, "CURRENT_TIMESTAMP" + (f"({digits})" if digits else ""))


def _default_expression(inside: Cursor) -> Default:
    """Read a default in parentheses, which may be a plain literal or the current time all the same."""
    # TEXT, BLOB and JSON take a default in parentheses only, a literal too (manual, "Data Type Default Values").
    literal = inside.literal_ahead()
    if literal is not None and literal.last == inside.last:
        return Default(DefaultKind.LITERAL, _literal(inside))
    if inside.keyword() in _NOW and all(token.text in "()" or token.text.isdecimal() for token in inside.rest[1:]):
        inside.next()
        return _current_time(inside)
    return Default(DefaultKind.EXPRESSION, f"({inside.source()})")


def _sequence(cursor: Cursor) -> str:
    name = cursor.name()
    return f"{name}.{cursor.name()}" if cursor.accept(".") else name


def _literal(cursor: Cursor) -> str:
    sign = cursor.accept_any("-", "+")
    if truth := cursor.accept_any("TRUE", "FALSE"):
        return str(int(truth == "TRUE"))
    if cursor.literal_ahead() is None:
        raise cursor.unexpected("a default")
    literal = cursor.literal()
    match literal.kind:
        case "string":
            return quote_text(literal.text)
        case "bytes":
            return f"X'{literal.text}'"
        case _:
            return ("-" if sign == "-" else "") + literal.text


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
            name = inside.name()
            yield IndexPart(name, inside.parenthesis().integer() if inside.sees("(") else 0)
        # The order of an index decides which rows are found fast, never which are unique.
        inside.accept_any("ASC", "DESC")
        if not inside.is_done:
            inside.expect(",")
