"""A table's definition as MySQL means it: read from a statement, and changed by one ALTER, clause by clause. Pure.

Columns are objects, so that indexes follow a renamed column and two columns may exchange their names in one statement.
References name the columns as they were before the statement, or, without such a column, as the statement made them.

The definition is read from a CREATE TABLE, and index elements also from ALTER TABLE. Strict: an unknown clause, or one that is known in
part only, stops. ``DefinedColumn`` is not strict: of a column with an unknown option it still has the type and the generation clause.

Two kinds of clause: clauses that change the definition, and clauses that change no row and no key (comments, character sets between kinds
of UTF-8, numbering, visibility, TTL). What a clause does to partitions is not part of a definition: ``changes_partitioned_rows`` tells it.

Definitions are values that can be compared, and written in MySQL's words. A column is read after its name; an unknown option stops.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Final

from applier.ddl.clause import ClauseReader
from applier.ddl.column_type import UTF8_CHARSETS, ColumnType, TypeFamily, is_known_base
from applier.ddl.parser import BY_HAND
from applier.ddl.tokens import Cursor, DdlSyntaxError, Token, quote_text
from applier.ddl.tree import (
    AlterClause,
    AlterTableStatement,
    ClauseKind,
    CreateTableStatement,
    Element,
    ElementKind,
    IndexStatement,
    Span,
    Tree,
    with_new_names,
)
from applier.model.errors import NeedsOperator, Remedy
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
    """A DEFAULT clause: ``text`` in MySQL's words; ``DEFAULT NULL`` does not count as a default."""

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
    """Return what a text type becomes by CONVERT TO CHARACTER SET: a TEXT of another character set grows, so that each value still fits."""
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
        column = _column_option(cursor, column)
    return column


def _column_option(cursor: Cursor, column: ParsedColumn) -> ParsedColumn:
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
    """Take an option that changes no value: upstream checks, numbers and describes rows."""
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


@dataclass(slots=True, eq=False)
class DraftColumn:
    """A column of the draft; ``source`` is its name before the statement, '' if the statement adds it."""

    definition: ColumnDefinition
    source: str = ""
    charset: str = ""
    """The character set that the statement gives it; '' if it names none."""


@dataclass(slots=True, eq=False)
class _DraftPart:
    column: DraftColumn | None
    part: IndexPart


@dataclass(slots=True, eq=False)
class _DraftIndex:
    name: str
    unique: bool
    parts: list[_DraftPart]


@dataclass(frozen=True, slots=True)
class Position:
    """Where a column goes: first, or after the column ``after``."""

    after: str = ""


class TableDraft:
    """The definition of one table, open to change. Whatever does not fit raises NeedsOperator."""

    def __init__(self, table: TableDefinition) -> None:
        self._table = table
        self.found: list[str] = []
        """Columns that an IF NOT EXISTS has found."""
        self.columns = [DraftColumn(column, column.name) for column in table.columns]
        self._indexes = [self._draft_index(index) for index in table.indexes]
        self._primary = self._draft_index(IndexDefinition(PRIMARY, table.primary_key, unique=True))

    def freeze(self) -> TableDefinition:
        """Return the definition as it is now; NeedsOperator if two columns or indexes have one name."""
        # The columns of a primary key are NOT NULL, whatever their definitions say (manual, "CREATE TABLE").
        for part in self._primary.parts:
            if part.column is not None:
                part.column.definition = replace(part.column.definition, nullable=False)
        names = [column.definition.name.casefold() for column in self.columns]
        indexes = [index.name.casefold() for index in self._indexes]
        for found in (names, indexes):
            if len(set(found)) != len(found):
                raise self._misfit("two columns or indexes would have the same name", max(found, key=found.count))
        return replace(
            self._table,
            columns=tuple(column.definition for column in self.columns),
            primary_key=tuple(map(_frozen_part, self._primary.parts)),
            indexes=tuple(IndexDefinition(i.name, tuple(map(_frozen_part, i.parts)), unique=i.unique) for i in self._indexes),
        )

    # Columns

    def find(self, name: str) -> DraftColumn | None:
        """Find a column by its name before the statement, else by its name now."""
        folded = name.casefold()
        # By the old name first: RENAME COLUMN a TO b, RENAME COLUMN b TO a exchanges the two.
        by_source = (column for column in self.columns if column.source.casefold() == folded)
        return next(by_source, None) or self._named(name)

    def _named(self, name: str) -> DraftColumn | None:
        folded = name.casefold()
        return next((column for column in self.columns if column.definition.name.casefold() == folded), None)

    def add_column(self, definition: ColumnDefinition, position: Position | None) -> None:
        """Add a column at a position (None: as the last)."""
        self._place(DraftColumn(definition), position)

    def modify_column(self, name: str, definition: ColumnDefinition, position: Position | None) -> None:
        """Give a column another definition, and another position if one is named."""
        column = self._existing(name)
        self._rename_in_expressions(column.definition.name, definition.name)
        column.definition = definition
        if position is not None:
            self.columns.remove(column)
            self._place(column, position)

    def rename_column(self, old: str, new: str) -> None:
        """Rename a column."""
        column = self._existing(old)
        self._rename_in_expressions(column.definition.name, new)
        column.definition = replace(column.definition, name=new)

    def _rename_in_expressions(self, old: str, new: str) -> None:
        """MariaDB renames a column also where a generated column names it; MySQL and TiDB refuse to rename it."""
        names = {old.casefold(): new}
        for column in self.columns:
            if column.definition.generated and old != new:
                column.definition = replace(column.definition, generated=with_new_names(column.definition.generated, names))

    def set_default(self, name: str, default: Default | None) -> None:
        """Set or drop a default; existing rows keep what they have."""
        column = self._existing(name)
        column.definition = replace(column.definition, default=default)

    def drop_column(self, name: str) -> None:
        """Drop a column, also out of its indexes; an index without columns goes with it."""
        column = self._existing(name)
        self.columns.remove(column)
        # MySQL refuses it too (error 1090): so upstream's table has other columns than ours.
        if not self.columns:
            raise self._misfit("a table cannot lose its only column", name)
        for index in (*self._indexes, self._primary):
            index.parts = [part for part in index.parts if part.column is not column]
        # MySQL drops an index with its last column (manual, "ALTER TABLE").
        self._indexes = [index for index in self._indexes if index.parts]

    def _place(self, column: DraftColumn, position: Position | None) -> None:
        if position is None:
            self.columns.append(column)
        elif not position.after:
            self.columns.insert(0, column)
        else:
            self.columns.insert(self.columns.index(self._existing(position.after)) + 1, column)

    def _existing(self, name: str) -> DraftColumn:
        column = self.find(name)
        if column is None:
            raise self._misfit("the sink's table has no such column", name)
        return column

    # Indexes

    def has_index(self, name: str) -> bool:
        """Return whether there is an index of that name."""
        return self._index(name) is not None

    def has_same_index(self, index: IndexDefinition) -> bool:
        """Return whether there is an index of that name, with the same parts."""
        found = self._index(index.name)
        if found is None or found.unique != index.unique:
            return False
        wanted = self._draft_index(index).parts
        return [(one.column, one.part) for one in found.parts] == [(one.column, one.part) for one in wanted]

    def add_index(self, index: IndexDefinition) -> None:
        """Add an index; without a name it gets the one that TiDB gives it."""
        self._indexes.append(self._draft_index(replace(index, name=index.name or self._anonymous_name(index.parts))))

    def drop_index(self, name: str) -> None:
        """Drop an index, the primary key if it is called PRIMARY."""
        if name.casefold() == PRIMARY.casefold():
            self.drop_primary_key()
            return
        self._indexes.remove(self._existing_index(name))

    def rename_index(self, old: str, new: str) -> None:
        """Rename an index."""
        self._existing_index(old).name = new

    def add_primary_key(self, parts: tuple[IndexPart, ...]) -> None:
        """Add the primary key; its columns stay NOT NULL, also without it."""
        if self._primary.parts:
            raise self._misfit("the sink's table has a primary key already", PRIMARY)
        self._primary = self._draft_index(IndexDefinition(PRIMARY, parts, unique=True))

    def drop_primary_key(self) -> None:
        """Drop the primary key; its columns stay NOT NULL."""
        if not self._primary.parts:
            raise self._misfit("the sink's table has no primary key", PRIMARY)
        self._primary = _DraftIndex(PRIMARY, unique=True, parts=[])

    def covers(self, columns: tuple[str, ...]) -> bool:
        """Return whether an index begins with these columns (then a foreign key needs no other)."""
        wanted = [name.casefold() for name in columns]
        return any(
            # TiDB and MySQL make no index for a foreign key if one begins with its columns, in their order.
            [part.column.definition.name.casefold() for part in index.parts[: len(wanted)] if part.column is not None] == wanted
            for index in (self._primary, *self._indexes)
        )

    def _draft_index(self, index: IndexDefinition) -> _DraftIndex:
        return _DraftIndex(index.name, index.unique, [_DraftPart(self._part_column(part), part) for part in index.parts])

    def _part_column(self, part: IndexPart) -> DraftColumn | None:
        if part.expression:
            return None
        column = self._named(part.column)
        if column is None:
            raise self._misfit("an index names a column that the sink's table does not have", part.column)
        return column

    def _index(self, name: str) -> _DraftIndex | None:
        folded = name.casefold()
        return next((index for index in self._indexes if index.name.casefold() == folded), None)

    def _existing_index(self, name: str) -> _DraftIndex:
        index = self._index(name)
        if index is None:
            raise self._misfit("the sink's table has no such index", name)
        return index

    def _anonymous_name(self, parts: tuple[IndexPart, ...]) -> str:
        """Name an index after its first column, with _2, _3 … after it where that is taken (TiDB, GetName4AnonymousIndex)."""
        base = "expression_index" if any(part.expression for part in parts) else parts[0].column
        # PRIMARY is no name for another index.
        name, number = base, 2
        while self.has_index(name) or name.casefold() == PRIMARY.casefold():
            name, number = f"{base}_{number}", number + 1
        return name

    def _misfit(self, message: str, name: str) -> NeedsOperator:
        return NeedsOperator(
            message,
            remedy=Remedy("ddl.correct-drifted-schema", f"The sink's schema has drifted from upstream's. {BY_HAND}"),
            table=str(self._table.name),
            name=name,
        )


def _frozen_part(part: _DraftPart) -> IndexPart:
    return part.part if part.column is None else replace(part.part, column=part.column.definition.name)


def parse_table(tree: Tree, node: CreateTableStatement, name: TableName) -> TableDefinition:
    """Read the table that a CREATE TABLE makes: the elements under the table's character set; DdlSyntaxError if it is not all known."""
    # It must close: a text that was cut off must not give a table with fewer columns.
    tree.part(node.body).parenthesis()
    charset = table_charset(tree.part(*node.options))
    columns = [_column(tree, element, charset) for element in node.elements if element.kind is ElementKind.COLUMN]
    draft = TableDraft(TableDefinition(name=name, columns=tuple(column.definition for column in columns)))
    _add_indexes(draft, tree, [element for element in node.elements if element.kind is not ElementKind.COLUMN])
    for column in columns:
        add_column_keys(draft, column)
    return draft.freeze()


def _column(tree: Tree, element: Element, charset: str) -> ParsedColumn:
    """Read a column; ``charset`` is the table's, for a column that names none."""
    cursor = tree.part(element.body, element.span[1])
    has_own = names_charset(cursor)
    column = parse_column(cursor, column_name(tree, element))
    cursor.finish("the end of the column's definition")
    return column if has_own or not charset else column.with_charset(charset)


def column_name(tree: Tree, element: Element) -> str:
    """Return the name of a column; DdlSyntaxError if there is none."""
    if element.name is None or element.constraint is not None:
        raise tree.part(*element.span).unexpected("a column or an index")
    return element.name.text


def add_column_keys(draft: TableDraft, column: ParsedColumn) -> None:
    """Add the keys that stand inside a column's definition."""
    part = (IndexPart(column.definition.name),)
    if column.is_primary:
        draft.add_primary_key(part)
    if column.is_unique:
        draft.add_index(IndexDefinition("", part, unique=True))


def table_charset(options: Cursor) -> str:
    """Read the table's options for the character set; all others change no value."""
    found = ""
    while not options.is_done:
        # Its columns would come from a query that cannot run here.
        if options.sees("AS") or options.sees("SELECT"):
            raise options.unexpected("no query (CREATE TABLE … AS SELECT)")
        if not (charset := parse_charset(options)):
            options.next()
        found = charset or found
    return found


def _add_indexes(draft: TableDraft, tree: Tree, elements: list[Element]) -> None:
    """Add named indexes before anonymous ones, which must not take their names (TiDB, checkConstraintNames)."""
    anonymous = [index for element in elements if (index := add_index_element(draft, tree, element)) is not None]
    for index in anonymous:
        draft.add_index(index)


def add_index_element(draft: TableDraft, tree: Tree, element: Element) -> IndexDefinition | None:
    """Add what an element declares; an index without a name is returned instead, for the caller to add. Checks are upstream's."""
    cursor = tree.part(element.body, element.span[1])
    # CONSTRAINT c UNIQUE (a) names the index, unless it has its own name (manual, "CREATE TABLE").
    constraint = "" if element.constraint is None else element.constraint.text
    name = constraint if element.name is None else element.name.text
    match element.kind:
        case ElementKind.CHECK:
            return None
        case ElementKind.FOREIGN_KEY:
            _add_foreign_key(draft, cursor, constraint or name)
            return None
        case _:
            parts = _parse_parts(cursor, element.index_kind)
    if element.index_kind == "PRIMARY":
        draft.add_primary_key(parts)
        return None
    index = IndexDefinition(name, parts, unique=element.index_kind == "UNIQUE")
    if not name:
        return index
    draft.add_index(index)
    return None


def read_index(tree: Tree, element: Element) -> IndexDefinition:
    """Read the index that an element declares, which has a name."""
    name = element.name or element.constraint
    parts = _parse_parts(tree.part(element.body, element.span[1]), element.index_kind)
    return IndexDefinition("" if name is None else name.text, parts, unique=element.index_kind == "UNIQUE")


def parse_index(tree: Tree, node: IndexStatement) -> IndexDefinition:
    """Read the index that a CREATE INDEX makes."""
    parts = _parse_parts(tree.part(node.parts[0] - 1), node.index_kind)
    return IndexDefinition(node.name.text, parts, unique=node.index_kind == "UNIQUE")


def _parse_parts(cursor: Cursor, index_kind: str) -> tuple[IndexPart, ...]:
    """Read ``[USING x] (parts) options``."""
    if cursor.accept_any("USING", "TYPE"):
        cursor.next()
    parts = _vector_parts(cursor) if index_kind in ("VECTOR", "COLUMNAR") else parse_index_parts(cursor)
    # A partial index: without its condition, a unique one would refuse rows that upstream holds. Another one just holds more rows.
    if index_kind == "UNIQUE" and any(token.keyword == "WHERE" for token in cursor.rest):
        raise cursor.unexpected("an index without a condition")
    return parts


def _vector_parts(cursor: Cursor) -> tuple[IndexPart, ...]:
    """Take the column out of ``((VEC_COSINE_DISTANCE(`c`)))``: the index only has to exist for a later DROP."""
    inside = cursor.parenthesis()
    names = [token.text for token in inside.rest if token.kind == "quoted"]
    if len(names) != 1:
        raise inside.unexpected("one column")
    return (IndexPart(names[0]),)


def _add_foreign_key(draft: TableDraft, cursor: Cursor, name: str) -> None:
    """Add the index that TiDB makes for a foreign key if none begins with its columns; the key itself is checked upstream."""
    parts = parse_index_parts(cursor)
    cursor.expect("REFERENCES")
    skip_references(cursor)
    if not draft.covers(tuple(part.column for part in parts)) and name:
        draft.add_index(IndexDefinition(name, parts))


_PARTITIONS: Final = frozenset(
    {ClauseKind.ADD_PARTITION, ClauseKind.DROP_PARTITION, ClauseKind.EXCHANGE_PARTITION, ClauseKind.PARTITIONING}
)
_KEEPING_ROWS: Final = (
    ("REORGANIZE", "PARTITION"), ("PARTITION", "BY"), ("REMOVE", "PARTITIONING"), ("COALESCE", "PARTITION"), ("REBUILD", "PARTITION"),
    ("LAST", "PARTITION"), ("MERGE", "FIRST"), ("SPLIT", "MAXVALUE"),
)  # fmt: skip
"""Other changes of partitions after which a table has the rows that it had. FIRST PARTITION drops, TRUNCATE deletes."""
_COLUMN_END: Final = "the end of the column's definition"


def changes_partitioned_rows(tree: Tree, node: AlterTableStatement) -> bool:
    """Return whether a clause is about partitions, and may delete rows or exchange them."""
    return any(clause.kind in _PARTITIONS and not _keeps_rows(tree, clause) for clause in node.clauses)


def _keeps_rows(tree: Tree, clause: AlterClause) -> bool:
    if clause.kind is ClauseKind.PARTITIONING:
        return any(tree.part(*clause.span).sees(*words) for words in _KEEPING_ROWS)
    return clause.kind is ClauseKind.ADD_PARTITION


def emptied_partitions(tree: Tree, node: AlterTableStatement) -> list[str] | None:
    """Return the partitions that a TRUNCATE PARTITION names, none for ALL; None: it is another statement."""
    for clause in node.clauses:
        cursor = tree.part(*clause.span)
        if cursor.accept("TRUNCATE", "PARTITION"):
            return [] if cursor.sees("ALL") else [part.name() for part in cursor.split()]
    return None


def alter(draft: TableDraft, tree: Tree, node: AlterTableStatement, *, is_of_mysql: bool = False) -> None:
    """Apply all clauses, except a RENAME of the table; DdlSyntaxError if one is not wholly known.

    ``is_of_mysql``: upstream is a MySQL or MariaDB, where DROP CONSTRAINT drops a unique key too.
    """
    alteration = _Alteration(draft, tree, is_of_mysql=is_of_mysql)
    for clause in node.clauses:
        alteration.apply(clause)
    if not node.is_understood:
        raise DdlSyntaxError("a clause that can be translated", tree.text)


class _Alteration:
    """Applies the clauses of one ALTER TABLE to a draft."""

    def __init__(self, draft: TableDraft, tree: Tree, *, is_of_mysql: bool) -> None:
        self._draft, self._tree, self._is_of_mysql = draft, tree, is_of_mysql

    def apply(self, clause: AlterClause) -> None:
        """Apply one clause; DdlSyntaxError if a part of it was not read."""
        cursor = self._tree.part(clause.body, clause.span[1])
        _APPLY[clause.kind](self, clause, cursor)
        # The rest of the clause was not understood, and may change the part that was: then none of it is applied.
        cursor.finish("a clause that can be translated")

    def add(self, clause: AlterClause, cursor: Cursor) -> None:
        """ADD: columns and indexes."""
        for element in clause.elements:
            if element.kind is ElementKind.COLUMN:
                self._add_column(element, exists_allowed=(clause.condition or element.condition) is not None)
            else:
                if (clause.condition or element.condition) is not None and self._finds(element):
                    continue
                index = add_index_element(self._draft, self._tree, element)
                if index is not None:
                    self._draft.add_index(index)
        if not clause.is_list:
            cursor.skip_rest()

    def _finds(self, element: Element) -> bool:
        """Whether IF NOT EXISTS finds an index. Upstream has made that of a DDL of topics: another one of the name is not it."""
        name = element.name or element.constraint
        if element.kind is not ElementKind.INDEX or name is None or not self._draft.has_index(name.text):
            return False
        return self._is_of_mysql or self._draft.has_same_index(read_index(self._tree, element))

    def _add_column(self, element: Element, *, exists_allowed: bool) -> None:
        cursor = self._tree.part(element.body, element.span[1])
        column = parse_column(cursor, column_name(self._tree, element))
        position = _position(cursor)
        cursor.finish(_COLUMN_END)
        if exists_allowed and self._draft.find(column.definition.name) is not None:
            self._draft.found.append(column.definition.name)
            return
        self._draft.add_column(column.definition, position)
        add_column_keys(self._draft, column)

    def drop_column(self, clause: AlterClause, cursor: Cursor) -> None:
        """DROP COLUMN."""
        cursor.accept_any("RESTRICT", "CASCADE")
        name = _name(clause)
        if clause.condition is None or self._draft.find(name) is not None:
            self._draft.drop_column(name)

    def drop_index(self, clause: AlterClause, _cursor: Cursor) -> None:
        """DROP INDEX."""
        name = _name(clause)
        if clause.condition is None or self._draft.has_index(name):
            self._draft.drop_index(name)

    def drop_primary_key(self, _clause: AlterClause, cursor: Cursor) -> None:
        """DROP PRIMARY KEY."""
        cursor.expect("KEY")
        self._draft.drop_primary_key()

    def drop_constraint(self, clause: AlterClause, cursor: Cursor) -> None:
        """DROP CHECK and DROP CONSTRAINT."""
        is_constraint, name = self._tree.part(*clause.span).sees("DROP", "CONSTRAINT"), _name(clause)
        if is_constraint and self._is_of_mysql and name.upper() == "PRIMARY":
            self._draft.drop_primary_key()
        elif is_constraint and self._is_of_mysql and self._draft.has_index(name):
            self._draft.drop_index(name)
        cursor.skip_rest()

    def redefine(self, clause: AlterClause, cursor: Cursor) -> None:
        """MODIFY and CHANGE."""
        old = _name(clause)
        # IF EXISTS: a column that is not there is no error.
        column = self._draft.find(old)
        if column is None and clause.condition is not None:
            cursor.skip_rest()
            return
        kept = column.definition.name if column else old
        parsed: ParsedColumn = parse_column(cursor, kept if clause.new_name is None else clause.new_name.text)
        position = _position(cursor)
        cursor.finish(_COLUMN_END)
        self._draft.modify_column(old, parsed.definition, position)
        if column is not None:
            column.charset = charset_within(self._tree.part(clause.body, clause.span[1]))
        add_column_keys(self._draft, parsed)

    def rename_column(self, clause: AlterClause, _cursor: Cursor) -> None:
        """RENAME COLUMN."""
        self._draft.rename_column(_name(clause), _new_name(clause))

    def rename_index(self, clause: AlterClause, _cursor: Cursor) -> None:
        """RENAME INDEX."""
        self._draft.rename_index(_name(clause), _new_name(clause))

    def set_default(self, clause: AlterClause, cursor: Cursor) -> None:
        """ALTER COLUMN … SET DEFAULT and DROP DEFAULT. Who sees a column without naming it changes neither rows nor keys."""
        if cursor.accept("DROP", "DEFAULT"):
            self._draft.set_default(_name(clause), None)
        elif not (cursor.accept("SET", "VISIBLE") or cursor.accept("SET", "INVISIBLE")):
            cursor.expect("SET", "DEFAULT")
            self._draft.set_default(_name(clause), parse_default(cursor))

    def convert(self, _clause: AlterClause, cursor: Cursor) -> None:
        """CONVERT TO CHARACTER SET: a MODIFY of every text. DEFAULT is the schema's, which only upstream knows: texts stay."""
        charset = parse_charset(cursor)
        if charset == "binary":
            raise cursor.unexpected("a character set other than binary")
        for column in self._draft.columns if charset not in {"", "default"} else ():
            old = column.definition.type
            if old.family is TypeFamily.CHARACTER:
                column.definition = replace(column.definition, type=converted_text(old, charset))
                column.charset = charset
        cursor.skip_rest()

    def take_options(self, clause: AlterClause, cursor: Cursor) -> None:
        """Take options of the table and of ALTER TABLE; several may be in one clause, without commas. None changes a row or a key."""
        # The one table of options (clause.py) decides here too: what TiDB does not act on changes nothing in SQLite either.
        reader, last = ClauseReader(self._tree.tokens), clause.span[1]
        while not cursor.is_done:
            found = reader.option(cursor.at, last)
            if found is None:
                raise cursor.unexpected("a clause that can be translated")
            cursor.at = found[1] + 1

    def skip(self, _clause: AlterClause, cursor: Cursor) -> None:
        """Take what changes neither rows nor keys: visibility, enforcement, foreign keys; and a RENAME, which is the caller's."""
        cursor.skip_rest()


def _name(clause: AlterClause) -> str:
    return "" if clause.name is None else clause.name.text


def _new_name(clause: AlterClause) -> str:
    return "" if clause.new_name is None else clause.new_name.text


def _position(cursor: Cursor) -> Position | None:
    if cursor.accept("FIRST"):
        return Position()
    return Position(cursor.name()) if cursor.accept("AFTER") else None


_APPLY: Final[Mapping[ClauseKind, Callable[[_Alteration, AlterClause, Cursor], None]]] = {
    ClauseKind.ADD: _Alteration.add,
    ClauseKind.DROP_COLUMN: _Alteration.drop_column,
    ClauseKind.DROP_INDEX: _Alteration.drop_index,
    ClauseKind.DROP_PRIMARY_KEY: _Alteration.drop_primary_key,
    ClauseKind.DROP_FOREIGN_KEY: _Alteration.skip,
    ClauseKind.DROP_CONSTRAINT: _Alteration.drop_constraint,
    ClauseKind.MODIFY: _Alteration.redefine,
    ClauseKind.CHANGE: _Alteration.redefine,
    ClauseKind.RENAME_TABLE: _Alteration.skip,
    ClauseKind.RENAME_COLUMN: _Alteration.rename_column,
    ClauseKind.RENAME_INDEX: _Alteration.rename_index,
    ClauseKind.ALTER_COLUMN: _Alteration.set_default,
    ClauseKind.ALTER_INDEX: _Alteration.skip,
    ClauseKind.ALTER_CONSTRAINT: _Alteration.skip,
    ClauseKind.CONVERT: _Alteration.convert,
    ClauseKind.OTHER: _Alteration.take_options,
    # The definition stays; whether the sink can follow is the caller's to decide.
    **dict.fromkeys(_PARTITIONS, _Alteration.skip),
}


_REDEFINING: Final = frozenset({ClauseKind.MODIFY, ClauseKind.CHANGE})


@dataclass(frozen=True, slots=True, kw_only=True)
class DefinedColumn:
    """A column that a statement adds or redefines. ``type`` is None if it cannot be read.

    ``formerly``: its name before, '' if the statement adds it. ``generation``: the position of the clause, None for an ordinary column.
    """

    name: str
    formerly: str = ""
    span: Span
    type: ColumnType | None = None
    generation: Span | None = None
    expression: str = ""
    is_stored: bool = False
    nullability: tuple[Span, ...] = ()
    """Where NULL and NOT NULL stand."""
    is_key: bool = False
    """Whether its definition makes it a key."""
    comment: Token | None = None
    has_default: bool = False


def defined_columns(tree: Tree) -> Iterator[DefinedColumn]:
    """Yield the columns that the statement adds or redefines."""
    charset = ""
    match tree.node:
        case CreateTableStatement(elements=elements, options=options):
            charset = _charset(tree, options)
            found = [("", element.name, (element.body, element.span[1])) for element in elements if element.kind is ElementKind.COLUMN]
        case AlterTableStatement(clauses=clauses):
            found = [place for clause in clauses for place in _places(clause)]
        case _:
            return
    for formerly, name, span in found:
        if name is not None and span[0] <= span[1]:
            yield _defined_column(tree, name.text, formerly, span, charset)


def indexed_columns(tree: Tree) -> Iterator[str]:
    """Yield the columns of each index and key that the statement makes apart from the columns' own definitions."""
    yield from (found for element in tree.elements for found in _of_key(tree, element))
    if isinstance(tree.node, IndexStatement) and tree.node.is_create:
        yield from (token.text for token in tree.part(*tree.node.parts).rest if token.is_name)


def _charset(tree: Tree, options: Span) -> str:
    try:
        return table_charset(tree.part(*options))
    except DdlSyntaxError:
        return ""


def _places(clause: AlterClause) -> Iterator[tuple[str, Token | None, Span]]:
    if clause.kind in _REDEFINING and clause.name is not None:
        yield clause.name.text, clause.new_name or clause.name, (clause.body, clause.span[1])
    for element in clause.elements:
        if element.kind is ElementKind.COLUMN:
            yield "", element.name, (element.body, element.span[1])


def _of_key(tree: Tree, element: Element) -> Iterator[str]:
    if element.kind not in {ElementKind.INDEX, ElementKind.FOREIGN_KEY}:
        return
    cursor = tree.part(element.body, element.span[1])
    while not (cursor.is_done or cursor.sees("(")):
        cursor.next()
    with suppress(DdlSyntaxError):
        yield from (token.text for token in cursor.parenthesis().rest if token.is_name)


def _defined_column(tree: Tree, name: str, formerly: str, span: Span, charset: str) -> DefinedColumn:
    found = DefinedColumn(name=name, formerly=formerly, span=span, type=_type(tree.part(*span), name, charset))
    cursor = tree.part(*span)
    with suppress(DdlSyntaxError):  # a parenthesis that never closes: the server refuses it
        while not cursor.is_done:
            found = _option(cursor, found)
    return found


def _option(cursor: Cursor, found: DefinedColumn) -> DefinedColumn:
    """Take one word of a definition, or the clause that begins here."""
    begin = cursor.at
    if cursor.accept("GENERATED", "ALWAYS", "AS") or cursor.accept("AS"):
        expression = cursor.parenthesis().source() if cursor.sees("(") else ""
        # PERSISTENT: MariaDB's older word.
        is_stored = cursor.accept_any("STORED", "PERSISTENT", "VIRTUAL") in {"STORED", "PERSISTENT"}
        return replace(found, generation=(begin, cursor.at - 1), expression=expression, is_stored=is_stored) if expression else found
    if cursor.accept("NOT", "NULL") or cursor.accept("NULL"):
        return replace(found, nullability=(*found.nullability, (begin, cursor.at - 1)))
    if cursor.accept("COMMENT"):
        cursor.accept("=")
        return replace(found, comment=None if cursor.is_done else cursor.next())
    if word := cursor.accept_any("DEFAULT", "UPDATE"):
        # DEFAULT NULL, ON UPDATE NOW: its word is no option.
        if not (cursor.is_done or cursor.sees("(")):
            cursor.next()
        return replace(found, has_default=found.has_default or word == "DEFAULT")
    if cursor.accept_any("PRIMARY", "UNIQUE", "KEY"):
        return replace(found, is_key=True)
    if cursor.sees("("):
        cursor.parenthesis()
    elif not cursor.is_done:
        cursor.next()
    return found


def _type(cursor: Cursor, name: str, charset: str) -> ColumnType | None:
    begin, has_own = cursor.at, names_charset(cursor)
    cursor.at = begin
    try:
        try:
            found = parse_column(cursor, name).definition.type
        except DdlSyntaxError:
            cursor.at = begin
            found = parse_type(cursor)
    except DdlSyntaxError:
        return None
    return found if has_own or not charset else with_charset(found, charset)
