"""Which transactions of a log a replica has executed, where the end of its position alone does not say it.

Another server may have logged its own transactions before them, so executed ones may lie behind the replica's position. MySQL's are known
by their GTIDs. A domain's numbers of MariaDB do not say what comes before what: a replica that writes by itself (``ANALYZE TABLE`` does)
logs 0-2-13, and 0-1-6 of its primary behind it. So the log itself is read, as MariaDB does for its own replicas: what a domain has up to
its last executed GTID is executed, and everything behind it is not. A greater number of the same server before it shows that it is
missing, or that numbers have gone back: then nothing is certain. Does no I/O.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

from applier.sources.binlog.group import Group, GroupKind
from applier.sources.binlog.gtid_set import Gtid, GtidSet, MariadbGtidSet, MysqlGtidSet

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
            return is_passed(group, self.passed)
        return Gtid.parse(group.gtid) in _parsed(self.gtid_set)

    def passed_behind(self, place: int) -> dict[str, int]:
        """Return the domains that are still ahead of a place."""
        return {gtid: end for gtid, end in self.passed.items() if end > place}


NONE_SKIPPED: Final = SkippedGroups()


def is_passed(group: Group, passed: Mapping[str, int]) -> bool:
    """Return whether a group of MariaDB ends at or before the last executed transaction of its domain."""
    domain = domain_of(group.gtid)
    return any(group.end <= end for gtid, end in passed.items() if domain_of(gtid) == domain)


def domain_of(gtid: str) -> str:
    """Return the domain of one of MariaDB's GTIDs."""
    return gtid.partition("-")[0]


@lru_cache(maxsize=2)
def _parsed(text: str) -> MysqlGtidSet:
    return MysqlGtidSet.parse(text)


class DomainSearch:
    """Takes the groups of a log from the beginning of a file on. ``before``: what that file says was logged before it."""

    def __init__(self, executed: GtidSet, before: GtidSet) -> None:
        last, passed = _last(executed), _last(before)
        self._sought = {domain: gtid for domain, gtid in last.items() if gtid != passed.get(domain)}
        self._logged = set(passed)
        self.ends: dict[str, int] = {}
        """Where the GTIDs end that were found."""
        self._holes: list[Gtid] = []
        """Those that the log does not have where they should be."""

    @property
    def is_over(self) -> bool:
        """Whether nothing is sought any more."""
        return not self._sought

    def lost(self, held: GtidSet) -> tuple[Gtid, ...]:
        """Return what the log does not show the place of, after the search. ``held``: what the server has executed.

        A domain that it has never logged is complete if the last transaction is the same.
        """
        last = _last(held)
        return (*self._holes, *(gtid for domain, gtid in self._sought.items() if domain in self._logged or last.get(domain) != gtid))

    def take(self, group: Group) -> None:
        """Take the next group."""
        if not group.gtid or group.kind is GroupKind.UNFINISHED:
            return
        domain = domain_of(group.gtid)
        sought = self._sought.get(domain)
        if sought is not None:
            self._compare(group, Gtid.parse(group.gtid), domain, sought)
        self._logged.add(domain)

    def _compare(self, group: Group, gtid: Gtid, domain: str, sought: Gtid) -> None:
        if gtid == sought:
            self.ends[str(sought)] = group.end
            del self._sought[domain]
        elif gtid.source == sought.source and gtid.number > sought.number:
            # A server that was made from a copy has logged nothing before that copy: its log may begin right behind.
            if domain in self._logged or gtid.number != sought.number + 1:
                self._holes.append(sought)
            del self._sought[domain]

    def is_executed(self, group: Group) -> bool:
        """Return whether a group is executed, after the search: its domain is not passed yet."""
        return is_passed(group, self.ends)


def _last(gtid_set: GtidSet) -> dict[str, Gtid]:
    if not isinstance(gtid_set, MariadbGtidSet):
        return {}
    return {domain: gtid for domain in gtid_set.domains if (gtid := gtid_set.last(domain)) is not None}
