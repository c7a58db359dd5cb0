"""What is known of a DDL's statement: its kind, and the names in it by role: the tables it needs, creates, drops, renames, mentions. Pure.

Names come from the tree of the statement. The tables that a query names (``QueryTables``) come from a grammar of table references, in which
expressions are read for their subqueries only:

    query    [WITH [RECURSIVE] name [(columns)] AS (query), …] term [UNION | EXCEPT | INTERSECT [ALL | DISTINCT] term] …
    term     SELECT … [FROM references] … | TABLE name | VALUES … | (query) …
    factor   name [PARTITION (…)] [[AS] alias] [USE | FORCE | IGNORE INDEX …] … | [LATERAL] (query) [AS] alias [(columns)]
             | (references) | {OJ reference} | JSON_TABLE (…) [AS] alias

The words at which parts end are reserved in TiDB, MySQL and MariaDB. A reserved word where none may stand is a syntax error, so that no
table is missed: a query that is not wholly understood has no names at all. (Manuals, "SELECT", "JOIN", "Derived Tables", "WITH".)

The tables that a statement of rows may change (``changed_tables``):

    INSERT | REPLACE   [modifier …] [INTO] name …                     the name
    LOAD DATA          … INTO TABLE name …                            the name
    UPDATE             [modifier …] references SET …                  every table of the references
    DELETE             [modifier …] FROM references …                 every table of the references
    DELETE             [modifier …] name[.*], … FROM references …     every table of the references

A statement that is not wholly understood has no tables at all. Nor has a statement that calls a function which may be stored: it may change
tables of its own. No text shows what a trigger or a view of those tables changes. (Manuals, "INSERT", "REPLACE", "UPDATE", "DELETE".)
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from enum import StrEnum
from itertools import pairwise
from typing import Final, NamedTuple

from applier.ddl.parser import parse, read_table_name
from applier.ddl.tokens import Cursor, DdlSyntaxError, Token
from applier.ddl.tree import (
    AlterTableStatement,
    ClauseKind,
    CreateTableStatement,
    CreateViewStatement,
    DropTablesStatement,
    IndexStatement,
    RecoverTableStatement,
    RenameTablesStatement,
    SchemaStatement,
    Tree,
    TruncateTableStatement,
    WrittenName,
)
from applier.model.events import DdlEvent, TableName


class DdlKind(StrEnum):
    """What a statement does to names."""

    CREATE_SCHEMA = "create_schema"
    ALTER_SCHEMA = "alter_schema"
    DROP_SCHEMA = "drop_schema"
    CREATE_TABLE = "create_table"
    CREATE_TABLE_LIKE = "create_table_like"
    ALTER_TABLE = "alter_table"
    RENAME_TABLE = "rename_table"
    TRUNCATE_TABLE = "truncate_table"
    EXCHANGE_PARTITION = "exchange_partition"
    DROP_TABLE = "drop_table"
    RECOVER_TABLE = "recover_table"
    CREATE_VIEW = "create_view"
    DROP_VIEW = "drop_view"
    CREATE_INDEX = "create_index"
    DROP_INDEX = "drop_index"


@dataclass(frozen=True, slots=True, kw_only=True)
class DdlStatement:
    """The names of one statement by role, as they are spelled, qualified.

    ``needs`` must exist and stay (the table of an ALTER, both of an EXCHANGE, the source of a LIKE); ``renames`` happen in order;
    ``mentions`` are named but not required (a view's tables, the target of a foreign key). ``parts`` are the names that a view's query
    gives to queries of its own (WITH): no tables. ``words`` are no tables either, and part of its identity. ``schema`` is that of a schema
    DDL.
    ``if_exists`` and ``if_not_exists`` speak of the tables or the schema, not of indexes or columns.
    """

    kind: DdlKind
    schema: str = ""
    needs: tuple[TableName, ...] = ()
    creates: tuple[TableName, ...] = ()
    drops: tuple[TableName, ...] = ()
    renames: tuple[tuple[TableName, TableName], ...] = ()
    mentions: tuple[TableName, ...] = ()
    parts: tuple[str, ...] = ()
    words: tuple[TableName, ...] = field(default=(), compare=False)
    if_exists: bool = False
    if_not_exists: bool = False
    or_replace: bool = False

    @property
    def names(self) -> tuple[TableName, ...]:
        """Every table that the statement names, once each."""
        renamed = (name for pair in self.renames for name in pair)
        return tuple(dict.fromkeys((*self.needs, *self.creates, *self.drops, *renamed, *self.mentions)))

    @property
    def sources(self) -> tuple[TableName, ...]:
        """The tables whose content or shape the statement takes over: of RENAME, EXCHANGE and LIKE."""
        taken = self.needs if self.kind in {DdlKind.EXCHANGE_PARTITION, DdlKind.CREATE_TABLE_LIKE} else ()
        return (*taken, *(old for old, _ in self.renames))


class Site(NamedTuple):
    """A position where a statement names a table, or with ``table`` None a schema. ``schema`` is None where it is not written.

    ``is_new_name``: of a RENAME. ``alias`` is what a view's query calls the table.
    """

    name: TableName
    schema: Token | None
    table: Token | None
    is_new_name: bool = False
    alias: Token | None = None


_OPERATORS: Final = ("UNION", "EXCEPT", "INTERSECT")
_TERMS: Final = frozenset({"SELECT", "TABLE", "VALUES"})
_MODIFIERS: Final = (
    "ALL", "DISTINCT", "DISTINCTROW", "HIGH_PRIORITY", "STRAIGHT_JOIN", "SQL_SMALL_RESULT", "SQL_BIG_RESULT", "SQL_BUFFER_RESULT",
    "SQL_CACHE", "SQL_NO_CACHE", "SQL_CALC_FOUND_ROWS",
)  # fmt: skip
_CLAUSES: Final = frozenset({"WHERE", "GROUP", "HAVING", "ORDER", "LIMIT", "FOR", "WINDOW", "LOCK", "INTO", "FETCH", "PROCEDURE"})
_JOINS: Final = frozenset({"JOIN", "INNER", "CROSS", "LEFT", "RIGHT", "NATURAL", "STRAIGHT_JOIN"})
_CONDITIONS: Final = frozenset({"ON", "USING"})
_HINTS: Final = frozenset({"USE", "FORCE", "IGNORE"})
_AFTER_FACTOR: Final = _CLAUSES | _JOINS | _CONDITIONS | _HINTS | {*_OPERATORS, "AS", "PARTITION", "FROM", "WITH", "SELECT", "SET"}
"""What may follow a table and is not an alias."""
_MISPLACED: Final = frozenset({"SELECT", "FROM", "JOIN", "STRAIGHT_JOIN", "TABLE"})
"""They cannot be in an expression. FROM can, in the parenthesis of a function: TRIM('x' FROM a)."""


class QueryTables:
    """The positions where a query names tables, in the order of the text.

    ``parts``: the names that it gives to queries of its own. ``words``: names after a FROM that are not tables; earlier versions read
    them as tables, and stored identities have them.
    """

    def __init__(self, query: Cursor, default_schema: str, *, is_list: bool = False) -> None:
        """Read the query; DdlSyntaxError if it is not understood. ``is_list``: read references only, to their end."""
        self._default_schema = default_schema
        self.sites: list[Site] = []
        self.parts: list[str] = []
        self.words: list[TableName] = []
        if is_list:
            self._references(query, frozenset())
        else:
            self._query(query, frozenset())

    # Queries

    def _query(self, query: Cursor, known: frozenset[str]) -> None:
        """Read a query to its end. ``known``: the names of queries that are no tables in it, casefolded."""
        if query.accept("WITH"):
            known = self._with(query, known)
        self._term(query, known)
        while query.accept_any(*_OPERATORS):
            query.accept_any("ALL", "DISTINCT")
            self._term(query, known)
        query.finish("the end of the query")

    def _with(self, query: Cursor, known: frozenset[str]) -> frozenset[str]:
        is_recursive = query.accept("RECURSIVE")
        while True:
            name = query.name()
            self.parts.append(name)
            query.skip_parenthesis()
            query.expect("AS")
            # A query sees those before it, and itself if it is recursive.
            inside = query.parenthesis()
            self._query(inside, known | {name.casefold()} if is_recursive else known)
            known |= {name.casefold()}
            if not query.accept(","):
                return known

    def _term(self, query: Cursor, known: frozenset[str]) -> None:
        if query.sees("("):
            self._query(query.parenthesis(), known)
        elif query.accept("TABLE"):
            self._table(query, known)
        elif query.accept("VALUES"):
            pass
        else:
            query.expect("SELECT")
            while query.accept_any(*_MODIFIERS):
                pass
            self._expressions(query, known, {"FROM", *_OPERATORS})
            if query.accept("FROM"):
                self._references(query, known)
                # What is not understood must not hide the table behind the next comma. MariaDB's FOR SYSTEM_TIME is of a table.
                if query.sees("FOR", "SYSTEM_TIME") or not (query.is_done or query.keyword() in {*_CLAUSES, *_OPERATORS}):
                    raise query.unexpected("the end of the tables")
        self._expressions(query, known, set(_OPERATORS))

    # Tables

    def _references(self, query: Cursor, known: frozenset[str]) -> None:
        self._reference(query, known)
        while query.accept(","):
            self._reference(query, known)

    def _reference(self, query: Cursor, known: frozenset[str]) -> None:
        self._factor(query, known)
        while not query.is_done:
            if query.accept("ON"):
                self._expressions(query, known, {",", "}", "SET", *_CLAUSES, *_OPERATORS, *_JOINS, *_CONDITIONS})
            elif query.accept("USING"):
                query.parenthesis()
            elif _take_join(query):
                self._factor(query, known)
            else:
                return

    def _factor(self, query: Cursor, known: frozenset[str]) -> None:
        if query.accept("{"):
            query.name()
            self._reference(query, known)
            query.expect("}")
        elif query.sees("JSON_TABLE", "("):
            query.next()
            self._expressions(query.parenthesis(), known, set(), is_function=True)
            _take_alias(query)
        elif query.sees("("):
            self._parenthesis(query, known)
        elif query.sees("LATERAL", "("):
            query.next()
            self._parenthesis(query, known)
        elif not query.sees("DUAL") or query.keyword(1) == ".":
            self._table(query, known)
        else:
            query.next()

    def _parenthesis(self, query: Cursor, known: frozenset[str]) -> None:
        inside = query.parenthesis()
        if not _is_query(inside):
            self._references(inside, known)
            inside.finish("the end of the tables")
            return
        self._query(inside, known)
        if _take_alias(query) is not None:
            query.skip_parenthesis()

    def _table(self, query: Cursor, known: frozenset[str]) -> None:
        first = _table_word(query)
        # After the dot each word is a name.
        place = WrittenName(first, query.name_token()) if query.accept(".") else WrittenName(None, first)
        if query.accept("PARTITION"):
            query.parenthesis()
        alias = _take_alias(query)
        while query.keyword() in _HINTS:
            _take_hint(query)
        if place.schema is None and first.text.casefold() in known:
            self.words.append(place.name(self._default_schema))
            return
        self.sites.append(Site(place.name(self._default_schema), place.schema, place.table, alias=alias))

    # Expressions

    def _expressions(self, part: Cursor, known: frozenset[str], ends: set[str], *, is_function: bool = False) -> None:
        """Read expressions up to one of ``ends``, and the queries in their parentheses."""
        braces = 0
        while not part.is_done:
            word = part.keyword()
            # LEFT and RIGHT are functions too.
            if word in ends and not (braces and word in {"}", ","}) and not (word in {"LEFT", "RIGHT"} and part.keyword(1) == "("):
                return
            if word == "(":
                self._inside(part.parenthesis(), known)
            elif word in {".", "@"}:
                part.next()
                # a.select: after the dot each word is a name. It may also be a number (.5), or the mark of all columns.
                if part.is_at_name():
                    part.next()
            elif is_function and part.accept("FROM"):
                self._word(part)
            elif word in _MISPLACED:
                raise part.unexpected("an expression")
            else:
                braces += (word == "{") - (word == "}")
                part.next()

    def _word(self, part: Cursor) -> None:
        ahead = part.part(part.at, part.last)
        if ahead.is_at_name():
            self.words.append(read_table_name(ahead).name(self._default_schema))

    def _inside(self, inside: Cursor, known: frozenset[str]) -> None:
        if _is_query(inside):
            self._query(inside, known)
        else:
            self._expressions(inside, known, set(), is_function=True)


def _is_query(inside: Cursor) -> bool:
    """Return whether the inside of a parenthesis is a query, and no list of tables or expressions."""
    if inside.keyword() in _TERMS or inside.sees("WITH"):
        return True
    if not inside.sees("("):
        return False
    ahead = inside.part(inside.at, inside.last)
    first = ahead.parenthesis()
    return _is_query(first) and (ahead.is_done or ahead.keyword() in {*_OPERATORS, "ORDER", "LIMIT"})


def _take_join(query: Cursor) -> bool:
    if query.accept("NATURAL"):
        query.accept_any("INNER", "LEFT", "RIGHT")
        query.accept("OUTER")
        query.expect("JOIN")
        return True
    if query.accept_any("LEFT", "RIGHT"):
        query.accept("OUTER")
        query.expect("JOIN")
        return True
    if query.accept_any("INNER", "CROSS"):
        query.expect("JOIN")
        return True
    return bool(query.accept_any("JOIN", "STRAIGHT_JOIN"))


def _table_word(query: Cursor) -> Token:
    if query.keyword() in _AFTER_FACTOR | _MISPLACED:
        raise query.unexpected("the name of a table")
    return query.name_token()


def _take_alias(query: Cursor) -> Token | None:
    if query.accept("AS") or (query.is_at_name() and query.keyword() not in _AFTER_FACTOR):
        return query.name_token()
    return None


def _take_hint(query: Cursor) -> None:
    """Take USE, FORCE or IGNORE INDEX [FOR JOIN | ORDER BY | GROUP BY] (…)."""
    query.next()
    if not query.accept_any("INDEX", "KEY"):
        raise query.unexpected("INDEX")
    if query.accept("FOR") and not (query.accept("JOIN") or query.accept("ORDER", "BY") or query.accept("GROUP", "BY")):
        raise query.unexpected("JOIN, ORDER BY or GROUP BY")
    query.parenthesis()


def tables_of_references(part: Cursor, default_schema: str) -> tuple[TableName, ...]:
    """Take the references of an UPDATE or a DELETE, and return the tables in them. DdlSyntaxError if they are not understood."""
    return tuple(site.name for site in QueryTables(part, default_schema, is_list=True).sites)


def query_of_view(body: Cursor) -> Cursor:
    """Return the query of a CREATE VIEW from what follows its name, without WITH CHECK OPTION; DdlSyntaxError if there is none."""
    body.skip_parenthesis()
    body.expect("AS")
    for words in _CHECK_OPTIONS:
        tail = body.part(max(body.at, body.last + 1 - len(words)), body.last)
        if tail.sees(*words):
            return body.part(body.at, tail.at - 1)
    return body


_CHECK_OPTIONS: Final = (
    ("WITH", "CASCADED", "CHECK", "OPTION"), ("WITH", "LOCAL", "CHECK", "OPTION"), ("WITH", "CHECK", "OPTION"),
)  # fmt: skip


_STATEMENT_MODIFIERS: Final = ("LOW_PRIORITY", "HIGH_PRIORITY", "DELAYED", "IGNORE", "QUICK", "CONCURRENT", "LOCAL")
_AFTER_DELETE: Final = frozenset({"", "WHERE", "ORDER", "LIMIT"})

_FUNCTIONS: Final = frozenset(
    """ABS ADDDATE ADDTIME ASCII AVG BIN BIT_AND BIT_COUNT BIT_LENGTH BIT_OR BIT_XOR CAST CEIL CEILING CHAR CHARACTER_LENGTH CHAR_LENGTH
    COALESCE CONCAT CONCAT_WS CONNECTION_ID CONV CONVERT CONVERT_TZ COUNT CRC32 CURDATE CURRENT_DATE CURRENT_TIME CURRENT_TIMESTAMP
    CURRENT_USER CURTIME DATABASE DATE DATEDIFF DATE_ADD DATE_FORMAT DATE_SUB DAY DAYOFMONTH DAYOFWEEK DAYOFYEAR ELT EXTRACT FIELD FLOOR
    FORMAT FROM_DAYS FROM_UNIXTIME GREATEST GROUP_CONCAT HEX HOUR IF IFNULL INET_ATON INET_NTOA INSERT INSTR ISNULL JSON_ARRAY JSON_EXTRACT
    JSON_OBJECT JSON_UNQUOTE LAST_INSERT_ID LCASE LEAST LEFT LENGTH LOCALTIME LOCALTIMESTAMP LOCATE LOWER LPAD LTRIM MAX MD5 MICROSECOND
    MID MIN MINUTE MOD MONTH NOW NULLIF OCT OCTET_LENGTH ORD POSITION POW POWER QUARTER QUOTE RAND REPEAT REPLACE REVERSE RIGHT ROUND RPAD
    RTRIM SCHEMA SECOND SEC_TO_TIME SHA SHA1 SHA2 SIGN SPACE STRCMP STR_TO_DATE SUBDATE SUBSTR SUBSTRING SUBSTRING_INDEX SUBTIME SUM
    SYSDATE TIME TIMEDIFF TIMESTAMP TIMESTAMPADD TIMESTAMPDIFF TIME_FORMAT TIME_TO_SEC TO_DAYS TRIM TRUNCATE UCASE UNHEX UNIX_TIMESTAMP
    UPPER USER UTC_DATE UTC_TIME UTC_TIMESTAMP UUID UUID_SHORT VALUE VALUES VERSION WEEK WEEKDAY YEAR YEARWEEK""".split()  # noqa: SIM905
)
"""Functions of the servers: a stored one of such a name is called with its schema only."""
_BEFORE_PARENTHESIS: Final = frozenset(
    """ALL AND ANY AS BETWEEN BINARY BY CASE CHAR DECIMAL DISTINCT DIV ELSE EXISTS FIELDS FROM IN INDEX INTERVAL INTO JOIN KEY LIKE LIMIT
    LINES NOT ON OR PARTITION REGEXP RLIKE ROW ROWS SELECT SET SOME THEN UNION USING VALUES VARCHAR WHEN WHERE XOR""".split()  # noqa: SIM905
)


def changed_tables(text: str, default_schema: str) -> tuple[TableName, ...]:
    """Return the tables that a statement may change, without tables that it only reads; DdlSyntaxError if it is not understood.

    A name without a schema is one of ``default_schema``.
    """
    cursor = Cursor(text)
    word = cursor.word()
    if word == "LOAD":
        return _loaded(cursor, default_schema)
    while cursor.accept_any(*_STATEMENT_MODIFIERS):
        pass
    match word:
        case "INSERT" | "REPLACE":
            cursor.accept("INTO")
            return _target(cursor, default_schema)
        case "UPDATE":
            tables = tables_of_references(cursor, default_schema)
            cursor.expect("SET")
        case "DELETE":
            tables = _deleted(cursor, default_schema)
        case _:
            raise DdlSyntaxError("INSERT, REPLACE, UPDATE, DELETE or LOAD DATA", word)
    _check_calls(cursor.part(0, cursor.last))
    return tables


def _target(cursor: Cursor, default_schema: str) -> tuple[TableName, ...]:
    name = read_table_name(cursor).name(default_schema)
    # The names of the columns: no call of a function, although it looks like one.
    if cursor.accept("PARTITION"):
        cursor.parenthesis()
    cursor.skip_parenthesis()
    _check_calls(cursor)
    return (name,)


def _loaded(cursor: Cursor, default_schema: str) -> tuple[TableName, ...]:
    cursor.expect("DATA")
    while cursor.accept_any(*_STATEMENT_MODIFIERS):
        pass
    cursor.expect("INFILE")
    cursor.string()
    cursor.accept_any("IGNORE", "REPLACE")
    cursor.expect("INTO", "TABLE")
    return _target(cursor, default_schema)


def _deleted(cursor: Cursor, default_schema: str) -> tuple[TableName, ...]:
    while not cursor.accept("FROM"):
        cursor.name_token()
        while cursor.accept("."):
            cursor.next()
        cursor.accept(",")
    tables = tables_of_references(cursor, default_schema)
    if cursor.keyword() not in _AFTER_DELETE:
        raise cursor.unexpected("WHERE, ORDER BY or LIMIT")
    return tables


def _check_calls(part: Cursor) -> None:
    """Refuse a call of a function that may be stored: each name before a parenthesis that is not known."""
    for before, name, mark in zip((None, *part.rest), part.rest, part.rest[1:], strict=False):
        if mark.kind == "(" and name.is_name:
            is_known = name.kind == "word" and (name.keyword in _FUNCTIONS or name.keyword in _BEFORE_PARENTHESIS)
            if not is_known or (before is not None and before.kind == "."):
                raise DdlSyntaxError("no function that may be stored", name.text)


def parse_ddl(ddl: DdlEvent) -> DdlStatement | None:
    """Read the statement of a DDL; None if it is not wholly understood. Never raises."""
    found = read_ddl(ddl)
    return None if found is None else found[0]


def read_ddl(ddl: DdlEvent) -> tuple[DdlStatement, tuple[Site, ...]] | None:
    """Read the statement of a DDL, and the positions of the names in its text; None if it is not wholly understood. Never raises."""
    try:
        reader = _Names(parse(ddl.query), ddl)
        return reader.statement(), tuple(reader.sites)
    except DdlSyntaxError:
        return None


class _Names:
    """The names of one tree. ``sites`` are their positions, in the order of the text."""

    def __init__(self, tree: Tree, ddl: DdlEvent) -> None:
        self._tree, self._ddl = tree, ddl
        self.sites: list[Site] = []

    def statement(self) -> DdlStatement:
        """Return the names by role; DdlSyntaxError if there may be others."""
        # Two statements in one event: the names in the second would be lost.
        if any(token.kind == ";" for token in self._tree.tokens):
            raise DdlSyntaxError("one statement", ";")
        node = self._tree.node
        match node:
            case SchemaStatement():
                found = self._schema(node)
            case CreateTableStatement():
                found = self._create_table(node)
            case AlterTableStatement():
                found = self._alter_table(node)
            case CreateViewStatement():
                found = self._create_view(node)
            case RecoverTableStatement():
                found = self._recover_table(node)
            case _:
                found = self._of_tables(node)
        return found

    def _of_tables(self, node: IndexStatement | DropTablesStatement | RenameTablesStatement | TruncateTableStatement) -> DdlStatement:
        """Read a statement that names only tables."""
        match node:
            case IndexStatement():
                kind = DdlKind.CREATE_INDEX if node.is_create else DdlKind.DROP_INDEX
                return DdlStatement(kind=kind, needs=(self._table(node.table),))
            case DropTablesStatement():
                kind = DdlKind.DROP_VIEW if node.is_view else DdlKind.DROP_TABLE
                return DdlStatement(kind=kind, drops=tuple(map(self._table, node.tables)), if_exists=node.if_exists)
            case RenameTablesStatement():
                pairs = tuple((self._table(old), self._table(new, is_new_name=True)) for old, new in node.pairs)
                return DdlStatement(kind=DdlKind.RENAME_TABLE, renames=pairs, if_exists=node.condition is not None)
            case TruncateTableStatement():
                return DdlStatement(kind=DdlKind.TRUNCATE_TABLE, needs=(self._table(node.table),))

    def _table(self, place: WrittenName, *, is_new_name: bool = False) -> TableName:
        name = place.name(self._ddl.schema)
        self.sites.append(Site(name, place.schema, place.table, is_new_name))
        return name

    def _schema(self, node: SchemaStatement) -> DdlStatement:
        schema = self._ddl.schema if node.schema is None else self._table(node.schema).schema
        match node.verb:
            case "CREATE":
                return DdlStatement(kind=DdlKind.CREATE_SCHEMA, schema=schema, if_not_exists=node.has_condition)
            case "DROP":
                return DdlStatement(kind=DdlKind.DROP_SCHEMA, schema=schema, if_exists=node.has_condition)
            case _:
                return DdlStatement(kind=DdlKind.ALTER_SCHEMA, schema=schema)

    def _create_table(self, node: CreateTableStatement) -> DdlStatement:
        name = self._table(node.table)
        made = DdlStatement(kind=DdlKind.CREATE_TABLE, creates=(name,), if_not_exists=node.if_not_exists, or_replace=node.or_replace)
        if node.like is not None:
            return replace(made, kind=DdlKind.CREATE_TABLE_LIKE, needs=(self._table(node.like),))
        body = self._tree.part(node.body)
        # CREATE TABLE … AS SELECT reads other tables. TiDB does not have it, so its names are not worth a grammar.
        words = [token.keyword for token in body.rest]
        if {"SELECT", "TABLE"} & set(words) or ("VALUES", "ROW") in pairwise(words):
            raise DdlSyntaxError("no query")
        return replace(made, mentions=tuple(self._references(body)))

    def _references(self, part: Cursor) -> Iterator[TableName]:
        """Yield the targets of the foreign keys in a part of the statement."""
        for at in range(part.at, part.last + 1):
            if part.tokens[at].keyword == "REFERENCES":
                yield self._table(read_table_name(part.part(at + 1, part.last)))

    def _alter_table(self, node: AlterTableStatement) -> DdlStatement:
        if not node.is_understood:
            raise DdlSyntaxError("a clause of ALTER TABLE")
        table = self._table(node.table)
        renamed: TableName | None = None
        exchanged: TableName | None = None
        mentions, has_others = list[TableName](), False
        for clause in node.clauses:
            if clause.kind is ClauseKind.RENAME_TABLE and clause.table is not None:
                renamed = self._table(clause.table, is_new_name=True)
                continue
            if clause.kind is ClauseKind.EXCHANGE_PARTITION and clause.table is not None:
                exchanged = self._table(clause.table)
            has_others = True
            if clause.kind not in {ClauseKind.RENAME_COLUMN, ClauseKind.RENAME_INDEX}:
                # The table after WITH TABLE is taken already.
                first = clause.body if clause.kind is ClauseKind.EXCHANGE_PARTITION else clause.span[0]
                mentions += self._references(self._tree.part(first, clause.span[1]))
        renames = () if renamed is None else ((table, renamed),)
        if exchanged is not None:
            needs = (table, exchanged)
            return DdlStatement(kind=DdlKind.EXCHANGE_PARTITION, needs=needs, renames=renames, mentions=tuple(mentions))
        if renames and not has_others:
            # An ALTER that only renames is a RENAME: producers print the one for the other, and both must have one identity.
            return DdlStatement(kind=DdlKind.RENAME_TABLE, renames=renames)
        return DdlStatement(kind=DdlKind.ALTER_TABLE, needs=(table,), renames=renames, mentions=tuple(mentions))

    def _create_view(self, node: CreateViewStatement) -> DdlStatement:
        name, found = self._table(node.view), QueryTables(query_of_view(self._tree.part(node.body)), self._ddl.schema)
        self.sites += found.sites
        mentions = tuple(dict.fromkeys(site.name for site in found.sites))
        return DdlStatement(
            kind=DdlKind.CREATE_VIEW,
            creates=(name,),
            mentions=mentions,
            parts=tuple(found.parts),
            words=tuple(found.words),
            or_replace=node.or_replace,
        )

    def _recover_table(self, node: RecoverTableStatement) -> DdlStatement:
        # BY JOB 53: only the event says which table that was.
        name = self._ddl.name if node.table is None else self._table(node.table)
        if node.new is not None:
            name = self._table(node.new)
        return DdlStatement(kind=DdlKind.RECOVER_TABLE, creates=(name,))
