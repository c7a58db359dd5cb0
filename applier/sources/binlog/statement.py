"""What a statement of the binlog is, by its first words: a change of tables, of rows, or something that leaves tables and rows alone. Pure.

Nothing is skipped that is not known: a statement with other words stops the replica (``UNKNOWN``).
"""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Final

from applier.ddl.tokens import TOKEN


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
"""So many tokens at most stand before the object of a statement: a DEFINER has some."""


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
    """Return the place behind ``= 'user'@'host'``, CURRENT_USER or CURRENT_USER()."""
    at += words[at : at + 1] == ["="]
    at += 1
    if words[at : at + 1] == ["@"]:
        at += 2
    return at + 2 if words[at : at + 2] == ["(", ")"] else at
