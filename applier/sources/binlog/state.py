"""What is stored beside a replica's progress, so that its place is found again: on this server, or on another one after a failover."""

from typing import Final

import msgspec

from applier.model.errors import NeedsOperator
from applier.model.remedy import Remedy
from applier.sources.binlog.gtid_set import Gtid, GtidSet, parse_gtid_set
from applier.sources.binlog.journal import Beginning, EndedGroup

VERSION: Final = 2
"""The version of the state that this program writes. It reads this version and older ones.

Version 1 had MariaDB's greatest number of each domain in place of the last one that was logged, and no ``passed``.
"""


class SourceState(msgspec.Struct, frozen=True, kw_only=True):
    """The place of a replica in a binlog. ``server``: MySQL's server_uuid, or MariaDB's server_id."""

    version: int = VERSION
    is_mariadb: bool
    server: str
    generation: int
    base_name: str
    place: int
    """All groups that end at or before it are applied."""
    gtid_set: str
    has_gaps: bool = False
    """Whether transactions of the set may lie behind the place."""
    passed: dict[str, int] = {}
    """Of MariaDB, for each domain that is ahead of the place: its last executed GTID and where that ends in this log."""
    last: EndedGroup | None = None
    """Read first when the replica resumes, to see that the log is still the same."""
    created_s: int = 0
    """When the server began the file of the place: a log that was reset has another file under its name. 0: not known."""
    prepared: dict[str, int] = {}
    """Where each XA transaction was prepared that is open at the place."""
    kept: list[str] = []
    """Those of them that the sink keeps: their files are not needed any more."""

    @classmethod
    def parse(cls, text: str) -> "SourceState":
        """Read what ``text`` has given. NeedsOperator if it is not that."""
        try:
            state = _DECODER.decode(text)
        except msgspec.DecodeError as error:
            raise _unreadable(str(error)) from error
        if state.version > VERSION:
            raise _unreadable(f"version {state.version}")
        return state

    def text(self) -> str:
        """Spell it as JSON."""
        return msgspec.json.encode(self).decode()

    @property
    def executed(self) -> GtidSet:
        """The transactions that are applied."""
        executed = parse_gtid_set(self.gtid_set, is_mariadb=self.is_mariadb)
        if self.is_mariadb and self.version < VERSION and not self.has_gaps and self.last is not None and self.last.gtid:
            executed.add(Gtid.parse(self.last.gtid))
        return executed

    @property
    def kept_places(self) -> dict[str, int]:
        """Where the transactions were prepared that the sink keeps: in the log of an earlier generation too."""
        return {xid: self.prepared[xid] for xid in self.kept if xid in self.prepared}

    def beginning(self) -> Beginning:
        """Return where the scan goes on."""
        return Beginning(place=self.place, executed=self.executed, prepared=dict(self.prepared), last=self.last, created_s=self.created_s)


_DECODER: Final = msgspec.json.Decoder(SourceState)


def _unreadable(cause: str) -> NeedsOperator:
    return NeedsOperator(
        "the stored state of the source cannot be read",
        remedy=Remedy(
            "binlog.use-newer-applier",
            "A newer version of applier may have written it: use that one, or create the replica again (`applier docs start_over`)",
        ),
        cause=cause,
    )
