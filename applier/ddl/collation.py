"""Gives a charset that a DDL names without a collation the collation that TiDB gives it.

TiDB's default for utf8mb4 is utf8mb4_bin, MariaDB's utf8mb4_general_ci, MySQL's utf8mb4_0900_ai_ci. Under those 'a' and 'A' are one key:
a REPLACE of the one would silently delete the other. No server lets a session change that default in general, so the text is completed.
Only definitions are (CREATE and ALTER of tables and schemas); expressions in parentheses are left alone.
"""

from itertools import pairwise
from typing import Final, NamedTuple

from applier.ddl.tokens import TOKEN

TIDB_DEFAULTS: Final = {
    "utf8mb4": "utf8mb4_bin",
    "utf8": "utf8_bin",
    "utf8mb3": "utf8mb3_bin",
    "ascii": "ascii_bin",
    "latin1": "latin1_bin",
}
"""TiDB's default collation per charset where other servers have another one."""

_VERBS: Final = frozenset({"CREATE", "ALTER"})
_OBJECTS: Final = frozenset({"TABLE", "DATABASE", "SCHEMA"})


class _Word(NamedTuple):
    text: str
    """In upper case; quoted ones with their quotes, so that they are no keywords."""
    end: int
    clause: int
    """Number of the clause it stands in; 0 where nothing is completed."""


def with_tidb_collations(query: str) -> str:
    """Return the statement with ``COLLATE`` behind each charset that has none in its clause."""
    words = _words(query)
    if len(words) < 2 or words[0].text not in _VERBS or words[1].text not in _OBJECTS:
        return query
    collated = {word.clause for word in words if word.text == "COLLATE"} | _binary_clauses(words)
    pieces, at = list[str](), 0
    for name in _charsets(words):
        collation = TIDB_DEFAULTS.get(name.text.strip("`'\"").casefold())
        if collation and name.clause and name.clause not in collated:
            pieces += [query[at : name.end], f" COLLATE {collation}"]
            at = name.end
    return "".join([*pieces, query[at:]])


def _binary_clauses(words: list[_Word]) -> set[int]:
    """Return the clauses in which the charset is followed, or preceded, by BINARY: that is its binary collation already."""
    named = {word.end for word in _charsets(words)}
    after = {word.clause for before, word in pairwise(words) if before.end in named and word.text == "BINARY"}
    return after | {
        before.clause for before, word in pairwise(words) if before.text == "BINARY" and word.text in {"CHARACTER", "CHARSET", "CHAR"}
    }


def _charsets(words: list[_Word]) -> list[_Word]:
    """Return the names that follow CHARSET [=] and CHARACTER SET [=]."""
    found = []
    texts = [word.text for word in words] + ["", ""]
    for index, text in enumerate(texts[:-2]):
        is_pair = text in {"CHARACTER", "CHAR"} and texts[index + 1] == "SET"
        if is_pair or text == "CHARSET":
            at = index + 1 + is_pair
            at += texts[at] == "="
            if at < len(words):
                found.append(words[at])
    return found


def _words(query: str) -> list[_Word]:
    """Cut the statement into words, and number the clauses in which a charset and its collation belong together.

    Column definitions end at commas. The options of CREATE TABLE, behind its parentheses, are one clause, commas or not.
    """
    words: list[_Word] = []
    depth, clause = 0, 1
    for match in TOKEN.finditer(query):
        kind, text = match.lastgroup, match.group()
        if kind == "blank":
            continue
        is_alter = bool(words) and words[0].text == "ALTER"
        depth -= text == ")"
        if (text in {"(", ")"} and depth == 0) or (text == "," and (depth == 1 or (depth == 0 and is_alter))):
            clause += 1
        depth += text == "("
        words.append(_Word(text.upper(), match.end(), clause if depth <= 1 else 0))
    return words
