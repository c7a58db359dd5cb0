"""Tables that gh-ost and pt-online-schema-change make while they change a table: copies, and tables without a use for a replica.

The rules are those of TiDB DM (``shadow-table-rules``, ``trash-table-rules``): a regular expression that matches the whole name of such a
table, and whose one group is the name of the table that the tool changes.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from applier.model.events import TableName
from applier.selection.pattern import PatternError, compiled

COPIES: Final = (r"^_(.+)_(?:new|gho)$",)
LEFTOVERS: Final = (r"^_(.+)_(?:ghc|del|old)$",)
MAX_NAME: Final = 64
"""The characters of a table's name. Both tools shorten the table's name inside of a longer one."""
_MIN_SHORTENED: Final = 32
_TIMESTAMP: Final = re.compile(r"_\d{14}", re.ASCII)
"""What gh-ost's --timestamp-old-table writes behind the table's name."""


class OnlineDdlMode(StrEnum):
    """What happens to tables of these tools."""

    FILTERED = "filtered"
    """Where the table filter leaves the copy out, the cut-over is applied as the ALTER TABLE of the copy."""
    ALWAYS = "always"
    """All of these tables are left out, whatever the table filter says."""
    OFF = "off"
    """They are tables like others."""


@dataclass(frozen=True, slots=True)
class OnlineDdl:
    """The rules. ``leftovers``: tables that are neither the changed table nor its copy."""

    mode: OnlineDdlMode = OnlineDdlMode.OFF
    copies: tuple[re.Pattern[str], ...] = ()
    leftovers: tuple[re.Pattern[str], ...] = ()

    @classmethod
    def parse(cls, mode: OnlineDdlMode, copies: Iterable[str] = COPIES, leftovers: Iterable[str] = LEFTOVERS) -> "OnlineDdl":
        """Read the rules. PatternError."""
        return cls(mode, tuple(map(_rule, copies)), tuple(map(_rule, leftovers)))

    def leaves_out(self, table: TableName) -> bool:
        """Return whether a table is left out because one of these tools makes it."""
        return self.mode is OnlineDdlMode.ALWAYS and any(rule.fullmatch(table.table) for rule in (*self.copies, *self.leftovers))

    def is_copy(self, other: TableName, table: TableName) -> bool:
        """Return whether ``other`` is named as the copy of a table."""
        return self.mode is not OnlineDdlMode.OFF and _is_of(self.copies, other, table)

    def is_leftover(self, other: TableName, table: TableName) -> bool:
        """Return whether ``other`` is named as what a tool makes of a table that it has changed."""
        return self.mode is not OnlineDdlMode.OFF and _is_of(self.leftovers, other, table)


NO_ONLINE_DDL: Final = OnlineDdl()


def _rule(text: str) -> re.Pattern[str]:
    try:
        rule = compiled(text)
    except re.error as error:
        message = f"has a regular expression that cannot be read: {text!r} ({error})"
        raise PatternError(message, "Correct the expression") from None
    if rule.groups != 1:
        remedy = r"Put the changed table's name into one group, the others into (?:…): ^_(.+)_(?:new|gho)$"
        raise PatternError(f"has a regular expression without exactly one group: {text!r}", remedy)
    return rule


def _is_of(rules: Iterable[re.Pattern[str]], other: TableName, table: TableName) -> bool:
    if other.fold().schema != table.fold().schema:
        return False
    found = (rule.fullmatch(other.table) for rule in rules)
    return any(_names(match[1].casefold(), table.table.casefold(), len(other.table)) for match in found if match is not None)


def _names(found: str, table: str, length: int) -> bool:
    """Return whether the name that a rule has found is the table's. ``length``: of the name around it."""
    # pt-online-schema-change puts more underscores before a name that is taken.
    if found == table or (found.endswith(table) and not found.removesuffix(table).strip("_")):
        return True
    if found.startswith(table) and _TIMESTAMP.fullmatch(found.removeprefix(table)):
        return True
    return len(found) >= _MIN_SHORTENED and length - len(found) + len(table) > MAX_NAME and table.startswith(found)
