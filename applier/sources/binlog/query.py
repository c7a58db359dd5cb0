"""Reads a QUERY event: a DDL, a statement that is skipped and counted, or an error. Pure.

The event's data: the length of the schema's name, an error code, status variables of the session, the schema's name, a zero byte, the text.
A status variable is a code and its value, without a length: nothing after an unknown code can be read. Sources: MySQL's "Query_event"
(libbinlogevents) and MariaDB's "QUERY_EVENT" pages.

The text becomes independent of the session that wrote it: its character set, its kinds of quotes, the server's version. What comes out is
read by ``applier.ddl`` and runs in the sessions of the sinks: UTF-8, names in backticks, backslashes that escape, and no comment that some
servers execute and others do not. A text that needs no such change stays as it is.

Statements are classified by their first words. Only known statements are skipped: one with other words stops the replica (``UNKNOWN``).

A sink has other default collations, another default schema and other defaults of TIMESTAMP columns; with the words that are written into
the text the statement means there what it meant upstream. They are edits at the statement's tokens; every other byte stays. The collation
of a table without one is left to the sink: its schema has upstream's.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import pairwise
from struct import Struct
from struct import error as StructError  # noqa: N812 - a module's own exception
from typing import Any, Final, NamedTuple

from applier.ddl import DdlKind, DdlStatement, read_ddl
from applier.ddl.charset import collation_edits
from applier.ddl.ddl_type import ddl_type_of
from applier.ddl.names import Site, changed_tables
from applier.ddl.old_values import MARIADB, MYSQL, OLD_TIMESTAMPS, SERVER_KIND, with_json_defaults
from applier.ddl.parser import BY_HAND, parse
from applier.ddl.session_words import without_session_words
from applier.ddl.tokens import TOKEN, DdlSyntaxError
from applier.ddl.tree import (
    AlterTableStatement,
    ClauseKind,
    CreateTableStatement,
    CreateViewStatement,
    DropTablesStatement,
    Edit,
    Element,
    ElementKind,
    SchemaStatement,
    Span,
    Tree,
    edited,
)
from applier.model.errors import ProtocolError, Remedy
from applier.model.events import DdlEvent, DdlRefusal, SkippedStatement, TableName
from applier.model.position import Ts
from applier.selection import EVERYTHING, TableSelection, select_ddl
from applier.sources.binlog.catalogue import is_system_schema
from applier.sources.binlog.part import PartHead
from applier.sources.binlog.table_map import collation_name


class StatementKind(StrEnum):
    """What a statement is. The names of the kinds that are skipped are labels of a metric."""

    TRANSACTION = "transaction"
    DDL = "ddl"
    ROWS = "rows"
    """It changes rows: it should have come as row events."""
    UNKNOWN = "unknown"
    ACCOUNT = "account"
    ROUTINE = "routine"
    TRIGGER = "trigger"
    EVENT = "event"
    SEQUENCE = "sequence"
    TEMPORARY = "temporary"
    MAINTENANCE = "maintenance"
    SERVER = "server"
    SYSTEM_SCHEMA = "system_schema"
    EXCLUDED_ROWS = "excluded_rows"
    """It changes rows of tables that the replica does not have."""


SKIPPED: Final = frozenset(StatementKind) - {StatementKind.TRANSACTION, StatementKind.DDL, StatementKind.ROWS, StatementKind.UNKNOWN}
"""They change neither a table that the replica has nor its rows. What triggers, events and routines do comes as row events."""

_FIRST_WORDS: Final[Mapping[str, StatementKind]] = {
    word: kind
    for kind, words in (
        (StatementKind.TRANSACTION, "BEGIN COMMIT ROLLBACK SAVEPOINT RELEASE XA"),
        (StatementKind.ROWS, "INSERT REPLACE UPDATE DELETE LOAD CALL DO WITH SELECT VALUES HANDLER IMPORT"),
        (StatementKind.ACCOUNT, "GRANT REVOKE"),
        (StatementKind.DDL, "TRUNCATE"),
        (StatementKind.MAINTENANCE, "FLUSH ANALYZE OPTIMIZE REPAIR CHECK CHECKSUM CACHE RESET PURGE LOCK UNLOCK"),
        (StatementKind.SERVER, "INSTALL UNINSTALL BACKUP SHUTDOWN RESTART CHANGE STOP"),
    )
    for word in words.split()
}
_OBJECTS: Final[Mapping[str, StatementKind]] = {
    word: kind
    for kind, words in (
        (StatementKind.DDL, "TABLE TABLES DATABASE SCHEMA INDEX VIEW"),
        (StatementKind.ACCOUNT, "USER ROLE"),
        (StatementKind.ROUTINE, "PROCEDURE FUNCTION PACKAGE LIBRARY"),
        (StatementKind.TRIGGER, "TRIGGER"),
        (StatementKind.EVENT, "EVENT"),
        (StatementKind.SEQUENCE, "SEQUENCE"),
        # REFERENCE: of SPATIAL REFERENCE SYSTEM.
        (StatementKind.SERVER, "SERVER TABLESPACE LOGFILE RESOURCE INSTANCE REFERENCE"),
    )
    for word in words.split()
}
_BEFORE_OBJECT: Final = frozenset(
    """OR REPLACE TEMPORARY ONLINE IGNORE OFFLINE UNIQUE FULLTEXT SPATIAL VECTOR ALGORITHM UNDEFINED MERGE TEMPTABLE SQL SECURITY INVOKER
    AGGREGATE UNDO DEFINER""".split()  # noqa: SIM905 - two dozen quotes would hide the words
)
_MAX_TOKENS: Final = 40
"""The most tokens before the object of a statement: a DEFINER has some."""


def classify(text: str) -> StatementKind:
    """Return what a statement is. Comments that the server executes must be open already."""
    words = first_words(text)
    head = words[0] if words else ""
    if head in {"CREATE", "ALTER", "DROP", "RENAME"}:
        return _of_object(words)
    if head == "SET" and (words[1:2] == ["PASSWORD"] or "ROLE" in words[1:3]):
        return StatementKind.ACCOUNT
    if head == "START" and words[1:2] == ["TRANSACTION"]:
        return StatementKind.TRANSACTION
    return _FIRST_WORDS.get(head, StatementKind.UNKNOWN)


def first_words(text: str) -> list[str]:
    """Return the first keywords and marks; only those, because a statement may have megabytes."""
    found = list[str]()
    for match in TOKEN.finditer(text):
        kind, word = match.lastgroup or "", match.group()
        if kind == "blank":
            continue
        found.append(word.upper() if kind == "word" else word if kind == "mark" else kind)
        if len(found) == _MAX_TOKENS:
            break
    return found


def _of_object(words: Sequence[str]) -> StatementKind:
    at = 1
    while at < len(words) and words[at] in _BEFORE_OBJECT:
        is_account = words[at] == "DEFINER" and words[at - 1] != "SECURITY"
        at = _after_account(words, at + 1) if is_account else at + 1
        # ALGORITHM = MERGE.
        at += at < len(words) and words[at] == "="
    kind = _OBJECTS.get(words[at] if at < len(words) else "", StatementKind.UNKNOWN)
    return StatementKind.TEMPORARY if kind is StatementKind.DDL and "TEMPORARY" in words[1:at] else kind


def _after_account(words: Sequence[str], at: int) -> int:
    """Return the position after ``= 'user'@'host'``, CURRENT_USER or CURRENT_USER()."""
    at += words[at : at + 1] == ["="]
    at += 1
    if words[at : at + 1] == ["@"]:
        at += 2
    return at + 2 if words[at : at + 2] == ["(", ")"] else at


_CHARSET_WORDS: Final = frozenset({"CHARSET", "SET", "COLLATE"})


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionDefaults:
    """What a statement implies. ``collations``: of a character set; '' and None: not known."""

    collations: Mapping[str, str]
    server_collation: str = ""
    has_explicit_timestamps: bool = True
    real_is_float: bool = False


def without_statement_settings(text: str) -> str:
    """Return the statement after MariaDB's ``SET STATEMENT variable = value FOR``."""
    if first_words(text)[:2] != ["SET", "STATEMENT"]:
        return text
    end = next((match.end() for match in TOKEN.finditer(text) if match.group().upper() == "FOR"), 0)
    return text[end:].lstrip()


def completed(tree: Tree, defaults: SessionDefaults) -> str:
    """Return the statement with the words that its session gave it."""
    edits = [
        *collation_edits(tree, defaults.collations),
        *_schema_edits(tree, defaults.server_collation),
        *_type_edits(tree, defaults),
    ]
    return edited(tree.text, edits)


def _schema_edits(tree: Tree, server_collation: str) -> Iterator[Edit]:
    """A schema without a character set has the server's; DEFAULT instead means the same."""
    node = tree.node
    if not isinstance(node, SchemaStatement) or node.verb == "DROP" or not server_collation:
        return
    first, last = node.options
    words = [token.keyword for token in tree.tokens[first : last + 1]]
    places = [at for at, word in enumerate(words) if word in _CHARSET_WORDS]
    charset = server_collation.partition("_")[0]
    if not places and node.verb == "CREATE":
        end = tree.tokens[-1].end
        yield Edit(end, end, f" CHARACTER SET {charset} COLLATE {server_collation}")
    for at in places:
        value = at + 2 if words[at + 1 : at + 2] == ["="] else at + 1
        if words[value : value + 1] == ["DEFAULT"]:
            token = tree.tokens[first + value]
            new = server_collation if words[at] == "COLLATE" else f"{charset} COLLATE {server_collation}"
            yield Edit(token.start, token.end, new)


def _type_edits(tree: Tree, defaults: SessionDefaults) -> Iterator[Edit]:
    """Write the defaults of TIMESTAMP columns, and what REAL is."""
    is_first = True
    for first, last in _columns(tree):
        word = tree.tokens[first].keyword
        if word == "REAL" and defaults.real_is_float:
            yield Edit(tree.tokens[first].start, tree.tokens[first].end, "FLOAT")
        elif word == "TIMESTAMP" and not defaults.has_explicit_timestamps and isinstance(tree.node, CreateTableStatement):
            yield from _timestamp_edits(tree, (first, last), is_first=is_first)
            is_first = False


def depends_on_columns(tree: Tree) -> bool:
    """Return whether an ALTER TABLE has a TIMESTAMP column: which one is the first, only the whole table says."""
    return isinstance(tree.node, AlterTableStatement) and any(tree.tokens[first].keyword == "TIMESTAMP" for first, _ in _columns(tree))


def _timestamp_edits(tree: Tree, span: Span, *, is_first: bool) -> Iterator[Edit]:
    """Without explicit_defaults_for_timestamp: NOT NULL, and the first one is the time of the change (manual, system variables)."""
    words = [token.keyword for token in tree.tokens[span[0] : span[1] + 1]]
    has_default = "DEFAULT" in words or ("ON" in words and "UPDATE" in words)
    is_nullable = any(word == "NULL" and words[at - 1] not in {"NOT", "DEFAULT"} for at, word in enumerate(words))
    if is_nullable or {"AS", "GENERATED"} & set(words):
        return
    added = "" if "NOT" in words else " NOT NULL"
    if not has_default:
        now = "CURRENT_TIMESTAMP" + (f"({words[2]})" if words[1:2] == ["("] else "")
        added += f" DEFAULT {now} ON UPDATE {now}" if is_first else " DEFAULT '0000-00-00 00:00:00'"
    end = tree.tokens[_type_end(tree, span)].end
    yield Edit(end, end, added)


def _type_end(tree: Tree, span: Span) -> int:
    """Return the position of the last token of a type: its own, or the parenthesis after it."""
    return span[0] + 3 if span[0] + 3 <= span[1] and tree.tokens[span[0] + 1].kind == "(" else span[0]


def _columns(tree: Tree) -> Iterator[Span]:
    """Yield the position of each column's type, and the column's end."""
    match tree.node:
        case CreateTableStatement(elements=elements):
            listed = [(element.kind, element.body, element.span[1]) for element in elements]
        case AlterTableStatement(clauses=clauses):
            listed = [(element.kind, element.body, element.span[1]) for clause in clauses for element in clause.elements]
            changed = [clause for clause in clauses if clause.kind in {ClauseKind.MODIFY, ClauseKind.CHANGE}]
            listed += [(ElementKind.COLUMN, clause.body, clause.span[1]) for clause in changed]
        case _:
            listed = []
    yield from ((first, last) for kind, first, last in listed if kind is ElementKind.COLUMN and first <= last)


def qualified(text: str, sites: Sequence[Site], schema: str) -> str:
    """Return the statement with the session's schema before each name without one."""
    edits = [
        Edit(site.table.start, site.table.end, f"{_quoted(schema)}.{_quoted(site.table.text)}")
        for site in sites
        if site.schema is None and site.table is not None
    ]
    return edited(text, edits)


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def read_tree(text: str) -> Tree:
    """Read a statement without the words of its session. DdlSyntaxError."""
    return parse(without_session_words(text))


HEADER_BYTES: Final = 19
_POST_HEADER: Final = Struct("<IIBHH")  # thread, execution time, length of the schema's name, error code, length of the status variables
_TIME: Final = Struct("<I")

_LOAD_DATA: Final = 18
"""EXECUTE_LOAD_QUERY: a QUERY event with the position of a file's name in the text."""
_LOAD_DATA_BYTES: Final = 13


@dataclass(frozen=True, slots=True, kw_only=True)
class QuerySession:
    """What the event says of the session. None, 0 or '': it does not say. Collations are numbers."""

    flags: int | None = None
    sql_mode: int = 0
    client_charset: int = 0
    connection_collation: int = 0
    server_collation: int = 0
    time_zone: str = ""
    time_names: int = 0
    """lc_time_names; 0 is en_US. MySQL and MariaDB number the others alike."""
    microseconds: int = 0
    has_explicit_timestamps: bool | None = None
    utf8mb4_collation: int = 0
    """MySQL's default_collation_for_utf8mb4."""
    charset_collations: Mapping[int, int]
    """MariaDB's character_set_collations: a collation of the character set, and that which is its default."""


class QueryEvent(NamedTuple):
    """One statement. ``text`` is in the client's character set; ``error_code``: with which error it ended upstream, 0 without.

    ``thread`` is the number of the connection.
    """

    time_s: int
    thread: int
    schema: str
    text: bytes
    error_code: int
    session: QuerySession


def read_query_event(event: bytes) -> QueryEvent:
    """Read an event: 19 bytes of header and its body. ProtocolError, without a position, if it is cut off."""
    if len(event) < HEADER_BYTES:
        raise _cut_off()
    try:
        (time_s,) = _TIME.unpack_from(event)
        thread, _, schema_bytes, error_code, status_bytes = _POST_HEADER.unpack_from(event, HEADER_BYTES)
    except StructError as error:
        raise _cut_off() from error
    status = HEADER_BYTES + _POST_HEADER.size + (_LOAD_DATA_BYTES if event[4] == _LOAD_DATA else 0)
    schema = status + status_bytes
    text = schema + schema_bytes + 1
    if text > len(event):
        raise _cut_off()
    name = event[schema : text - 1].decode("utf-8", "surrogateescape")
    return QueryEvent(time_s, thread, name, event[text:], error_code, read_session(event[status:schema]))


def _cut_off() -> ProtocolError:
    return ProtocolError("a QUERY event of the binlog is cut off", kind="query")


def read_session(data: bytes) -> QuerySession:
    """Read the status variables. Those after an unknown one are not known; the servers write what matters here first."""
    status = _Status(data)
    while (code := status.integer(1)) is not None:
        read = _VARIABLES.get(code)
        if read is None or not read(status):
            break
    return QuerySession(charset_collations=status.charset_collations, **status.found)


class _Status:
    """The status variables of one event, from left to right."""

    __slots__ = ("_at", "_data", "charset_collations", "found")

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0
        self.found: dict[str, Any] = {}
        self.charset_collations: dict[int, int] = {}

    def integer(self, size: int) -> int | None:
        """Take an integer; None at the end."""
        taken = self.take(size)
        return None if taken is None else int.from_bytes(taken, "little")

    def take(self, size: int) -> bytes | None:
        """Take some bytes; None if they are not there."""
        end = self._at + size
        if end > len(self._data):
            self._at = len(self._data)
            return None
        taken, self._at = self._data[self._at : end], end
        return taken

    def text(self, *, has_zero: bool = False) -> bytes | None:
        """Take a length of one byte and so many bytes; with ``has_zero``, a zero byte after them."""
        size = self.integer(1)
        if size is None:
            return None
        taken = self.take(size)
        return taken if not has_zero or self.take(1) is not None else None

    def until_zero(self) -> bytes | None:
        """Take bytes up to a zero byte."""
        end = self._data.find(b"\0", self._at)
        return None if end < 0 else (self.take(end + 1 - self._at) or b"")[:-1]


_Reader = Callable[[_Status], bool]
"""Takes what belongs to a code; False if that is cut off."""


def _skip(size: int) -> _Reader:
    return lambda status: status.take(size) is not None


def _number(name: str, size: int) -> _Reader:
    def read(status: _Status) -> bool:
        value = status.integer(size)
        if value is not None:
            status.found[name] = value
        return value is not None

    return read


def _charset(status: _Status) -> bool:
    taken = status.take(6)
    if taken is None:
        return False
    names = ("client_charset", "connection_collation", "server_collation")
    status.found.update(zip(names, Struct("<HHH").unpack(taken), strict=True))
    return True


def _time_zone(status: _Status) -> bool:
    taken = status.text()
    if taken is not None:
        status.found["time_zone"] = taken.decode("utf-8", "replace")
    return taken is not None


def _explicit_timestamps(status: _Status) -> bool:
    value = status.integer(1)
    if value is not None:
        status.found["has_explicit_timestamps"] = bool(value)
    return value is not None


def _invoker(status: _Status) -> bool:
    return status.text() is not None and status.text() is not None


def _updated_schemas(status: _Status) -> bool:
    count = status.integer(1)
    # 254: too many to name them.
    return count is not None and (count == 254 or all(status.until_zero() is not None for _ in range(count)))


def _gtid_flags(status: _Status) -> bool:
    """Read MariaDB's flags of a two-phase ALTER TABLE: with COMMIT or ROLLBACK they hold the number of its START ALTER."""
    flags = status.integer(2)
    return flags is not None and (not flags & 0b1100 or status.take(8) is not None)


def _charset_collations(status: _Status) -> bool:
    count = status.integer(1)
    pairs = [(status.integer(2), status.integer(2)) for _ in range(count or 0)]
    status.charset_collations.update((one, other) for one, other in pairs if one is not None and other is not None)
    return count is not None and len(status.charset_collations) == count


_VARIABLES: Final[Mapping[int, _Reader]] = {
    0: _number("flags", 4),
    1: _number("sql_mode", 8),
    2: lambda status: status.text(has_zero=True) is not None,  # the catalogue, of servers before 5.0.4
    3: _skip(4),  # auto_increment_increment and auto_increment_offset
    4: _charset,
    5: _time_zone,
    6: lambda status: status.text() is not None,  # the catalogue
    7: _number("time_names", 2),
    8: _skip(2),  # collation_database
    9: _skip(8),  # the tables that an UPDATE of several has changed
    10: _skip(4),  # the size of the event on the first server
    11: _invoker,
    12: _updated_schemas,
    13: _number("microseconds", 3),
    14: _skip(8),  # a commit's logical timestamp
    15: _skip(8),
    16: _explicit_timestamps,
    17: _skip(8),  # the number of an atomic DDL
    18: _number("utf8mb4_collation", 2),
    19: _skip(1),  # sql_require_primary_key
    20: _skip(1),  # default_table_encryption
    128: _number("microseconds", 3),  # from here on MariaDB's
    129: _skip(8),  # the number of an atomic DDL
    130: _gtid_flags,
    131: _charset_collations,
}


ANSI_QUOTES: Final = 1 << 2
NO_BACKSLASH_ESCAPES: Final = 1 << 20

_CODECS: Final = {
    "utf8mb4": "utf-8", "utf8mb3": "utf-8", "ascii": "ascii", "latin1": "cp1252", "latin2": "iso8859_2", "latin5": "iso8859_9",
    "latin7": "iso8859_13", "greek": "iso8859_7", "hebrew": "iso8859_8", "tis620": "tis_620", "cp850": "cp850", "cp852": "cp852",
    "cp866": "cp866", "cp1250": "cp1250", "cp1251": "cp1251", "cp1256": "cp1256", "cp1257": "cp1257", "koi8r": "koi8_r",
    "koi8u": "koi8_u", "macroman": "mac_roman", "macce": "mac_latin2", "big5": "big5", "gb2312": "gb2312", "gbk": "gbk",
    "gb18030": "gb18030", "euckr": "euc_kr", "ujis": "euc_jp", "eucjpms": "euc_jp", "sjis": "shift_jis", "cp932": "cp932",
}  # fmt: skip
"""Character sets of a client: a text cannot come in UCS-2, UTF-16 or UTF-32, which no client may use."""

_PIECE: Final = r"""
      (?P<name>`(?:[^`]|``)*+`)
    | (?P<single>'(?:%s)*+')
    | (?P<double>"(?:%s)*+")
    | (?P<maria>/\*M!(?P<maria_version>[0-9]{5,6})?)
    | (?P<executed>/\*!(?P<version>[0-9]{5,6})?)
    | (?P<comment>/\*.*?\*/ | --(?=[ \t\r\n\f\v]|$)[^\n]* | \#[^\n]*)
    | (?P<ends>\*/)
"""
_ESCAPING: Final = re.compile(_PIECE % (r"[^'\\]|\\.|''", r'[^"\\]|\\.|""'), re.VERBOSE | re.DOTALL)
_PLAIN: Final = re.compile(_PIECE % (r"[^']|''", r'[^"]|""'), re.VERBOSE | re.DOTALL)

_ONLY_MYSQL: Final = range(50_700, 100_000)
"""Versions in comments that MariaDB takes for a comment (MariaDB manual, "Comment Syntax")."""
_NO_MYSQL: Final = 100_000
"""No MySQL has this version: a comment for MariaDB in MySQL's form."""


def decoded(text: bytes, client_charset: int) -> str | None:
    """Return the text; None if it cannot be read in its character set."""
    if text.isascii():
        return text.decode("ascii")
    try:
        return text.decode(_CODECS.get(collation_name(client_charset).partition("_")[0], "utf-8"))
    except UnicodeDecodeError:
        return None


def plain_text(text: str, sql_mode: int, *, is_mariadb: bool) -> str:
    """Return the text as a session reads it that has neither ANSI_QUOTES nor NO_BACKSLASH_ESCAPES, with only comments that no one runs."""
    is_escaping = not sql_mode & NO_BACKSLASH_ESCAPES
    is_ansi = bool(sql_mode & ANSI_QUOTES)
    if is_escaping and not is_ansi and "/*!" not in text and "/*M!" not in text:
        return text
    pieces, at, is_open = list[str](), 0, False
    for match in (_ESCAPING if is_escaping else _PLAIN).finditer(text):
        pieces.append(text[at : match.start()])
        at = match.end()
        kind = match.lastgroup
        if kind in {"executed", "maria"}:
            if not _is_executed(match, is_mariadb=is_mariadb):
                # Up to its own end: what the server did not run is no part of the statement.
                end = text.find("*/", at)
                at = len(text) if end < 0 else end + 2
            else:
                is_open = True
            pieces.append(" ")
        elif kind == "ends" and is_open:
            is_open = False
            pieces.append(" ")
        else:
            pieces.append(_requoted(match, is_ansi=is_ansi, is_escaping=is_escaping))
    return "".join([*pieces, text[at:]])


def _is_executed(match: re.Match[str], *, is_mariadb: bool) -> bool:
    """Return whether upstream has run what is in a comment. A server does not log a newer version than its own as one to run."""
    if match["maria"] is not None:
        return is_mariadb
    version = int(match["version"] or 0)
    return version not in _ONLY_MYSQL if is_mariadb else version < _NO_MYSQL


def _requoted(match: re.Match[str], *, is_ansi: bool, is_escaping: bool) -> str:
    text = match.group()
    if match["double"] is not None and is_ansi:
        return "`" + text[1:-1].replace('""', '"').replace("`", "``") + "`"
    is_string = match["single"] is not None or match["double"] is not None
    return text.replace("\\", "\\\\") if is_string and not is_escaping else text


_MAINTENANCE: Final = frozenset({"ANALYZE", "CHECK", "OPTIMIZE", "REBUILD", "REPAIR"})


def is_maintenance(tree: Tree) -> bool:
    """Return whether a statement only examines or rebuilds partitions."""
    if not isinstance(tree.node, AlterTableStatement):
        return False
    words = [tree.part(*clause.span) for clause in tree.node.clauses]
    return bool(words) and all(part.keyword() in _MAINTENANCE and part.keyword(1) == "PARTITION" for part in words)


_REAL_AS_FLOAT: Final = 1
_MEANING: Final = {
    1 << 0: "REAL_AS_FLOAT",
    1 << 1: "PIPES_AS_CONCAT",
    1 << 3: "IGNORE_SPACE",
    1 << 6: "NO_UNSIGNED_SUBTRACTION",
    1 << 19: "NO_AUTO_VALUE_ON_ZERO",
    1 << 29: "HIGH_NOT_PRECEDENCE",
    1 << 31: "PAD_CHAR_TO_FULL_LENGTH",
}
"""The modes that decide what a DDL means, by their bits. Strictness decides only what is refused, and upstream has accepted the statement;
ANSI_QUOTES and NO_BACKSLASH_ESCAPES are written out in the text."""
_STRICT: Final = 1 << 21 | 1 << 22
_INVALID_DATES: Final = 1 << 25
_OF_DATES: Final = {1 << 23: "NO_ZERO_IN_DATE", 1 << 24: "NO_ZERO_DATE", _INVALID_DATES: "ALLOW_INVALID_DATES"}
"""Which dates of old rows become 0000-00-00. In a strict session a DDL with such a date fails."""
_TRUNCATES_ON_MYSQL: Final = 1 << 32
_ROUNDS_ON_MARIADB: Final = 1 << 34
"""What becomes of digits that no longer fit into a column: by default MySQL rounds and MariaDB truncates."""
_EXPLICIT_TIMESTAMPS: Final = 1 << 24
"""MariaDB's OPTION_EXPLICIT_DEF_TIMESTAMP in the flags, from 10.10 on. Before, only the whole server has the variable, which is OFF."""

_DEFAULT_COLLATIONS: Final = {
    "utf8": "utf8mb3_general_ci",
    "utf8mb3": "utf8mb3_general_ci",
    "ascii": "ascii_general_ci",
    "latin1": "latin1_swedish_ci",
}
"""Where TiDB has another default than all others; the sinks' code for schemas knows TiDB's."""
_MYSQL_UTF8MB4: Final = "utf8mb4_0900_ai_ci"
_MARIADB_UTF8MB4: Final = "utf8mb4_general_ci"
DUMPED: Final = SessionDefaults(collations=_DEFAULT_COLLATIONS | {"utf8mb4": _MARIADB_UTF8MB4})
"""What a definition in a dump implies: a server whose utf8mb4 has another default than MariaDB's writes it."""


def defaults_of(session: QuerySession, *, is_mariadb: bool) -> SessionDefaults:
    """Return what a statement of the session implies."""
    own = _MARIADB_UTF8MB4 if is_mariadb else collation_name(session.utf8mb4_collation) or _MYSQL_UTF8MB4
    collations = _DEFAULT_COLLATIONS | {"utf8mb4": own}
    for charset, collation in session.charset_collations.items():
        name, of = collation_name(collation), collation_name(charset).partition("_")[0]
        if name and of:
            collations |= {of: name} | ({"utf8": name} if of == "utf8mb3" else {})
    explicit = session.has_explicit_timestamps
    if is_mariadb:
        explicit = session.flags is None or bool(session.flags & _EXPLICIT_TIMESTAMPS)
    return SessionDefaults(
        collations=collations,
        server_collation=collation_name(session.server_collation),
        # MySQL says it where it matters only.
        has_explicit_timestamps=explicit is not False,
        real_is_float=bool(session.sql_mode & _REAL_AS_FLOAT),
    )


def session_of(query: QueryEvent, *, is_mariadb: bool) -> tuple[tuple[str, str | int], ...]:
    """Return the variables of the session that a sink sets: modes, which it adds to its own, time to the microsecond, zone and language.

    With the kind of the server, which is not a variable: old rows are converted as such a server does.
    """
    session = query.session
    modes = ",".join(_modes_of(session.sql_mode, is_mariadb=is_mariadb))
    seconds = f"{query.time_s}.{session.microseconds:06d}"
    zone = session.time_zone
    kind = (SERVER_KIND, MARIADB if is_mariadb else MYSQL)
    language = (("lc_time_names", session.time_names),) if session.time_names else ()
    return (("sql_mode", modes), ("timestamp", seconds), *((("time_zone", zone),) if zone else ()), *language, kind)


def _modes_of(sql_mode: int, *, is_mariadb: bool) -> Iterator[str]:
    of_dates = _INVALID_DATES if sql_mode & _STRICT else sql_mode
    yield from (name for bit, name in _MEANING.items() if sql_mode & bit)
    yield from (name for bit, name in _OF_DATES.items() if of_dates & bit)
    rounds = bool(sql_mode & _ROUNDS_ON_MARIADB) if is_mariadb else not sql_mode & _TRUNCATES_ON_MYSQL
    yield "TIME_ROUND_FRACTIONAL" if rounds else "TIME_TRUNCATE_FRACTIONAL"


_LEAVE_OUT: Final = Remedy("binlog.exclude-table-and-change-by-hand", f"Exclude the table by source.tables. {BY_HAND}")
_NO_STATEMENTS: Final = Remedy("binlog.log-rows-and-change-by-hand", f"Set binlog_format = ROW on the upstream server. {BY_HAND}")

_ORACLE: Final = 1 << 9
"""The mode in which MariaDB reads a DATE as DATETIME."""


OF_VARIABLES: Final = DdlRefusal(
    "the statement uses variables, numbers or random values of its session, which the binlog stores apart and which are not replayed",
    BY_HAND,
)


def unreadable(why: str) -> DdlRefusal:
    """Return the refusal of a statement that is not understood."""
    return DdlRefusal(f"the applier cannot read this statement ({why})", BY_HAND)


def refusal_of(tree: Tree, error_code: int, sql_mode: int) -> DdlRefusal | None:
    """Return why a DDL cannot be repeated; None if it can."""
    node, words = tree.node, [token.keyword for token in tree.tokens]
    if error_code and not (isinstance(node, DropTablesStatement) and node.if_exists):
        return DdlRefusal(f"the statement failed upstream with error {error_code} after it had changed something", BY_HAND)
    if sql_mode & _ORACLE and isinstance(node, CreateTableStatement | AlterTableStatement):
        return DdlRefusal("upstream has read the statement in sql_mode = ORACLE, where types have other meanings", BY_HAND)
    if isinstance(node, CreateTableStatement | AlterTableStatement) and ("WITHOUT", "OVERLAPS") in pairwise(words):
        return DdlRefusal("keys WITHOUT OVERLAPS are not replicated: MariaDB refuses the REPLACE by which rows are written", _LEAVE_OUT)
    if isinstance(node, CreateTableStatement):
        return _of_create(node, words)
    if isinstance(node, AlterTableStatement):
        return _of_alter(node, words)
    return None


def of_duality_view(words: list[str]) -> DdlRefusal | None:
    """Return the refusal of a statement that makes a view of documents; None for another one. ``words``: its first ones."""
    is_one = "DUALITY" in words and "VIEW" in words[words.index("DUALITY") :]
    return DdlRefusal("JSON DUALITY VIEWs are not replicated: no other server has them", BY_HAND) if is_one else None


def _of_create(node: CreateTableStatement, words: list[str]) -> DdlRefusal | None:
    if node.like is None and any(word == "SELECT" for word in words[node.body :]):
        why = "CREATE TABLE … SELECT is in the binlog as a statement, because its session has binlog_format = STATEMENT or MIXED"
        return DdlRefusal(why, _NO_STATEMENTS)
    first, last = node.options
    return _VERSIONED if _is_versioned(words) or "VERSIONING" in words[first : last + 1] else None


_VERSIONED: Final = DdlRefusal("tables with SYSTEM VERSIONING are not replicated: each server writes their history itself", _LEAVE_OUT)


def _is_versioned(words: list[str]) -> bool:
    pairs = set(pairwise(words))
    return ("SYSTEM", "VERSIONING") in pairs or ("FOR", "SYSTEM_TIME") in pairs


def _of_alter(node: AlterTableStatement, words: list[str]) -> DdlRefusal | None:
    if _is_versioned(words):
        return _VERSIONED
    if ("IMPORT" in words or "DISCARD" in words) and "TABLESPACE" in words:
        return DdlRefusal("the rows of a tablespace that is discarded or imported are not in the binlog", BY_HAND)
    added = [element for clause in node.clauses if clause.kind is ClauseKind.ADD for element in clause.elements]
    if node.ignore is not None and any(_is_unique(element, words) for element in added):
        return DdlRefusal("ALTER IGNORE TABLE may have deleted rows, which are not in the binlog", BY_HAND)
    return None


def _is_unique(element: Element, words: list[str]) -> bool:
    return bool({"UNIQUE", "PRIMARY"} & set(words[element.span[0] : element.span[1] + 1]))


_NO_TYPE: Final = 0
_GENERATED: Final = "/* generated by server"
_MAX_SHOWN: Final = 300
_STATEMENT_REMEDY: Final = Remedy(
    "binlog.set-row-format-and-skip",
    "Set binlog_format = ROW on the upstream server, and in sessions that set their own: this one's number was `thread`. Make the change "
    "of this statement in the sink by hand, and skip it: `applier skip --position …`. Or exclude the statement's table by source.tables "
    "(a tool's, such as pt-table-checksum's)",
)


def events_of_query(event: bytes, head: PartHead, selection: TableSelection = EVERYTHING) -> Sequence[DdlEvent | SkippedStatement]:
    """Return what an event means: at most one DDL, with the sink's names, or what is skipped. () for BEGIN, COMMIT and the like.

    ProtocolError, without a position, of kind "statement" if it changes rows: they should have come as row events.
    """
    query = read_query_event(event)
    text = decoded(query.text, query.session.client_charset)
    readable = query.text.decode("utf-8", "replace") if text is None else text
    plain = without_statement_settings(plain_text(readable, query.session.sql_mode, is_mariadb=head.is_mariadb))
    kind = classify(plain)
    if kind is StatementKind.ROWS:
        if (truncation := _emptied(plain)) is None:
            if text is not None and _changes_others_only(plain, query.schema, selection):
                return (SkippedStatement(head.commit_ts, StatementKind.EXCLUDED_ROWS.value, query.schema),)
            raise _rows_as_statement(query, plain)
        plain, kind = truncation, StatementKind.DDL
    if kind is StatementKind.TRANSACTION:
        return ()
    if kind in SKIPPED:
        return (SkippedStatement(head.commit_ts, kind.value, query.schema),)
    ddl = DdlEvent(
        commit_ts=Ts(head.commit_ts),
        schema=query.schema,
        table="",
        query=plain,
        ddl_type=_NO_TYPE,
        time_ms=query.time_s * 1000 + query.session.microseconds // 1000,
        session=session_of(query, is_mariadb=head.is_mariadb),
    )
    if text is None:
        ddl = replace(ddl, refusal=DdlRefusal("the text of a DDL cannot be read in the character set of its session", BY_HAND))
    elif kind is StatementKind.UNKNOWN:
        ddl = replace(ddl, refusal=of_duality_view(first_words(plain)) or unreadable("it begins with words that are not known"))
    else:
        read = _read(ddl, query, is_mariadb=head.is_mariadb, has_variables=head.has_variables)
        return (_selected(read, selection) if isinstance(read, DdlEvent) else read,)
    return (_selected(ddl, selection),)


def _selected(ddl: DdlEvent, selection: TableSelection) -> DdlEvent | SkippedStatement:
    if is_system_schema(ddl.schema):
        return SkippedStatement(ddl.commit_ts, StatementKind.SYSTEM_SCHEMA.value, ddl.schema)
    return select_ddl(ddl, selection)


def _changes_others_only(text: str, schema: str, selection: TableSelection) -> bool:
    """Return whether a statement changes rows of tables only that the replica does not have."""
    try:
        tables = changed_tables(text, schema)
    except DdlSyntaxError:
        return False
    return bool(tables) and all(name.schema and (is_system_schema(name.schema) or not selection.has(name)) for name in tables)


def _rows_as_statement(query: QueryEvent, text: str) -> ProtocolError:
    return ProtocolError(
        "a statement that changes rows is in the binlog as a statement, because its session has binlog_format = STATEMENT or MIXED",
        remedy=_STATEMENT_REMEDY,
        kind="statement",
        variable="binlog_format",
        thread=query.thread,
        schema=query.schema,
        statement=_without_values(text),
    )


def _without_values(text: str) -> str:
    """Return the beginning of a statement with marks for its literals: a message shows no values of rows."""
    pieces = list[str]()
    for match in TOKEN.finditer(text[:_MAX_SHOWN]):
        kind, found = match.lastgroup, match.group()
        is_literal = kind in {"string", "open"} or (kind == "word" and found[0].isdigit())
        pieces.append("?" if is_literal else " " if kind == "blank" else found)
        if kind == "open":
            break
    return "".join(pieces)


def _emptied(text: str) -> str | None:
    """Return a TRUNCATE for the DELETE by which a server that starts empties its tables of the engine MEMORY; None for another text."""
    words, is_generated, _ = text.partition(_GENERATED)
    before, is_delete, name = words.strip().partition("DELETE FROM ")
    return f"TRUNCATE TABLE {name}" if is_generated and is_delete and not before and " " not in name else None


def _read(ddl: DdlEvent, query: QueryEvent, *, is_mariadb: bool, has_variables: bool) -> DdlEvent | SkippedStatement:
    """Read a DDL: its names, its type, and the text that means the same in every session."""
    try:
        tree = read_tree(ddl.query)
    except DdlSyntaxError as error:
        return replace(ddl, refusal=unreadable(str(error)))
    if is_maintenance(tree):
        return SkippedStatement(ddl.commit_ts, StatementKind.MAINTENANCE.value, ddl.schema)
    defaults = defaults_of(query.session, is_mariadb=is_mariadb)
    session = ddl.session if defaults.has_explicit_timestamps or not depends_on_columns(tree) else (*ddl.session, OLD_TIMESTAMPS)
    text = completed(tree, defaults)
    full = replace(ddl, query=text if is_mariadb else with_json_defaults(text), ddl_type=ddl_type_of(tree), session=session)
    refusal = refusal_of(tree, query.error_code, query.session.sql_mode) or (OF_VARIABLES if has_variables else None)
    return replace(_with_own_name(full, tree), refusal=refusal)


def _with_own_name(ddl: DdlEvent, tree: Tree) -> DdlEvent:
    """Return the DDL under the name of its own table; other names without a schema get that of the session."""
    found = read_ddl(ddl)
    if found is None:
        return _under_name_of_view(ddl, tree)
    statement, sites = found
    own = own_name(statement)
    if own.schema == ddl.schema:
        return replace(ddl, table=own.table)
    if statement.kind is DdlKind.CREATE_VIEW:
        return _under_name_of_view(ddl, tree)
    named = [site for site in sites if not _is_parent(ddl.query, site.table.start if site.table else 0)]
    return replace(ddl, schema=own.schema, table=own.table, query=qualified(ddl.query, named, ddl.schema))


def _under_name_of_view(ddl: DdlEvent, tree: Tree) -> DdlEvent:
    """Return the DDL under the name of its view, if its session had no schema: then all tables are named with theirs.

    In any other one the session's schema stays, and the text: the columns of its query may be named with it.
    """
    if ddl.schema or not isinstance(tree.node, CreateViewStatement):
        return ddl
    own = tree.node.view.name("")
    return replace(ddl, schema=own.schema, table=own.table)


def _is_parent(text: str, start: int) -> bool:
    """Return whether a name is the target of a foreign key: without a schema it has that of its child, not of the session."""
    return text[:start].rstrip().upper().endswith("REFERENCES")


def own_name(statement: DdlStatement) -> TableName:
    """Return the table that a statement is about: of several the first, of a RENAME the new name; of a schema, table ''."""
    if statement.schema:
        return TableName(statement.schema, "")
    taken = statement.renames[0][1:] if statement.kind is DdlKind.RENAME_TABLE else ()
    needs = () if statement.kind is DdlKind.CREATE_TABLE_LIKE else statement.needs
    return next(iter((*taken, *statement.creates, *needs, *statement.drops)), TableName("", ""))
