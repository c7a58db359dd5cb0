"""Which texts a character set certainly holds: what it lacks becomes a question mark upstream, or the DDL fails. Pure.

The tables of MySQL and MariaDB were compared with Python's (``mysql/charset_text.py``). Where they differ, only ASCII is certain.

Gives a charset that a DDL names without a collation the collation that TiDB gives it.

TiDB's default for utf8mb4 is utf8mb4_bin, MariaDB's utf8mb4_general_ci, MySQL's utf8mb4_0900_ai_ci. Under these 'a' and 'A' are the same
key: a REPLACE of one would silently delete the other. No server lets a session change that default in general, so the text is
completed. Only definitions are (CREATE and ALTER of tables and schemas); expressions in parentheses are left alone.

Writes utf8mb4 where a DDL of TiDB says latin1. Pure.

TiDB's latin1 is UTF-8 under another name: it stores every character in it, and compares as utf8mb4_bin does (PAD SPACE). A server of MySQL
or MariaDB refuses what is beyond its latin1. Sizes change with the character set: upstream counts a byte for each character of latin1,
the server four. So a column that would be too long for a row or for a unique key stays latin1 (then a character beyond it stops the
replica), and a part of another index is cut to a prefix, which changes no row.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from applier.ddl.parser import parse_or_none
from applier.ddl.tokens import Cursor, DdlSyntaxError, Token, scan
from applier.ddl.tree import (
    AlterTableStatement,
    ClauseKind,
    CreateTableStatement,
    Edit,
    Element,
    ElementKind,
    SchemaStatement,
    Span,
    Tree,
    edited,
)

NARROW: Final = frozenset({"utf8", "utf8mb3", "ascii"})
"""Kinds of UTF-8 that do not hold all of it; a ``ColumnType`` does not tell them apart."""

_LIKE_PYTHON: Final = {
    **{name: name for name in ("cp850", "cp852", "cp1250", "cp1251", "cp1257", "gb2312", "gbk")},
    "euckr": "cp949", "latin2": "iso8859_2", "latin5": "iso8859_9", "latin7": "iso8859_13", "koi8r": "koi8_r", "macce": "mac_latin2",
    "macroman": "mac_roman", "hp8": "hp_roman8", "latin1": "cp1252",
}  # fmt: skip
_LAST_BASIC: Final = "\uffff"
_ALL: Final = frozenset({"", "utf8mb4", "utf16", "utf16le", "utf32", "gb18030"})
_BASIC: Final = frozenset({"utf8", "utf8mb3", "ucs2"})
_WITHOUT_ASCII: Final = frozenset({"swe7"})


def holder(charset: str) -> Callable[[str], bool]:
    """Return the function that says whether a character set holds a text; False where that is not certain."""
    if charset in _ALL:
        return lambda _text: True
    if charset in _BASIC:
        return lambda text: all(character <= _LAST_BASIC for character in text)
    codec = _LIKE_PYTHON.get(charset)
    if codec is None:
        return lambda text: text.isascii() and charset not in _WITHOUT_ASCII
    return lambda text: text.isascii() or _encodes(codec, text)


def _encodes(codec: str, text: str) -> bool:
    try:
        text.encode(codec)
    except UnicodeEncodeError:
        return False
    return True


# binary is not here: it has one collation only.
TIDB_DEFAULTS: Final = {
    "utf8mb4": "utf8mb4_bin",
    "utf8": "utf8_bin",
    "utf8mb3": "utf8mb3_bin",
    "ascii": "ascii_bin",
    "latin1": "latin1_bin",
    "gbk": "gbk_chinese_ci",
    "gb18030": "gb18030_chinese_ci",
}
"""TiDB's default collation per charset. For gbk and gb18030 (with new collations, the default) other servers have them too: written
out, they show in the statement, which explains them to the table check, and ``[ddl.collations]`` finds them."""


def with_tidb_collations(query: str) -> str:
    """Return the statement with ``COLLATE`` after each charset without one in its column's definition, or among its options."""
    tree = parse_or_none(query)
    if tree is None:
        return query
    return edited(query, collation_edits(tree, TIDB_DEFAULTS))


def collation_edits(tree: Tree, defaults: Mapping[str, str]) -> Iterator[Edit]:
    """Yield what completes charsets without a collation; ``defaults``: upstream's collation of a charset."""
    return (edit for span in _scopes(tree) for edit in _completed(_outer_tokens(tree, span), defaults))


def _scopes(tree: Tree) -> Iterator[Span]:
    """Yield the parts in which a charset and its collation belong together: a column, the options of a table or schema, a clause."""
    match tree.node:
        case SchemaStatement(verb="CREATE" | "ALTER", options=options):
            yield options
        case CreateTableStatement(elements=elements, options=options):
            yield from (element.span for element in elements)
            # With the commas between them: MySQL takes options with commas and without.
            yield options
        case AlterTableStatement(clauses=clauses):
            for clause in clauses:
                yield from ([element.span for element in clause.elements] if clause.is_list else [clause.span])


def _outer_tokens(tree: Tree, span: Span) -> list[Token]:
    """Return the tokens of a part outside of parentheses."""
    found, depth = list[Token](), 0
    for token in tree.tokens[span[0] : span[1] + 1]:
        # The inside of CAST(… AS CHAR CHARACTER SET x) is an expression, which has no collation to complete.
        depth -= token.kind == ")"
        if depth <= 0:
            found.append(token)
        depth += token.kind == "("
    return found


def _completed(tokens: list[Token], defaults: Mapping[str, str]) -> Iterator[Edit]:
    words = [token.keyword for token in tokens]
    # Wherever it stands: COLLATE x CHARSET y is one definition, in either order.
    if "COLLATE" in words or _is_binary(tokens):
        return
    for name in charset_names(tokens):
        collation = defaults.get(name.text.strip("'\"").casefold())
        if collation:
            yield Edit(name.end, name.end, f" COLLATE {collation}")


def _is_binary(tokens: list[Token]) -> bool:
    """Return whether BINARY comes before or after a charset: that is its binary collation already."""
    charsets = {token.end for token in charset_names(tokens)}
    return any(
        (before.end in charsets and token.keyword == "BINARY")
        or (before.keyword == "BINARY" and token.keyword in {"CHARACTER", "CHARSET", "CHAR"})
        for before, token in pairwise(tokens)
    )


def charset_names(tokens: Sequence[Token]) -> list[Token]:
    """Return the names that follow CHARSET [=] and CHARACTER SET [=]."""
    found = []
    words = [*(token.keyword for token in tokens), "", ""]
    for index, word in enumerate(words[:-2]):
        is_pair = word in {"CHARACTER", "CHAR"} and words[index + 1] == "SET"
        if is_pair or word == "CHARSET":
            at = index + 1 + is_pair
            at += words[at] == "="
            if at < len(tokens):
                found.append(tokens[at])
    return found


LATIN1: Final = "latin1"
MOST_CHARACTERS: Final = 16_383
"""Of a VARCHAR in utf8mb4: a row has 65,535 bytes."""
MOST_KEY_BYTES: Final = 3072
"""Of an index of InnoDB, and by default of TiDB."""
_BYTES: Final = 4
_OTHER_BYTES: Final = 32
"""The least bytes of an index part that is not text: the widest is a DECIMAL."""


def with_latin1_as_utf8(query: str) -> str:
    """Return the statement with utf8mb4 for latin1; one that cannot be cut into tokens stays as it is."""
    if LATIN1 not in query.casefold():
        return query
    try:
        tokens = scan(query)
    except DdlSyntaxError:
        return query
    too_long = _TooLong(query)
    return edited(query, [*_names(tokens, too_long.kept), *too_long.edits])


def _names(tokens: Sequence[Token], kept: Sequence[tuple[int, int]]) -> Iterator[Edit]:
    """Yield the edits of names, except for those between two positions of ``kept``."""

    def free(token: Token) -> bool:
        return not any(start <= token.start < end for start, end in kept)

    named = [*charset_names(tokens), *(after for before, after in pairwise(tokens) if before.keyword == "USING")]
    yield from (Edit(token.start, token.end, "utf8mb4") for token in named if _plain(token) == LATIN1 and free(token))
    for before, token in pairwise([token for token in tokens if token.kind != "="]):
        if before.keyword == "COLLATE" and _plain(token).startswith(f"{LATIN1}_") and free(token):
            yield Edit(token.start, token.end, "utf8mb4_bin")
        elif before.keyword == "_LATIN1" and token.kind == "string":
            yield Edit(before.start, before.end, "_utf8mb4")


def _plain(token: Token) -> str:
    return token.text.strip("'\"").casefold()


class _Column(NamedTuple):
    """A CHAR or VARCHAR of latin1, and its positions in the text: its own, and the end of its type."""

    characters: int
    span: tuple[int, int]
    type_end: int
    is_named: bool
    """Whether it names latin1 itself."""
    is_key: bool
    """Whether its own definition makes it unique."""

    @property
    def is_long(self) -> bool:
        return self.characters > MOST_CHARACTERS or (self.is_key and _BYTES * self.characters > MOST_KEY_BYTES)


class _TooLong:
    """Finds what is too long in utf8mb4. ``kept``: the positions of columns that stay latin1; ``edits``: for them and for cut parts."""

    def __init__(self, query: str) -> None:
        self.kept, self.edits = list[tuple[int, int]](), list[Edit]()
        tree = parse_or_none(query)
        if tree is None:
            return
        elements = list(_elements(tree))
        columns = dict(_columns(tree, elements))
        keeps = {name for name, column in columns.items() if column.is_long}
        for element in elements:
            if element.kind is ElementKind.INDEX:
                keeps |= self._index(tree, element, columns)
        for column in map(columns.__getitem__, keeps):
            self.kept.append(column.span)
            if not column.is_named:
                self.edits.append(Edit(column.type_end, column.type_end, f" CHARACTER SET {LATIN1} COLLATE {LATIN1}_bin"))

    def _index(self, tree: Tree, element: Element, columns: Mapping[str, _Column]) -> set[str]:
        """Cut the parts of an index that is too long; return the columns that stay latin1 because it is unique."""
        parts = [part for part in _parts(tree, element) if part.name.text.casefold() in columns]
        lengths = [part.prefix or columns[part.name.text.casefold()].characters for part in parts]
        most = (MOST_KEY_BYTES - _OTHER_BYTES * (_count(tree, element) - len(parts))) // _BYTES
        if sum(lengths) <= most:
            return set()
        if element.index_kind in {"UNIQUE", "PRIMARY"}:
            return {part.name.text.casefold() for part in parts}
        for part, length in zip(parts, lengths, strict=True):
            self.edits.append(Edit(part.name.end, part.end, f"({min(length, most // len(parts))})"))
        return set()


class _IndexColumn(NamedTuple):
    """A plain part of an index, and where it ends in the text with its prefix."""

    name: Token
    prefix: int
    end: int


def _inside(tree: Tree, element: Element) -> Cursor:
    body = tree.part(element.body, element.span[1])
    while not (body.is_done or body.sees("(")):
        body.next()
    return body if body.is_done else body.parenthesis()


def _count(tree: Tree, element: Element) -> int:
    return sum(1 for _ in _inside(tree, element).split())


def _parts(tree: Tree, element: Element) -> Iterator[_IndexColumn]:
    for part in _inside(tree, element).split():
        if part.is_at_name():
            name, prefix, end = part.name_token(), 0, part.tokens[part.at - 1].end
            if part.sees("("):
                prefix, end = part.parenthesis().integer(), part.tokens[part.at - 1].end
            yield _IndexColumn(name, prefix, end)


def _elements(tree: Tree) -> Iterator[Element]:
    match tree.node:
        case CreateTableStatement(elements=elements):
            yield from elements
        case AlterTableStatement(clauses=clauses):
            for clause in clauses:
                yield from clause.elements
                if clause.kind in {ClauseKind.MODIFY, ClauseKind.CHANGE}:
                    name = clause.new_name or clause.name
                    yield Element(span=clause.span, kind=ElementKind.COLUMN, body=clause.body, name=name)


def _columns(tree: Tree, elements: Sequence[Element]) -> Iterator[tuple[str, _Column]]:
    """Yield the columns of latin1, where the statement says what they are."""
    options = tree.node.options if isinstance(tree.node, CreateTableStatement) else (0, -1)
    by_default = any(_plain(name) == LATIN1 for name in charset_names(tree.tokens[options[0] : options[1] + 1]))
    for element in elements:
        if element.kind is not ElementKind.COLUMN or element.name is None:
            continue
        cursor = tree.part(element.body, element.span[1])
        words = [token.keyword for token in cursor.rest]
        named = [_plain(name) for name in charset_names(cursor.rest)]
        if named[:1] != [LATIN1] and (named or not by_default or "COLLATE" in words):
            continue
        if (characters := _characters(cursor)) is not None:
            span = tree.tokens[element.span[0]].start, tree.tokens[element.span[1]].end
            is_key = "UNIQUE" in words or "PRIMARY" in words
            yield element.name.text.casefold(), _Column(characters, span, tree.tokens[cursor.at - 1].end, bool(named), is_key)


def _characters(cursor: Cursor) -> int | None:
    """Take CHAR(n) or VARCHAR(n), and return n; None for another type."""
    if not cursor.accept_any("CHAR", "VARCHAR", "CHARACTER"):
        return None
    cursor.accept("VARYING")
    return cursor.parenthesis().integer() if cursor.sees("(") else 1
