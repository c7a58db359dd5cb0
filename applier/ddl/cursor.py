"""Tokens of a MySQL statement, and a cursor over them that knows names.

The scanner is our own and not a library's, because the names that a DDL touches are part of its identity in the ledger: they must
not change with the version of a dependency. The quoting is what TiDB prints: no ANSI quotes; its special comments are comments.
"""

import re
from typing import NamedTuple

from applier.ddl.comment import as_tidb_reads
from applier.model.events import DdlEvent, TableName


class NotUnderstood(Exception):
    """The way out of the grammar; never seen outside of this package."""


class Token(NamedTuple):
    """``kind`` is word, quoted (an identifier, unescaped), string, or the mark itself; ``start`` and ``end`` are its place in the text."""

    kind: str
    text: str
    start: int = -1
    end: int = -1

    @property
    def keyword(self) -> str:
        """The keyword that it may be, in upper case; the mark or class of what cannot be one."""
        return self.text.upper() if self.kind == "word" else self.kind


TOKEN = re.compile(
    r"""
      (?P<blank>[ \t\r\n\f\v]+ | /\*.*?\*/ | --(?=[ \t\r\n\f\v]|$)[^\n]* | \#[^\n]*)
    | (?P<quoted>`(?:[^`]|``)*+`)
    | (?P<string>'(?:[^'\\]|\\.|'')*+' | "(?:[^"\\]|\\.|"")*+")
    | (?P<word>[0-9A-Za-z_$\x80-\U0010FFFF]+)
    | (?P<open>/\*|[`'"])
    | (?P<mark>.)
    """,
    re.VERBOSE | re.DOTALL,
)
"""``open`` is a quote or comment that never closes."""


def scan(text: str) -> list[Token]:
    """Cut a text into tokens, without comments and trailing semicolons; NotUnderstood if a quote never closes."""
    tokens = []
    for match in TOKEN.finditer(as_tidb_reads(text)):
        kind, found, (start, end) = match.lastgroup or "", match.group(), match.span()
        if kind == "open":
            raise NotUnderstood
        if kind == "quoted":
            tokens.append(Token(kind, found[1:-1].replace("``", "`"), start, end))
        elif kind == "word":
            tokens.append(Token(kind, found, start, end))
        elif kind != "blank":
            tokens.append(Token(found if kind == "mark" else kind, found, start, end))
    while tokens and tokens[-1].kind == ";":
        tokens.pop()
    return tokens


class Site(NamedTuple):
    """A place where a statement names a table, or with ``table`` None a schema. ``schema`` is None where it is not written.

    ``is_new_name``: of a RENAME. ``alias`` is what a view's query calls the table.
    """

    name: TableName
    schema: Token | None
    table: Token | None
    is_new_name: bool = False
    alias: Token | None = None


class Cursor:
    """A place in the tokens of one statement; methods that do not find what they look for raise NotUnderstood.

    ``sites`` are the tables and schemas that were stepped over, in order.
    """

    __slots__ = ("_at", "_tokens", "ddl", "sites")

    def __init__(self, tokens: list[Token], ddl: DdlEvent) -> None:
        self._tokens, self._at, self.ddl = tokens, 0, ddl
        self.sites: list[Site] = []

    def peek(self) -> str:
        """The keyword, mark or class of the next token; '' at the end."""
        if self._at == len(self._tokens):
            return ""
        return self._tokens[self._at].keyword

    def at_identifier(self) -> bool:
        """Whether the next token can be a name."""
        return self._at < len(self._tokens) and self._tokens[self._at].kind in {"quoted", "word"}

    def next(self) -> Token:
        """Step over the next token and return it."""
        if self._at == len(self._tokens):
            raise NotUnderstood
        self._at += 1
        return self._tokens[self._at - 1]

    def word(self) -> str:
        """Step over a keyword and return it in upper case."""
        token = self.next()
        if token.kind != "word":
            raise NotUnderstood
        return token.keyword

    def accept(self, *words: str) -> bool:
        """Step over ``words`` if they all come next."""
        ahead = self._tokens[self._at : self._at + len(words)]
        if tuple(token.keyword for token in ahead) != words:
            return False
        self._at += len(words)
        return True

    def expect(self, *words: str) -> None:
        """Step over ``words``, which must come next."""
        if not self.accept(*words):
            raise NotUnderstood

    def accept_any(self, *words: str) -> str:
        """Step over the next token if it is one of ``words`` and return it; else ''."""
        found = self.peek()
        if found not in words:
            return ""
        self._at += 1
        return found

    def identifier(self) -> str:
        """Step over a name, quoted or not."""
        return self._identifier().text

    def _identifier(self) -> Token:
        token = self.next()
        if token.kind not in {"quoted", "word"}:
            raise NotUnderstood
        return token

    def table(self, *, is_new_name: bool = False) -> TableName:
        """Step over the name of a table; unqualified ones belong to the event's schema."""
        first = self._identifier()
        schema, table = (first, self._identifier()) if self.accept(".") else (None, first)
        name = TableName(self.ddl.schema if schema is None else schema.text, table.text)
        self.sites.append(Site(name, schema, table, is_new_name))
        return name

    def schema(self) -> str:
        """Step over the name of a schema."""
        token = self._identifier()
        self.sites.append(Site(TableName(token.text, ""), token, None))
        return token.text

    def alias(self) -> None:
        """Step over what a view's query calls the table before."""
        self.sites[-1] = self.sites[-1]._replace(alias=self._identifier())

    def tables(self) -> tuple[TableName, ...]:
        """Step over a list of tables."""
        names = [self.table()]
        while self.accept(","):
            names.append(self.table())
        return tuple(names)

    def rest(self) -> None:
        """Step over whatever follows, up to the end of the only statement."""
        while self.peek():
            if self.next().kind == ";":
                raise NotUnderstood

    def finish(self) -> None:
        """Nothing may follow."""
        if self.peek():
            raise NotUnderstood
