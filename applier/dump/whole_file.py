"""The tables and views that a file of mysqldump or mariadb-dump makes.

Its values hold no line ends, so a line that begins a statement is one.
"""

import re
from itertools import islice
from pathlib import Path
from typing import Final

from applier.model.events import TableName
from applier.sources.dump_text import open_text

_NAME: Final = r"(?:`((?:[^`]|``)+)`|(\w+))"
HEADER_LINES: Final = 20
_DATABASE: Final = re.compile(r"-- Host: .*?\bDatabase: (\S+)\s*$")
_USE: Final = re.compile(rf"USE\s+{_NAME}\s*;", re.IGNORECASE)
_TABLE: Final = re.compile(rf"CREATE\s+TABLE\s+(?:IF\s+NOT\s+EXISTS\s+)?(?:{_NAME}\.)?{_NAME}", re.IGNORECASE)
_VIEW: Final = re.compile(
    rf"(?:/\*!50001 )?(?:CREATE\s+)?(?:OR\s+REPLACE\s+)?(?:ALGORITHM\s*=\s*\w+\s+)?VIEW\s+(?:{_NAME}\.)?{_NAME}", re.IGNORECASE
)
"""Also where it begins a line within a statement: the dumpers divide that of a view."""


def objects_of(file: Path) -> tuple[list[TableName], list[TableName]]:
    """Return the tables and the views. A table whose schema no line names is skipped: the load refuses such a file."""
    schema = schema_of(file)
    tables, views = dict[TableName, None](), dict[TableName, None]()
    with open_text(file) as lines:
        for line in lines:
            if match := _USE.match(line):
                schema = _name(match[1], match[2])
                continue
            for pattern, found in ((_TABLE, tables), (_VIEW, views)):
                if (match := pattern.match(line)) and (owner := _name(match[1], match[2]) or schema):
                    found[TableName(owner, _name(match[3], match[4]))] = None
    return list(tables), list(views)


def schema_of(file: Path) -> str:
    """Return the schema that a file is of by its header; '' if it is of several."""
    with open_text(file) as lines:
        return next((match[1] for line in islice(lines, HEADER_LINES) if (match := _DATABASE.match(line))), "")


def _name(quoted: str | None, plain: str | None) -> str:
    return quoted.replace("``", "`") if quoted else plain or ""
