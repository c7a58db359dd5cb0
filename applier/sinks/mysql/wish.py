"""What a DDL wanted, and whether the catalogue shows it: the only way in which an "already so" error counts as done.

"Table exists" may mean that a crash lay between the DDL and its note in the ledger, or that somebody else's table is in the way.
Only kinds whose result can be read off the catalogue are judged; everything else, and every doubt, is False: ask the operator.
"""

import json
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from sqlalchemy import Connection

from applier.events import DdlEvent, TableName
from applier.sinks.mysql.catalogue import describe, schema_spelling, spellings
from applier.sinks.mysql.session import QUERIES
from applier.sinks.mysql.snapshot import snapshot
from applier.statement import Statement, StatementKind, parse_ddl
from applier.statement.cursor import NotUnderstood, Token, scan

DROPS = frozenset({StatementKind.DROP_TABLE, StatementKind.DROP_VIEW, StatementKind.DROP_SCHEMA})
_KEY_WORDS = frozenset({"PRIMARY", "KEY", "INDEX", "UNIQUE", "FULLTEXT", "SPATIAL", "CONSTRAINT", "FOREIGN", "CHECK", "VECTOR", "LIKE"})
_INDEX_KINDS = frozenset({"UNIQUE", "FULLTEXT", "SPATIAL"})


class Wish(NamedTuple):
    """Something that shall be there, or shall not: a ``column``, an ``index`` or a ``partition`` of the table."""

    what: str
    name: str
    is_present: bool


def is_fulfilled(connection: Connection, ddl: DdlEvent, before: str) -> bool:
    """Tell whether the catalogue shows what the DDL wanted. ``before`` describes the tables as they were (``snapshot``)."""
    statement = parse_ddl(ddl)
    match statement and statement.kind:
        case StatementKind.CREATE_SCHEMA | StatementKind.DROP_SCHEMA | StatementKind.DROP_TABLE | StatementKind.DROP_VIEW:
            return statement is not None and _has_existence(connection, statement)
        case StatementKind.CREATE_TABLE | StatementKind.CREATE_TABLE_LIKE:
            return statement is not None and _is_created(connection, statement, ddl)
        case StatementKind.RENAME_TABLE:
            return statement is not None and _is_renamed(connection, statement, before)
        case StatementKind.ALTER_TABLE | StatementKind.CREATE_INDEX | StatementKind.DROP_INDEX:
            return statement is not None and _is_altered(connection, statement, ddl)
        case _:
            return False


def _has_existence(connection: Connection, statement: Statement) -> bool:
    if statement.kind in DROPS and not statement.schema:
        return not spellings(connection, statement.drops)
    return (schema_spelling(connection, statement.schema) is None) == (statement.kind is StatementKind.DROP_SCHEMA)


def _is_created(connection: Connection, statement: Statement, ddl: DdlEvent) -> bool:
    """Compare names and order of the columns: what decides whether upstream's rows fit."""
    described = describe(connection, (*statement.creates, *statement.needs))
    made = described.get(statement.creates[0].fold())
    if made is None:
        return False
    present = [column.name.casefold() for column in made.columns]
    if statement.kind is StatementKind.CREATE_TABLE_LIKE:
        model = described.get(statement.needs[0].fold())
        return model is not None and present == [column.name.casefold() for column in model.columns]
    return present == created_columns(ddl.query)


def _is_renamed(connection: Connection, statement: Statement, before: str) -> bool:
    """The old name is absent, and the new one is as the old was: the same storage, or where that is not told the same definition."""
    were: dict[str, Any] = json.loads(before) if before else {}
    now: dict[str, Any] = json.loads(snapshot(connection, statement.names))
    for old, new in statement.renames:
        was, present = were.get(str(old.fold())), now.get(str(new.fold()))
        if was is None or present is None or now.get(str(old.fold())) is not None:
            return False
        if was.get("server") is not None and was["server"] == present["server"] and was["storage_ids"] != present["storage_ids"]:
            return False
        if _body(was["create"]) != _body(present["create"]):
            return False
    return True


def _body(create: str) -> str:
    """Return a table's definition without its name."""
    return create.partition("\n")[2]


def _is_altered(connection: Connection, statement: Statement, ddl: DdlEvent) -> bool:
    wishes = wishes_of(ddl.query)
    actual = spellings(connection, statement.needs).get(statement.needs[0].fold())
    if wishes is None or actual is None or statement.renames:
        return False
    present = _objects(connection, actual)
    return all(((wish.what, wish.name.casefold()) in present) == wish.is_present for wish in wishes)


def _objects(connection: Connection, actual: TableName) -> set[tuple[str, str]]:
    place = {"schema_name": actual.schema, "table_name": actual.table}
    columns = (column.name for column in describe(connection, [actual])[actual.fold()].columns)
    indexes = connection.execute(QUERIES["indexes_of"], place).scalars()
    partitions = connection.execute(QUERIES["partitions_of"], place).scalars()
    kinds = {"column": columns, "index": indexes, "partition": partitions}
    return {(what, name.casefold()) for what, names in kinds.items() for name in names}


def created_columns(query: str) -> list[str] | None:
    """Return the casefolded column names of a CREATE TABLE in order; None if they cannot be told."""
    try:
        tokens = scan(query)
    except NotUnderstood:
        return None
    first = next((index for index, token in enumerate(tokens) if token.kind == "("), None)
    if first is None:
        return None
    elements = list(_clauses(tokens[first + 1 :]))
    heads = [element[0] for element in elements if element]
    return [head.text.casefold() for head in heads if head.kind == "quoted" or head.text.upper() not in _KEY_WORDS]


def wishes_of(query: str) -> list[Wish] | None:
    """Return what an ALTER TABLE, CREATE INDEX or DROP INDEX wants of the catalogue; None if a clause cannot be judged so."""
    try:
        tokens = scan(query)
        words = [token.text.upper() if token.kind == "word" else "" for token in tokens]
        if words[0] in {"CREATE", "DROP"}:
            at = words.index("INDEX")
            return [Wish("index", _name(_without_if(tokens[at + 1 :])), words[0] == "CREATE")]
        start = 4 if len(tokens) > 3 and tokens[3].kind == "." else 2
        return [wish for clause in _clauses(tokens[start + 1 :]) for wish in _clause_wishes(clause)]
    except (NotUnderstood, IndexError, ValueError):
        return None


def _clauses(tokens: Sequence[Token]) -> Iterator[list[Token]]:
    """Cut at the commas of this level, up to the parenthesis that closes it."""
    depth, clause = 0, list[Token]()
    for token in tokens:
        depth += (token.kind == "(") - (token.kind == ")")
        if depth < 0:
            break
        if token.kind == "," and depth == 0:
            yield clause
            clause = []
        else:
            clause.append(token)
    yield clause


def _clause_wishes(clause: list[Token]) -> list[Wish]:
    """Read one clause; NotUnderstood if its result cannot be read off the catalogue by a name."""
    verb, rest = _word(clause[0]), clause[1:]
    match verb, _word(rest[0]):
        case "ADD", _:
            return _added(rest)
        case "DROP", ("INDEX" | "KEY"):
            return [Wish("index", _name(_without_if(rest[1:])), is_present=False)]
        case "DROP", "PARTITION":
            return [Wish("partition", token.text, is_present=False) for token in _without_if(rest[1:]) if token.kind != ","]
        case "DROP", ("PRIMARY" | "FOREIGN" | "CHECK" | "CONSTRAINT"):
            raise NotUnderstood
        case "DROP", head:
            return [Wish("column", _name(_without_if(rest[1:] if head == "COLUMN" else rest)), is_present=False)]
        case "RENAME", ("COLUMN" | "INDEX" | "KEY") as kind:
            what = "column" if kind == "COLUMN" else "index"
            return _renamed(what, rest[1], rest[3])
        case "CHANGE", head:
            names = rest[1:] if head == "COLUMN" else rest
            return _renamed("column", names[0], names[1])
        case _:
            raise NotUnderstood


def _added(rest: list[Token]) -> list[Wish]:
    head = _word(rest[0])
    if head == "PARTITION":
        pairs = pairwise(rest[1:])
        return [Wish("partition", name.text, is_present=True) for word, name in pairs if _word(word) == "PARTITION"]
    if head in _INDEX_KINDS and _word(rest[1]) not in {"INDEX", "KEY"}:
        return [Wish("index", _name(rest[1:]), is_present=True)]
    if head in _INDEX_KINDS or head in {"INDEX", "KEY"}:
        return [Wish("index", _name(_without_if(rest[2:] if head in _INDEX_KINDS else rest[1:])), is_present=True)]
    if head in _KEY_WORDS:
        raise NotUnderstood
    rest = rest[1:] if head == "COLUMN" else rest
    if rest[0].kind == "(":
        return [Wish("column", _name(element), is_present=True) for element in _clauses(rest[1:])]
    return [Wish("column", _name(_without_if(rest)), is_present=True)]


def _renamed(what: str, old: Token, new: Token) -> list[Wish]:
    present = Wish(what, new.text, is_present=True)
    return [present] if old.text.casefold() == new.text.casefold() else [Wish(what, old.text, is_present=False), present]


def _word(token: Token) -> str:
    return token.text.upper() if token.kind == "word" else ""


def _name(tokens: Sequence[Token]) -> str:
    if tokens[0].kind not in {"word", "quoted"} or _word(tokens[0]) in _KEY_WORDS:
        raise NotUnderstood
    return tokens[0].text


def _without_if(tokens: Sequence[Token]) -> Sequence[Token]:
    """Step over IF [NOT] EXISTS."""
    words = [_word(token) for token in tokens[:3]]
    if words[:2] == ["IF", "EXISTS"]:
        return tokens[2:]
    return tokens[3:] if words == ["IF", "NOT", "EXISTS"] else tokens
