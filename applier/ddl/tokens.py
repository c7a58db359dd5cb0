"""The tokenizer cuts a MySQL statement into names, words, strings and marks; ``Cursor`` walks over the tokens of a statement or of a part.

They are the only ones: whatever reads a statement's text, here or in a sink, reads these tokens. They are our own and not a library's,
because the names that a DDL touches are part of its identity in the ledger: they must not change with the version of a dependency. The
quoting is what TiDB prints: no ANSI quotes. Positions are indexes of tokens in the whole statement, also in a cursor over a part.

Comments that are code for some servers and comments for others are read as TiDB reads them, because that is what upstream has run. TiDB
executes ``/*!`` comments whatever version they name; MySQL and MariaDB look at the version. What only MariaDB executes (``/*M!``) is a
comment for TiDB. TiDB's own (``/*T!``) stay: a sink that is a TiDB executes them, others do not. Source: TiDB manual, "Comment Syntax".

Literals of MySQL: strings, numbers, and bytes in hexadecimal or binary digits (manual, "Literal Values").
"""

import re
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

# Names and strings come first: what looks like a comment inside of them is text.
_PIECE: Final = re.compile(
    r"""
      (?P<kept>`(?:[^`]|``)*+` | '(?:[^'\\]|\\.|'')*+' | "(?:[^"\\]|\\.|"")*+")
    | (?P<begins>/\*!(?:[0-9]{5,6})?)
    | (?P<foreign>/\*M!.*?\*/)
    | (?P<comment>/\*.*?\*/ | --(?=[ \t\r\n\f\v]|$)[^\n]* | \#[^\n]*)
    | (?P<ends>\*/)
    """,
    re.VERBOSE | re.DOTALL,
)


def as_tidb_reads(text: str) -> str:
    """Return the text with ``/*!`` comments opened and MariaDB's own blanked. Its length, and every position in it, stay as they are."""
    if "/*!" not in text and "/*M!" not in text:
        return text
    pieces, at, is_open = list[str](), 0, False
    for match in _PIECE.finditer(text):
        kind = match.lastgroup
        if kind in {"begins", "foreign"} or (kind == "ends" and is_open):
            # Blanks and not nothing: a token's position is then its position in the text as upstream wrote it, where edits are made.
            pieces += [text[at : match.start()], " " * len(match.group())]
            at, is_open = match.end(), kind == "begins" or (is_open and kind == "foreign")
    return "".join([*pieces, text[at:]])


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
    """``kind`` is word, quoted (an identifier, unescaped), string, or the mark itself; ``start`` and ``end`` are its position in the text.

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


_DIGITS: Final = re.compile(
    r"""
      (?P<hex>0x[0-9a-f]+ | x'[0-9a-f]*')(?![\w$])
    | (?P<bits>0b[01]+ | b'[01]*')(?![\w$])
    | (?P<number>(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?)(?![\w$])
    """,
    re.VERBOSE | re.IGNORECASE,
)
# \% and \_ keep their backslash outside of patterns. TiDB prints statements as they are read without NO_BACKSLASH_ESCAPES.
_BACKSLASH: Final = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a", "%": "\\%", "_": "\\_"}
_ESCAPES: Final = str.maketrans({"\\": "\\\\", "'": "''", "\0": "\\0", "\n": "\\n", "\r": "\\r", "\x1a": "\\Z"})


class Literal(NamedTuple):
    """``kind`` is string, number or bytes (``text`` is then hexadecimal digits); ``last`` is the position of its last token."""

    kind: str
    text: str
    last: int


def literal_at(text: str, tokens: Sequence[Token], at: int) -> Literal | None:
    """Read the literal whose first token is ``at``, which may be a charset introducer (``_utf8mb4'x'``); None if none is there."""
    token = tokens[at]
    if token.kind == "string":
        return Literal("string", unescape(token.text), at)
    if is_introducer(text, tokens, at):
        return literal_at(text, tokens, at + 1)
    match = _DIGITS.match(text, token.start)
    if match is None or token.kind == "quoted":
        return None
    last = at
    while last + 1 < len(tokens) and tokens[last + 1].start < match.end():
        last += 1
    found = match.group()
    if match.lastgroup == "number":
        return Literal("number", found, last)
    return Literal("bytes", _whole_bytes(found[2:].rstrip("'"), 16 if match.lastgroup == "hex" else 2), last)


def is_introducer(text: str, tokens: Sequence[Token], at: int) -> bool:
    """Return whether a token only names the character set of the literal after it: ``_utf8mb4'x'``, ``_binary 0x41``, ``N'x'``."""
    token, following = tokens[at], tokens[at + 1] if at + 1 < len(tokens) else None
    if token.kind != "word" or following is None or token.text[0] not in "_nN":
        return False
    is_adjacent = token.end == following.start
    # _utf8mb4 may stand apart from its literal; N, as in N'x', must touch it (manual, "Character Set Introducers").
    if not (token.text[0] == "_" or (len(token.text) == 1 and is_adjacent)):
        return False
    match = _DIGITS.match(text, following.start)
    return following.kind == "string" or (match is not None and match.lastgroup != "number")


def _whole_bytes(digits: str, base: int) -> str:
    # Where half a byte is missing, MySQL puts a zero in front (manual, "Hexadecimal Literals").
    plain = digits if base == 16 else f"{int(digits or '0', base):x}"
    return plain.lower().rjust(len(plain) + len(plain) % 2, "0")


def unescape(raw: str) -> str:
    r"""Read a string literal of MySQL with its quotes: doubled quotes and backslash escapes (manual, "String Literals")."""
    quote, pieces, at, end = raw[0], [], 1, len(raw) - 1
    while at < end:
        letter = raw[at]
        if letter == "\\" and at + 1 < end:
            at += 1
            letter = _BACKSLASH.get(raw[at], raw[at])
        elif letter == quote:
            at += 1
        pieces.append(letter)
        at += 1
    return "".join(pieces)


def quote_text(text: str) -> str:
    r"""Write a string literal of MySQL that can stand inside a comment of SQL (``*/`` becomes ``*\/``, which MySQL reads as the same)."""
    return "'" + text.translate(_ESCAPES).replace("*/", "*\\/") + "'"


class Cursor:
    """Reads the tokens from ``first`` to ``last`` (indexes; both belong to it) from left to right."""

    __slots__ = ("_end", "at", "text", "tokens")

    def __init__(self, text: str, tokens: Sequence[Token] | None = None, first: int = 0, last: int | None = None) -> None:
        self.text = text
        # Parts share the tokens of the whole statement, so that their positions are positions in it.
        self.tokens = scan(text) if tokens is None else tokens
        self.at = first
        self._end = len(self.tokens) if last is None else last + 1

    def part(self, first: int, last: int) -> "Cursor":
        """Return a cursor over other tokens of the same statement."""
        return Cursor(self.text, self.tokens, first, last)

    @property
    def is_done(self) -> bool:
        """Whether nothing is left."""
        return self.at >= self._end

    @property
    def last(self) -> int:
        """The index of the last token."""
        return self._end - 1

    @property
    def rest(self) -> Sequence[Token]:
        """The tokens that are left."""
        return self.tokens[self.at : self._end]

    def keyword(self, ahead: int = 0) -> str:
        """Return the keyword, mark or class of a token without taking it; '' at the end."""
        at = self.at + ahead
        return self.tokens[at].keyword if at < self._end else ""

    def is_at_name(self) -> bool:
        """Return whether the next token can be a name."""
        return not self.is_done and self.tokens[self.at].is_name

    def sees(self, *words: str) -> bool:
        """Return whether these words (upper case) or marks come next."""
        # A loop, and no all(): a statement with 900 columns asks this 12,000 times, and a generator took twice as long.
        at, end, tokens = self.at, self._end, self.tokens
        for word in words:
            if at >= end or tokens[at].keyword != word:
                return False
            at += 1
        return True

    def next(self) -> Token:
        """Take the next token."""
        if self.is_done:
            raise self.unexpected("another word")
        self.at += 1
        return self.tokens[self.at - 1]

    def word(self) -> str:
        """Take a keyword and return it in upper case."""
        if not self.is_done and self.tokens[self.at].kind == "word":
            return self.next().keyword
        raise self.unexpected("a keyword")

    def accept(self, *words: str) -> bool:
        """Take these words if they come next."""
        if not self.sees(*words):
            return False
        self.at += len(words)
        return True

    def accept_any(self, *words: str) -> str:
        """Take the next token if it is one of these words; return it, or ''."""
        found = self.keyword()
        if not found or found not in words:
            return ""
        self.at += 1
        return found

    def expect(self, *words: str) -> None:
        """Take these words, which must come next."""
        if not self.accept(*words):
            raise self.unexpected(" ".join(words))

    def name_token(self) -> Token:
        """Take a name, quoted or not."""
        if not self.is_at_name():
            raise self.unexpected("a name")
        return self.next()

    def name(self) -> str:
        """Take a name, quoted or not, and return it without its quotes."""
        return self.name_token().text

    def literal_ahead(self) -> Literal | None:
        """Return the literal that comes next without taking it; None if another token comes."""
        # 1.5 is three tokens: the literal must not reach beyond the part.
        found = None if self.is_done else literal_at(self.text, self.tokens, self.at)
        return None if found is None or found.last >= self._end else found

    def literal(self) -> Literal:
        """Take a literal, perhaps after a charset introducer."""
        found = self.literal_ahead()
        if found is None:
            raise self.unexpected("a literal")
        self.at = found.last + 1
        return found

    def string(self) -> str:
        """Take a string, perhaps after a charset introducer."""
        found = self.literal_ahead()
        if found is None or found.kind != "string":
            raise self.unexpected("a string")
        return self.literal().text

    def integer(self) -> int:
        """Take an unsigned integer."""
        if self.is_done or not self.tokens[self.at].text.isdecimal():
            raise self.unexpected("a number")
        return int(self.next().text)

    def parenthesis(self) -> "Cursor":
        """Take a balanced parenthesis and return a cursor over what is inside."""
        self.expect("(")
        begin, depth = self.at, 1
        while depth:
            kind = self.next().kind
            depth += (kind == "(") - (kind == ")")
        return self.part(begin, self.at - 2)

    def skip_parenthesis(self) -> None:
        """Take a parenthesis if one comes next."""
        if self.sees("("):
            self.parenthesis()

    def until_comma(self) -> "Cursor":
        """Take everything up to the next comma of this level, and return a cursor over it.

        A parenthesis that never closes reaches to the end. After one that was never opened nothing is split.
        """
        begin, depth = self.at, 0
        while not self.is_done:
            kind = self.tokens[self.at].kind
            if kind == "," and depth == 0:
                break
            if kind in {"(", ")"}:
                depth += 1 if kind == "(" else -1
            self.at += 1
        return self.part(begin, self.at - 1)

    def split(self) -> Iterator["Cursor"]:
        """Take everything, cut at the commas of this level; after a trailing comma comes nothing more."""
        while not self.is_done:
            yield self.until_comma()
            self.accept(",")

    def skip_rest(self) -> None:
        """Take everything."""
        self.at = self._end

    def source(self) -> str:
        """Take the rest and return it as it was written, without charset introducers and comments."""
        pieces, end = [], -1
        for at in range(self.at, self._end):
            token = self.tokens[at]
            # MySQL keeps expressions in its catalogue without introducers, and SQLite does not have them.
            if not (at < self.last and is_introducer(self.text, self.tokens, at)):
                pieces.append(("" if token.start == end else " ") + self.text[token.start : token.end])
                end = token.end
        self.at = self._end
        return "".join(pieces).strip()

    def finish(self, what: str = "the end of the statement") -> None:
        """Nothing may follow."""
        if not self.is_done:
            raise self.unexpected(what)

    def unexpected(self, expected: str) -> DdlSyntaxError:
        """Make the error for what comes next."""
        found = "" if self.is_done else self.text[self.tokens[self.at].start : self.tokens[self.at].end]
        return DdlSyntaxError(expected, found)
