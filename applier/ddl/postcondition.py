"""What an ALTER TABLE, CREATE INDEX or DROP INDEX wants of the catalogue, read from its text: what it adds, and what it drops. Pure."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from applier.ddl.tokens import DdlSyntaxError, Token, scan

_KEY_WORDS: Final = frozenset(
    {"PRIMARY", "KEY", "INDEX", "UNIQUE", "FULLTEXT", "SPATIAL", "CONSTRAINT", "FOREIGN", "CHECK", "VECTOR", "LIKE"}
)
_INDEX_KINDS: Final = frozenset({"UNIQUE", "FULLTEXT", "SPATIAL"})
# Clauses that can run again on a table that they have changed already, and change nothing.
_REPEATABLE: Final = frozenset(
    {"MODIFY", "ALTER", "COMMENT", "CHARACTER", "CHARSET", "COLLATE", "DEFAULT", "CONVERT", "ENGINE", "AUTO_INCREMENT", "ROW_FORMAT"}
    | {"ALGORITHM", "LOCK"}
)


class Postcondition(NamedTuple):
    """A ``column``, an ``index`` or a ``partition`` that shall be there, or shall not; ``formerly``: what a CHANGE calls it before."""

    what: str
    name: str
    is_present: bool
    formerly: str = ""


def wishes_of(query: str) -> list[Postcondition] | None:
    """Return what the statement adds and drops; None if a clause's result cannot be told by its text and the catalogue."""
    try:
        tokens = scan(query)
        words = [token.text.upper() if token.kind == "word" else "" for token in tokens]
        if words[0] in {"CREATE", "DROP"}:
            at = words.index("INDEX")
            return [Postcondition("index", _name(_without_if(tokens[at + 1 :])), words[0] == "CREATE")]
        start = 4 if len(tokens) > 3 and tokens[3].kind == "." else 2
        return [wanted for clause in _clauses(tokens[start + 1 :]) for wanted in _clause_postconditions(clause)]
    except (DdlSyntaxError, IndexError, ValueError):
        return None


def _clauses(tokens: Sequence[Token]) -> Iterator[list[Token]]:
    """Cut at the commas of this level, up to the parenthesis that closes it."""
    depth, clause = 0, list[Token]()
    for token in tokens:
        depth += (token.kind == "(") - (token.kind == ")")
        if depth < 0:
            break
        if token.kind == "," and depth == 0:
            yield clause
            clause = []
        else:
            clause.append(token)
    yield clause


def _clause_postconditions(clause: list[Token]) -> list[Postcondition]:
    """Read one clause; DdlSyntaxError if its result cannot be told. A RENAME says nothing of what it renames."""
    verb, rest = _word(clause[0]), clause[1:]
    match verb, _word(rest[0]):
        case "ADD", _:
            return _added(rest)
        case "DROP", ("INDEX" | "KEY"):
            return [Postcondition("index", _name(_without_if(rest[1:])), is_present=False)]
        case "DROP", "PARTITION":
            return [Postcondition("partition", token.text, is_present=False) for token in _without_if(rest[1:]) if token.kind != ","]
        case "DROP", ("PRIMARY" | "FOREIGN" | "CHECK" | "CONSTRAINT"):
            raise DdlSyntaxError
        case "DROP", head:
            return [Postcondition("column", _name(_without_if(rest[1:] if head == "COLUMN" else rest)), is_present=False)]
        case "CHANGE", head:
            old, new = (rest[1:] if head == "COLUMN" else rest)[:2]
            is_same = old.text.casefold() == new.text.casefold()
            return [] if is_same else [Postcondition("column", new.text, is_present=True, formerly=old.text)]
        case _ if verb in _REPEATABLE:
            return []
        case _:
            raise DdlSyntaxError


def _added(rest: list[Token]) -> list[Postcondition]:
    head = _word(rest[0])
    if head == "PARTITION":
        pairs = pairwise(rest[1:])
        return [Postcondition("partition", name.text, is_present=True) for word, name in pairs if _word(word) == "PARTITION"]
    if head == "PRIMARY":
        return [Postcondition("index", "PRIMARY", is_present=True)]
    if head in _INDEX_KINDS and _word(rest[1]) not in {"INDEX", "KEY"}:
        return [Postcondition("index", _name(rest[1:]), is_present=True)]
    if head in _INDEX_KINDS or head in {"INDEX", "KEY"}:
        return [Postcondition("index", _name(_without_if(rest[2:] if head in _INDEX_KINDS else rest[1:])), is_present=True)]
    if head in _KEY_WORDS:
        raise DdlSyntaxError
    rest = rest[1:] if head == "COLUMN" else rest
    if rest[0].kind == "(":
        return [Postcondition("column", _name(element), is_present=True) for element in _clauses(rest[1:])]
    return [Postcondition("column", _name(_without_if(rest)), is_present=True)]


def _word(token: Token) -> str:
    return token.text.upper() if token.kind == "word" else ""


def _name(tokens: Sequence[Token]) -> str:
    if tokens[0].kind not in {"word", "quoted"} or _word(tokens[0]) in _KEY_WORDS:
        raise DdlSyntaxError
    return tokens[0].text


def _without_if(tokens: Sequence[Token]) -> Sequence[Token]:
    """Step over IF [NOT] EXISTS."""
    words = [_word(token) for token in tokens[:3]]
    if words[:2] == ["IF", "EXISTS"]:
        return tokens[2:]
    return tokens[3:] if words == ["IF", "NOT", "EXISTS"] else tokens
