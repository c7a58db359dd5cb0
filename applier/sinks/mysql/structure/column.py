"""One column as information_schema shows it, brought to one form for MariaDB, MySQL and TiDB.

MariaDB (which alone has IS_GENERATED) shows a default as SQL: ``'it''s'``, ``5``, ``NULL``, ``current_timestamp()``. MySQL and TiDB show
the value, and say DEFAULT_GENERATED where it is an expression. Binary values: MariaDB as text, MySQL as ``0x…``.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from applier.sinks.mysql.structure.expression import Expression, expression_of
from applier.sinks.mysql.structure.model import Check, ColumnStructure

_WIDTH: Final = re.compile(r"^((?:tiny|small|medium|big)?int|integer|year)\(\d+\)")
_COMMENT: Final = re.compile(r"\s*/\*.*?\*/", re.DOTALL)
_LABELLED: Final = re.compile(r"^(?:enum|set)\b")
_OLD_UTF8: Final = re.compile(r"^utf8(?=_|$)")
_ON_UPDATE: Final = re.compile(r"on update (\w+(?:\(\d*\))?)", re.IGNORECASE)
_NOW: Final = re.compile(r"^(?:current_timestamp|now|localtime|localtimestamp)(?:\(\s*(\d*)\s*\))?$", re.IGNORECASE)
_NUMBER: Final = re.compile(r"^[-+]?[0-9.]+(?:e[-+]?\d+)?$", re.IGNORECASE)
_BITS: Final = re.compile(r"^b'[01]*'$", re.IGNORECASE)
_STRING: Final = re.compile(r"^'((?:[^'\\]|''|\\.)*)'$", re.DOTALL)
_INTRODUCER: Final = re.compile(r"^_\w+\s*(?=')")
_ESCAPE: Final = re.compile(r"''|\\(.)", re.DOTALL)
_CONTROL: Final = {"0": "\0", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a"}
_BINARY: Final = frozenset({"binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob"})
_WORDS: Final = frozenset({"AUTO_INCREMENT", "DEFAULT_GENERATED", "VIRTUAL GENERATED", "STORED GENERATED", "PERSISTENT", "VIRTUAL", "NULL"})


def column_of(row: Mapping[str, Any], checks: Sequence[Check]) -> ColumnStructure:
    """Read one row of information_schema.COLUMNS; ``checks`` are those of the table."""
    extra = str(row["EXTRA"] or "")
    sql_type, name = _type(str(row["COLUMN_TYPE"])), str(row["COLUMN_NAME"])
    is_json = sql_type == "json" or (sql_type == "longtext" and any(is_json_check(check, name) for check in checks))
    generation = str(row["GENERATION_EXPRESSION"] or "")
    # MariaDB shows the default NULL of a generated column, MySQL none.
    default, default_expression = (None, None) if generation else _default(row, sql_type, extra)
    on_update = _ON_UPDATE.search(extra)
    return ColumnStructure(
        name=name,
        type="json" if is_json else sql_type,
        character_set="" if is_json else plain_charset(row["CHARACTER_SET_NAME"]),
        collation="" if is_json else plain_charset(row["COLLATION_NAME"]),
        nullable=row["IS_NULLABLE"] == "YES",
        default=default,
        default_expression=default_expression,
        on_update=_now(on_update[1]) if on_update else None,
        generation=expression_of(generation) if generation else None,
        is_stored=bool(generation) and ("STORED" in extra.upper() or "PERSISTENT" in extra.upper()),
        auto_increment="auto_increment" in extra.casefold(),
        attributes=_attributes(extra),
        comment=row["COLUMN_COMMENT"] or "",
    )


def is_json_check(check: Check, column: str) -> bool:
    """Return whether it is the check by which MariaDB implements a JSON column."""
    return check.name == "" and check.clause == Expression(f"json_valid(`{column.replace('`', '``')}`)")


def plain_charset(name: str | None) -> str:
    """Return a character set or collation by its own name: ``utf8`` is utf8mb3."""
    return _OLD_UTF8.sub("utf8mb3", name or "")


def _type(column_type: str) -> str:
    """Return the type in lower case (labels keep theirs), without display width (ZEROFILL keeps it, because it pads to it)."""
    if _LABELLED.match(column_type):
        return column_type
    # TiDB and MariaDB append comments to types: /*!100301 COMPRESSED*/.
    plain = _COMMENT.sub("", column_type).casefold()
    return plain if "zerofill" in plain else _WIDTH.sub(r"\1", plain)


def _default(row: Mapping[str, Any], sql_type: str, extra: str) -> tuple[str | None, Expression | None]:
    """Return a literal's value, or an expression."""
    default: str | None = row["COLUMN_DEFAULT"]
    # A column that only MariaDB's view has: a version number would not tell a fork.
    is_sql = "IS_GENERATED" in row
    if default is None or (is_sql and default == "NULL"):
        return None, None
    is_time = not is_sql and sql_type.startswith(("datetime", "timestamp")) and _NOW.match(default)
    if not (is_sql or is_time or "DEFAULT_GENERATED" in extra.upper()):
        return _value(default, sql_type), None
    expression = _now(default)
    literal = _literal(_INTRODUCER.sub("", expression.text))
    return (None, expression) if literal is None else (_value(literal, sql_type), None)


def _literal(sql: str) -> str | None:
    """Return the value of a literal; None for another expression."""
    if _NUMBER.match(sql) or _BITS.match(sql):
        return sql
    text = _STRING.match(sql)
    return None if text is None else _ESCAPE.sub(lambda match: "'" if match[1] is None else _CONTROL.get(match[1], match[1]), text[1])


def _value(value: str, sql_type: str) -> str:
    """Return a value in one form. Binary types: hexadecimal digits, without the zeros that pad a BINARY."""
    if sql_type.partition("(")[0] not in _BINARY:
        return value
    if not value.startswith("0x"):
        value = "0x" + value.encode("utf-8", "surrogateescape").hex().upper()
    if sql_type.startswith("binary"):
        value = re.sub(r"(?:00)+$", "", value[2:]) if len(value) % 2 == 0 else value[2:]
        return f"0x{value}"
    return value


def _now(text: str) -> Expression:
    """Return an expression. The current time has one name."""
    now = _NOW.match(text)
    if now is None:
        return expression_of(text)
    return Expression(f"CURRENT_TIMESTAMP({now[1]})" if now[1] and now[1] != "0" else "CURRENT_TIMESTAMP")


def _attributes(extra: str) -> tuple[str, ...]:
    # What the other facts say already goes; what is left (INVISIBLE, …) must not be lost, whatever it is.
    rest = _ON_UPDATE.sub("", extra).upper()
    for word in sorted(_WORDS, key=len, reverse=True):
        rest = rest.replace(word, "")
    return tuple(sorted(rest.replace(",", " ").split()))
