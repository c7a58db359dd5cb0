"""The tree of a statement: what kind of statement it is, what it names, where its clauses and elements are in its text, and edits of it.

The tree is shallow on purpose. It cuts a statement into clauses, columns and indexes and reads how each begins; their inside (types,
options, expressions) stays text, to which ``Tree.part`` gives a cursor. So every statement that TiDB prints has a tree, whatever options
the next version brings, and a caller that needs the inside reads it as strictly as it must (``table_draft``, ``clause``).

Positions are indexes of tokens; a ``Span`` is the first and the last of them, and empty if the last is before the first. Everything outside
of an edit stays as it is, byte by byte.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, StrEnum
from typing import Final, NamedTuple, TypeAlias

from applier.ddl.tokens import Cursor, DdlSyntaxError, Token, scan
from applier.model.events import TableName

Span = tuple[int, int]


class WrittenName(NamedTuple):
    """Where a table is named, or with ``table`` None a schema. ``schema`` is None where it is not written."""

    schema: Token | None
    table: Token | None

    def name(self, default_schema: str) -> TableName:
        """Return the name; unqualified ones belong to ``default_schema``."""
        return TableName(default_schema if self.schema is None else self.schema.text, "" if self.table is None else self.table.text)


class ElementKind(StrEnum):
    """What an element of a table is."""

    COLUMN = "column"
    INDEX = "index"
    FOREIGN_KEY = "foreign key"
    CHECK = "check"


@dataclass(frozen=True, slots=True, kw_only=True)
class Element:
    """A column, index or constraint, in CREATE TABLE or after ADD.

    ``index_kind`` is PRIMARY, UNIQUE, FULLTEXT, SPATIAL, VECTOR, COLUMNAR, HYBRID or ''. ``name`` is the column's or index's own,
    ``constraint`` the one after CONSTRAINT. ``condition`` is IF NOT EXISTS. ``body`` is the position after all of that.
    """

    span: Span
    kind: ElementKind
    body: int
    index_kind: str = ""
    name: Token | None = None
    constraint: Token | None = None
    condition: Span | None = None


class ClauseKind(StrEnum):
    """What a clause of ALTER TABLE does."""

    ADD = "add"
    ADD_PARTITION = "add partition"
    DROP_COLUMN = "drop column"
    DROP_INDEX = "drop index"
    DROP_PRIMARY_KEY = "drop primary key"
    DROP_FOREIGN_KEY = "drop foreign key"
    DROP_CONSTRAINT = "drop constraint"
    DROP_PARTITION = "drop partition"
    MODIFY = "modify"
    CHANGE = "change"
    RENAME_TABLE = "rename table"
    RENAME_COLUMN = "rename column"
    RENAME_INDEX = "rename index"
    ALTER_COLUMN = "alter column"
    ALTER_INDEX = "alter index"
    ALTER_CONSTRAINT = "alter constraint"
    EXCHANGE_PARTITION = "exchange partition"
    PARTITIONING = "partitioning"
    """Another change of partitions."""
    CONVERT = "convert"
    OTHER = "other"
    """Options of the table and of ALTER TABLE itself, and whatever is not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterClause:
    """One clause of ALTER TABLE.

    ``name`` is the column, index or partition that it is about, ``new_name`` what a RENAME or CHANGE calls it, ``table`` the other table of
    a RENAME or EXCHANGE. ``elements`` are what ADD adds, ``is_list`` with parentheses around them. ``body`` is the position after all
    names.
    """

    span: Span
    kind: ClauseKind
    body: int
    name: Token | None = None
    new_name: Token | None = None
    table: WrittenName | None = None
    elements: tuple[Element, ...] = ()
    is_list: bool = False
    condition: Span | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateTableStatement:
    """CREATE TABLE. ``body`` is the position after the name; the spans are empty where the statement has no such part."""

    table: WrittenName
    body: int
    like: WrittenName | None = None
    elements: tuple[Element, ...] = ()
    options: Span = (0, -1)
    partitioning: Span = (0, -1)
    if_not_exists: bool = False
    or_replace: bool = False
    is_temporary: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterTableStatement:
    """ALTER TABLE. ``is_understood``: each clause begins with a word that can begin one."""

    table: WrittenName
    clauses: tuple[AlterClause, ...]
    is_understood: bool
    ignore: Span | None = None
    condition: Span | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexStatement:
    """CREATE INDEX or DROP INDEX. ``parts`` are inside the parenthesis; options are in ``before_table`` and ``options``."""

    is_create: bool
    name: Token
    table: WrittenName
    index_kind: str
    before_table: Span
    parts: Span
    options: Span
    condition: Span | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateViewStatement:
    """CREATE VIEW. ``body`` is the position after the name."""

    view: WrittenName
    body: int
    or_replace: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaStatement:
    """CREATE, ALTER or DROP of a schema. ``schema`` None: the event's own."""

    verb: str
    schema: WrittenName | None
    options: Span
    has_condition: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DropTablesStatement:
    """DROP TABLE or DROP VIEW."""

    tables: tuple[WrittenName, ...]
    is_view: bool
    if_exists: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class RenameTablesStatement:
    """RENAME TABLE: pairs of an old and a new name, carried out in this order."""

    pairs: tuple[tuple[WrittenName, WrittenName], ...]
    condition: Span | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TruncateTableStatement:
    """TRUNCATE TABLE."""

    table: WrittenName


@dataclass(frozen=True, slots=True, kw_only=True)
class RecoverTableStatement:
    """RECOVER or FLASHBACK TABLE. ``table`` None: by the number of a job; ``new`` is what follows TO."""

    table: WrittenName | None
    new: WrittenName | None


Node: TypeAlias = (
    CreateTableStatement
    | AlterTableStatement
    | IndexStatement
    | CreateViewStatement
    | SchemaStatement
    | DropTablesStatement
    | RenameTablesStatement
    | TruncateTableStatement
    | RecoverTableStatement
)


@dataclass(frozen=True, slots=True)
class Tree:
    """A statement that was read."""

    text: str
    tokens: Sequence[Token]
    node: Node

    def part(self, first: int, last: int | None = None) -> Cursor:
        """Return a cursor over the tokens from ``first`` to ``last``, or to the end."""
        return Cursor(self.text, self.tokens, first, last)

    @property
    def elements(self) -> Iterator[Element]:
        """Columns, indexes and constraints that CREATE TABLE lists, or that ALTER TABLE adds."""
        match self.node:
            case CreateTableStatement(elements=elements):
                yield from elements
            case AlterTableStatement(clauses=clauses):
                for clause in clauses:
                    yield from clause.elements
            case _:
                return


class Edit(NamedTuple):
    """The text from ``start`` to ``end`` becomes ``text``."""

    start: int
    end: int
    text: str


class Action(Enum):
    """What happens to marked tokens."""

    DROP = "drop"
    TIDB = "tidb"
    """They move into a comment that only TiDB executes."""
    REPLACE = "replace"


class Mark(NamedTuple):
    """The tokens from ``first`` to ``last`` (indexes), and what happens to them."""

    first: int
    last: int
    action: Action
    text: str = ""


def edited(text: str, edits: Iterable[Edit]) -> str:
    """Return the text with all edits made; they must not overlap."""
    pieces, at = list[str](), 0
    # Lists inside of clauses yield their edits apart from the edits of the clauses.
    for start, end, new in sorted(edits):
        pieces += [text[at:start], new]
        at = end
    return "".join([*pieces, text[at:]])


def quoted_name(name: str) -> str:
    """Write a name as MySQL quotes it."""
    return "`" + name.replace("`", "``") + "`"


def list_edits(text: str, tokens: Sequence[Token], items: Sequence[Span], marks: Iterable[Mark]) -> Iterator[Edit]:
    """Edit a list with commas between its items. An item that is removed takes one comma with it, so that the list stays valid."""
    fates = list(_with_marks(items, marks))
    # Commas: an item that goes takes the one before it, and the first items take the next one, until one has stayed.
    last_that_stays = max((index for index, item in enumerate(fates) if item.whole is not Action.DROP), default=-1)
    is_first = True
    for index, item in enumerate(fates):
        if item.whole is None:
            is_first = False
            yield from (_mark_edit(text, tokens, mark) for mark in item.marks)
            continue
        is_followed = index < last_that_stays
        commas = (", ", "") if not is_first else ("", " ," if is_followed else "")
        yield from _whole_edits(text, tokens, item, commas)
        comma = item.span[0] - 1 if not is_first else item.span[1] + 1
        # The only item of a list has no comma to take.
        if not is_first or index + 1 < len(fates):
            yield Edit(tokens[comma].start, tokens[comma].end, "")


class _Item(NamedTuple):
    """``whole``: what happens to all of its tokens: DROP or TIDB; None if some of them stay."""

    span: Span
    marks: list[Mark]
    whole: Action | None


def _with_marks(items: Sequence[Span], marks: Iterable[Mark]) -> Iterator[_Item]:
    waiting = sorted(marks, key=lambda mark: mark.first, reverse=True)
    for span in items:
        own = list[Mark]()
        while waiting and waiting[-1].first <= span[1]:
            own.append(waiting.pop())
        yield _Item(span, own, _whole(span, own))


def _whole(span: Span, marks: Sequence[Mark]) -> Action | None:
    at = span[0]
    for mark in marks:
        if mark.first != at or mark.action is Action.REPLACE:
            return None
        at = mark.last + 1
    if at <= span[1]:
        return None
    return Action.TIDB if any(mark.action is Action.TIDB for mark in marks) else Action.DROP


def _whole_edits(text: str, tokens: Sequence[Token], item: _Item, commas: tuple[str, str]) -> Iterator[Edit]:
    """Remove an item; the first and the last that TiDB gets carry the comma that TiDB must see."""
    kept = [mark for mark in item.marks if mark.action is Action.TIDB]
    for mark in item.marks:
        before = commas[0] if kept and mark is kept[0] else ""
        after = commas[1] if kept and mark is kept[-1] else ""
        yield _mark_edit(text, tokens, mark, before, after)


def _mark_edit(text: str, tokens: Sequence[Token], mark: Mark, before: str = "", after: str = "") -> Edit:
    start, end = tokens[mark.first].start, tokens[mark.last].end
    match mark.action:
        case Action.REPLACE:
            return Edit(start, end, mark.text)
        case Action.TIDB:
            # Token by token: a comment inside would end the one around it.
            inside = "".join(_spaced(text, tokens, at, is_first=at == mark.first) for at in range(mark.first, mark.last + 1))
            return Edit(start, end, f"{TIDB_ONLY[0]}{before}{inside}{after}{TIDB_ONLY[1]}")
        case Action.DROP:
            return Edit(start - 1 if text[start - 1 : start] in {" ", "\n", "\t"} else start, end, "")


def _spaced(text: str, tokens: Sequence[Token], at: int, *, is_first: bool) -> str:
    """Return a token with a blank before it, but not inside of a number: 0.5 is three tokens."""
    is_inside = tokens[at].start == tokens[at - 1].end and "." in {tokens[at].kind, tokens[at - 1].kind}
    return ("" if is_first or is_inside else " ") + text[tokens[at].start : tokens[at].end]


TIDB_ONLY: Final = ("/*T! ", " */")


def with_new_names(expression: str, names: Mapping[str, str]) -> str:
    """Return an expression with its columns renamed. ``names``: casefolded old name -> new name. A function keeps its name."""
    try:
        tokens = scan(expression)
    except DdlSyntaxError:
        return expression
    edits = []
    for token, after in zip(tokens, [*tokens[1:], None], strict=True):
        new = names.get(token.text.casefold()) if token.is_name else None
        is_call = token.kind == "word" and after is not None and after.kind == "("
        if new is not None and new != token.text and not is_call:
            edits.append(Edit(token.start, token.end, "`" + new.replace("`", "``") + "`"))
    return edited(expression, edits)
