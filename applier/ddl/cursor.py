"""A cursor over the tokens of one statement, or of a part of it: the only one, for the parser and for the readers of single parts.

A method that does not find what it looks for raises DdlSyntaxError. Places are indexes of tokens in the whole statement, also in a cursor
over a part, so that a part can be found again in the text.
"""

from collections.abc import Iterator, Sequence

from applier.ddl.tokens import DdlSyntaxError, Literal, Token, is_introducer, literal_at, scan


class Cursor:
    """Reads the tokens from ``first`` to ``last`` (indexes; both belong to it) from left to right."""

    __slots__ = ("_end", "at", "text", "tokens")

    def __init__(self, text: str, tokens: Sequence[Token] | None = None, first: int = 0, last: int | None = None) -> None:
        self.text = text
        # Parts share the tokens of the whole statement, so that their places are places in it.
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
            # MySQL keeps expressions in its catalogue without introducers, and SQLite has none.
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
