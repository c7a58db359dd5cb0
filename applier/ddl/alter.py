"""ALTER TABLE and ALTER DATABASE: the names in their clauses."""

from applier.ddl.cursor import Cursor, NotUnderstood
from applier.ddl.statement import DdlKind, DdlStatement
from applier.model.events import TableName

CLAUSE_WORDS = frozenset(
    """ADD ALGORITHM ALTER ANALYZE ATTRIBUTES AUTO_ID_CACHE AUTO_INCREMENT AUTO_RANDOM_BASE AUTOEXTEND_SIZE AVG_ROW_LENGTH CACHE CHANGE
    CHARACTER CHARSET CHECK CHECKSUM COALESCE COLLATE COMMENT COMPRESSION CONNECTION CONVERT DEFAULT DELAY_KEY_WRITE DISABLE DROP ENABLE
    ENCRYPTION ENGINE ENGINE_ATTRIBUTE EXCHANGE FIRST FORCE INSERT_METHOD KEY_BLOCK_SIZE LAST LOCK MAX_ROWS MERGE MIN_ROWS MODIFY NOCACHE
    OPTIMIZE ORDER PACK_KEYS PARTITION PLACEMENT PRE_SPLIT_REGIONS REBUILD REMOVE RENAME REORGANIZE REPAIR ROW_FORMAT
    SECONDARY_ENGINE SECONDARY_ENGINE_ATTRIBUTE SET SHARD_ROW_ID_BITS SPLIT STATS_AUTO_RECALC STATS_BUCKETS STATS_COL_CHOICE STATS_COL_LIST
    STATS_PERSISTENT STATS_SAMPLE_PAGES STATS_SAMPLE_RATE STATS_TOPN TABLE_CHECKSUM TABLESPACE TRUNCATE TTL TTL_ENABLE TTL_JOB_INTERVAL
    UNION WITH WITHOUT""".split()  # noqa: SIM905 - a hundred quotes would hide the words
)
"""The words that a clause of ALTER TABLE may begin with (MySQL and TiDB). Another word may name any table: not understood."""


def alter(cursor: Cursor) -> DdlStatement:
    """Read what follows the word ALTER."""
    if cursor.accept_any("DATABASE", "SCHEMA"):
        return _alter_schema(cursor)
    cursor.accept("IGNORE")
    cursor.expect("TABLE")
    cursor.accept("IF", "EXISTS")
    clauses = _AlterClauses(cursor.table())
    while cursor.peek():
        clauses.read(cursor)
    return clauses.statement()


def _alter_schema(cursor: Cursor) -> DdlStatement:
    options = {"DEFAULT", "CHARACTER", "CHARSET", "COLLATE", "ENCRYPTION", "PLACEMENT", "SET", "READ"}
    schema = cursor.ddl.schema if cursor.peek() in options else cursor.schema()
    cursor.rest()
    return DdlStatement(kind=DdlKind.ALTER_SCHEMA, schema=schema)


class _AlterClauses:
    """What the clauses of one ALTER TABLE say about names."""

    __slots__ = ("_exchanged", "_in_list", "_mentions", "_others", "_renamed", "_table")

    def __init__(self, table: TableName) -> None:
        self._table = table
        self._renamed: TableName | None = None
        self._exchanged: TableName | None = None
        self._mentions: list[TableName] = []
        self._others = False
        self._in_list = False

    def read(self, cursor: Cursor) -> None:
        """Read one clause and the comma behind it."""
        head = cursor.peek()
        if self._in_list and head not in CLAUSE_WORDS:
            self._skip(cursor)
        elif head not in CLAUSE_WORDS:
            raise NotUnderstood
        elif cursor.accept("EXCHANGE", "PARTITION"):
            cursor.identifier()
            cursor.expect("WITH", "TABLE")
            self._exchanged = cursor.table()
            self._skip(cursor)
        elif cursor.accept("RENAME"):
            self._rename(cursor)
        else:
            self._others = True
            cursor.next()
            # DROP PARTITION p0, p1 and ORDER BY a, b: what follows their commas is a name and no clause.
            self._in_list = head == "ORDER" or cursor.peek() == "PARTITION"
            self._skip(cursor)

    def _rename(self, cursor: Cursor) -> None:
        if cursor.accept_any("COLUMN", "INDEX", "KEY"):
            self._others = True
            cursor.identifier()
            cursor.expect("TO")
            cursor.identifier()
        else:
            cursor.accept_any("TO", "AS", "=")
            self._renamed = cursor.table(is_new_name=True)
        if not cursor.accept(","):
            cursor.finish()

    def _skip(self, cursor: Cursor) -> None:
        """Step over the rest of a clause and its comma; remember the targets of foreign keys."""
        depth = 0
        while cursor.peek():
            if cursor.accept("REFERENCES"):
                self._mentions.append(cursor.table())
                continue
            kind = cursor.next().kind
            if kind == ";":
                raise NotUnderstood
            if kind == "," and depth == 0:
                return
            depth += (kind == "(") - (kind == ")")

    def statement(self) -> DdlStatement:
        """Sum up. An ALTER that only renames is a RENAME."""
        renames = () if self._renamed is None else ((self._table, self._renamed),)
        if self._exchanged is not None:
            kind, needs = DdlKind.EXCHANGE_PARTITION, (self._table, self._exchanged)
            return DdlStatement(kind=kind, needs=needs, renames=renames, mentions=tuple(self._mentions))
        if renames and not self._others:
            return DdlStatement(kind=DdlKind.RENAME_TABLE, renames=renames)
        return DdlStatement(kind=DdlKind.ALTER_TABLE, needs=(self._table,), renames=renames, mentions=tuple(self._mentions))
