"""The parser: a statement's text becomes a tree. The only reader of MySQL's DDL; everything else asks the tree.

Who asks what:

- the names that a statement touches (``names.py``): lenient; a text that is not wholly understood may touch everything;
- whether a statement has run already (``conditions.py``): None where the catalogue does not show it;
- the text that a sink of the MySQL family runs (``clause.py``, ``charset.py``): edits at positions of the tree, every other byte stays;
- the definition of a table (``table_draft.py``), for a sink that translates: strict; what it does not know stops.

Why no library. sqlglot was tried on this project's tests: it reads 30 of 32 types, 12 of 13 ALTERs and only 9 of 17 of the statements
that change no row (comments, TTL, placement), keeps RENAME TABLE and CONVERT TO as opaque commands, and makes REAL(10,2) a FLOAT. Above all
the names touched are stored in every sink as part of a DDL's identity, and must not change with a library's version. It is kept for
expressions and views, which have no identity (``create_statement`` and ``schema_change`` in ``sinks/sqlite``).
"""

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Final

from applier.ddl.tokens import Cursor, DdlSyntaxError, Token
from applier.ddl.tree import (
    AlterClause,
    AlterTableStatement,
    ClauseKind,
    CreateTableStatement,
    CreateViewStatement,
    DropTablesStatement,
    Element,
    ElementKind,
    IndexStatement,
    Node,
    RecoverTableStatement,
    RenameTablesStatement,
    SchemaStatement,
    Span,
    Tree,
    TruncateTableStatement,
    WrittenName,
)
from applier.model.errors import Remedy

OTHER_ROWS: Final = Remedy(
    "ddl.verify-rows-against-ddl",
    "Upstream's rows allow this DDL: `applier verify` finds the rows that differ. Correct them in the sink, and start the applier "
    "again: it runs the DDL again. If the sink can do without it: `applier ddl skip --ts … --table …`",
)
PLAIN_COLUMN: Final = Remedy(
    "ddl.make-plain-column-by-hand",
    "Make the same change in the sink by hand, with a plain column (no GENERATED) whose comment keeps upstream's expression, as "
    "/*: GENERATED ALWAYS AS (…) STORED */. Then skip the DDL with "
    "`applier ddl skip --ts … --table …`, and give the old rows upstream's values with `applier verify --fix-sql`",
)
BY_HAND: Final = Remedy(
    "ddl.change-by-hand-with-rows",
    "Make the same change in the sink by hand (schema and rows). Then skip the DDL with `applier ddl skip --ts … --table …`",
)
CONVERTED: Final = Remedy(
    "ddl.change-by-hand-and-skip",
    "Make the change in the sink by hand, and skip the DDL with `applier ddl skip --ts … --table …`. Then give the column upstream's "
    "values: `applier verify` finds the rows that differ, and `--fix-sql` writes them",
)
"""Where a sink would make other values of old rows than upstream."""
NO_SEQUENCE: Final = Remedy(
    "ddl.skip-sequence",
    "If this is a SEQUENCE upstream, which no sink has: `applier ddl skip --ts … --table …`. If it is a table: create it in the "
    "sink as upstream has it, with its rows, and start the applier again",
)
"""Of a table that the sink lacks, and that MariaDB's log does not tell apart from a SEQUENCE."""


# Reserved words in MySQL: a column of such a name is quoted.
_INDEX_HEADS: Final = frozenset({"PRIMARY", "UNIQUE", "KEY", "INDEX", "FULLTEXT", "SPATIAL"})
# No reserved words: `vector INT` is a column, `VECTOR INDEX` is not.
_SOFT_INDEX_HEADS: Final = frozenset({"VECTOR", "COLUMNAR", "HYBRID"})
_CONSTRAINTS: Final = frozenset({"PRIMARY", "UNIQUE", "FOREIGN", "CHECK"})


def read_elements(inside: Cursor) -> tuple[Element, ...]:
    """Read the list inside a parenthesis."""
    return tuple(read_element(part) for part in inside.split() if not part.is_done)


def read_element(part: Cursor) -> Element:
    """Read one element. Never raises: what it does not know is a column, whose name may be missing."""
    span, constraint = (part.at, part.last), None
    # The name may be missing: CONSTRAINT CHECK (…).
    if part.accept("CONSTRAINT") and part.keyword() not in _CONSTRAINTS and part.is_at_name():
        constraint = part.name_token()
    # CHECK without a parenthesis is no MySQL, and a column of that name is quoted.
    if part.sees("CHECK", "("):
        part.next()
        return Element(span=span, kind=ElementKind.CHECK, body=part.at, constraint=constraint)
    if part.accept("FOREIGN", "KEY"):
        condition = read_condition(part)
        name = _name_before_columns(part)
        return Element(span=span, kind=ElementKind.FOREIGN_KEY, body=part.at, name=name, constraint=constraint, condition=condition)
    if part.keyword() in _INDEX_HEADS or (part.keyword() in _SOFT_INDEX_HEADS and part.keyword(1) in {"INDEX", "KEY"}):
        return _read_index(part, span, constraint)
    condition = read_condition(part)
    name = part.name_token() if part.is_at_name() else None
    return Element(span=span, kind=ElementKind.COLUMN, body=part.at, name=name, constraint=constraint, condition=condition)


def _read_index(part: Cursor, span: Span, constraint: Token | None) -> Element:
    kind = part.accept_any("PRIMARY", "UNIQUE", "FULLTEXT", "SPATIAL", "VECTOR", "COLUMNAR", "HYBRID")
    part.accept_any("INDEX", "KEY")
    condition = read_condition(part)
    name = _name_before_columns(part)
    return Element(span=span, kind=ElementKind.INDEX, body=part.at, index_kind=kind, name=name, constraint=constraint, condition=condition)


def _name_before_columns(part: Cursor) -> Token | None:
    """Take the name of an index. TYPE is not reserved: ``INDEX type (a)`` has it as name, ``INDEX TYPE BTREE (a)`` has no name."""
    if part.is_at_name() and part.keyword() != "USING" and part.keyword(1) in {"(", "USING", "TYPE"}:
        return part.name_token()
    return None


def read_condition(part: Cursor) -> Span | None:
    """Take IF EXISTS or IF NOT EXISTS and return its position; None if neither comes next."""
    begin = part.at
    if part.accept("IF", "EXISTS") or part.accept("IF", "NOT", "EXISTS"):
        return begin, part.at - 1
    return None


# Words may be added: a DDL that an old ledger holds as not understood stays the same DDL (`same_ddl`). None may go: then a DDL would
# wait for all tables instead of its own.
CLAUSE_WORDS: Final = frozenset(
    """ADD ALGORITHM ALTER ANALYZE ATTRIBUTES AUTO_ID_CACHE AUTO_INCREMENT AUTO_RANDOM_BASE AUTOEXTEND_SIZE AVG_ROW_LENGTH CACHE CHANGE
    CHARACTER CHARSET CHECK CHECKSUM COALESCE COLLATE COMMENT COMPRESSION CONNECTION CONVERT DEFAULT DELAY_KEY_WRITE DISABLE DROP ENABLE
    ENCRYPTION ENGINE ENGINE_ATTRIBUTE EXCHANGE FIRST FORCE INSERT_METHOD KEY_BLOCK_SIZE LAST LOCK MAX_ROWS MERGE MIN_ROWS MODIFY NOCACHE
    OPTIMIZE ORDER PACK_KEYS PARTITION PLACEMENT PRE_SPLIT_REGIONS REBUILD REMOVE RENAME REORGANIZE REPAIR ROW_FORMAT
    SECONDARY_ENGINE SECONDARY_ENGINE_ATTRIBUTE SET SHARD_ROW_ID_BITS SPLIT STATS_AUTO_RECALC STATS_BUCKETS STATS_COL_CHOICE STATS_COL_LIST
    STATS_PERSISTENT STATS_SAMPLE_PAGES STATS_SAMPLE_RATE STATS_TOPN TABLE_CHECKSUM TABLESPACE TRUNCATE TTL TTL_ENABLE TTL_JOB_INTERVAL
    UNION WITH WITHOUT""".split()  # noqa: SIM905 - a hundred quotes would hide the words
)
"""The words that a clause of ALTER TABLE may begin with (MySQL and TiDB). Another word may name any table: not understood."""
# FIRST, LAST, MERGE FIRST and SPLIT MAXVALUE are of TiDB's INTERVAL partitioning.
_PARTITIONING: Final = (
    ("TRUNCATE", "PARTITION"), ("COALESCE", "PARTITION"), ("REORGANIZE", "PARTITION"), ("PARTITION", "BY"), ("REMOVE", "PARTITIONING"),
    ("REBUILD", "PARTITION"), ("FIRST", "PARTITION"), ("LAST", "PARTITION"), ("MERGE", "FIRST"), ("SPLIT", "MAXVALUE"),
    ("IMPORT", "PARTITION"), ("DISCARD", "PARTITION"),
)  # fmt: skip


def read_clauses(cursor: Cursor) -> tuple[tuple[AlterClause, ...], bool]:
    """Read everything after the table's name; the second value: whether each clause begins as one can.

    DROP PARTITION p0, p1 and ORDER BY a, b: what follows their commas is a name and no clause.
    """
    spans, in_list, is_understood = list[Span](), False, True
    for part in cursor.split():
        head = part.keyword()
        if head in CLAUSE_WORDS:
            spans.append((part.at, part.last))
            # Both name a table: a comma after them begins a clause, whatever stood before.
            if head not in {"EXCHANGE", "RENAME"}:
                in_list = head == "ORDER" or part.keyword(1) == "PARTITION"
        else:
            is_understood &= in_list
            # It goes with the clause before it, so that the rewriting takes it for no separate clause.
            if spans:
                spans[-1] = (spans[-1][0], part.last)
            elif not part.is_done:
                spans.append((part.at, part.last))
    clauses = [_read_clause(cursor.part(*span)) for span in spans]
    return tuple(clause for clause in clauses if clause is not None), is_understood and None not in clauses


def _read_clause(part: Cursor) -> AlterClause | None:
    """Read one clause; None if it names a table and cannot be read. Other malformed clauses are of kind OTHER."""
    span, head = (part.at, part.last), part.keyword()
    try:
        read = _READERS.get(head)
        if read is not None and not any(part.sees(*words) for words in _PARTITIONING):
            part.next()
            return read(part, span)
    except DdlSyntaxError:
        # The other clauses name a table after REFERENCES only, which is looked for without reading them.
        if head in {"RENAME", "EXCHANGE"}:
            return None
    is_partitioning = any(part.part(*span).sees(*words) for words in _PARTITIONING)
    return AlterClause(span=span, kind=ClauseKind.PARTITIONING if is_partitioning else ClauseKind.OTHER, body=span[0])


def _add(part: Cursor, span: Span) -> AlterClause:
    if part.accept("PARTITION"):
        return AlterClause(span=span, kind=ClauseKind.ADD_PARTITION, condition=read_condition(part), body=part.at)
    is_column = part.accept("COLUMN")
    condition = read_condition(part)
    if part.sees("("):
        inside = _open_parenthesis(part)
        elements = read_elements(inside)
        return AlterClause(span=span, kind=ClauseKind.ADD, elements=elements, is_list=True, condition=condition, body=part.at)
    element = read_element(part)
    if element.name is None and is_column:
        raise part.unexpected("a column")
    return AlterClause(span=span, kind=ClauseKind.ADD, elements=(element,), condition=condition, body=element.body)


def _open_parenthesis(part: Cursor) -> Cursor:
    """Take a parenthesis; one that never closes ends with the clause."""
    begin = part.at
    try:
        return part.parenthesis()
    except DdlSyntaxError:
        return part.part(begin + 1, part.last)


def _drop_clause(part: Cursor, span: Span) -> AlterClause:
    if part.accept("PRIMARY"):
        return AlterClause(span=span, kind=ClauseKind.DROP_PRIMARY_KEY, body=part.at)
    if part.accept("FOREIGN", "KEY"):
        return _drop_named(part, span, ClauseKind.DROP_FOREIGN_KEY)
    if part.accept_any("CHECK", "CONSTRAINT"):
        return _drop_named(part, span, ClauseKind.DROP_CONSTRAINT)
    if part.accept("PARTITION"):
        return AlterClause(span=span, kind=ClauseKind.DROP_PARTITION, condition=read_condition(part), body=part.at)
    kind = ClauseKind.DROP_INDEX if part.accept_any("INDEX", "KEY") else ClauseKind.DROP_COLUMN
    part.accept("COLUMN")
    return _drop_named(part, span, kind)


def _drop_named(part: Cursor, span: Span, kind: ClauseKind) -> AlterClause:
    condition = read_condition(part)
    name = part.name_token()
    return AlterClause(span=span, kind=kind, condition=condition, name=name, body=part.at)


def _modify(part: Cursor, span: Span) -> AlterClause:
    part.accept("COLUMN")
    condition = read_condition(part)
    name = part.name_token()
    return AlterClause(span=span, kind=ClauseKind.MODIFY, condition=condition, name=name, body=part.at)


def _change(part: Cursor, span: Span) -> AlterClause:
    part.accept("COLUMN")
    condition = read_condition(part)
    name, new_name = part.name_token(), part.name_token()
    return AlterClause(span=span, kind=ClauseKind.CHANGE, condition=condition, name=name, new_name=new_name, body=part.at)


def _rename_clause(part: Cursor, span: Span) -> AlterClause:
    what = part.accept_any("COLUMN", "INDEX", "KEY")
    if not what:
        # TiDB prints AS, MySQL's manual has TO, and both take the bare name.
        part.accept_any("TO", "AS", "=")
        table = read_table_name(part)
        part.finish()
        return AlterClause(span=span, kind=ClauseKind.RENAME_TABLE, table=table, body=part.at)
    name = part.name_token()
    part.expect("TO")
    new_name = part.name_token()
    part.finish()
    kind = ClauseKind.RENAME_COLUMN if what == "COLUMN" else ClauseKind.RENAME_INDEX
    return AlterClause(span=span, kind=kind, name=name, new_name=new_name, body=part.at)


def _alter_clauses(part: Cursor, span: Span) -> AlterClause:
    if part.accept_any("CHECK", "CONSTRAINT"):
        return AlterClause(span=span, kind=ClauseKind.ALTER_CONSTRAINT, body=part.at)
    kind = ClauseKind.ALTER_INDEX if part.accept("INDEX") else ClauseKind.ALTER_COLUMN
    part.accept("COLUMN")
    condition = read_condition(part)
    name = part.name_token()
    return AlterClause(span=span, kind=kind, condition=condition, name=name, body=part.at)


def _exchange(part: Cursor, span: Span) -> AlterClause:
    if not part.accept("PARTITION"):
        return AlterClause(span=span, kind=ClauseKind.OTHER, body=span[0])
    name = part.name_token()
    part.expect("WITH", "TABLE")
    table = read_table_name(part)
    return AlterClause(span=span, kind=ClauseKind.EXCHANGE_PARTITION, name=name, table=table, body=part.at)


def _convert(part: Cursor, span: Span) -> AlterClause:
    part.expect("TO")
    return AlterClause(span=span, kind=ClauseKind.CONVERT, body=part.at)


def read_table_name(cursor: Cursor) -> WrittenName:
    """Take the name of a table, perhaps with its schema."""
    first = cursor.name_token()
    return WrittenName(first, cursor.name_token()) if cursor.accept(".") else WrittenName(None, first)


_READERS: Final[Mapping[str, Callable[[Cursor, Span], AlterClause]]] = {
    "ADD": _add,
    "DROP": _drop_clause,
    "MODIFY": _modify,
    "CHANGE": _change,
    "RENAME": _rename_clause,
    "ALTER": _alter_clauses,
    "EXCHANGE": _exchange,
    "CONVERT": _convert,
}


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
    """Read a statement; DdlSyntaxError if it is not a known one, or does not begin as it must."""
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
    """Read the words between CREATE and the kind of object."""
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
    schema = None if is_own else WrittenName(cursor.name_token(), None)
    if verb == "DROP":
        cursor.finish()
    return SchemaStatement(verb=verb, schema=schema, options=(cursor.at, cursor.last), has_condition=has_condition)


def _create_table(cursor: Cursor, *, or_replace: bool, is_temporary: bool) -> CreateTableStatement:
    if_not_exists = cursor.accept("IF", "NOT", "EXISTS")
    table, body = read_table_name(cursor), cursor.at
    like: WrittenName | None = None
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
    """Return the position of the parenthesis that closes the next one; one that never closes ends with the statement."""
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
    pairs = list[tuple[WrittenName, WrittenName]]()
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
