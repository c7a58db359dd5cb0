"""Makes a statement's text independent of the session that wrote it: its character set, its kinds of quotes, the server's version. Pure.

What comes out is read by ``applier.ddl`` and runs in the sessions of the sinks: UTF-8, names in backticks, backslashes that escape, and no
comment that some servers execute and others do not. A text that needs nothing of this stays as it is.
"""

import re
from typing import Final

from applier.sources.binlog.collation_name import collation_name

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
    """Return the text as a session reads it that has neither ANSI_QUOTES nor NO_BACKSLASH_ESCAPES, with only comments that nobody runs."""
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
    """Return whether upstream has run what stands in a comment. A server does not log a newer version than its own as one to run."""
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
