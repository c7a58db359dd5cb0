"""The tables that a query names: a grammar of table references, of which expressions are read for their subqueries only.

    query    [WITH [RECURSIVE] name [(columns)] AS (query), …] term [UNION | EXCEPT | INTERSECT [ALL | DISTINCT] term] …
    term     SELECT … [FROM references] … | TABLE name | VALUES … | (query) …
    factor   name [PARTITION (…)] [[AS] alias] [USE | FORCE | IGNORE INDEX …] … | [LATERAL] (query) [AS] alias [(columns)]
             | (references) | {OJ reference} | JSON_TABLE (…) [AS] alias

The words at which parts end are reserved in TiDB, MySQL and MariaDB. A reserved word where none may stand is a syntax error, so that no
table is missed: a query that is not wholly understood has no names at all. (Manuals, "SELECT", "JOIN", "Derived Tables", "WITH".)
"""

from typing import Final

from applier.ddl.alter_parser import read_table_name
from applier.ddl.cursor import Cursor
from applier.ddl.statement import Site
from applier.ddl.tokens import Token
from applier.ddl.tree import NamePlace
from applier.model.events import TableName

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
"""What may follow a table, and is no alias."""
_MISPLACED: Final = frozenset({"SELECT", "FROM", "JOIN", "STRAIGHT_JOIN", "TABLE"})
"""They do not stand in an expression. FROM does, in the parenthesis of a function: TRIM('x' FROM a)."""


class QueryTables:
    """The places where a query names tables, in the order of the text.

    ``parts``: the names that it gives to queries of its own. ``words``: names behind a FROM that are no tables; the first readers took
    them for some, and identities of that time have them.
    """

    def __init__(self, query: Cursor, default_schema: str, *, is_list: bool = False) -> None:
        """Read the query; DdlSyntaxError if it is not understood. ``is_list``: read references only, up to what is no part of them."""
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
        place = NamePlace(first, query.name_token()) if query.accept(".") else NamePlace(None, first)
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
