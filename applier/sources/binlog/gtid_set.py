"""Sets of executed transactions in the notation of both servers. Pure.

MySQL's set is a union of intervals for each source (a server's UUID, with a tag since 8.3). MariaDB's is one GTID for each domain: that
and everything that its log has before it in the domain is executed. Numbers do not tell that order: a replica that writes for itself
gives 0-2-13 before 0-1-6 comes from its primary.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterator
from typing import NamedTuple, Protocol, Self
from uuid import UUID


class Gtid(NamedTuple):
    """One transaction. ``source`` is ``UUID`` or ``UUID:TAG`` of MySQL, or ``DOMAIN-SERVER`` of MariaDB."""

    source: str
    number: int

    @classmethod
    def parse(cls, text: str) -> "Gtid":
        """Read a GTID of either server; ValueError if it is none."""
        source, colon, number = text.strip().rpartition(":")
        if not colon:
            source, _, number = text.strip().rpartition("-")
            domain, _, server = source.partition("-")
            return cls(f"{int(domain)}-{int(server)}", _positive(number))
        return cls(_source_of(source), _positive(number))

    def __str__(self) -> str:
        """Spell it as its server does."""
        return f"{self.source}:{self.number}" if ":" in self.source or self.source.count("-") > 1 else f"{self.source}-{self.number}"


class GtidSet(Protocol):
    """The transactions that are executed."""

    def add(self, gtid: Gtid) -> None:
        """Count one more as executed."""
        ...

    def copy(self) -> Self:
        """Return a copy."""
        ...

    def missing_in(self, other: Self) -> str:
        """Return the members of this set that ``other`` lacks, as text; empty if it lacks none."""
        ...

    def precedes(self, other: Self) -> bool:
        """Whether a log that begins after this set holds everything that follows ``other``."""
        ...

    def __str__(self) -> str:
        """Spell the set as the server does: ``gtid:SET`` takes it again."""
        ...


class MysqlGtidSet:
    """``UUID:1-5:7,UUID:TAG:1-3``."""

    def __init__(self, intervals: dict[str, list[tuple[int, int]]] | None = None) -> None:
        self._intervals = intervals or {}

    @classmethod
    def parse(cls, text: str) -> "MysqlGtidSet":
        """Read the server's notation, with line breaks and tags; ValueError if it is none."""
        found = cls()
        for part in filter(None, (part.strip() for part in text.split(","))):
            uuid, *rest = part.split(":")
            source = _source_of(uuid)
            if not rest:
                message = f"{part!r} has no interval"
                raise ValueError(message)
            for piece in map(str.strip, rest):
                if piece[:1].isdecimal():
                    first, _, last = piece.partition("-")
                    found._unite(source, _positive(first), _positive(last or first))
                else:  # a tag: what follows belongs to it
                    source = _source_of(f"{uuid}:{piece}")
        return found

    def add(self, gtid: Gtid) -> None:
        """Count one more as executed."""
        intervals = self._intervals.get(gtid.source)
        if intervals and intervals[-1][1] + 1 == gtid.number:
            intervals[-1] = (intervals[-1][0], gtid.number)
            return
        self._unite(gtid.source, gtid.number, gtid.number)

    def _unite(self, source: str, first: int, last: int) -> None:
        if last < first:
            message = f"the interval {first}-{last} ends before it begins"
            raise ValueError(message)
        intervals = self._intervals.setdefault(source, [])
        # Touched ones become one with it: from the first that ends at first - 1 or later to the last that begins at last + 1.
        begin = bisect_left(intervals, first - 1, key=lambda interval: interval[1])
        end = bisect_right(intervals, last + 1, key=lambda interval: interval[0])
        if begin < end:
            first, last = min(first, intervals[begin][0]), max(last, intervals[end - 1][1])
        intervals[begin:end] = [(first, last)]

    def copy(self) -> "MysqlGtidSet":
        """Return a copy."""
        return MysqlGtidSet({source: list(intervals) for source, intervals in self._intervals.items()})

    def __contains__(self, gtid: object) -> bool:
        """Whether this transaction is executed."""
        return isinstance(gtid, Gtid) and self._holds(gtid.source, gtid.number, gtid.number)

    def _holds(self, source: str, first: int, last: int) -> bool:
        intervals = self._intervals.get(source, [])
        at = bisect_right(intervals, first, key=lambda interval: interval[0]) - 1
        return at >= 0 and last <= intervals[at][1]

    def missing_in(self, other: "MysqlGtidSet") -> str:
        """Return the members of this set that ``other`` lacks: the intervals that are not complete."""
        missing = MysqlGtidSet()
        for source, first, last in self._all():
            for gap_first, gap_last in other._gaps(source, first, last):  # noqa: SLF001 # the other is of this class
                missing._unite(source, gap_first, gap_last)
        return str(missing)

    def precedes(self, other: "MysqlGtidSet") -> bool:
        """Whether everything in this set is executed where ``other`` is."""
        return not self.missing_in(other)

    def _gaps(self, source: str, first: int, last: int) -> Iterator[tuple[int, int]]:
        for begin, end in self._intervals.get(source, []):
            if end < first:
                continue
            if begin > last:
                break
            if begin > first:
                yield first, begin - 1
            first = end + 1
        if first <= last:
            yield first, last

    def _all(self) -> Iterator[tuple[str, int, int]]:
        for source, intervals in self._intervals.items():
            for first, last in intervals:
                yield source, first, last

    def __str__(self) -> str:
        """Spell the set as the server does."""
        return ",".join(
            ":".join([source, *(f"{first}-{last}" if first < last else str(first) for first, last in intervals)])
            for source, intervals in sorted(self._intervals.items())
            if intervals
        )


class MariadbGtidSet:
    """``0-1-100,1-2-7``: the last GTID of each domain.

    Also reads a list with several servers of one domain, as a file begins with: the last one of a domain is the last that was logged.
    """

    def __init__(self, numbers: dict[str, dict[str, int]] | None = None) -> None:
        self._numbers = numbers or {}
        """For each domain, for each server, its last number; the last server has written the last transaction of all."""

    @classmethod
    def parse(cls, text: str) -> "MariadbGtidSet":
        """Read the server's notation; ValueError if it is none."""
        found = cls()
        for part in text.strip(" \n[]").split(","):
            if part.strip():
                found.add(Gtid.parse(part))
        return found

    def add(self, gtid: Gtid) -> None:
        """Count one more as executed: it is the last one of its domain now, whatever its number."""
        domain, _, server = gtid.source.partition("-")
        servers = self._numbers.setdefault(domain, {})
        servers.pop(server, None)
        servers[server] = gtid.number

    def copy(self) -> "MariadbGtidSet":
        """Return a copy."""
        return MariadbGtidSet({domain: dict(servers) for domain, servers in self._numbers.items()})

    @property
    def domains(self) -> Collection[str]:
        """The domains with executed transactions."""
        return self._numbers.keys()

    @property
    def ambiguous(self) -> str:
        """The first domain with GTIDs of several servers, whose last one the text alone does not tell; '' if there is none."""
        return next((domain for domain, servers in self._numbers.items() if len(servers) > 1), "")

    def last(self, domain: str) -> Gtid | None:
        """Return the last transaction of a domain; None: there is none."""
        servers = self._numbers.get(domain)
        if not servers:
            return None
        server, number = next(reversed(servers.items()))
        return Gtid(f"{domain}-{server}", number)

    def missing_in(self, other: "MariadbGtidSet") -> str:
        """Return the last GTIDs that ``other`` lacks: there must be one of the same domain and server, as great or greater."""
        return ",".join(str(gtid) for gtid in self._all_last() if other._number_of(gtid.source) < gtid.number)  # noqa: SLF001 # its class

    def precedes(self, other: "MariadbGtidSet") -> bool:
        """Whether a log that begins after this set holds what follows the last GTIDs of ``other``, by the rule of MariaDB's dumps.

        Each of those is the last one of its domain here, or comes later. A domain that ``other`` does not know begins later.
        """
        return all(self._is_before(domain, other.last(domain)) for domain in self._numbers)

    def _is_before(self, domain: str, wanted: Gtid | None) -> bool:
        if wanted is None:
            return False
        return wanted == self.last(domain) or self._number_of(wanted.source) < wanted.number

    def _number_of(self, source: str) -> int:
        domain, _, server = source.partition("-")
        return self._numbers.get(domain, {}).get(server, 0)

    def _all_last(self) -> Iterator[Gtid]:
        return (gtid for domain in sorted(self._numbers, key=int) if (gtid := self.last(domain)) is not None)

    def __str__(self) -> str:
        """Spell the last GTID of each domain, as ``gtid_slave_pos`` does."""
        return ",".join(map(str, self._all_last()))


def parse_gtid_set(text: str, *, is_mariadb: bool) -> MysqlGtidSet | MariadbGtidSet:
    """Read a set in the notation of one of the servers; ValueError if it is none."""
    return MariadbGtidSet.parse(text) if is_mariadb else MysqlGtidSet.parse(text)


def _source_of(text: str) -> str:
    uuid, colon, tag = text.strip().partition(":")
    return str(UUID(uuid.strip())) + colon + tag.strip().lower()


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        message = f"{text!r} is not the number of a transaction"
        raise ValueError(message)
    return number
