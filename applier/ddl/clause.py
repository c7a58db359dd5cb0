"""What becomes of each clause of a DDL that TiDB ignores, or that only TiDB knows: one table. ``docs/ddl_clauses.md`` shows it to readers.

TiDB takes MySQL's whole syntax and does not act on a part of it. A sink that acts has another table than upstream: on an engine without
transactions, with a check that refuses upstream's rows, with a lock mode that the server refuses. So what TiDB ignores the sink does not
get. Sources: TiDB manual ("MySQL Compatibility", "CREATE TABLE", "ALTER TABLE", "Constraints", "Partitioning") and open_protocol.md 2.12.
"""

from collections.abc import Mapping
from enum import Enum, StrEnum
from types import MappingProxyType
from typing import Final, NamedTuple


class ClausePlace(StrEnum):
    """Where a clause stands."""

    TABLE = "option of a table"
    COLUMN = "option of a column"
    INDEX = "option of an index"
    PARTITION = "partitioning"
    ALTER = "clause of ALTER TABLE"
    EXCHANGE = "end of EXCHANGE PARTITION"
    SCHEMA = "option of a schema"


class Decision(StrEnum):
    """What the sink gets of a clause."""

    KEEP = "keep"
    DROP = "drop"
    ENGINE = "InnoDB"
    """The transactional engine replaces the named one. In ALTER TABLE the clause is dropped, because upstream rebuilds nothing either."""
    TIDB = "TiDB only"
    """In a special comment: a TiDB sink executes it, other servers ignore it."""
    MYSQL = "MySQL and TiDB only"
    """In a comment that MySQL and TiDB execute."""
    VISIBILITY = "each server's keyword"
    """MySQL and TiDB say INVISIBLE, MariaDB says IGNORED."""


class Extent(Enum):
    """What belongs to a clause after its keywords."""

    WORDS = "nothing"
    VALUE = "[=] value"
    GROUP = "[(…)]"
    CHECK = "(…) [[NOT] ENFORCED]"
    REFERENCES = "table [(…)] [MATCH …] [ON …]"
    TTL = "[=] column + INTERVAL n unit"
    METHOD = "[LINEAR] HASH | KEY [ALGORITHM = n] (…) [SUBPARTITIONS n]"
    KIND = "BTREE | HASH | RTREE | HYPO"
    REST = "everything up to the next clause"


class Clause(NamedTuple):
    """One row of the table."""

    words: str
    decision: Decision
    extent: Extent
    why: str = ""


_D, _E = Decision, Extent
_NO_EFFECT: Final = "TiDB does not store tables as InnoDB does"
_PLACED: Final = "the sink's administrator decides where its files are"
_STATISTICS: Final = "TiDB's statistics are its own"
_LOCKING: Final = "TiDB changes tables online; the sink chooses the best way that it has"
_NOT_UPSTREAM: Final = "only TiDB has it"
_UNCHECKED: Final = "upstream has checked the rows, or (tidb_enable_check_constraint = OFF) does not check them"
_SEQUENCE: Final = "sequences are not replicated, and the values come with the rows"
_SAME: Final = "TiDB acts on it too"


def _all(decision: Decision, extent: Extent, why: str, words: str) -> tuple[Clause, ...]:
    return tuple(Clause(one, decision, extent, why) for one in words.split(", "))


_CHARSETS: Final = _all(
    _D.KEEP, _E.VALUE, _SAME, "CHARACTER SET, CHARSET, CHAR SET, COLLATE, DEFAULT CHARACTER SET, DEFAULT CHARSET, DEFAULT COLLATE"
)
_ATTRIBUTES: Final = _all(_D.DROP, _E.VALUE, _NO_EFFECT, "ENGINE_ATTRIBUTE, SECONDARY_ENGINE_ATTRIBUTE")
_FILES: Final = _all(_D.DROP, _E.VALUE, _PLACED, "DATA DIRECTORY, INDEX DIRECTORY, TABLESPACE, STORAGE, NODEGROUP")

CLAUSES: Final[Mapping[ClausePlace, tuple[Clause, ...]]] = MappingProxyType(
    {
        ClausePlace.TABLE: (
            Clause("ENGINE", _D.ENGINE, _E.VALUE, "a failed segment must leave no rows behind, which takes transactions"),
            *_CHARSETS,
            *_all(_D.KEEP, _E.VALUE, _SAME, "AUTO_INCREMENT, COMMENT"),
            *_FILES,
            *_ATTRIBUTES,
            *_all(
                _D.DROP,
                _E.VALUE,
                _NO_EFFECT,
                "ROW_FORMAT, KEY_BLOCK_SIZE, COMPRESSION, ENCRYPTION, INSERT_METHOD, UNION, DELAY_KEY_WRITE, PACK_KEYS, CHECKSUM, "
                "TABLE_CHECKSUM, AVG_ROW_LENGTH, MIN_ROWS, MAX_ROWS, AUTOEXTEND_SIZE, SECONDARY_ENGINE, CONNECTION, PASSWORD",
            ),
            *_all(
                _D.DROP,
                _E.VALUE,
                _NO_EFFECT,
                "TRANSACTIONAL, PAGE_CHECKSUM, PAGE_COMPRESSED, PAGE_COMPRESSION_LEVEL, ENCRYPTED, ENCRYPTION_KEY_ID",
            ),
            *_all(_D.DROP, _E.VALUE, _STATISTICS, "STATS_PERSISTENT, STATS_AUTO_RECALC, STATS_SAMPLE_PAGES"),
            *_all(_D.TIDB, _E.VALUE, _STATISTICS, "STATS_BUCKETS, STATS_TOPN, STATS_SAMPLE_RATE, STATS_COL_CHOICE, STATS_COL_LIST"),
            *_all(
                _D.TIDB,
                _E.VALUE,
                _NOT_UPSTREAM,
                "AUTO_ID_CACHE, AUTO_RANDOM_BASE, SHARD_ROW_ID_BITS, PRE_SPLIT_REGIONS, PLACEMENT POLICY, TTL_ENABLE, TTL_JOB_INTERVAL, "
                "AFFINITY, SOFTDELETE, ACTIVE_ACTIVE",
            ),
            Clause("TTL", _D.TIDB, _E.TTL, "TiDB deletes expired rows, and the deletes arrive as row events"),
        ),
        ClausePlace.COLUMN: (
            *_all(_D.KEEP, _E.VALUE, _SAME, "DEFAULT, COMMENT, COLLATE, CHARACTER SET, CHARSET, CHAR SET, AFTER, ON UPDATE"),
            Clause("DEFAULT NEXT VALUE FOR", _D.DROP, _E.VALUE, _SEQUENCE),
            Clause("DEFAULT NEXTVAL", _D.DROP, _E.GROUP, _SEQUENCE),
            Clause("CHECK", _D.DROP, _E.CHECK, _UNCHECKED),
            Clause("REFERENCES", _D.DROP, _E.REFERENCES, "TiDB ignores it here; MariaDB and MySQL 9 would create a foreign key"),
            *_all(_D.DROP, _E.VALUE, _NO_EFFECT, "COLUMN_FORMAT, STORAGE"),
            *_ATTRIBUTES,
            Clause("AUTO_RANDOM", _D.TIDB, _E.GROUP, "the values come with the rows"),
            *_all(_D.TIDB, _E.WORDS, _NOT_UPSTREAM, "CLUSTERED, NONCLUSTERED, GLOBAL, LOCAL"),
        ),
        ClausePlace.INDEX: (
            *_all(_D.KEEP, _E.VALUE, _SAME, "COMMENT"),
            *_all(_D.DROP, _E.KIND, "every index of TiDB is ordered; BTREE stays", "USING, TYPE"),
            Clause("KEY_BLOCK_SIZE", _D.DROP, _E.VALUE, _NO_EFFECT),
            Clause("WITH PARSER", _D.DROP, _E.VALUE, "TiDB has other parsers"),
            *_ATTRIBUTES,
            *_all(_D.VISIBILITY, _E.WORDS, "the keyword differs", "VISIBLE, INVISIBLE, IGNORED, NOT IGNORED"),
            *_all(_D.TIDB, _E.WORDS, _NOT_UPSTREAM, "CLUSTERED, NONCLUSTERED, GLOBAL, LOCAL"),
            *_all(_D.TIDB, _E.VALUE, _NOT_UPSTREAM, "PRE_SPLIT_REGIONS, ADD_COLUMNAR_REPLICA_ON_DEMAND"),
            *_all(_D.DROP, _E.VALUE, _LOCKING, "ALGORITHM, LOCK"),
        ),
        ClausePlace.PARTITION: (
            Clause("LINEAR", _D.DROP, _E.WORDS, "TiDB partitions by plain HASH or KEY instead"),
            Clause("SUBPARTITION BY", _D.DROP, _E.METHOD, "TiDB has no subpartitions"),
            *_all(_D.DROP, _E.VALUE, "all partitions are of the table's engine", "STORAGE ENGINE, ENGINE"),
            *_FILES,
            *_all(_D.DROP, _E.VALUE, _NO_EFFECT, "MIN_ROWS, MAX_ROWS"),
            Clause("PLACEMENT POLICY", _D.TIDB, _E.VALUE, _NOT_UPSTREAM),
            Clause("UPDATE INDEXES", _D.TIDB, _E.GROUP, _NOT_UPSTREAM),
        ),
        ClausePlace.ALTER: (
            *_all(_D.DROP, _E.VALUE, _LOCKING, "ALGORITHM, LOCK"),
            *_all(
                _D.DROP,
                _E.WORDS,
                "TiDB does nothing for it",
                "FORCE, ENABLE KEYS, DISABLE KEYS, WITH VALIDATION, WITHOUT VALIDATION, DISCARD TABLESPACE, IMPORT TABLESPACE, "
                "SECONDARY_LOAD, SECONDARY_UNLOAD",
            ),
            Clause("ORDER BY", _D.DROP, _E.REST, "the order of stored rows is not the table's content"),
            *_all(_D.TIDB, _E.WORDS, _NOT_UPSTREAM, "CACHE, NOCACHE, REMOVE TTL, COMPACT"),
            *_all(_D.TIDB, _E.REST, _NOT_UPSTREAM, "SET TIFLASH REPLICA, SET HYPO TIFLASH REPLICA, ATTRIBUTES, STATS_OPTIONS"),
        ),
        ClausePlace.EXCHANGE: (
            Clause("WITH VALIDATION", _D.DROP, _E.WORDS, "it is what every server does; MariaDB before 11.4 does not know the words"),
            Clause("WITHOUT VALIDATION", _D.MYSQL, _E.WORDS, "MariaDB before 11.4 does not know it: it checks the rows"),
        ),
        ClausePlace.SCHEMA: (
            *_CHARSETS,
            *_all(_D.DROP, _E.VALUE, _NO_EFFECT, "ENCRYPTION, DEFAULT ENCRYPTION"),
            Clause("PLACEMENT POLICY", _D.TIDB, _E.VALUE, _NOT_UPSTREAM),
            Clause("SET TIFLASH REPLICA", _D.TIDB, _E.REST, _NOT_UPSTREAM),
        ),
    }
)
"""Where two clauses of one place could begin at one word, the longer one counts."""


KEPT_OF_MYSQL: Final = frozenset(
    {"CHECK", "REFERENCES", "WITH PARSER", "LINEAR", "SUBPARTITION BY", "CACHE", "NOCACHE", "COMPACT", "ATTRIBUTES", "GLOBAL", "LOCAL"}
)
"""Clauses that a MySQL or MariaDB upstream acts on, or that mean something else there: they stay. So do its checks and FULLTEXT indexes."""


class ElementDecision(NamedTuple):
    """What is decided about elements, statements and kinds as a whole; carried out by ``clause_rewriting``, or left as it is."""

    what: str
    decision: str
    why: str


ELEMENT_DECISIONS: Final = (
    ElementDecision("FULLTEXT index of a table", "drop", "TiDB creates none; kept in DDLs of type add_fulltext_index, without its parser"),
    ElementDecision("CHECK of a table; ADD, ALTER and DROP of one", "drop", _UNCHECKED),
    ElementDecision(
        "FOREIGN KEY of a table", "keep", "it is part of upstream's table; our sessions do not check it (foreign_key_checks = OFF)"
    ),
    ElementDecision("VECTOR, COLUMNAR and HYBRID index", "TiDB only", "an index holds no rows; a later change of it is left out too"),
    ElementDecision(
        "index of an expression, or with a condition",
        "keep where the server has it",
        "else it is left out; a unique one stops the applier",
    ),
    ElementDecision(
        "UNIQUE of an index of an expression",
        "keep where every database computes the same number",
        "else the index is a plain one of the same name: the sink's session may compute one value for two rows of upstream",
    ),
    ElementDecision(
        "generated column",
        "keep where every database computes its values alike",
        "else a STORED one is a plain column, whose values come with the rows; an index or key of a VIRTUAL one stops the applier",
    ),
    ElementDecision(
        "NOT NULL of a generated column", "drop on MariaDB", "MariaDB refuses it; a STORED column in a key is a plain one there"
    ),
    ElementDecision(
        "type VECTOR",
        "keep on MySQL from 9.0 and TiDB, else LONGTEXT",
        "MariaDB's own type takes bytes, and no text",
    ),
    ElementDecision(
        "collations that the server lacks",
        "MariaDB's counterparts, or `[ddl.collations]`",
        "`utf8mb4_0900_ai_ci` is `utf8mb4_uca1400_nopad_ai_ci` (target.py)",
    ),
    ElementDecision(
        "FIRST, LAST, MERGE FIRST and SPLIT MAXVALUE PARTITION",
        "stop",
        "TiDB sends the partitions themselves; a bound alone names none",
    ),
    ElementDecision("ALTER IGNORE TABLE", "drop IGNORE", "MariaDB would delete rows that collide"),
    ElementDecision(
        "IF [NOT] EXISTS of a column, index or partition", "MariaDB and TiDB only", "MySQL does not accept it; upstream has done it already"
    ),
    ElementDecision(
        "TRUNCATE or EXCHANGE of a partition of a table that is partitioned by KEY",
        "stop",
        "TiDB assigns rows to partitions with another hash. TRUNCATE PARTITION ALL, or of every partition, is applied",
    ),
    ElementDecision("/*! … */ and /*!50100 … */", "code", "TiDB executes them whatever version they name"),
    ElementDecision("/*M! … */", "drop", "TiDB takes it for a comment, MariaDB executes it"),
    ElementDecision("/*T! … */", "keep", "a comment for MySQL and MariaDB, code for a sink that is a TiDB"),
    ElementDecision("latin1", "utf8mb4", "TiDB's latin1 holds every character; a key that would be too long stays latin1 (latin1.py)"),
    ElementDecision("a charset without a collation", "TiDB's collation", "other servers have other defaults (collation.py)"),
    ElementDecision("RESTRICT and CASCADE of DROP TABLE; ALGORITHM, SQL SECURITY and CHECK OPTION of a view", "keep", "they change no row"),
)
