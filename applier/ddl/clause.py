"""The table of clauses that TiDB ignores, or that only TiDB knows: what the sink gets of each. ``docs/ddl_clauses.md`` shows it to readers.

TiDB accepts MySQL's whole syntax, and ignores a part of it. A sink that acts has another table than upstream: on an engine without
transactions, with a check that refuses upstream's rows, with a lock mode that the server refuses. So the sink does not get what TiDB
ignores. Sources: TiDB manual ("MySQL Compatibility", "CREATE TABLE", "ALTER TABLE", "Constraints", "Partitioning") and open_protocol.md
2.12.

Finds the clauses of ``clause.py`` in the tokens of a statement: where each begins and ends, and what happens to it. Pure.

Words count as clauses only where one may stand: names, strings, comments, types and expressions are stepped over. It goes by positions, and
not with a cursor: what it yields are positions to edit, and a wrong guess must cost nothing.

Rewrites the clauses of a definition: what upstream ignored does not reach the sink, every other byte stays. Pure.

The tree says where which clauses may stand; the table in ``clause.py`` says what becomes of each. A statement that is not a definition,
or cannot be read, stays unchanged: the server accepts or refuses it.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from enum import Enum, StrEnum
from types import MappingProxyType
from typing import Final, NamedTuple

from applier.ddl.adaptation import UPSTREAM, Target, is_impossible, is_left_out
from applier.ddl.parser import parse_or_none
from applier.ddl.tokens import Token
from applier.ddl.tree import (
    Action,
    AlterClause,
    AlterTableStatement,
    ClauseKind,
    CreateTableStatement,
    Edit,
    Element,
    ElementKind,
    IndexStatement,
    Mark,
    RenameTablesStatement,
    SchemaStatement,
    Span,
    Tree,
    edited,
    list_edits,
)


class ClauseScope(StrEnum):
    """The position of a clause."""

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

CLAUSES: Final[Mapping[ClauseScope, tuple[Clause, ...]]] = MappingProxyType(
    {
        ClauseScope.TABLE: (
            Clause("ENGINE", _D.ENGINE, _E.VALUE, "a failed segment must not leave rows, which needs transactions"),
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
        ClauseScope.COLUMN: (
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
        ClauseScope.INDEX: (
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
        ClauseScope.PARTITION: (
            Clause("LINEAR", _D.DROP, _E.WORDS, "TiDB partitions by plain HASH or KEY instead"),
            Clause("SUBPARTITION BY", _D.DROP, _E.METHOD, "TiDB has no subpartitions"),
            *_all(_D.DROP, _E.VALUE, "all partitions are of the table's engine", "STORAGE ENGINE, ENGINE"),
            *_FILES,
            *_all(_D.DROP, _E.VALUE, _NO_EFFECT, "MIN_ROWS, MAX_ROWS"),
            Clause("PLACEMENT POLICY", _D.TIDB, _E.VALUE, _NOT_UPSTREAM),
            Clause("UPDATE INDEXES", _D.TIDB, _E.GROUP, _NOT_UPSTREAM),
        ),
        ClauseScope.ALTER: (
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
        ClauseScope.EXCHANGE: (
            Clause("WITH VALIDATION", _D.DROP, _E.WORDS, "it is what every server does; MariaDB before 11.4 does not know the words"),
            Clause("WITHOUT VALIDATION", _D.MYSQL, _E.WORDS, "MariaDB before 11.4 does not know it: it checks the rows"),
        ),
        ClauseScope.SCHEMA: (
            *_CHARSETS,
            *_all(_D.DROP, _E.VALUE, _NO_EFFECT, "ENCRYPTION, DEFAULT ENCRYPTION"),
            Clause("PLACEMENT POLICY", _D.TIDB, _E.VALUE, _NOT_UPSTREAM),
            Clause("SET TIFLASH REPLICA", _D.TIDB, _E.REST, _NOT_UPSTREAM),
        ),
    }
)
"""Where two clauses of one position could begin at one word, the longer one counts."""


KEPT_OF_MYSQL: Final = frozenset(
    {"CHECK", "REFERENCES", "WITH PARSER", "LINEAR", "SUBPARTITION BY", "CACHE", "NOCACHE", "COMPACT", "ATTRIBUTES", "GLOBAL", "LOCAL"}
)
"""Clauses that a MySQL or MariaDB upstream acts on, or that mean something else there: they stay. So do its checks and FULLTEXT indexes."""


# BTREE is not among them: it stays, because it is what every server makes anyway.
_KINDS: Final = frozenset({"HASH", "RTREE", "HYPO", "INVERTED"})
_VISIBLE, _INVISIBLE = "/*!80000 VISIBLE */ /*M!100600 NOT IGNORED */", "/*!80000 INVISIBLE */ /*M!100600 IGNORED */"
_VISIBILITY: Final = {"VISIBLE": _VISIBLE, "INVISIBLE": _INVISIBLE, "NOT IGNORED": _VISIBLE, "IGNORED": _INVISIBLE}
"""Each server executes the comment with its keyword (MariaDB ignores versions from 50700 to 99999, TiDB executes them)."""


def _by_first_word(place: ClauseScope) -> dict[str, list[tuple[tuple[str, ...], Clause]]]:
    found: dict[str, list[tuple[tuple[str, ...], Clause]]] = {}
    for clause in CLAUSES[place]:
        words = tuple(clause.words.split())
        found.setdefault(words[0], []).append((words, clause))
    # The longer clause first: DEFAULT CHARACTER SET before DEFAULT.
    return {word: sorted(clauses, key=lambda pair: -len(pair[0])) for word, clauses in found.items()}


_CLAUSES: Final = {place: _by_first_word(place) for place in ClauseScope}


class ClauseReader:
    """The tokens of one statement, as positions of clauses."""

    __slots__ = ("_closing", "_kept", "_words", "tokens")

    def __init__(self, tokens: Sequence[Token], kept: Collection[str] = ()) -> None:
        """``kept``: words of clauses that stay, whatever is decided about them for TiDB."""
        self.tokens, self._kept = tokens, kept
        self._words = [token.keyword for token in tokens]
        self._closing: dict[int, int] = {}
        opened = list[int]()
        for at, word in enumerate(self._words):
            if word == "(":
                opened.append(at)
            elif word == ")" and opened:
                self._closing[opened.pop()] = at

    def word(self, at: int) -> str:
        """Return the keyword, mark or class of a token; '' beyond the end."""
        return self._words[at] if 0 <= at < len(self._words) else ""

    def sees(self, at: int, *words: str) -> bool:
        """Return whether ``words`` begin at ``at``."""
        return all(self.word(at + n) == word for n, word in enumerate(words))

    def closing(self, at: int) -> int:
        """Return the position of the parenthesis that closes the one at ``at``, or the last token."""
        return self._closing.get(at, len(self.tokens) - 1)

    def items(self, first: int, last: int) -> list[Span]:
        """Cut a list at its commas."""
        spans, begin, at = list[Span](), first, first
        while at <= last:
            if self.word(at) == ",":
                spans.append((begin, at - 1))
                begin = at + 1
            at = self.closing(at) + 1 if self.word(at) == "(" else at + 1
        return [span for span in [*spans, (begin, last)] if span[0] <= span[1]]

    def marks(self, place: ClauseScope, first: int, last: int, *, alters: bool = False) -> Iterator[Mark]:
        """Read the clauses of ``place`` between ``first`` and ``last``; other tokens are skipped. ``alters``: in ALTER TABLE."""
        at = first
        while at <= last:
            found = self.clause(place, at, last)
            if found is not None:
                clause, end = found
                yield from self._decided(clause, at, end, alters=alters)
                at = end + 1
            else:
                at = self.closing(at) + 1 if self.word(at) == "(" else at + 1

    def option(self, at: int, last: int) -> tuple[ClauseScope, int] | None:
        """Return position and last token of the option of ALTER TABLE, or of the table, that begins at ``at``; None if none does."""
        for place in (ClauseScope.ALTER, ClauseScope.TABLE):
            found = self.clause(place, at, last)
            if found is not None:
                return place, found[1]
        return None

    def clause(self, place: ClauseScope, at: int, last: int) -> tuple[Clause, int] | None:
        """Return the clause that begins at ``at``, and the position of its last token."""
        for words, clause in _CLAUSES[place].get(self.word(at), ()):
            if self.sees(at, *words):
                end = self._end(clause.extent, at + len(words) - 1, last)
                return None if end is None else (clause, min(end, last))
        return None

    def _decided(self, clause: Clause, first: int, last: int, *, alters: bool) -> Iterator[Mark]:
        match clause.decision:
            case _ if clause.words in self._kept:
                return
            case Decision.KEEP:
                return
            case Decision.DROP:
                yield Mark(self._with_constraint(clause, first), last, Action.DROP)
            case Decision.TIDB:
                yield Mark(first, last, Action.TIDB)
            case Decision.MYSQL:
                yield Mark(first, last, Action.REPLACE, f"/*!80000 {clause.words} */")
            case Decision.VISIBILITY:
                yield Mark(first, last, Action.REPLACE, _VISIBILITY[clause.words])
            case Decision.ENGINE:
                # InnoDB instead would make the sink rebuild the table, for a change that upstream has not made.
                if alters:
                    yield Mark(first, last, Action.DROP)
                elif self.tokens[last].text.strip("'\"").casefold() != "innodb":
                    yield Mark(last, last, Action.REPLACE, "InnoDB")

    def _with_constraint(self, clause: Clause, first: int) -> int:
        if clause.extent in {Extent.CHECK, Extent.REFERENCES}:
            for begin in (first - 1, first - 2):
                if self.word(begin) == "CONSTRAINT":
                    return begin
        return first

    def _end(self, extent: Extent, at: int, last: int) -> int | None:
        """Return the last token of a clause whose words end at ``at``; None: it is not a clause."""
        has_group = self.word(at + 1) == "("
        match extent:
            case Extent.WORDS:
                end: int | None = at
            case Extent.VALUE:
                end = self._value(at)
            case Extent.GROUP:
                end = self.closing(at + 1) if has_group else at
            case Extent.CHECK:
                end = self._check(at) if has_group else None
            case Extent.REFERENCES:
                end = self._references(at)
            case Extent.TTL:
                # TTL = `c` + INTERVAL 1.5 DAY: + and INTERVAL after the column, and a unit after the number.
                end = self._value(self._value(at) + 2) + 1
            case Extent.METHOD:
                end = self._method(at)
            case Extent.KIND:
                end = at + 1 if self.word(at + 1) in _KINDS else None
            case Extent.REST:
                end = last
        return end

    def _value(self, at: int) -> int:
        at += 1 + (self.word(at + 1) == "=")
        if self.word(at) == "(":
            return self.closing(at)
        at += self.word(at) in {"-", "+"}
        # COMMENT _utf8mb4'x' is one value.
        at += self.word(at).startswith("_") and self.word(at + 1) == "string"
        # 0.5 and s.t are three tokens.
        while self.word(at + 1) == ".":
            at += 2
        return at

    def _check(self, at: int) -> int:
        at = self.closing(at + 1)
        at += 1 if self.sees(at + 1, "NOT", "ENFORCED") else 0
        return at + (self.word(at + 1) == "ENFORCED")

    def _references(self, at: int) -> int:
        at = self._value(at)
        at = self.closing(at + 1) if self.word(at + 1) == "(" else at
        while self.word(at + 1) in {"MATCH", "ON"}:
            at += 2 if self.word(at + 1) == "MATCH" else 3
            at += self.word(at) in {"SET", "NO"}
        return at

    def _method(self, at: int) -> int:
        while self.word(at + 1) not in {"(", ""}:
            at += 1
        at = self.closing(at + 1)
        return at + 2 if self.word(at + 1) == "SUBPARTITIONS" else at


ADD_FULLTEXT_INDEX: Final = 230
"""The DDL type of a FULLTEXT index that upstream really has."""


def without_ignored_clauses(query: str, ddl_type: int = 0, target: Target = UPSTREAM) -> str:
    """Return the statement with only those clauses on which upstream has acted, in words that the sink's server understands.

    Indexes that the server cannot have are skipped; '' if nothing else is in the statement.
    """
    tree = parse_or_none(query)
    if tree is None:
        return query
    if isinstance(tree.node, IndexStatement) and is_left_out(tree, tree.node, target):
        return ""
    return edited(query, _Definition(tree, target, keeps_fulltext=ddl_type == ADD_FULLTEXT_INDEX).edits())


def in_words_of(target: Target, query: str) -> str:
    """Return a statement of MySQL or MariaDB in words that the sink's server understands; '' if it only makes what that cannot have.

    Unlike TiDB, upstream acts on its checks, FULLTEXT indexes and subpartitions, so they stay. How tables are stored is the sink's.
    """
    tree = parse_or_none(query)
    if tree is None:
        return query
    if isinstance(tree.node, IndexStatement) and is_left_out(tree, tree.node, target):
        return ""
    return edited(query, _Definition(tree, target, keeps_fulltext=True, is_of_mysql=True).edits())


class _Definition:
    """Finds the edits of one statement."""

    __slots__ = ("_is_of_mysql", "_keeps_fulltext", "_reader", "_target", "_tree")

    def __init__(self, tree: Tree, target: Target, *, keeps_fulltext: bool, is_of_mysql: bool = False) -> None:
        self._tree, self._target, self._keeps_fulltext, self._is_of_mysql = tree, target, keeps_fulltext, is_of_mysql
        self._reader = ClauseReader(tree.tokens, KEPT_OF_MYSQL if is_of_mysql else ())

    def edits(self) -> Iterator[Edit]:
        """Yield the edits of the statement."""
        match self._tree.node:
            case CreateTableStatement() as node:
                yield from self._create_table(node)
            case AlterTableStatement() as node:
                yield from self._alter_table(node)
            case IndexStatement() as node:
                yield from self._index(node)
            case RenameTablesStatement(condition=condition):
                yield from self._listed([(0, len(self._tree.tokens) - 1)], self._condition(condition))
            case SchemaStatement(verb="CREATE" | "ALTER", options=options):
                yield from self._listed([options], self._reader.marks(ClauseScope.SCHEMA, *options))
            case _:
                return

    # Statements

    def _create_table(self, node: CreateTableStatement) -> Iterator[Edit]:
        if node.or_replace and not self._target.has_or_replace:
            # Behind CREATE. The table is dropped before.
            yield from self._listed([(0, len(self._tree.tokens) - 1)], [Mark(1, 2, Action.DROP)])
        yield from self._elements(node.elements)
        yield from self._listed(self._reader.items(*node.options), self._reader.marks(ClauseScope.TABLE, *node.options))
        yield from self._partitioning(*node.partitioning)

    def _alter_table(self, node: AlterTableStatement) -> Iterator[Edit]:
        whole = (0, len(self._tree.tokens) - 1)
        if node.ignore is not None:
            yield from self._listed([whole], [Mark(*node.ignore, Action.DROP)])
        # Edits of different lists: the comma that one takes is never another's.
        yield from self._listed([whole], self._condition(node.condition))
        marks = [mark for clause in node.clauses for mark in self._clause(clause)]
        yield from self._listed([clause.span for clause in node.clauses], marks)
        for clause in node.clauses:
            if clause.is_list and not all(map(self._is_dropped, clause.elements)):
                yield from self._elements(clause.elements)
            elif clause.kind in {ClauseKind.ADD_PARTITION, ClauseKind.PARTITIONING}:
                yield from self._partitioning(*clause.span)

    def _index(self, node: IndexStatement) -> Iterator[Edit]:
        marks = [
            *self._condition(node.condition),
            *self._reader.marks(ClauseScope.INDEX, *node.before_table),
            *self._reader.marks(ClauseScope.INDEX, *node.options),
        ]
        yield from self._listed([(0, len(self._tree.tokens) - 1)], marks)

    # Clauses of ALTER TABLE

    def _clause(self, clause: AlterClause) -> Iterator[Mark]:
        first, last = clause.span
        match clause.kind:
            case ClauseKind.DROP_CONSTRAINT | ClauseKind.ALTER_CONSTRAINT if not self._is_of_mysql:
                yield Mark(first, last, Action.DROP)
            # ADD goes with what it would have added.
            case ClauseKind.ADD if all(map(self._is_dropped, clause.elements)):
                yield Mark(first, last, Action.DROP)
            case ClauseKind.ALTER_COLUMN if self._reader.sees(last - 1, "SET") and not self._target.has_column_visibility:
                # SET VISIBLE or SET INVISIBLE: who sees the column without naming it.
                yield Mark(first, last, Action.DROP)
            case _:
                yield from self._condition(clause.condition)
                yield from self._inside_clause(clause)

    def _inside_clause(self, clause: AlterClause) -> Iterator[Mark]:
        last = clause.span[1]
        match clause.kind:
            case ClauseKind.ADD if not clause.is_list:
                yield from self._element(clause.elements[0])
            case ClauseKind.MODIFY | ClauseKind.CHANGE:
                yield from self._reader.marks(ClauseScope.COLUMN, clause.body, last)
            case ClauseKind.ALTER_INDEX:
                yield from self._reader.marks(ClauseScope.INDEX, clause.body, last)
            case ClauseKind.OTHER:
                yield from self._options(*clause.span)
            case ClauseKind.EXCHANGE_PARTITION:
                yield from self._reader.marks(ClauseScope.EXCHANGE, clause.body, last)
            case _:
                return

    def _options(self, first: int, last: int) -> Iterator[Mark]:
        """Read options that follow one another, of the table and of ALTER TABLE itself."""
        reader, at = self._reader, first
        while found := reader.option(at, last):
            place, end = found
            yield from reader.marks(place, at, end, alters=True)
            at = end + 1

    # Elements and partitions

    def _elements(self, elements: Sequence[Element]) -> Iterator[Edit]:
        yield from self._listed([element.span for element in elements], [mark for element in elements for mark in self._element(element)])

    def _element(self, element: Element) -> Iterator[Mark]:
        if self._is_dropped(element):
            yield Mark(*element.span, Action.DROP)
            return
        yield from self._condition(element.condition)
        if element.kind is ElementKind.INDEX:
            yield from self._reader.marks(ClauseScope.INDEX, element.body, element.span[1])
        elif element.kind is ElementKind.COLUMN:
            yield from self._reader.marks(ClauseScope.COLUMN, element.body, element.span[1])

    def _is_dropped(self, element: Element) -> bool:
        if (element.kind is ElementKind.CHECK and not self._is_of_mysql) or (element.index_kind == "FULLTEXT" and not self._keeps_fulltext):
            return True
        return is_impossible(self._tree, element, self._target)

    def _partitioning(self, first: int, last: int) -> Iterator[Edit]:
        """Edit PARTITION BY with its definitions, or the definitions of ADD and REORGANIZE PARTITION."""
        reader = self._reader
        begins = [n for n in range(first, last) if reader.sees(n, "(", "PARTITION")]
        # PARTITION BY HASH (a) PARTITIONS 4 has no definitions.
        end = begins[0] - 1 if begins else last
        after = reader.marks(ClauseScope.PARTITION, reader.closing(begins[0]) + 1, last) if begins else ()
        yield from self._listed([(first, last)], [*reader.marks(ClauseScope.PARTITION, first, end), *after])
        if begins:
            items = reader.items(begins[0] + 1, reader.closing(begins[0]) - 1)
            yield from self._listed(items, [mark for span in items for mark in self._partition(*span)])

    def _partition(self, first: int, last: int) -> Iterator[Mark]:
        reader = self._reader
        # After PARTITION and its name.
        yield from reader.marks(ClauseScope.PARTITION, first + 2, last)
        for at in range(first, last):
            if reader.sees(at, "(", "SUBPARTITION") and not self._is_of_mysql:
                yield Mark(at, reader.closing(at), Action.DROP)

    # Conditions, lists

    def _condition(self, condition: Span | None) -> list[Mark]:
        """MySQL knows IF [NOT] EXISTS of tables and schemas only."""
        if condition is None:
            return []
        words = " ".join(token.keyword for token in self._tree.tokens[condition[0] : condition[1] + 1])
        return [Mark(*condition, Action.REPLACE, f"/*M! {words} */ /*T! {words} */")]

    def _listed(self, items: list[Span], marks: Iterator[Mark] | list[Mark]) -> Iterator[Edit]:
        return list_edits(self._tree.text, self._tree.tokens, items, list(marks))
