"""The parser: a statement's text becomes a tree. The only reader of MySQL's DDL; everything else asks the tree.

Who asks what:

- the names that a statement touches (``names.py``): lenient; a text that is not wholly understood may touch everything;
- whether a statement has run already (``postcondition.py``): None where the catalogue does not show it;
- the text that a sink of the MySQL family runs (``clause_rewriting.py``, ``collation.py``): edits at places of the tree, every other byte
  stays;
- the definition of a table (``table_parser.py``, ``alteration.py``), for a sink that translates: strict; what it does not know stops.

Why no library. sqlglot was tried on this project's tests: it reads 30 of 32 types, 12 of 13 ALTERs and only 9 of 17 of the statements
that change no row (comments, TTL, placement), keeps RENAME TABLE and CONVERT TO as opaque commands, and makes REAL(10,2) a FLOAT. Above all
the names touched are stored in every sink as part of a DDL's identity, and must not change with a library's version. It is kept for
expressions and views, which have no identity (``sinks/sqlite/expression.py``, ``view.py``).
"""

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Final

from applier.ddl.alter_parser import read_clauses, read_table_name
from applier.ddl.cursor import Cursor
from applier.ddl.element_parser import read_condition, read_elements
from applier.ddl.tokens import DdlSyntaxError
from applier.ddl.tree import (
    AlterTableStatement,
    CreateTableStatement,
    CreateViewStatement,
    DropTablesStatement,
    Element,
    IndexStatement,
    NamePlace,
    Node,
    RecoverTableStatement,
    RenameTablesStatement,
    SchemaStatement,
    Span,
    Tree,
    TruncateTableStatement,
)

# The last two are TiDB's; they say how a primary key lies in its storage.
_INDEX_KINDS: Final = ("UNIQUE", "FULLTEXT", "SPATIAL", "VECTOR", "COLUMNAR", "HYBRID", "CLUSTERED", "NONCLUSTERED")
# After ALTER DATABASE the name may be missing: then one of these follows.
_SCHEMA_OPTIONS: Final = frozenset({"DEFAULT", "CHARACTER", "CHAR", "CHARSET", "COLLATE", "ENCRYPTION", "PLACEMENT", "SET", "READ"})

_CONDITIONS: Final = {"CREATE": ("IF", "NOT", "EXISTS"), "DROP": ("IF", "EXISTS"), "ALTER": ()}


KEPT_TREES: Final = 8
"""The texts of one DDL: upstream's, with its names, as the sink runs it. Some twenty questions are asked about them. No more, because
the tree of a table with thousands of columns takes megabytes."""


@lru_cache(KEPT_TREES)
def parse(text: str) -> Tree:
    """Read a statement; DdlSyntaxError if it is none of those that are known, or does not begin as it must."""
    cursor = Cursor(text)
    read = _STATEMENTS.get(cursor.keyword())
    if read is None:
        raise cursor.unexpected("a DDL statement")
    cursor.next()
    # A tuple: the tree is cached and shared.
    return Tree(text, tuple(cursor.tokens), read(cursor))


def parse_or_none(text: str) -> Tree | None:
    """Read a statement as ``parse`` does; None if that fails."""
    try:
        return parse(text)
    except DdlSyntaxError:
        return None


def _create(cursor: Cursor) -> Node:
    or_replace = cursor.accept("OR", "REPLACE")
    options = _create_options(cursor)
    match cursor.word():
        case "DATABASE" | "SCHEMA":
            return _schema(cursor, "CREATE")
        case "TABLE":
            return _create_table(cursor, or_replace=or_replace, is_temporary="TEMPORARY" in options)
        case "VIEW":
            cursor.accept("IF", "NOT", "EXISTS")
            return CreateViewStatement(view=read_table_name(cursor), body=cursor.at, or_replace=or_replace)
        case "INDEX":
            return _create_index(cursor, next((kind for kind in _INDEX_KINDS if kind in options), ""))
        case _:
            cursor.at -= 1
            raise cursor.unexpected("a table, index, view or schema")


def _create_options(cursor: Cursor) -> set[str]:
    """Take what stands between CREATE and the kind of object."""
    options = set[str]()
    while option := cursor.accept_any("ALGORITHM", "DEFINER", "SQL", "GLOBAL", "TEMPORARY", *_INDEX_KINDS):
        if option in {"ALGORITHM", "DEFINER"}:
            cursor.accept("=")
            cursor.next()
        # 'user'@'host', CURRENT_USER or CURRENT_USER().
        if option == "DEFINER" and not cursor.accept("(", ")") and cursor.accept("@"):
            cursor.next()
        if option == "SQL":
            cursor.expect("SECURITY")
            cursor.word()
        options.add(option)
    return options


def _schema(cursor: Cursor, verb: str) -> SchemaStatement:
    has_condition = bool(_CONDITIONS[verb]) and cursor.accept(*_CONDITIONS[verb])
    is_own = verb == "ALTER" and cursor.keyword() in _SCHEMA_OPTIONS
    schema = None if is_own else NamePlace(cursor.name_token(), None)
    if verb == "DROP":
        cursor.finish()
    return SchemaStatement(verb=verb, schema=schema, options=(cursor.at, cursor.last), has_condition=has_condition)


def _create_table(cursor: Cursor, *, or_replace: bool, is_temporary: bool) -> CreateTableStatement:
    if_not_exists = cursor.accept("IF", "NOT", "EXISTS")
    table, body = read_table_name(cursor), cursor.at
    like: NamePlace | None = None
    elements: tuple[Element, ...] = ()
    options = partitioning = (cursor.at, cursor.at - 1)
    if cursor.accept("LIKE") or cursor.accept("(", "LIKE"):
        like = read_table_name(cursor)
        cursor.accept(")")
        cursor.finish()
    elif cursor.sees("("):
        close = _closing(cursor)
        elements = read_elements(cursor.part(cursor.at + 1, close - 1))
        options, partitioning = _options_and_partitioning(cursor.part(close + 1, cursor.last))
    return CreateTableStatement(
        table=table,
        body=body,
        like=like,
        elements=elements,
        options=options,
        partitioning=partitioning,
        if_not_exists=if_not_exists,
        or_replace=or_replace,
        is_temporary=is_temporary,
    )


def _closing(cursor: Cursor) -> int:
    """Return the place of the parenthesis that closes the next one; one that never closes ends with the statement."""
    ahead = cursor.part(cursor.at, cursor.last)
    try:
        ahead.parenthesis()
    except DdlSyntaxError:
        return cursor.last
    return ahead.at - 1


def _options_and_partitioning(tail: Cursor) -> tuple[Span, Span]:
    first, last = tail.at, tail.last
    # PARTITION BY ends the options: what follows has engines and comments of its own.
    while not tail.is_done and not tail.sees("PARTITION", "BY"):
        tail.next()
    return (first, tail.at - 1), (tail.at, last)


def _create_index(cursor: Cursor, index_kind: str) -> IndexStatement:
    condition = read_condition(cursor)
    name, begin = cursor.name_token(), cursor.at
    if cursor.accept_any("USING", "TYPE"):
        cursor.word()
    before_table = (begin, cursor.at - 1)
    cursor.expect("ON")
    table = read_table_name(cursor)
    if not cursor.sees("("):
        raise cursor.unexpected("the columns of an index")
    close = _closing(cursor)
    return IndexStatement(
        is_create=True,
        name=name,
        table=table,
        index_kind=index_kind,
        before_table=before_table,
        parts=(cursor.at + 1, close - 1),
        options=(close + 1, cursor.last),
        condition=condition,
    )


def _drop(cursor: Cursor) -> Node:
    cursor.accept("GLOBAL")
    cursor.accept("TEMPORARY")
    match cursor.word():
        case "DATABASE" | "SCHEMA":
            return _schema(cursor, "DROP")
        case "TABLE" | "TABLES":
            return _drop_tables(cursor, is_view=False)
        case "VIEW":
            return _drop_tables(cursor, is_view=True)
        case "INDEX":
            return _drop_index(cursor)
        case _:
            cursor.at -= 1
            raise cursor.unexpected("a table, index, view or schema")


def _drop_tables(cursor: Cursor, *, is_view: bool) -> DropTablesStatement:
    if_exists = cursor.accept("IF", "EXISTS")
    tables = [read_table_name(cursor)]
    while cursor.accept(","):
        tables.append(read_table_name(cursor))
    # They do nothing, in MySQL and in TiDB (manual, "DROP TABLE").
    cursor.accept_any("RESTRICT", "CASCADE")
    cursor.finish()
    return DropTablesStatement(tables=tuple(tables), is_view=is_view, if_exists=if_exists)


def _drop_index(cursor: Cursor) -> IndexStatement:
    condition = read_condition(cursor)
    name, none = cursor.name_token(), (cursor.at, cursor.at - 1)
    cursor.expect("ON")
    table = read_table_name(cursor)
    options = (cursor.at, cursor.last)
    return IndexStatement(
        is_create=False, name=name, table=table, index_kind="", before_table=none, parts=none, options=options, condition=condition
    )


def _alter(cursor: Cursor) -> Node:
    if cursor.accept_any("DATABASE", "SCHEMA"):
        return _schema(cursor, "ALTER")
    ignore = (cursor.at - 1, cursor.at - 1) if cursor.accept("IGNORE") else None
    cursor.expect("TABLE")
    condition = read_condition(cursor)
    table = read_table_name(cursor)
    clauses, is_understood = read_clauses(cursor)
    return AlterTableStatement(table=table, clauses=clauses, is_understood=is_understood, ignore=ignore, condition=condition)


def _rename(cursor: Cursor) -> RenameTablesStatement:
    if not cursor.accept_any("TABLE", "TABLES"):
        raise cursor.unexpected("TABLE")
    condition = read_condition(cursor)
    pairs = list[tuple[NamePlace, NamePlace]]()
    while not pairs or cursor.accept(","):
        old = read_table_name(cursor)
        cursor.expect("TO")
        pairs.append((old, read_table_name(cursor)))
    cursor.finish()
    return RenameTablesStatement(pairs=tuple(pairs), condition=condition)


def _truncate(cursor: Cursor) -> TruncateTableStatement:
    cursor.accept("TABLE")
    table = read_table_name(cursor)
    cursor.finish()
    return TruncateTableStatement(table=table)


def _recover(cursor: Cursor) -> RecoverTableStatement:
    cursor.expect("TABLE")
    table = None if cursor.accept("BY", "JOB") else read_table_name(cursor)
    # The number of a job, or of one that dropped a table of this name.
    if cursor.keyword().isdecimal():
        cursor.next()
    new = read_table_name(cursor) if cursor.accept("TO") else None
    # TO TIMESTAMP '…' is another statement, of several tables.
    cursor.finish()
    return RecoverTableStatement(table=table, new=new)


_STATEMENTS: Final[Mapping[str, Callable[[Cursor], Node]]] = {
    "CREATE": _create,
    "ALTER": _alter,
    "DROP": _drop,
    "RENAME": _rename,
    "TRUNCATE": _truncate,
    "RECOVER": _recover,
    "FLASHBACK": _recover,
}
