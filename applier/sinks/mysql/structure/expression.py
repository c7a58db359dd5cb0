"""Expressions as catalogues spell them: generated columns, checks, defaults, index parts. Equal if they mean the same.

Servers word one expression differently: MariaDB writes `` `a` + 1 ``, MySQL ``(`a` + 1)``; MySQL gives literals a character set
(``_utf8mb4'x'``) and escapes the quotes of the whole text. What is stored is the server's text; what is compared is its syntax tree.
A text that sqlglot cannot parse is compared by its tokens. Two wordings that this module cannot match count as different: a false
"different" asks the operator, a false "equal" would lose rows.
"""

import re
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Final

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from applier.ddl.tokens import TOKEN

_ESCAPE: Final = re.compile(r"\\(.)", re.DOTALL)
_CONTROL: Final = {"0": "\0", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a"}
_OPERATIONS: Final = (exp.Binary, exp.Unary, exp.Predicate)


@dataclass(frozen=True, slots=True, eq=False)
class Expression:
    """An expression of SQL. ``text`` is as the server spells it, without the escapes of information_schema."""

    text: str

    def __eq__(self, other: object) -> bool:
        """Return whether both mean the same."""
        return isinstance(other, Expression) and (self.text == other.text or _canonical(self.text) == _canonical(other.text))

    def __hash__(self) -> int:
        """Hash what is compared."""
        return hash(_canonical(self.text))

    def __str__(self) -> str:
        """Return the server's text."""
        return self.text


def expression_of(text: str) -> Expression:
    r"""Read an expression of information_schema. MySQL escapes the whole text: ``concat(`a`,_utf8mb4\'x\')``."""
    return Expression(_ESCAPE.sub(_unescaped, text) if _is_escaped(text) else text)


def _is_escaped(text: str) -> bool:
    """Return whether a backslash stands outside of quotes, where SQL has none."""
    return any(match.group() == "\\" for match in TOKEN.finditer(text))


def _unescaped(match: re.Match[str]) -> str:
    return _CONTROL.get(match.group(1), match.group(1))


@lru_cache(maxsize=4096)
def _canonical(text: str) -> str:
    """Return the syntax tree as text, with a parenthesis around each operation; the tokens alone if it cannot be parsed."""
    plain = _without_introducers(text)
    try:
        (tree,) = sqlglot.parse_one(f"SELECT {plain}", dialect="mysql", into=exp.Select).selects
    # ValueError: SELECT a, b would be two expressions. RecursionError: some thousand nested parentheses.
    except (SqlglotError, ValueError, RecursionError):
        return " ".join(match.group() for match in TOKEN.finditer(plain) if match.lastgroup != "blank")
    # MySQL parenthesizes every operation, MariaDB only where precedence needs it: all go, then each operation gets one.
    for paren in list(tree.find_all(exp.Paren)):
        if paren is tree:
            tree = paren.this
            tree.pop()
        else:
            paren.replace(paren.this)
    for node in list(tree.find_all(*_OPERATIONS)):
        if node is not tree:
            node.replace(exp.Paren(this=node.copy()))
    return str(tree.sql(dialect="mysql", identify=True, normalize_functions="lower", comments=False))


def _without_introducers(text: str) -> str:
    """Leave out the character sets before literals."""
    matches = [match for match in TOKEN.finditer(text) if match.lastgroup != "blank"]
    for match, following in reversed(list(pairwise(matches))):
        if match.group().startswith("_") and following.lastgroup == "string":
            text = text[: match.start()] + text[following.start() :]
    return text
