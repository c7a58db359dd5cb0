"""Reads the clauses of ALTER TABLE: where each begins and ends, what it does, and to what."""

from collections.abc import Callable, Mapping
from typing import Final

from applier.ddl.cursor import Cursor
from applier.ddl.element_parser import read_condition, read_element, read_elements
from applier.ddl.tokens import DdlSyntaxError
from applier.ddl.tree import AlterClause, ClauseKind, NamePlace, Span

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
    """Read one clause; None if it names a table and cannot be read. Others that are not as they should be are of kind OTHER."""
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


def _drop(part: Cursor, span: Span) -> AlterClause:
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


def _rename(part: Cursor, span: Span) -> AlterClause:
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


def _alter(part: Cursor, span: Span) -> AlterClause:
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


def read_table_name(cursor: Cursor) -> NamePlace:
    """Take the name of a table, perhaps with its schema."""
    first = cursor.name_token()
    return NamePlace(first, cursor.name_token()) if cursor.accept(".") else NamePlace(None, first)


_READERS: Final[Mapping[str, Callable[[Cursor, Span], AlterClause]]] = {
    "ADD": _add,
    "DROP": _drop,
    "MODIFY": _modify,
    "CHANGE": _change,
    "RENAME": _rename,
    "ALTER": _alter,
    "EXCHANGE": _exchange,
    "CONVERT": _convert,
}
