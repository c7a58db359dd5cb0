"""What a sink held before its replica began, as the bookkeeping knows it: ``applier load`` writes it, runs read it."""

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from applier.model.position import Ts

DECLARED: Final = "declared"
"""The loader of a dump that the operator has loaded with other programs, and says so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedDump:
    """A dump of upstream at ``start_ts``. ``ended_at`` is None while it is being loaded, and after a load that failed.

    ``directory`` of a declared one may be a text of ``source.start``.
    """

    start_ts: Ts
    directory: str
    loader: str
    loaded_by: str
    began_at: datetime | None = None
    ended_at: datetime | None = None

    @property
    def is_whole(self) -> bool:
        """Whether the load has ended well."""
        return self.ended_at is not None

    @property
    def is_declared(self) -> bool:
        """Whether other programs have loaded it."""
        return self.loader == DECLARED

    @property
    def declared_as(self) -> str:
        """What the settings said when it was declared; '' for a dump that was loaded."""
        return self.directory if self.is_declared else ""
