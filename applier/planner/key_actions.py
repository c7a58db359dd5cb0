"""Which tables are written in order: those that foreign keys join, if an action of one of these keys changes rows without an event. Pure.

InnoDB executes the actions of foreign keys below the binlog. The server's own replica does the same: it changes row after row, in their
order, with ``foreign_key_checks = 1``. So does the sink, for these tables alone. It then checks all their foreign keys, those without an
action too, and a check holds only if both tables are at the same row of the log. So a group is closed over all foreign keys.
"""

from collections import defaultdict
from collections.abc import Iterable
from typing import Final, NamedTuple

from applier.model.events import FoldedName
from applier.planner.table_check import Acceptance, DifferenceKind

_ACTING: Final = frozenset({"CASCADE", "SET NULL", "SET DEFAULT"})


class KeyLink(NamedTuple):
    """A foreign key of ``child``, which references ``parent``."""

    name: str
    child: FoldedName
    parent: FoldedName
    on_delete: str
    on_update: str

    @property
    def acts(self) -> bool:
        """Whether a change of the parent may change the child."""
        return not _ACTING.isdisjoint({self.on_delete.upper(), self.on_update.upper()})

    def __str__(self) -> str:
        """Name the key and its actions."""
        return f"foreign key {self.name} of {self.child} (ON DELETE {self.on_delete}, ON UPDATE {self.on_update})"


class KeyGroups:
    """The foreign keys of a sink. Keys both of whose tables the operator accepts count as keys without an action."""

    def __init__(self, links: Iterable[KeyLink], accept: Acceptance) -> None:
        self.links = tuple(links)
        self._neighbours: defaultdict[FoldedName, list[KeyLink]] = defaultdict(list)
        for link in self.links:
            for table in {link.child, link.parent}:
                self._neighbours[table].append(link)
        self._acting = {link for link in self.links if link.acts and not _accepts(accept, link)}
        self._groups: dict[FoldedName, frozenset[FoldedName]] = {}
        for link in self._acting:
            if link.child not in self._groups:
                group = self._joined(link.child)
                self._groups |= dict.fromkeys(group, group)

    def _joined(self, table: FoldedName) -> frozenset[FoldedName]:
        found, left = {table}, [table]
        while left:
            for link in self._neighbours[left.pop()]:
                new = {link.child, link.parent} - found
                found |= new
                left += new
        return frozenset(found)

    def group(self, table: FoldedName) -> frozenset[FoldedName]:
        """Return the tables that are written in order with this one; none if it is in no such group."""
        return self._groups.get(table, frozenset())

    def acting(self, group: frozenset[FoldedName]) -> list[KeyLink]:
        """Return the keys of a group that act, in a fixed order."""
        return sorted(link for link in self._acting if link.child in group)

    def links_of(self, tables: Iterable[FoldedName]) -> list[KeyLink]:
        """Return the keys of these tables, and those that reference them."""
        return [link for table in tables for link in self._neighbours.get(table, ())]


def _accepts(accept: Acceptance, link: KeyLink) -> bool:
    return all(accept.accepts(table, DifferenceKind.FOREIGN_KEY) for table in (link.child, link.parent))
