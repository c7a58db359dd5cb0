"""Transactions behind a replica's place that it has executed nevertheless: another server may have logged its own before them.

Only MySQL's sets tell them apart. MariaDB's numbers ascend in each domain, so behind a place none is executed.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from applier.sources.binlog.group import Group, GroupKind
from applier.sources.binlog.gtid_set import Gtid, MysqlGtidSet

_WITH_CHANGES: Final = frozenset({GroupKind.TRANSACTION, GroupKind.QUERY, GroupKind.XA_COMMIT})
"""What a group of another kind does is needed by those that follow."""


@dataclass(frozen=True, slots=True)
class SkippedGroups:
    """The groups that end behind a place and are in a set of MySQL, as text; '' has none.

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
def _parsed(text: str) -> MysqlGtidSet:
    return MysqlGtidSet.parse(text)
