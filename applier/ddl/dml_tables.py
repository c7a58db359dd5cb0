"""The tables that a statement of rows may change: a grammar of INSERT, REPLACE, LOAD DATA, UPDATE and DELETE. Pure.

    INSERT | REPLACE   [modifier …] [INTO] name …                     the name
    LOAD DATA          … INTO TABLE name …                            the name
    UPDATE             [modifier …] references SET …                  every table of the references
    DELETE             [modifier …] FROM references …                 every table of the references
    DELETE             [modifier …] name[.*], … FROM references …     every table of the references

A statement that is not wholly understood has no tables at all. So has one that calls a function which may be stored: it may change
tables of its own. What a trigger or a view of those tables changes, no text shows. (Manuals, "INSERT", "REPLACE", "UPDATE", "DELETE".)
"""

from typing import Final

from applier.ddl.alter_parser import read_table_name
from applier.ddl.cursor import Cursor
from applier.ddl.query_tables import tables_of_references
from applier.ddl.tokens import DdlSyntaxError
from applier.model.events import TableName

_MODIFIERS: Final = ("LOW_PRIORITY", "HIGH_PRIORITY", "DELAYED", "IGNORE", "QUICK", "CONCURRENT", "LOCAL")
_AFTER_DELETE: Final = frozenset({"", "WHERE", "ORDER", "LIMIT"})

_FUNCTIONS: Final = frozenset(
    """ABS ADDDATE ADDTIME ASCII AVG BIN BIT_AND BIT_COUNT BIT_LENGTH BIT_OR BIT_XOR CAST CEIL CEILING CHAR CHARACTER_LENGTH CHAR_LENGTH
    COALESCE CONCAT CONCAT_WS CONNECTION_ID CONV CONVERT CONVERT_TZ COUNT CRC32 CURDATE CURRENT_DATE CURRENT_TIME CURRENT_TIMESTAMP
    CURRENT_USER CURTIME DATABASE DATE DATEDIFF DATE_ADD DATE_FORMAT DATE_SUB DAY DAYOFMONTH DAYOFWEEK DAYOFYEAR ELT EXTRACT FIELD FLOOR
    FORMAT FROM_DAYS FROM_UNIXTIME GREATEST GROUP_CONCAT HEX HOUR IF IFNULL INET_ATON INET_NTOA INSERT INSTR ISNULL JSON_ARRAY JSON_EXTRACT
    JSON_OBJECT JSON_UNQUOTE LAST_INSERT_ID LCASE LEAST LEFT LENGTH LOCALTIME LOCALTIMESTAMP LOCATE LOWER LPAD LTRIM MAX MD5 MICROSECOND
    MID MIN MINUTE MOD MONTH NOW NULLIF OCT OCTET_LENGTH ORD POSITION POW POWER QUARTER QUOTE RAND REPEAT REPLACE REVERSE RIGHT ROUND RPAD
    RTRIM SCHEMA SECOND SEC_TO_TIME SHA SHA1 SHA2 SIGN SPACE STRCMP STR_TO_DATE SUBDATE SUBSTR SUBSTRING SUBSTRING_INDEX SUBTIME SUM
    SYSDATE TIME TIMEDIFF TIMESTAMP TIMESTAMPADD TIMESTAMPDIFF TIME_FORMAT TIME_TO_SEC TO_DAYS TRIM TRUNCATE UCASE UNHEX UNIX_TIMESTAMP
    UPPER USER UTC_DATE UTC_TIME UTC_TIMESTAMP UUID UUID_SHORT VALUE VALUES VERSION WEEK WEEKDAY YEAR YEARWEEK""".split()  # noqa: SIM905
)
"""Functions of the servers: a stored one of such a name is called with its schema only."""
_BEFORE_PARENTHESIS: Final = frozenset(
    """ALL AND ANY AS BETWEEN BINARY BY CASE CHAR DECIMAL DISTINCT DIV ELSE EXISTS FIELDS FROM IN INDEX INTERVAL INTO JOIN KEY LIKE LIMIT
    LINES NOT ON OR PARTITION REGEXP RLIKE ROW ROWS SELECT SET SOME THEN UNION USING VALUES VARCHAR WHEN WHERE XOR""".split()  # noqa: SIM905
)


def changed_tables(text: str, default_schema: str) -> tuple[TableName, ...]:
    """Return the tables that a statement may change, without those that it only reads; DdlSyntaxError if it is not understood.

    A name without a schema is one of ``default_schema``.
    """
    cursor = Cursor(text)
    word = cursor.word()
    if word == "LOAD":
        return _loaded(cursor, default_schema)
    while cursor.accept_any(*_MODIFIERS):
        pass
    match word:
        case "INSERT" | "REPLACE":
            cursor.accept("INTO")
            return _target(cursor, default_schema)
        case "UPDATE":
            tables = tables_of_references(cursor, default_schema)
            cursor.expect("SET")
        case "DELETE":
            tables = _deleted(cursor, default_schema)
        case _:
            raise DdlSyntaxError("INSERT, REPLACE, UPDATE, DELETE or LOAD DATA", word)
    _check_calls(cursor.part(0, cursor.last))
    return tables


def _target(cursor: Cursor, default_schema: str) -> tuple[TableName, ...]:
    name = read_table_name(cursor).name(default_schema)
    # The names of the columns: no call of a function, although it looks like one.
    if cursor.accept("PARTITION"):
        cursor.parenthesis()
    cursor.skip_parenthesis()
    _check_calls(cursor)
    return (name,)


def _loaded(cursor: Cursor, default_schema: str) -> tuple[TableName, ...]:
    cursor.expect("DATA")
    while cursor.accept_any(*_MODIFIERS):
        pass
    cursor.expect("INFILE")
    cursor.string()
    cursor.accept_any("IGNORE", "REPLACE")
    cursor.expect("INTO", "TABLE")
    return _target(cursor, default_schema)


def _deleted(cursor: Cursor, default_schema: str) -> tuple[TableName, ...]:
    while not cursor.accept("FROM"):
        cursor.name_token()
        while cursor.accept("."):
            cursor.next()
        cursor.accept(",")
    tables = tables_of_references(cursor, default_schema)
    if cursor.keyword() not in _AFTER_DELETE:
        raise cursor.unexpected("WHERE, ORDER BY or LIMIT")
    return tables


def _check_calls(part: Cursor) -> None:
    """Refuse a call of a function that may be stored: each name before a parenthesis that is not known."""
    for before, name, mark in zip((None, *part.rest), part.rest, part.rest[1:], strict=False):
        if mark.kind == "(" and name.is_name:
            is_known = name.kind == "word" and (name.keyword in _FUNCTIONS or name.keyword in _BEFORE_PARENTHESIS)
            if not is_known or (before is not None and before.kind == "."):
                raise DdlSyntaxError("no function that may be stored", name.text)
