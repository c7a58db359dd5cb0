"""Cuts a file of a dump into statements, and says what each one is. Bytes of rows stay as they are.

A statement ends at the end of a line. The dumpers escape the ends of lines in values, so that is cheap to see; where a value holds one all
the same, its quotes show it. What a statement is decides whether it is loaded, needed for loading, or not needed in a replica. An unknown
one is refused: nothing is skipped silently.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import BinaryIO, Final

from applier.model.errors import ConfigError, Remedy


class PieceKind(Enum):
    """What a statement of a dump is."""

    SCHEMA = "schema"
    TABLE = "table"
    VIEW = "view"
    ROWS = "rows"
    USE = "use"
    CHARSET = "charset"
    """``name`` is the character set of the texts that follow."""
    ZONE = "zone"
    """``name`` is the zone of the TIMESTAMP values that follow."""
    LEFT_OUT = "skipped"
    """``name`` says what it is: a replica does not need it."""
    NOTHING = "nothing"
    """It prepares or ends the load of another program."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A statement. ``schema`` is '' where the text names none; ``end``: where the name of the table ends in the text of rows."""

    kind: PieceKind
    text: bytes
    schema: str = ""
    name: str = ""
    end: int = 0


_QUOTED: Final = rb"(?:`((?:[^`]|``)+)`|([0-9A-Za-z_$\x80-\xff]+))"
_ROWS: Final = re.compile(rb"\s*(?:INSERT|REPLACE)\s+(?:IGNORE\s+)?(?:INTO\s+)?(?:" + _QUOTED + rb"\s*\.\s*)?" + _QUOTED, re.IGNORECASE)
_NAMED: Final = re.compile(rb"\s*(?:IF\s+NOT\s+EXISTS\s+)?(?:" + _QUOTED + rb"\s*\.\s*)?" + _QUOTED, re.IGNORECASE)
_EXECUTED: Final = re.compile(rb"/\*M?!\d*|\*/")
_DELIMITER: Final = re.compile(rb"DELIMITER\s+(\S+)\s*", re.IGNORECASE)
_COMMENT: Final = re.compile(rb"--.*|#.*|/\*(?!!|M!).*\*/|/\*M!999999\\-.*\*/", re.DOTALL)
_BALANCED: Final = re.compile(
    rb"""(?: [^'"`/\-#]++ | '(?:[^'\\]++|\\.)*+' | "(?:[^"\\]++|\\.)*+" | `[^`]*+`
      | /\*(?!!|M!)(?:(?!\*/).)*+\*/ | --[ \t][^\n]*+ | \#[^\n]*+ | /(?!\*(?!!|M!)) | -(?![-][ \t]) )*+""",
    re.DOTALL | re.VERBOSE,
)
"""A text in which no quote and no comment is open."""

_HEAD: Final = 2000
_OBJECTS: Final = re.compile(
    rb"CREATE\s+(?:OR\s+REPLACE\s+)?(?:(?:ALGORITHM|DEFINER|SQL\s+SECURITY|AGGREGATE)\b.*?)??"
    rb"\b(DATABASE|SCHEMA|TABLE|VIEW|SEQUENCE|TRIGGER|PROCEDURE|FUNCTION|EVENT|PACKAGE|USER|ROLE|PLACEMENT\s+POLICY)\b",
    re.IGNORECASE | re.DOTALL,
)
_DEFINED: Final = {
    b"DATABASE": PieceKind.SCHEMA, b"SCHEMA": PieceKind.SCHEMA, b"TABLE": PieceKind.TABLE, b"VIEW": PieceKind.VIEW,
}  # fmt: skip
_USE: Final = re.compile(rb"USE\s+" + _QUOTED, re.IGNORECASE)
_NAMES: Final = re.compile(rb"SET\s+NAMES\s+'?(\w+)", re.IGNORECASE)
_ZONE: Final = re.compile(rb"SET\s+(?:SESSION\s+)?TIME_ZONE\s*=\s*'([^']*)'", re.IGNORECASE)
_NOTHING: Final = re.compile(
    rb"SET\s+(?!(?:@@)?(?:GLOBAL|PERSIST))|LOCK\s+TABLES|UNLOCK\s+TABLES|ALTER\s+TABLE\s+\S+\s+(?:DIS|EN)ABLE\s+KEYS|START\s+TRANSACTION|BEGIN"
    rb"|COMMIT|DROP\s+(?:TABLE|VIEW|SEQUENCE|DATABASE|TRIGGER|PROCEDURE|FUNCTION|EVENT)\s+IF\s+EXISTS"
    rb"|ALTER\s+DATABASE\s+\S+\s+CHARACTER|(?:DO|SELECT)\s+SETVAL\b",
    re.IGNORECASE,
)
_SEQUENCE_TABLE: Final = re.compile(rb"\bSEQUENCE\s*=\s*1\s*$", re.IGNORECASE)
_GRANTS: Final = re.compile(rb"(?:GRANT|FLUSH|REVOKE|ANALYZE)\b", re.IGNORECASE)


def pieces(content: BinaryIO) -> Iterator[Piece]:
    """Yield the statements of a file with what they are. ConfigError: one is not known, or the last has no end."""
    for text in statements(content):
        yield piece_of(text)


def statements(content: BinaryIO) -> Iterator[bytes]:
    """Yield the statements of a file without their ends."""
    delimiter, held = b";", list[bytes]()
    for line in content:
        stripped = line.strip()
        if not held:
            if not stripped or _COMMENT.fullmatch(stripped):
                continue
            if found := _DELIMITER.fullmatch(stripped):
                delimiter = found[1]
                continue
        held.append(line)
        if stripped.endswith(delimiter) and _BALANCED.fullmatch(text := b"".join(held)):
            held.clear()
            yield text.strip()[: -len(delimiter)]
    if held:
        raise ConfigError(
            "a file of the dump ends inside of a statement", remedy=Remedy("dump.copy-dump-again", "Copy the dump again, or dump again")
        )


def piece_of(text: bytes) -> Piece:
    """Say what a statement is. ConfigError: it is not known."""
    if rows := _ROWS.match(text):
        return Piece(PieceKind.ROWS, text, _name(rows[1], rows[2]), _name(rows[3], rows[4]), rows.end())
    head = _EXECUTED.sub(b" ", text[:_HEAD]).strip()
    if made := _OBJECTS.match(head):
        return _definition(text, head[made.end() :], made[1].upper())
    if found := _USE.match(head):
        return Piece(PieceKind.USE, text, _name(found[1], found[2]))
    for pattern, kind in ((_NAMES, PieceKind.CHARSET), (_ZONE, PieceKind.ZONE)):
        if found := pattern.match(head):
            return Piece(kind, text, name=found[1].decode())
    if _NOTHING.match(head):
        return Piece(PieceKind.NOTHING, text)
    if _GRANTS.match(head):
        return Piece(PieceKind.LEFT_OUT, text, name=" ".join(head.decode(errors="replace").split()[:2]))
    raise ConfigError(
        "the dump holds a statement that the applier does not know",
        remedy=Remedy(
            "dump.remove-statement", "Remove the statement from the file if the replica does not need it, or dump with other options"
        ),
        statement=" ".join(head[:60].decode(errors="replace").split()[:4]),
    )


def _definition(text: bytes, rest: bytes, word: bytes) -> Piece:
    found = _NAMED.match(rest)
    schema, name = ("", "") if found is None else (_name(found[1], found[2]), _name(found[3], found[4]))
    kind = _DEFINED.get(word, PieceKind.LEFT_OUT)
    if kind is PieceKind.TABLE and text.lstrip().startswith(b"/*!50001"):
        # It represents a view until the end of the file.
        return Piece(PieceKind.NOTHING, text)
    if kind is PieceKind.TABLE and _SEQUENCE_TABLE.search(text):
        kind, word = PieceKind.LEFT_OUT, b"SEQUENCE"
    if kind is PieceKind.LEFT_OUT:
        return Piece(kind, text, schema, f"{word.decode().casefold()} {name}")
    return Piece(kind, text, name, "") if kind is PieceKind.SCHEMA else Piece(kind, text, schema, name)


def _name(quoted: bytes | None, plain: bytes | None) -> str:
    return (quoted.replace(b"``", b"`") if quoted else plain or b"").decode(errors="surrogateescape")
