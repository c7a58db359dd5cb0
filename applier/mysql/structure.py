"""The structure of a table, as values. Two are equal if they mean the same, whichever server and version described them.

A structure is what the catalogue shows of a table: columns, indexes, foreign keys, checks, options, partitions, triggers.
``catalogue.read_structures`` reads it. Servers word some facts differently. The reader brings these to one form: display widths
(``int(11)``), quotes around defaults, ``utf8`` for ``utf8mb3``, MariaDB's JSON, generated names of constraints, introducers and
parentheses in expressions.

Not in it: AUTO_INCREMENT counters, statistics, times, and the order of indexes. They change without a DDL.
A user sees triggers only with the privilege TRIGGER, and whole foreign keys only with more than SELECT on the table.
"""

import re
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Final

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from applier.ddl.tokens import TOKEN

_ESCAPE: Final = re.compile(r"\\(.)", re.DOTALL)
_CONTROL: Final = {"0": "\0", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a"}
_OPERATIONS: Final = (exp.Binary, exp.Unary, exp.Predicate)


@dataclass(frozen=True, slots=True, eq=False)
class Expression:
    """An expression of SQL. ``text`` is as the server spells it, without the escapes of information_schema."""

    text: str

    def __eq__(self, other: object) -> bool:
        """Return whether both mean the same."""
        return isinstance(other, Expression) and (self.text == other.text or _canonical(self.text) == _canonical(other.text))

    def __hash__(self) -> int:
        """Hash what is compared."""
        return hash(_canonical(self.text))

    def __str__(self) -> str:
        """Return the server's text."""
        return self.text


def expression_of(text: str) -> Expression:
    r"""Read an expression of information_schema. MySQL escapes the whole text: ``concat(`a`,_utf8mb4\'x\')``."""
    return Expression(_ESCAPE.sub(_unescaped, text) if _is_escaped(text) else text)


def _is_escaped(text: str) -> bool:
    """Return whether a backslash is outside of quotes, where SQL does not have one."""
    return any(match.group() == "\\" for match in TOKEN.finditer(text))


def _unescaped(match: re.Match[str]) -> str:
    return _CONTROL.get(match.group(1), match.group(1))


@lru_cache(maxsize=4096)
def _canonical(text: str) -> str:
    """Return the syntax tree as text, with a parenthesis around each operation; the tokens alone if it cannot be parsed."""
    plain = _without_introducers(text)
    try:
        (tree,) = sqlglot.parse_one(f"SELECT {plain}", dialect="mysql", into=exp.Select).selects
    # ValueError: SELECT a, b would be two expressions. RecursionError: some thousand nested parentheses.
    except (SqlglotError, ValueError, RecursionError):
        return " ".join(match.group() for match in TOKEN.finditer(plain) if match.lastgroup != "blank")
    # MySQL parenthesizes every operation, MariaDB only where precedence needs it: all go, then each operation gets one.
    for paren in list(tree.find_all(exp.Paren)):
        if paren is tree:
            tree = paren.this
            tree.pop()
        else:
            paren.replace(paren.this)
    for node in list(tree.find_all(*_OPERATIONS)):
        if node is not tree:
            node.replace(exp.Paren(this=node.copy()))
    return str(tree.sql(dialect="mysql", identify=True, normalize_functions="lower", comments=False))


def _without_introducers(text: str) -> str:
    """Exclude the character sets before literals."""
    matches = [match for match in TOKEN.finditer(text) if match.lastgroup != "blank"]
    for match, following in reversed(list(pairwise(matches))):
        if match.group().startswith("_") and following.lastgroup == "string":
            text = text[: match.start()] + text[following.start() :]
    return text


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnStructure:
    """One column. ``default`` is the value of a literal (``0x…`` for binary types), None: NULL or no default."""

    name: str
    type: str
    """Whole type in lower case, without display width: ``bigint unsigned``, ``varchar(10)``, ``enum('a','B')``, ``json``."""
    character_set: str = ""
    collation: str = ""
    nullable: bool
    default: str | None = None
    default_expression: Expression | None = None
    on_update: Expression | None = None
    generation: Expression | None = None
    is_stored: bool = False
    """Of a generated column: it is stored, not computed when it is read."""
    auto_increment: bool = False
    attributes: tuple[str, ...] = ()
    """Further attributes, in upper case: ``INVISIBLE``, …"""
    comment: str = ""

    @property
    def data_type(self) -> str:
        """The name of the type alone: ``varchar``."""
        return self.type.partition("(")[0].partition(" ")[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexPartStructure:
    """A column (or its first ``prefix`` characters), or an expression."""

    column: str | None
    expression: Expression | None = None
    prefix: int | None = None
    descending: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexStructure:
    """One index; the primary key is named PRIMARY."""

    name: str
    unique: bool
    parts: tuple[IndexPartStructure, ...]
    type: str = "BTREE"
    visible: bool = True
    """False: the optimizer ignores it; a unique one still refuses duplicates."""
    comment: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignKey:
    """One foreign key of the table. ``name`` is '' if the server generated it."""

    name: str
    columns: tuple[str, ...]
    referenced_schema: str
    referenced_table: str
    referenced_columns: tuple[str, ...]
    on_delete: str
    on_update: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One check constraint. ``name`` is '' if the server generated it."""

    name: str
    clause: Expression
    enforced: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Partition:
    """One partition: its name, its limit or list of values, its subpartitions."""

    name: str
    description: str
    subpartitions: tuple[str, ...] = ()
    comment: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Partitioning:
    """How rows are placed in partitions."""

    method: str
    expression: Expression
    subpartition_method: str = ""
    subpartition_expression: Expression | None = None
    partitions: tuple[Partition, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Trigger:
    """One trigger of the table."""

    name: str
    timing: str
    event: str
    statement: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TableStructure:
    """One table or view. Its name is not a part of it, so that a rename does not change it."""

    kind: str
    """``BASE TABLE``, ``VIEW``, or another word of the server."""
    engine: str = ""
    """As the server spells it: ``InnoDB``."""
    collation: str = ""
    options: tuple[str, ...] = ()
    """Options of its CREATE TABLE, in lower case: ``row_format=compressed``, …"""
    comment: str = ""
    columns: tuple[ColumnStructure, ...]
    indexes: tuple[IndexStructure, ...] = ()
    """By name, the primary key first."""
    foreign_keys: tuple[ForeignKey, ...] = ()
    checks: tuple[Check, ...] = ()
    partitioning: Partitioning | None = None
    triggers: tuple[Trigger, ...] = ()

    @property
    def is_view(self) -> bool:
        """Return whether it holds no rows of its own."""
        return self.kind.endswith("VIEW")

    def column(self, name: str) -> ColumnStructure | None:
        """Find a column, whatever its case."""
        return next((column for column in self.columns if column.name.casefold() == name.casefold()), None)

    def index(self, name: str) -> IndexStructure | None:
        """Find an index, whatever its case."""
        return next((index for index in self.indexes if index.name.casefold() == name.casefold()), None)
