"""Transactions behind a replica's place that it has executed nevertheless: another server may have logged its own before them.

MySQL's are known by their GTIDs. MariaDB's are all groups of a domain up to its last executed one: their numbers say nothing.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

from applier.sources.binlog.group import Group, GroupKind
from applier.sources.binlog.gtid_set import Gtid, MysqlGtidSet

_WITH_CHANGES: Final = frozenset({GroupKind.TRANSACTION, GroupKind.QUERY, GroupKind.XA_COMMIT})
"""What a group of another kind does is needed by those that follow."""


@dataclass(frozen=True, slots=True)
class SkippedGroups:
    """The groups that end behind a place and are executed.

    ``behind``: all groups that end at or before it are applied. ``gtid_set``: of MySQL, as text; '' has none. ``passed``: of MariaDB, the
    last executed GTID of a domain and where it ends: that and what the domain has before it is executed.
    """

    behind: int = 0
    gtid_set: str = ""
    passed: Mapping[str, int] = field(default_factory=dict)

    def __bool__(self) -> bool:
        """Whether there are any."""
        return bool(self.gtid_set or self.passed)

    def hold(self, group: Group) -> bool:
        """Whether the changes of a group are in the sink."""
        if not self or group.end <= self.behind or not group.gtid or group.kind not in _WITH_CHANGES:
            return False
        if self.passed:
            domain = domain_of(group.gtid)
            return any(group.end <= end for gtid, end in self.passed.items() if domain_of(gtid) == domain)
        return Gtid.parse(group.gtid) in _parsed(self.gtid_set)

    def passed_behind(self, place: int) -> dict[str, int]:
        """Return the domains that are still ahead of a place."""
        return {gtid: end for gtid, end in self.passed.items() if end > place}


NONE_SKIPPED: Final = SkippedGroups()


def domain_of(gtid: str) -> str:
    """Return the domain of one of MariaDB's GTIDs."""
    return gtid.partition("-")[0]


@lru_cache(maxsize=2)
def _parsed(text: str) -> MysqlGtidSet:
    return MysqlGtidSet.parse(text)
