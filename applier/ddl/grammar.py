"""A small grammar of DDL: only names and the kind of statement are read, never columns or types."""

from collections.abc import Callable, Mapping
from dataclasses import replace

from applier.ddl.alter import alter
from applier.ddl.cursor import Cursor, NotUnderstood, Site, scan
from applier.ddl.statement import DdlKind, DdlStatement
from applier.model.events import DdlEvent, TableName


def parse_ddl(ddl: DdlEvent) -> DdlStatement | None:
    """Read the statement of a DDL; None if it is not wholly understood. Never raises."""
    found = read_ddl(ddl)
    return None if found is None else found[0]


def read_ddl(ddl: DdlEvent) -> tuple[DdlStatement, tuple[Site, ...]] | None:
    """Read the statement of a DDL, and the places of the names in its text; None if it is not wholly understood. Never raises."""
    try:
        cursor = Cursor(scan(ddl.query), ddl)
        statement = _STATEMENTS[cursor.word()](cursor)
        cursor.finish()
    except (NotUnderstood, KeyError):
        return None
    return statement, tuple(cursor.sites)


_INDEX_WORDS = ("UNIQUE", "FULLTEXT", "SPATIAL", "VECTOR", "COLUMNAR", "HYBRID", "CLUSTERED", "NONCLUSTERED")


def _create(cursor: Cursor) -> DdlStatement:
    or_replace = cursor.accept("OR", "REPLACE")
    _create_options(cursor)
    match cursor.word():
        case "DATABASE" | "SCHEMA":
            return _create_schema(cursor)
        case "TABLE":
            return _create_table(cursor, or_replace=or_replace)
        case "VIEW":
            return replace(_create_view(cursor), or_replace=or_replace)
        case "INDEX":
            return _create_index(cursor)
        case _:
            raise NotUnderstood


def _create_options(cursor: Cursor) -> None:
    while option := cursor.accept_any("ALGORITHM", "DEFINER", "SQL", "GLOBAL", "TEMPORARY", *_INDEX_WORDS):
        if option in {"ALGORITHM", "DEFINER"}:
            cursor.accept("=")
            cursor.next()
        if option == "DEFINER" and not cursor.accept("(", ")") and cursor.accept("@"):
            cursor.next()
        if option == "SQL":
            cursor.expect("SECURITY")
            cursor.word()


def _create_schema(cursor: Cursor) -> DdlStatement:
    if_not_exists = cursor.accept("IF", "NOT", "EXISTS")
    schema = cursor.schema()
    cursor.rest()
    return DdlStatement(kind=DdlKind.CREATE_SCHEMA, schema=schema, if_not_exists=if_not_exists)


def _create_table(cursor: Cursor, *, or_replace: bool) -> DdlStatement:
    if_not_exists = cursor.accept("IF", "NOT", "EXISTS")
    name = cursor.table()
    made = DdlStatement(kind=DdlKind.CREATE_TABLE, creates=(name,), if_not_exists=if_not_exists, or_replace=or_replace)
    if cursor.accept("LIKE") or cursor.accept("(", "LIKE"):
        source = cursor.table()
        cursor.accept(")")
        return replace(made, kind=DdlKind.CREATE_TABLE_LIKE, needs=(source,))
    return replace(made, mentions=_references(cursor))


def _references(cursor: Cursor) -> tuple[TableName, ...]:
    """Step over table elements and options; return the targets of foreign keys."""
    found = []
    while cursor.peek():
        if cursor.peek() in {";", "SELECT"}:
            raise NotUnderstood
        if cursor.accept("REFERENCES"):
            found.append(cursor.table())
        else:
            cursor.next()
    return tuple(found)


def _create_view(cursor: Cursor) -> DdlStatement:
    name = cursor.table()
    found: list[TableName] = []
    while cursor.peek():
        if cursor.peek() == ";":
            raise NotUnderstood
        if cursor.accept_any("FROM", "JOIN", "STRAIGHT_JOIN"):
            found += _view_sources(cursor)
        else:
            cursor.next()
    return DdlStatement(kind=DdlKind.CREATE_VIEW, creates=(name,), mentions=tuple(dict.fromkeys(found)))


def _view_sources(cursor: Cursor) -> list[TableName]:
    """Read the tables after FROM or JOIN. Functions with a FROM inside (TRIM, EXTRACT) add names too many: harmless."""
    found: list[TableName] = []
    while True:
        while cursor.accept("("):
            pass
        if not cursor.at_identifier() or cursor.peek() == "SELECT":
            return found
        found.append(cursor.table())
        if cursor.accept("AS") or cursor.peek() == "quoted":
            cursor.alias()
        if not cursor.accept(","):
            return found


def _create_index(cursor: Cursor) -> DdlStatement:
    cursor.accept("IF", "NOT", "EXISTS")
    cursor.identifier()
    if cursor.accept_any("USING", "TYPE"):
        cursor.word()
    cursor.expect("ON")
    table = cursor.table()
    cursor.expect("(")
    cursor.rest()
    return DdlStatement(kind=DdlKind.CREATE_INDEX, needs=(table,))


def _drop(cursor: Cursor) -> DdlStatement:
    cursor.accept("TEMPORARY")
    what = cursor.word()
    if_exists = cursor.accept("IF", "EXISTS")
    match what:
        case "DATABASE" | "SCHEMA":
            return DdlStatement(kind=DdlKind.DROP_SCHEMA, schema=cursor.schema(), if_exists=if_exists)
        case "TABLE" | "TABLES" | "VIEW":
            kind = DdlKind.DROP_VIEW if what == "VIEW" else DdlKind.DROP_TABLE
            names = cursor.tables()
            cursor.accept_any("RESTRICT", "CASCADE")
            return DdlStatement(kind=kind, drops=names, if_exists=if_exists)
        case "INDEX":
            cursor.identifier()
            cursor.expect("ON")
            table = cursor.table()
            cursor.rest()
            return DdlStatement(kind=DdlKind.DROP_INDEX, needs=(table,))
        case _:
            raise NotUnderstood


def _rename(cursor: Cursor) -> DdlStatement:
    if not cursor.accept_any("TABLE", "TABLES"):
        raise NotUnderstood
    pairs = []
    while True:
        old = cursor.table()
        cursor.expect("TO")
        pairs.append((old, cursor.table(is_new_name=True)))
        if not cursor.accept(","):
            return DdlStatement(kind=DdlKind.RENAME_TABLE, renames=tuple(pairs))


def _truncate(cursor: Cursor) -> DdlStatement:
    cursor.accept("TABLE")
    return DdlStatement(kind=DdlKind.TRUNCATE_TABLE, needs=(cursor.table(),))


def _recover(cursor: Cursor) -> DdlStatement:
    cursor.expect("TABLE")
    name = cursor.ddl.name if cursor.accept("BY", "JOB") else cursor.table()
    if cursor.accept("TO"):
        name = cursor.table()
    cursor.rest()
    return DdlStatement(kind=DdlKind.RECOVER_TABLE, creates=(name,))


_STATEMENTS: Mapping[str, Callable[[Cursor], DdlStatement]] = {
    "CREATE": _create,
    "ALTER": alter,
    "DROP": _drop,
    "RENAME": _rename,
    "TRUNCATE": _truncate,
    "RECOVER": _recover,
    "FLASHBACK": _recover,
}
