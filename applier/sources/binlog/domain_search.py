"""Finds the last executed transaction of each domain in MariaDB's log, by its exact GTID. Does no I/O.

A domain's numbers do not say what comes before what: a replica that writes by itself (``ANALYZE TABLE`` does) logs 0-2-13, and 0-1-6 of
its primary behind it. So the log itself is read, as MariaDB does for its own replicas: what a domain has up to that GTID is executed, and
everything behind it is not. A greater number of the same server before it shows that it is missing, or that numbers have gone back: then
nothing is certain.
"""

from applier.sources.binlog.group import Group, GroupKind
from applier.sources.binlog.gtid_set import Gtid, GtidSet, MariadbGtidSet
from applier.sources.binlog.skipped_groups import domain_of


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
        domain = domain_of(group.gtid)
        return any(group.end <= end for gtid, end in self.ends.items() if domain_of(gtid) == domain)


def _last(gtid_set: GtidSet) -> dict[str, Gtid]:
    if not isinstance(gtid_set, MariadbGtidSet):
        return {}
    return {domain: gtid for domain in gtid_set.domains if (gtid := gtid_set.last(domain)) is not None}
