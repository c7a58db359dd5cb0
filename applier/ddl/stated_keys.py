"""The foreign keys that upstream's statements have made: for sinks whose tables have none. Pure.

A key whose state is not certain stays: a dropped key that is named does less harm than a missed one.

The unique and primary keys that a statement makes, where its text names their columns.

The indexes and keys that a statement is about by name, and whether it names some that it must find. Pure.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from applier.ddl.names import DdlKind, parse_ddl
from applier.ddl.parser import parse, parse_or_none, read_element
from applier.ddl.tokens import Cursor, DdlSyntaxError, Token
from applier.ddl.tree import AlterTableStatement, ClauseKind, CreateTableStatement, Element, ElementKind, IndexStatement, Tree
from applier.model.events import DdlEvent, FoldedName, TableName

_NAME: Final = r"(?:`(?:[^`]|``)+`|[^\s`.,()]+)"
_KEY: Final = re.compile(
    rf"(?:CONSTRAINT\s+(?P<name>{_NAME})\s+)?(?:FOREIGN\s+KEY\s*(?P<index>{_NAME})?\s*\([^)]*\)\s*)?"
    rf"REFERENCES\s+(?:(?P<schema>{_NAME})\s*\.\s*)?(?P<table>{_NAME})\s*(?:\([^)]*\))?(?P<rest>[^,()]*)",
    re.IGNORECASE,
)
_DROP: Final = re.compile(rf"DROP\s+(?:FOREIGN\s+KEY|CONSTRAINT)\s+(?:IF\s+EXISTS\s+)?(?P<name>{_NAME})", re.IGNORECASE)
_ACTION: Final = r"ON\s+{}\s+(CASCADE|SET\s+NULL|SET\s+DEFAULT|RESTRICT|NO\s+ACTION)"
_ON_DELETE: Final = re.compile(_ACTION.format("DELETE"), re.IGNORECASE)
_ON_UPDATE: Final = re.compile(_ACTION.format("UPDATE"), re.IGNORECASE)


class StatedKey(NamedTuple):
    """A foreign key of ``child`` as a statement has made it. ``name`` is '' if the statement gives none."""

    name: str
    child: FoldedName
    parent: FoldedName
    on_delete: str
    on_update: str


class StatedKeys:
    """The keys that are left after some statements, in their order."""

    def __init__(self, statements: Iterable[DdlEvent] = ()) -> None:
        self._keys: dict[FoldedName, list[StatedKey]] = {}
        for ddl in statements:
            self.add(ddl)

    def all(self) -> list[StatedKey]:
        """Return all of them."""
        return [key for keys in self._keys.values() for key in keys]

    def add(self, ddl: DdlEvent) -> bool:
        """Take the next statement; return whether it may have changed a key."""
        words = ddl.query.casefold()
        is_about_keys = "references" in words or "drop" in words or "rename" in words
        if not is_about_keys:
            return False
        statement = parse_ddl(ddl)
        if statement is not None:
            if statement.kind is DdlKind.DROP_SCHEMA:
                self._keys = {child: keys for child, keys in self._keys.items() if child.schema != statement.schema.casefold()}
            for table_name in statement.drops:
                self._keys.pop(table_name.fold(), None)
            self._rename({old.fold(): new.fold() for old, new in statement.renames})
        table = ddl.name.fold()
        for dropped in _DROP.finditer(ddl.query):
            name = _plain(dropped["name"])
            self._keys[table] = [key for key in self._keys.get(table, ()) if key.name.casefold() != name.casefold()]
        found = [_key_of(ddl, match) for match in _KEY.finditer(ddl.query)]
        if found:
            self._keys.setdefault(table, []).extend(found)
        return True

    def _rename(self, names: dict[FoldedName, FoldedName]) -> None:
        if names:
            keys = [key._replace(child=names.get(key.child, key.child), parent=names.get(key.parent, key.parent)) for key in self.all()]
            self._keys = {}
            for key in keys:
                self._keys.setdefault(key.child, []).append(key)


def _key_of(ddl: DdlEvent, match: "re.Match[str]") -> StatedKey:
    schema = ddl.schema if match["schema"] is None else _plain(match["schema"])
    actions = [found[1].upper() if (found := rule.search(match["rest"])) else "NO ACTION" for rule in (_ON_DELETE, _ON_UPDATE)]
    name = _plain(match["name"] or "")
    return StatedKey(name, ddl.name.fold(), TableName(schema, _plain(match["table"])).fold(), *(" ".join(rule.split()) for rule in actions))


def _plain(name: str) -> str:
    return name[1:-1].replace("``", "`") if name.startswith("`") else name


_UNIQUE: frozenset[str] = frozenset({"UNIQUE", "PRIMARY"})


class UniqueKey(NamedTuple):
    """A key's name ('' for an unnamed key) and plain columns, both casefolded."""

    name: str
    columns: frozenset[str]


def unique_keys_of(query: str) -> list[UniqueKey]:
    """Return the unique and primary keys that a statement makes; none if its text cannot be cut into tokens."""
    try:
        cursor = Cursor(query)
    except DdlSyntaxError:
        return []
    try:
        return list(_keys(parse(query)))
    except DdlSyntaxError:
        # A statement of a later TiDB: whatever it is, UNIQUE begins a key in it.
        places = [at for at, token in enumerate(cursor.tokens) if token.keyword in _UNIQUE]
        return [key for at in places for key in _of_index(read_element(cursor.part(at, cursor.last)), cursor)]


def _keys(tree: Tree) -> Iterator[UniqueKey]:
    match tree.node:
        case IndexStatement(index_kind="UNIQUE", name=name, parts=parts):
            yield UniqueKey(name.text.casefold(), _columns(tree.part(*parts)))
        case CreateTableStatement(elements=elements):
            yield from _of_elements(tree, elements)
        case AlterTableStatement(clauses=clauses):
            for clause in clauses:
                yield from _of_elements(tree, clause.elements)
                if clause.kind in {ClauseKind.MODIFY, ClauseKind.CHANGE}:
                    yield from _of_column(tree.part(clause.body, clause.span[1]), clause.new_name or clause.name)


def _of_elements(tree: Tree, elements: tuple[Element, ...]) -> Iterator[UniqueKey]:
    for element in elements:
        body = tree.part(element.body, element.span[1])
        yield from _of_column(body, element.name) if element.kind is ElementKind.COLUMN else _of_index(element, body)


def _of_index(element: Element, cursor: Cursor) -> Iterator[UniqueKey]:
    body = cursor.part(element.body, element.span[1])
    while not (body.is_done or body.sees("(")):
        body.next()
    if element.index_kind in _UNIQUE and not body.is_done:
        name = "" if element.name is None else element.name.text.casefold()
        yield UniqueKey(name, _columns(body.part(body.at + 1, body.last)))


def _of_column(definition: Cursor, name: Token | None) -> Iterator[UniqueKey]:
    """Read UNIQUE and PRIMARY KEY as attributes of a column."""
    if name is not None and any(token.keyword in _UNIQUE for token in definition.rest):
        yield UniqueKey("", frozenset({name.text.casefold()}))


def _columns(inside: Cursor) -> frozenset[str]:
    """Read the plain columns of a list: ``a, b(10) DESC``. Expressions have no name."""
    columns, depth, is_first = set[str](), 0, True
    while not inside.is_done and depth >= 0:
        token = inside.next()
        # After the name come its prefix and its order: b(10) DESC.
        if depth == 0 and is_first and token.is_name:
            columns.add(token.text.casefold())
        is_first = depth == 0 and token.kind == ","
        depth += (token.kind == "(") - (token.kind == ")")
    return frozenset(columns)


_BY_NAME = frozenset({ClauseKind.DROP_INDEX, ClauseKind.RENAME_INDEX, ClauseKind.ALTER_INDEX})
_NAMED = frozenset({ElementKind.INDEX, ElementKind.FOREIGN_KEY})


def found_by_name(query: str, *, is_of_log: bool = False) -> list[str]:
    """Return the indexes that the statement drops, renames or hides, and that its table must have.

    ``is_of_log``: it comes from a binlog, which also holds statements whose IF EXISTS found nothing.
    """
    tree = parse_or_none(query)
    if tree is None:
        return []
    match tree.node:
        case IndexStatement(is_create=False) as node:
            return [] if is_of_log and node.condition is not None else [node.name.text]
        case AlterTableStatement(clauses=clauses):
            # Of several clauses, one that changes nothing may be among others that do.
            is_sure = len(clauses) == 1 and not is_of_log
            return [
                clause.name.text
                for clause in clauses
                if clause.kind in _BY_NAME and clause.name is not None and (is_sure or clause.condition is None)
            ]
        case _:
            return []


def depends_on_names(query: str) -> bool:
    """Return whether the statement adds indexes or foreign keys to a table, or is about some by name."""
    tree = parse_or_none(query)
    if tree is None:
        return False
    match tree.node:
        case IndexStatement(is_create=False):
            return True
        case AlterTableStatement(clauses=clauses):
            added = any(element.kind in _NAMED for clause in clauses for element in clause.elements)
            return added or any(clause.kind in _BY_NAME for clause in clauses)
        case _:
            return False
