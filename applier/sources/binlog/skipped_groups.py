"""Transactions behind a replica's place that it has executed nevertheless: another server may have logged its own before them.

MariaDB's numbers ascend in each domain, but a replica of several domains may log them in another order than its primary.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from applier.sources.binlog.group import Group, GroupKind
from applier.sources.binlog.gtid_set import Gtid, GtidSet, parse_gtid_set

_WITH_CHANGES: Final = frozenset({GroupKind.TRANSACTION, GroupKind.QUERY, GroupKind.XA_COMMIT})
"""What a group of another kind does is needed by those that follow."""


@dataclass(frozen=True, slots=True)
class SkippedGroups:
    """The groups that end behind a place and are in a set, as text; '' has none.

    ``behind``: all groups that end at or before it are applied.
    """

    behind: int = 0
    gtid_set: str = ""

    def hold(self, group: Group) -> bool:
        """Whether the changes of a group are in the sink."""
        if not self.gtid_set or group.end <= self.behind or not group.gtid or group.kind not in _WITH_CHANGES:
            return False
        return Gtid.parse(group.gtid) in _parsed(self.gtid_set)


NONE_SKIPPED: Final = SkippedGroups()


@lru_cache(maxsize=2)
def _parsed(text: str) -> GtidSet:
    return parse_gtid_set(text, is_mariadb=":" not in text)
