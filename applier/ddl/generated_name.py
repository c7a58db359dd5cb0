"""Writes the names that upstream gives to unnamed indexes, foreign keys and checks into a statement. Pure.

Each server names what a statement leaves unnamed by rules of its own. An index of an expression is ``expression_index`` for TiDB and
``functional_index`` for MySQL; a foreign key is ``fk_1`` or ``t_ibfk_1``. A later statement names it as upstream does, so it must have
upstream's name in the sink. The rules of TiDB (``pkg/ddl``: checkConstraintNames, GetName4AnonymousIndex, BuildTableInfo, AlterTable):

- CREATE TABLE: named indexes first, then the unnamed ones of the list, then those inside of columns. The name is that of the first column,
  or ``expression_index`` if a part is an expression; where it is taken, ``_2``, ``_3``, … follows. An unnamed primary key takes a name too.
- ALTER TABLE: the first part alone decides, and only the indexes before the statement count, including indexes that it drops.
- A foreign key: ``fk_`` and its number among all that the table has ever had. The name after CONSTRAINT goes before the index's own.
- A foreign key has an index of its own name, unless an index or the primary key begins with its columns.

MySQL numbers all checks of a CREATE TABLE in their order, also checks of columns: ``t_chk_1``, ``t_chk_2``. A RENAME TABLE changes these
names too. MariaDB numbers the checks of the table only: ``CONSTRAINT_1``; the check of a column has no name. An unnamed check that an ALTER
TABLE adds is skipped: its number depends on which checks were dropped before.

Upstream's TiDB keeps the names of foreign keys apart by table; MySQL and MariaDB have one set of names for each schema. So a name that
another table has gets a number here (``fk_1#2``), which stays with the key when its table is renamed. And both servers rename ``t_ibfk_1``
with its table, which TiDB does not.

``TableHistory``: the sink lacks some indexes (``adaptation.py``), and does not keep the numbers of dropped foreign keys. The
ledger holds every statement, so it knows both. A table that came with a dump has a history without its beginning.
"""

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Final, NamedTuple

from applier.ddl.adaptation import Target, is_impossible, is_left_out
from applier.ddl.clause import ADD_FULLTEXT_INDEX
from applier.ddl.names import DdlKind, DdlStatement, parse_ddl
from applier.ddl.old_values import MARIADB, MYSQL, kind_of_upstream
from applier.ddl.parser import parse, parse_or_none
from applier.ddl.table_draft import PRIMARY
from applier.ddl.tokens import Cursor, DdlSyntaxError, Token
from applier.ddl.tree import (
    AlterClause,
    AlterTableStatement,
    ClauseKind,
    CreateTableStatement,
    Edit,
    Element,
    ElementKind,
    IndexStatement,
    Span,
    Tree,
    edited,
    quoted_name,
)
from applier.model.events import DdlEvent, FoldedName

_VECTOR_INDEX: Final = "vector_index"
_SERIAL: Final = "BIGINT UNSIGNED NOT NULL AUTO_INCREMENT"

Columns = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TableNames:
    """What a table has upstream before a statement.

    ``indexes``: the whole columns of each index, up to the first part that is not a whole column, all casefolded. ``foreign_keys``: how
    many it has ever had.
    """

    indexes: Mapping[str, Columns] = field(default_factory=dict)
    foreign_keys: int = 0


class Naming(NamedTuple):
    """The rules of a server: TiDB's, or MySQL's, which include MariaDB's."""

    expression: str
    is_tidb: bool


TIDB_NAMING: Final = Naming("expression_index", is_tidb=True)
MYSQL_NAMING: Final = Naming("functional_index", is_tidb=False)


def with_generated_names(query: str, before: TableNames, naming: Naming = TIDB_NAMING) -> str:
    """Return the statement with a name for each index and foreign key; one that cannot be read stays as it is.

    Foreign keys, and indexes inside of columns, are named by TiDB's rules only: MySQL and MariaDB have the same ones for them.
    """
    try:
        tree = parse(query)
        match tree.node:
            case CreateTableStatement() as node:
                return edited(query, _CreateTable(tree, naming).edits(node))
            case AlterTableStatement() as node:
                return edited(query, _AlterTable(tree, naming, before).edits(node))
            case _:
                return query
    except DdlSyntaxError:
        return query


class _KeyPart(NamedTuple):
    """A part of an index; ``column`` is '' for an expression."""

    column: str
    is_prefix: bool = False


@dataclass(frozen=True, slots=True)
class _Key:
    """An index of a statement. ``inline``: the words in the column ``element`` that make it."""

    element: Element
    name: str
    parts: tuple["_KeyPart", ...]
    is_primary: bool = False
    inline: Span | None = None

    @property
    def columns(self) -> Columns:
        """The leading columns that are whole."""
        whole = takewhile(lambda part: part.column and not part.is_prefix, self.parts)
        return tuple(part.column.casefold() for part in whole)


class _Statement:
    """What both statements share: reading keys, and the edits that write names."""

    def __init__(self, tree: Tree, naming: Naming) -> None:
        self._tree, self._naming = tree, naming

    def _key(self, element: Element) -> _Key:
        # The name after CONSTRAINT: TiDB puts it before the index's own, MySQL behind.
        names = (element.constraint, element.name) if self._naming.is_tidb else (element.name, element.constraint)
        token = names[0] or names[1]
        cursor = self._tree.part(element.body, element.span[1])
        if cursor.accept_any("USING", "TYPE"):
            cursor.next()
        parts = tuple(map(_part, cursor.parenthesis().split()))
        if not parts:
            raise cursor.unexpected("the columns of an index")
        return _Key(element, "" if token is None else token.text, parts, is_primary=element.index_kind == "PRIMARY")

    def _inline(self, element: Element) -> Iterator[_Key]:
        """Yield the keys inside of a column's definition."""
        tokens, depth, at, last = self._tree.tokens, 0, element.body, element.span[1]
        parts = (_KeyPart("" if element.name is None else element.name.text),)
        while at <= last:
            word, begin = tokens[at].keyword, at
            depth += (word == "(") - (word == ")")
            if depth == 0 and (word in {"UNIQUE", "PRIMARY", "KEY"} or (word == "SERIAL" and at == element.body)):
                at += word in {"UNIQUE", "PRIMARY"} and self._tree.part(at + 1, last).sees("KEY")
                yield _Key(element, "", parts, is_primary=word in {"PRIMARY", "KEY"}, inline=(begin, at))
            at += 1

    def _prefix(self, key: _Key, parts: Sequence[_KeyPart]) -> str:
        """Return what the name of an unnamed key begins with."""
        if all(part.column for part in parts):
            return parts[0].column
        return _VECTOR_INDEX if key.element.index_kind == "VECTOR" else self._naming.expression

    def _write_key(self, key: _Key, name: str) -> Iterator[Edit]:
        """Write the name of an index that is in a list."""
        element, tokens = key.element, self._tree.tokens
        if element.name is not None and element.name.text != name:
            yield Edit(element.name.start, element.name.end, quoted_name(name))
        elif element.name is None and element.constraint is None:
            start = tokens[element.body].start
            yield Edit(start, start, quoted_name(name) + " ")

    def _write_foreign_key(self, element: Element, name: str, index: str) -> Iterator[Edit]:
        """Write the name of a foreign key. ``index``: the text before it in the list, '' or the definition of its index."""
        first = self._tree.tokens[element.span[0]]
        if element.constraint is None and first.keyword != "CONSTRAINT":
            index += f"CONSTRAINT {quoted_name(name)} "
        elif element.constraint is None:
            yield Edit(first.end, first.end, f" {quoted_name(name)}")
        yield Edit(first.start, first.start, index)
        # MySQL takes it for the name of the index only.
        if element.name is not None:
            yield Edit(element.name.start, element.name.end, "")

    def _columns_of(self, element: Element) -> Columns:
        return tuple(_part(part).column for part in self._tree.part(element.body, element.span[1]).parenthesis().split())


class _CreateTable(_Statement):
    """Names what a CREATE TABLE makes."""

    def edits(self, node: CreateTableStatement) -> Iterator[Edit]:
        """Yield the edits that write the names."""
        if not node.elements or node.like is not None:
            return
        listed = [self._key(element) for element in node.elements if element.kind is ElementKind.INDEX]
        inline = [key for element in node.elements if element.kind is ElementKind.COLUMN for key in self._inline(element)]
        names = self._names(node, self._in_order(listed, inline))
        added = list[str]()
        for key in listed:
            if not key.is_primary:
                yield from self._write_key(key, names[id(key)])
        if self._naming.is_tidb:
            for key in inline:
                if not key.is_primary and names[id(key)].casefold() != key.parts[0].column.casefold():
                    yield from self._take_out(key)
                    added.append(f"UNIQUE {_plain(names[id(key)], [key.parts[0].column])}")
            covered = {PRIMARY if key.is_primary else names[id(key)]: key.columns for key in [*listed, *inline]}
            yield from self._foreign_keys(node, covered)
        if added:
            end = self._tree.tokens[node.elements[-1].span[1]].end
            yield Edit(end, end, "".join(f", {one}" for one in added))

    def _in_order(self, listed: Sequence[_Key], inline: Sequence[_Key]) -> list[_Key]:
        """Return the keys in the order in which the server names them."""
        if self._naming.is_tidb:
            return [*listed, *inline]
        return sorted([*listed, *inline], key=lambda key: key.element.span)

    def _names(self, node: CreateTableStatement, keys: Sequence[_Key]) -> dict[int, str]:
        taken = {key.name.casefold() for key in keys if key.name and (self._naming.is_tidb or not key.is_primary)}
        if self._naming.is_tidb:
            taken |= {e.constraint.text.casefold() for e in node.elements if e.kind is ElementKind.CHECK and e.constraint is not None}
        names = dict[int, str]()
        for key in keys:
            if key.is_primary and not self._naming.is_tidb:
                continue
            name = key.name or _free(self._prefix(key, key.parts), taken)
            taken.add(name.casefold())
            names[id(key)] = name
        return names

    def _take_out(self, key: _Key) -> Iterator[Edit]:
        """Take a key out of its column: there it cannot have a name."""
        first, last = key.inline or (0, -1)
        tokens = self._tree.tokens
        text = _SERIAL if tokens[first].keyword == "SERIAL" else ""
        yield Edit(tokens[first].start, tokens[last].end, text)

    def _foreign_keys(self, node: CreateTableStatement, covered: dict[str, Columns]) -> Iterator[Edit]:
        keys = [element for element in node.elements if element.kind is ElementKind.FOREIGN_KEY]
        for number, element in enumerate(keys, start=1):
            token = element.constraint or element.name
            name = f"fk_{number}" if token is None else token.text
            columns, index = self._columns_of(element), ""
            if not _covers(covered, columns):
                covered[name] = tuple(column.casefold() for column in columns)
                index = f"{_plain(name, columns)}, "
            yield from self._write_foreign_key(element, name, index)


class _AlterTable(_Statement):
    """Names what an ALTER TABLE adds."""

    def __init__(self, tree: Tree, naming: Naming, before: TableNames) -> None:
        super().__init__(tree, naming)
        self._before = before
        self._numbered = before.foreign_keys

    def edits(self, node: AlterTableStatement) -> Iterator[Edit]:
        """Yield the edits that write the names."""
        taken = self._taken(node)
        for element, separator in _columns_and_added(node):
            if element.kind is ElementKind.INDEX and element.index_kind != "PRIMARY":
                yield from self._index(element, taken)
            elif element.kind is ElementKind.FOREIGN_KEY and self._naming.is_tidb:
                yield from self._foreign_key(element, separator)
            elif element.kind is ElementKind.COLUMN and not self._naming.is_tidb:
                for key in (key for key in self._inline(element) if not key.is_primary):
                    taken.add(_free(key.parts[0].column, taken).casefold())

    def _taken(self, node: AlterTableStatement) -> set[str]:
        taken = set(self._before.indexes)
        if not self._naming.is_tidb:
            # MySQL names the new indexes of the table as it will be.
            gone = {ClauseKind.DROP_INDEX, ClauseKind.RENAME_INDEX}
            taken -= {clause.name.text.casefold() for clause in node.clauses if clause.kind in gone and clause.name is not None}
            taken |= {clause.new_name.text.casefold() for clause in node.clauses if clause.kind in gone and clause.new_name is not None}
        return taken

    def _index(self, element: Element, taken: set[str]) -> Iterator[Edit]:
        key = self._key(element)
        name = key.name or _free(self._prefix(key, key.parts[:1] if self._naming.is_tidb else key.parts), taken)
        # TiDB knows the indexes before the statement only.
        if not self._naming.is_tidb:
            taken.add(name.casefold())
        yield from self._write_key(key, name)

    def _foreign_key(self, element: Element, separator: str) -> Iterator[Edit]:
        token = element.constraint or element.name
        if token is None:
            self._numbered += 1
        name = f"fk_{self._numbered}" if token is None else token.text
        columns, present = self._columns_of(element), self._before.indexes
        has_index = _covers(present, columns) or name.casefold() in present
        yield from self._write_foreign_key(element, name, "" if has_index else _plain(name, columns) + separator)


def _columns_and_added(node: AlterTableStatement) -> Iterator[tuple[Element, str]]:
    """Yield what an ALTER TABLE adds, and the columns that it defines again; with the separator between two added elements."""
    for clause in node.clauses:
        if clause.kind in {ClauseKind.MODIFY, ClauseKind.CHANGE}:
            name = clause.new_name or clause.name
            yield Element(span=clause.span, kind=ElementKind.COLUMN, body=clause.body, name=name), ""
        for element in clause.elements:
            yield element, ", " if clause.is_list else ", ADD "


def _part(part: Cursor) -> _KeyPart:
    return _KeyPart(part.name(), part.sees("(")) if part.is_at_name() else _KeyPart("")


def _free(base: str, taken: Collection[str]) -> str:
    name, number = base, 2
    # No other index is called like the primary key.
    while name.casefold() in taken or name.casefold() == PRIMARY.casefold():
        name, number = f"{base}_{number}", number + 1
    return name


def _covers(indexes: Mapping[str, Columns], columns: Sequence[str]) -> bool:
    wanted = tuple(column.casefold() for column in columns)
    return any(found[: len(wanted)] == wanted for found in indexes.values())


def _plain(name: str, columns: Sequence[str]) -> str:
    return f"KEY {quoted_name(name)} ({', '.join(map(quoted_name, columns))})"


_OF_MYSQL: Final = "{table}_chk_{number}"
_OF_MARIADB: Final = "CONSTRAINT_{number}"


@dataclass(frozen=True, slots=True)
class DroppedCheck:
    """A clause that drops a constraint by name. ``is_check``: it says DROP CHECK, which MariaDB does not know."""

    clause: AlterClause
    name: str
    is_check: bool


def dropped_checks(query: str) -> list[DroppedCheck]:
    """Return the clauses of an ALTER TABLE that drop a check, or a constraint of another kind, by name."""
    tree = parse_or_none(query)
    if tree is None or not isinstance(tree.node, AlterTableStatement):
        return []
    return [
        DroppedCheck(clause, clause.name.text, tree.part(*clause.span).sees("DROP", "CHECK"))
        for clause in tree.node.clauses
        if clause.kind is ClauseKind.DROP_CONSTRAINT and clause.name is not None
    ]


def with_dropped_checks(query: str, names: Sequence[tuple[DroppedCheck, str]], *, says_constraint: bool) -> str:
    """Return the statement with other names of the checks that it drops; their IF EXISTS goes. ``says_constraint``: and no DROP CHECK."""
    return edited(query, _edits(parse(query), names, says_constraint=says_constraint))


def _edits(tree: Tree, names: Sequence[tuple[DroppedCheck, str]], *, says_constraint: bool) -> Iterator[Edit]:
    for dropped, name in names:
        clause, token = dropped.clause, dropped.clause.name
        if token is not None and name != dropped.name:
            yield Edit(token.start, token.end, quoted_name(name))
            if clause.condition is not None:
                first, last = clause.condition
                yield Edit(tree.tokens[first].start, tree.tokens[last].end, "")
        if says_constraint and dropped.is_check:
            word = tree.tokens[clause.span[0] + 1]
            yield Edit(word.start, word.end, "CONSTRAINT")


def checks_after(checks: Mapping[str, str], ddl: DdlEvent) -> dict[str, str]:
    """Return the checks of a table whose names are certain after a statement: casefolded name upstream -> expression."""
    tree, kind = parse_or_none(ddl.query), kind_of_upstream(ddl)
    if tree is None or kind not in {MYSQL, MARIADB}:
        return {}
    found, is_mysql = dict(checks), kind == MYSQL
    match tree.node:
        case CreateTableStatement() as node:
            # LIKE names them again.
            return {} if node.like is not None else _made(tree, node, node.table.name(ddl.schema).table, is_mysql=is_mysql)
        case AlterTableStatement(clauses=clauses):
            for clause in clauses:
                if clause.kind is ClauseKind.DROP_CONSTRAINT and clause.name is not None:
                    found.pop(clause.name.text.casefold(), None)
            elements = [element for clause in clauses for element in clause.elements if element.kind is ElementKind.CHECK]
            found |= {name.casefold(): expression for element in elements for name, expression in _checks(tree, element) if name}
    return _renamed(found, ddl) if is_mysql else found


def _made(tree: Tree, node: CreateTableStatement, table: str, *, is_mysql: bool) -> dict[str, str]:
    found, number = dict[str, str](), 0
    for element in node.elements:
        for name, expression in _checks(tree, element):
            if element.kind is ElementKind.COLUMN and not is_mysql:
                continue
            number += not name
            generated = (_OF_MYSQL if is_mysql else _OF_MARIADB).format(table=table, number=number)
            found[(name or generated).casefold()] = expression
    return found


def _checks(tree: Tree, element: Element) -> Iterator[tuple[str, str]]:
    """Yield the checks of an element with their names, '' for none."""
    if element.kind is ElementKind.CHECK:
        yield "" if element.constraint is None else element.constraint.text, _parenthesis(tree, element.body)
    if element.kind is not ElementKind.COLUMN:
        return
    tokens, depth = tree.tokens, 0
    for at in range(element.body, element.span[1] + 1):
        word = tokens[at].keyword
        depth += (word == "(") - (word == ")")
        if depth == 0 and word == "CHECK" and at < element.span[1] and tokens[at + 1].keyword == "(":
            is_named = at - 2 >= element.body and tokens[at - 2].keyword == "CONSTRAINT"
            yield tokens[at - 1].text if is_named else "", _parenthesis(tree, at + 1)


def _parenthesis(tree: Tree, at: int) -> str:
    """Return the text in the parenthesis that opens at a token."""
    tokens, depth = tree.tokens, 0
    for last in range(at, len(tokens)):
        depth += (tokens[last].keyword == "(") - (tokens[last].keyword == ")")
        if depth == 0:
            return tree.text[tokens[at].end : tokens[last].start]
    raise DdlSyntaxError("a parenthesis that closes", tree.text)


def _renamed(checks: dict[str, str], ddl: DdlEvent) -> dict[str, str]:
    """Return the checks as MySQL calls them after a RENAME of their table."""
    statement = parse_ddl(ddl)
    for old, new in () if statement is None else statement.renames:
        pattern = re.compile(re.escape(old.table.casefold()) + r"_chk_(\d+)")
        checks = {
            _OF_MYSQL.format(table=new.table.casefold(), number=found[1]) if (found := pattern.fullmatch(name)) else name: expression
            for name, expression in checks.items()
        }
    return checks


_NUMBERED: Final = re.compile(r"(?P<name>.*)#\d+", re.DOTALL)
_OF_TABLE: Final = re.compile(r".*(?P<number>_ibfk_\d+)", re.DOTALL)


def has_foreign_keys(query: str) -> bool:
    """Return whether the statement makes or drops foreign keys."""
    tree = parse_or_none(query)
    if tree is None:
        return False
    return any(True for _ in _made_keys(tree)) or any(True for _ in _dropped(tree))


def with_free_names(query: str, table: str, own: Collection[str], others: Collection[str]) -> str:
    """Return the statement with names for the foreign keys that it makes and drops as the sink has them.

    ``table`` is its table's name; ``own``: the foreign keys of that table, ``others``: of the schema's other tables.
    """
    tree = parse(query)
    taken = {name.casefold() for name in (*own, *others)}
    edits = list[Edit]()
    for token in _made_keys(tree):
        if token.text.casefold() in {name.casefold() for name in others}:
            edits.append(_renamed_key(token, _free_key_name(token.text, taken)))
    for token in _dropped(tree):
        edits += [_renamed_key(token, name) for name in own if _is_same(token.text, name, table)]
    return edited(query, edits)


def _is_same(wanted: str, name: str, table: str) -> bool:
    """Return whether ``name`` is the sink's other name of the key ``wanted``."""
    numbered, of_table = _NUMBERED.fullmatch(name), _OF_TABLE.fullmatch(wanted)
    after_rename = "" if of_table is None else table + of_table["number"]
    folded = name.casefold()
    if folded == wanted.casefold():
        return False
    return folded == after_rename.casefold() or (numbered is not None and numbered["name"].casefold() == wanted.casefold())


def _free_key_name(name: str, taken: set[str]) -> str:
    number = 2
    while f"{name}#{number}".casefold() in taken:
        number += 1
    taken.add(f"{name}#{number}".casefold())
    return f"{name}#{number}"


def _renamed_key(token: Token, name: str) -> Edit:
    return Edit(token.start, token.end, quoted_name(name))


def _made_keys(tree: Tree) -> Iterator[Token]:
    for element in tree.elements:
        if element.kind is ElementKind.FOREIGN_KEY and element.constraint is not None:
            yield element.constraint


def _dropped(tree: Tree) -> Iterator[Token]:
    for clause in tree.node.clauses if isinstance(tree.node, AlterTableStatement) else ():
        if clause.kind is ClauseKind.DROP_FOREIGN_KEY and clause.name is not None:
            yield clause.name


class PastDdl(NamedTuple):
    """A statement that upstream has run; ``is_skipped``: the sink has not; ``is_open``: the sink still runs it."""

    ddl: DdlEvent
    touches: frozenset[FoldedName] | None
    is_skipped: bool = False
    is_open: bool = False


@dataclass(slots=True)
class TableHistory:
    """``left_out``: the indexes that upstream has and the sink lacks; ``indexes``: all that are known; names casefolded."""

    indexes: set[str] = field(default_factory=set)
    left_out: set[str] = field(default_factory=set)
    foreign_keys: int = 0
    checks: dict[str, str] = field(default_factory=dict)
    """Checks whose upstream names are certain: casefolded name -> expression."""


class Past:
    """Statements in the order in which they ran, and their effect on tables. Not thread-safe.

    A table's history is kept, and continues with the statements that were added since. A replica may have ten thousand statements about one
    table, and asks before each that is about an index.
    """

    def __init__(self, target: Target, naming: Naming = TIDB_NAMING) -> None:
        self.rules = target, naming
        self._all: list[PastDdl] = []
        # Where the statements about a name are, and under None statements that may be about every name.
        self._about: dict[FoldedName | None, list[int]] = defaultdict(list)
        self._known: dict[FoldedName, tuple[int, TableHistory]] = {}

    def add(self, past: PastDdl) -> None:
        """Add a statement that ran after all others."""
        for name in (None,) if past.touches is None else past.touches:
            self._about[name].append(len(self._all))
        self._all.append(past)

    def history(self, name: FoldedName, later: Sequence[PastDdl] = ()) -> TableHistory:
        """Return the statements' effect on the table that is now called ``name``.

        ``later``: some that ran after them, and are not kept.
        """
        if later:
            return self._with(later).history(name)
        found, begun = self._of_table(name)
        history = TableHistory(set(begun.indexes), set(begun.left_out), begun.foreign_keys, begun.checks)
        for one in found:
            _apply(history, one, *self.rules)
        self._known[name] = len(self._all), history
        return history

    def _with(self, later: Sequence[PastDdl]) -> "Past":
        """Return a copy with more statements."""
        more = Past(*self.rules)
        more._all, more._known = list(self._all), dict(self._known)
        more._about.update({name: list(places) for name, places in self._about.items()})
        for one in later:
            more.add(one)
        return more

    def _of_table(self, name: FoldedName) -> tuple[list[PastDdl], TableHistory]:
        """Return the statements that have changed the table since a history of it that is known, and that history.

        Nothing is known before its creation; statements of the table that it was made LIKE come first.
        """
        found = list[PastDdl]()
        end = len(self._all)
        while True:
            upto, known = self._known.get(name, (0, TableHistory()))
            at = self._last_about(name, end)
            if at < upto <= end or at < 0:
                return found[::-1], known if at < upto <= end else TableHistory()
            one, end = self._all[at], at
            statement = parse_ddl(one.ddl)
            if statement is None:
                continue
            found.append(one)
            for old, new in reversed(statement.renames):
                name = old.fold() if new.fold() == name else name
            if name in {created.fold() for created in statement.creates}:
                if statement.kind is not DdlKind.CREATE_TABLE_LIKE:
                    return found[::-1], TableHistory()
                name = statement.needs[0].fold()
            elif _ends(statement, name):
                return found[:-1][::-1], TableHistory()

    def _last_about(self, name: FoldedName, end: int) -> int:
        """Return where the last statement before ``end`` is that may be about a table; -1: there is none."""
        places = (self._about.get(about, ()) for about in (name, name.schema_name, None))
        return max((found[at - 1] for found in places if (at := bisect_left(found, end))), default=-1)


def _ends(statement: DdlStatement, name: FoldedName) -> bool:
    is_schemas = statement.kind is DdlKind.DROP_SCHEMA and statement.schema.casefold() == name.schema
    return is_schemas or name in {dropped.fold() for dropped in statement.drops}


def _apply(history: TableHistory, past: PastDdl, target: Target, naming: Naming) -> None:
    history.checks = checks_after(history.checks, past.ddl)
    names = TableNames(dict.fromkeys(history.indexes, ()), history.foreign_keys)
    tree = parse_or_none(with_generated_names(past.ddl.query, names, naming))
    if tree is None:
        return
    for name, is_out in _added(tree, past, target):
        history.indexes.add(name)
        (history.left_out.add if is_out or past.is_skipped else history.left_out.discard)(name)
    match tree.node:
        case CreateTableStatement(elements=elements):
            history.foreign_keys += _foreign_keys(elements)
        case IndexStatement(is_create=False, name=token):
            _drop(history, token.text.casefold())
        case AlterTableStatement() as node:
            _alter(history, node)


def _alter(history: TableHistory, node: AlterTableStatement) -> None:
    for clause in node.clauses:
        history.foreign_keys += _foreign_keys(clause.elements)
        if clause.name is None:
            continue
        name = clause.name.text.casefold()
        if clause.kind is ClauseKind.DROP_INDEX:
            _drop(history, name)
        elif clause.kind is ClauseKind.RENAME_INDEX and clause.new_name is not None:
            new = clause.new_name.text.casefold()
            history.indexes.add(new)
            if name in history.left_out:
                history.left_out.add(new)
            _drop(history, name)


def _drop(history: TableHistory, name: str) -> None:
    history.indexes.discard(name)
    history.left_out.discard(name)


def _added(tree: Tree, past: PastDdl, target: Target) -> Iterator[tuple[str, bool]]:
    """Yield the name of each index that the statement makes, and whether the sink lacks it."""
    # TiDB reads FULLTEXT and makes such an index where it can, and the sink gets it by a statement of its own type only.
    has_fulltext = past.ddl.is_of_log or past.ddl.ddl_type == ADD_FULLTEXT_INDEX
    match tree.node:
        case IndexStatement(is_create=True) as node:
            is_out = is_left_out(tree, node, target) or (node.index_kind == "FULLTEXT" and not has_fulltext)
            yield node.name.text.casefold(), is_out
        case CreateTableStatement(elements=elements):
            yield from _of_elements(tree, elements, target, has_fulltext=has_fulltext)
        case AlterTableStatement(clauses=clauses):
            for clause in clauses:
                yield from _of_elements(tree, clause.elements, target, has_fulltext=has_fulltext)


def _of_elements(tree: Tree, elements: Sequence[Element], target: Target, *, has_fulltext: bool) -> Iterator[tuple[str, bool]]:
    for element in elements:
        token = element.name or element.constraint
        if element.kind is ElementKind.INDEX and token is not None:
            is_out = is_impossible(tree, element, target) or (element.index_kind == "FULLTEXT" and not has_fulltext)
            yield token.text.casefold(), is_out


def _foreign_keys(elements: Sequence[Element]) -> int:
    return sum(element.kind is ElementKind.FOREIGN_KEY for element in elements)
