"""Comments that are code for some servers and comments for others: read as TiDB reads them, because that is what upstream has run.

TiDB executes ``/*!`` comments whatever version they name; MySQL and MariaDB look at the version. What only MariaDB executes (``/*M!``) is
a comment for TiDB. TiDB's own (``/*T!``) stay: a sink that is a TiDB executes them, others do not. Source: TiDB manual, "Comment Syntax".
"""

import re
from typing import Final

# Names and strings come first: what looks like a comment inside of them is text.
_PIECE: Final = re.compile(
    r"""
      (?P<kept>`(?:[^`]|``)*+` | '(?:[^'\\]|\\.|'')*+' | "(?:[^"\\]|\\.|"")*+")
    | (?P<begins>/\*!(?:[0-9]{5,6})?)
    | (?P<foreign>/\*M!.*?\*/)
    | (?P<comment>/\*.*?\*/ | --(?=[ \t\r\n\f\v]|$)[^\n]* | \#[^\n]*)
    | (?P<ends>\*/)
    """,
    re.VERBOSE | re.DOTALL,
)


def as_tidb_reads(text: str) -> str:
    """Return the text with ``/*!`` comments opened and MariaDB's own blanked. Its length, and every place in it, stay as they are."""
    if "/*!" not in text and "/*M!" not in text:
        return text
    pieces, at, is_open = list[str](), 0, False
    for match in _PIECE.finditer(text):
        kind = match.lastgroup
        if kind in {"begins", "foreign"} or (kind == "ends" and is_open):
            # Blanks and not nothing: a token's place is then its place in the text as upstream wrote it, where edits are made.
            pieces += [text[at : match.start()], " " * len(match.group())]
            at, is_open = match.end(), kind == "begins" or (is_open and kind == "foreign")
    return "".join([*pieces, text[at:]])
