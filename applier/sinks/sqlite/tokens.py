"""A cursor over the tokens of one MySQL statement, which remembers where they stand, so that expressions can be cut out of the text.

The tokens are those of ``applier.ddl``; literals, which it has no use for, are told apart here.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Final

from applier.ddl.tokens import TOKEN
from applier.model.errors import NeedsOperator

BY_HAND: Final = (
    "Make the change by hand in the sink, in its rows too, if there is one to make, and skip the DDL with "
    "`applier ddl skip --ts … --table …`"
)
_LITERAL: Final = re.compile(
    r"""
      (?P<hex>0x[0-9a-f]+ | x'[0-9a-f]*')(?![\w$])
    | (?P<bits>0b[01]+ | b'[01]*')(?![\w$])
    | (?P<number>(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?)(?![\w$])
    """,
    re.VERBOSE | re.IGNORECASE,
)
_KINDS: Final = {"quoted": "name", "string": "string", "word": "word", "mark": "sign"}
_BACKSLASH: Final = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a", "%": "\\%", "_": "\\_"}


@dataclass(frozen=True, slots=True)
class Word:
    """One token. ``kind`` is word, name (quoted identifier), string, number, bytes, introducer or sign; ``start``/``end`` cut the text."""

    kind: str
    text: str
    start: int
    end: int


class Cursor:
    """Reads words from left to right. Anything unexpected raises NeedsOperator with the statement."""

    def __init__(self, text: str, words: tuple[Word, ...] | None = None) -> None:
        self._text = text
        self._words = _split(text) if words is None else words
        self._at = 0

    @property
    def is_done(self) -> bool:
        """Whether nothing is left."""
        return self._at >= len(self._words)

    @property
    def text(self) -> str:
        """The whole statement."""
        return self._text

    @property
    def rest(self) -> tuple[Word, ...]:
        """The words that are left."""
        return self._words[self._at :]

    def peek(self, ahead: int = 0) -> Word:
        """Return a word without taking it; an empty sign at the end."""
        at = self._at + ahead
        return self._words[at] if at < len(self._words) else Word("end", "", len(self._text), len(self._text))

    def take(self) -> Word:
        """Take the next word."""
        word = self.peek()
        self._at += 1
        return word

    def sees(self, *words: str) -> bool:
        """Tell whether these words or signs follow (upper case)."""
        return all(self.peek(n).kind in ("word", "sign") and self.peek(n).text.upper() == word for n, word in enumerate(words))

    def accept(self, *words: str) -> bool:
        """Take these words if they follow."""
        found = self.sees(*words)
        self._at += len(words) * found
        return found

    def accept_any(self, *words: str) -> str:
        """Take one of these words if it follows; return it in upper case, or ''."""
        return next((word for word in words if self.accept(word)), "")

    def expect(self, *words: str) -> None:
        """Take these words, which must follow."""
        if not self.accept(*words):
            raise self.unexpected(" ".join(words))

    def identifier(self) -> str:
        """Take a name, quoted or not."""
        word = self.take()
        if word.kind not in ("word", "name"):
            raise self.unexpected("a name")
        return word.text

    def string(self) -> str:
        """Take a string, perhaps behind a charset introducer."""
        if self.peek().kind == "introducer":
            self.take()
        word = self.take()
        if word.kind != "string":
            raise self.unexpected("a string")
        return word.text

    def integer(self) -> int:
        """Take an unsigned integer."""
        word = self.take()
        if not word.text.isdecimal():
            raise self.unexpected("a number")
        return int(word.text)

    def parenthesis(self) -> "Cursor":
        """Take a balanced parenthesis and return a cursor over what is inside."""
        self.expect("(")
        begin, depth = self._at, 1
        while depth:
            if self.is_done:
                raise self.unexpected(")")
            word = self.take()
            if word.kind == "sign":
                depth += (word.text == "(") - (word.text == ")")
        return Cursor(self._text, self._words[begin : self._at - 1])

    def skip_parenthesis(self) -> None:
        """Take a parenthesis if one follows."""
        if self.sees("("):
            self.parenthesis()

    def until_comma(self) -> "Cursor":
        """Take everything up to the next comma of this level and return a cursor over it."""
        begin = self._at
        self.skip_to_comma()
        return Cursor(self._text, self._words[begin : self._at])

    def skip_to_comma(self) -> None:
        """Take everything up to the next comma of this level."""
        while not self.is_done and not self.sees(","):
            if self.sees("("):
                self.parenthesis()
            else:
                self.take()

    def source(self) -> str:
        """Take the rest and return it as it was written, without charset introducers and comments."""
        words = [word for word in self.rest if word.kind != "introducer"]
        self._at = len(self._words)
        pieces, end = [], -1
        for word in words:
            pieces.append(("" if word.start == end else " ") + self._text[word.start : word.end])
            end = word.end
        return "".join(pieces).strip()

    def unexpected(self, wanted: str) -> NeedsOperator:
        """Make the error for a statement that cannot be read."""
        return NeedsOperator(
            f"the DDL cannot be translated for SQLite: expected {wanted} before {self.peek().text[:40]!r}",
            remedy=BY_HAND,
            statement=self._text,
        )


def _split(text: str) -> tuple[Word, ...]:
    """Cut a statement into words; ``_utf8mb4`` before a literal is an introducer, a semicolon at the end is nothing."""
    words = list(_words(text))
    while words and words[-1].text == ";" and words[-1].kind == "sign":
        words.pop()
    for n, (word, following) in enumerate(pairwise(words)):
        if word.kind == "word" and word.text[0] in "_nN" and following.kind in ("string", "bytes") and _introduces(word, following):
            words[n] = replace(word, kind="introducer")
    return tuple(words)


def _introduces(word: Word, literal: Word) -> bool:
    return word.text[0] == "_" or (len(word.text) == 1 and word.end == literal.start)


def _words(text: str) -> Iterator[Word]:
    at = 0
    while at < len(text):
        match = _LITERAL.match(text, at) or TOKEN.match(text, at)
        if match is None or match.lastgroup == "open":
            raise NeedsOperator("a quote or comment of the DDL never ends", remedy=BY_HAND, statement=text)
        at = match.end()
        if match.lastgroup != "blank":
            yield _word(match.lastgroup or "", match.group(), match.start(), at)


def _word(group: str, found: str, start: int, end: int) -> Word:
    match group:
        case "quoted":
            return Word("name", found[1:-1].replace("``", "`"), start, end)
        case "string":
            return Word("string", unescape(found), start, end)
        case "hex" | "bits":
            return Word("bytes", _digits(found[2:].rstrip("'"), 16 if group == "hex" else 2), start, end)
        case _:
            return Word(_KINDS.get(group, group), found, start, end)


def _digits(digits: str, base: int) -> str:
    """Return hexadecimal digits of whole bytes."""
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
