r"""The table filter: rules in TiDB's syntax, the last one that matches a table counts; a table that none matches is excluded.

Patterns of table names in TiDB's table-filter syntax (TiDB's manual, "Table Filter"): ``shop.*``, ``!shop.log_*``, ``/^db\d/.t[0-9]``.

A part of a name is plain (letters, digits, ``$``, ``_`` and what is not ASCII), has wildcards (``*``, ``?``, ``[abc]``, ``[!a]``), is
quoted ("..." or `...`) or is a regular expression between slashes. A backslash makes the character after it plain. Case is ignored, as
in TiDB, and as in a changefeed with ``case-sensitive = false``, the default.
"""

import re
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Final

from applier.model.errors import Remedy
from applier.model.events import TableName

ANY: Final = "*"
"""The text of a pattern that every name matches."""

_REGULAR: Final = re.compile(r"/((?:\\.|[^/])+)/")
_DOUBLE_QUOTED: Final = re.compile(r'"((?:""|[^"])+)"')
_BACKQUOTED: Final = re.compile(r"`((?:``|[^`])+)`")
_PLAIN: Final = re.compile(r"[0-9A-Za-z_$\x80-\U0010FFFF]+")
_ESCAPED: Final = re.compile(r"\\([^0-9A-Za-z])", re.DOTALL)
_CLASS: Final = re.compile(r"\[(!?)((?:\\[^0-9A-Za-z]|[^\\\]])+)\]")


_OUTSIDE: Final = re.compile(r"\\.|\[\^?\]?", re.DOTALL)
_INSIDE: Final = re.compile(r"\\.|\]", re.DOTALL)
"""What begins or ends a class of characters in a regular expression, and what has a backslash."""
_OF_CLASS: Final = {r"\d": "0-9", r"\w": "0-9A-Za-z_", r"\s": r"\t\n\f\r "}


class PatternError(ValueError):
    """A rule that cannot be read. ``remedy`` says what to write instead."""

    def __init__(self, problem: str, remedy: Remedy) -> None:
        super().__init__(problem)
        self.remedy = remedy


@dataclass(frozen=True, slots=True)
class NamePattern:
    """What a schema's or a table's name must look like. ``text`` is as it was written."""

    text: str
    expression: re.Pattern[str]
    """Found anywhere in a name; wildcards and plain names carry their own anchors."""
    is_literal: bool = False
    """Whether exactly one name matches, in any case."""

    @property
    def is_any(self) -> bool:
        """Whether every name matches."""
        return self.text == ANY

    def matches(self, name: str) -> bool:
        """Return whether a name matches."""
        return self.expression.search(name) is not None


@dataclass(frozen=True, slots=True)
class TablePattern:
    """What a table's name must look like."""

    schema: NamePattern
    table: NamePattern

    def matches(self, name: TableName) -> bool:
        """Return whether a table matches."""
        return self.schema.matches(name.schema) and self.table.matches(name.table)

    def __str__(self) -> str:
        return f"{self.schema.text}.{self.table.text}"


def parse_pattern(text: str) -> TablePattern:
    """Read ``schema.table``. PatternError."""
    schema, rest = _part(text, text)
    if not rest.startswith("."):
        raise PatternError(
            f"has no table: {text!r}", Remedy("selection.write-schema-table", 'Write "schema.table"; "shop.*" for all tables of a schema')
        )
    table, rest = _part(rest[1:], text)
    if rest:
        raise PatternError(
            f"continues after the table: {rest!r}",
            Remedy("selection.quote-special-characters", 'Quote names with special characters: "`a.b`.`c-d`"'),
        )
    return TablePattern(schema, table)


def _part(text: str, whole: str) -> tuple[NamePattern, str]:
    """Read the pattern of one name; return what is left of the text, too."""
    if text.startswith("/"):
        found = _REGULAR.match(text)
        if found is None:
            raise PatternError(
                f"has a regular expression that never ends: {whole!r}",
                Remedy("selection.end-with-slash", "End it with a slash; \\/ is a slash inside of it"),
            )
        return NamePattern(found[0], _compiled(_as_in_tidb(found[1]), whole)), text[found.end() :]
    for mark, quoted in (('"', _DOUBLE_QUOTED), ("`", _BACKQUOTED)):
        if text.startswith(mark):
            found = quoted.match(text)
            if found is None:
                raise PatternError(
                    f"has a quoted name that never ends: {whole!r}",
                    Remedy("selection.end-with-quote", f"End it with {mark}; double a {mark} inside of it"),
                )
            name = re.escape(found[1].replace(mark * 2, mark))
            return NamePattern(found[0], _compiled(_whole(name), whole), is_literal=True), text[found.end() :]
    return _wildcards(text, whole)


def _wildcards(text: str, whole: str) -> tuple[NamePattern, str]:
    """Read a plain name or one with wildcards, up to a dot or the end."""
    expression, at, is_literal = "", 0, True
    while at < len(text) and text[at] != ".":
        if (found := _PLAIN.match(text, at)) is not None:
            expression += found[0]
        elif (found := _ESCAPED.match(text, at)) is not None:
            expression += re.escape(found[1])
        elif (found := _CLASS.match(text, at)) is not None:
            # Nothing but a leading ! is special: a ^ is one character of the class.
            inside, is_literal = found[2].replace("[", r"\["), False
            expression += f"[{'^' if found[1] else ''}{chr(92) if inside.startswith('^') else ''}{inside}]"
        elif text[at] in "*?":
            expression += ".*" if text[at] == "*" else "."
            at, is_literal = at + 1, False
            continue
        else:
            raise PatternError(
                f"has a special character: {text[at]!r} in {whole!r}",
                Remedy("selection.quote-or-escape-name", 'Quote the name ("shop.`a-b`"), or put a \\ before it'),
            )
        at = found.end()
    if not at:
        raise PatternError(
            f"has an empty name: {whole!r}",
            Remedy("selection.write-table-pattern", 'Write "schema.table"; "shop.*" for all tables of a schema'),
        )
    return NamePattern(text[:at], _compiled(_whole(expression), whole), is_literal), text[at:]


def _whole(expression: str) -> str:
    return rf"(?s:\A{expression}\Z)"


def _as_in_tidb(expression: str) -> str:
    r"""Return a regular expression whose \d, \w, \s and \b know ASCII only, as Go's: ``/^\w+$/`` excludes names in Chinese."""
    text, at, is_in_class = "", 0, False
    while found := (_INSIDE if is_in_class else _OUTSIDE).search(expression, at):
        text += expression[at : found.start()]
        piece, at = found[0], found.end()
        if not piece.startswith("\\"):
            is_in_class = not is_in_class
        elif is_in_class:
            piece = _OF_CLASS.get(piece, piece)
        elif piece[1] in "dDwWsSbB":
            piece = f"(?a:{piece})"
        text += piece
    return text + expression[at:]


def compiled(expression: str) -> re.Pattern[str]:
    """Compile a regular expression without regard to case. re.error, also where Python's rules are not Go's."""
    with warnings.catch_warnings():
        # [[:alpha:]] is a class of Go's. Python takes it for the characters "[:alph", warns, and continues.
        warnings.simplefilter("error", FutureWarning)
        try:
            return re.compile(expression, re.IGNORECASE)
        except FutureWarning as warning:
            raise re.error(str(warning), expression) from None


def _compiled(expression: str, whole: str) -> re.Pattern[str]:
    try:
        return compiled(expression)
    except re.error as error:
        raise PatternError(
            f"has a regular expression that cannot be read: {whole!r} ({error})",
            Remedy("selection.correct-table-expression", "Correct the expression"),
        ) from None


ReadLines = Callable[[str], Iterable[str]]
"""Reads the lines of a file that a rule names by ``@``."""


class SchemaPart(Enum):
    """How much of a schema the replica has."""

    NONE = "none"
    SOME = "some"
    ALL = "all"


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule. ``includes``: whether it takes tables in, or (``!``) excludes them."""

    pattern: TablePattern
    includes: bool


@dataclass(frozen=True, slots=True)
class TableFilter:
    """Decides about tables by name. Without rules every table is in."""

    rules: tuple[Rule, ...] = ()

    @classmethod
    def parse(cls, lines: Iterable[str], read_lines: ReadLines | None = None) -> "TableFilter":
        """Read rules; blank lines and lines that begin with ``#`` are skipped. PatternError.

        ``@file`` represents the rules in a file, which may not name further files.
        """
        rules = list[Rule]()
        for line in map(str.strip, lines):
            if line.startswith("@"):
                if read_lines is None:
                    raise PatternError(
                        f"names a file inside of a file: {line!r}",
                        Remedy("selection.name-in-configuration", "Name it in the configuration"),
                    )
                rules += cls.parse(read_lines(line[1:])).rules
            elif line and not line.startswith("#"):
                rules.append(Rule(parse_pattern(line.removeprefix("!")), not line.startswith("!")))
        return cls(tuple(rules))

    def has(self, table: TableName) -> bool:
        """Return whether the replica has a table."""
        if not self.rules:
            return True
        return next((rule.includes for rule in reversed(self.rules) if rule.pattern.matches(table)), False)

    def part_of(self, schema: str) -> SchemaPart:
        """Return how much of a schema the replica has, by the tables' names."""
        if not self.rules:
            return SchemaPart.ALL
        seen = set[bool]()
        for rule in reversed(self.rules):
            if rule.pattern.schema.matches(schema):
                seen.add(rule.includes)
                if rule.pattern.table.is_any:
                    break
        else:
            seen.add(False)  # a table that no rule matches is skipped
        return SchemaPart.SOME if len(seen) > 1 else SchemaPart.ALL if True in seen else SchemaPart.NONE


ALL_TABLES: Final = TableFilter()
