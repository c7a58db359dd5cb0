"""The tokenizer: cuts a MySQL statement into names, words, strings and marks, each with its place in the text.

It is the only one: whatever reads a statement's text, here or in a sink, reads these tokens. It is our own and not a library's, because
the names that a DDL touches are part of its identity in the ledger: they must not change with the version of a dependency. The quoting is
what TiDB prints: no ANSI quotes; its special comments are comments.
"""

import re
from typing import NamedTuple

from applier.ddl.comment import as_tidb_reads


class DdlSyntaxError(Exception):
    """A text that the reader does not understand. It never leaves ``applier.ddl`` and the sinks' DDL: they answer it each in its way.

    ``expected`` says what should stand before ``found``, in words that fit after "expected".
    """

    def __init__(self, expected: str = "", found: str = "") -> None:
        super().__init__(expected, found)
        self.expected, self.found = expected, found

    def __str__(self) -> str:
        return f"expected {self.expected} before {self.found[:40]!r}"


class Token(NamedTuple):
    """``kind`` is word, quoted (an identifier, unescaped), string, or the mark itself; ``start`` and ``end`` are its place in the text.

    ``keyword`` is the keyword that it may be, in upper case; of what cannot be one, the kind.
    """

    kind: str
    text: str
    start: int
    end: int
    keyword: str

    @property
    def is_name(self) -> bool:
        """Whether it can be the name of something."""
        return self.kind in {"word", "quoted"}


# There is no token for numbers: `1a` and, after a dot, `2` are names in MySQL. What is a literal is decided where one may stand
# (`literal.py`), as MySQL's own lexer decides it.
TOKEN = re.compile(
    r"""
      # MySQL wants a blank after -- (manual, "Comments"): 5--3 is arithmetic.
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
    """Cut a text into tokens, without comments and trailing semicolons; DdlSyntaxError if a quote or comment never closes."""
    tokens = []
    for match in TOKEN.finditer(as_tidb_reads(text)):
        kind, found, (start, end) = match.lastgroup or "", match.group(), match.span()
        if kind == "open":
            raise DdlSyntaxError("the end of a quote or comment", text[start:])
        if kind == "quoted":
            tokens.append(Token(kind, found[1:-1].replace("``", "`"), start, end, kind))
        elif kind == "word":
            tokens.append(Token(kind, found, start, end, found.upper()))
        elif kind != "blank":
            kind = found if kind == "mark" else kind
            tokens.append(Token(kind, found, start, end, kind))
    # A statement may come with the semicolon that its client has typed.
    while tokens and tokens[-1].kind == ";":
        tokens.pop()
    return tokens
