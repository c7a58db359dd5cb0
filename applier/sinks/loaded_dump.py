"""What a sink held before its replica began, as the bookkeeping records it: ``applier load`` writes it, runs read it."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Final

from applier.model.position import Ts

DECLARED: Final = "declared"
"""The loader of a dump that the operator declares to have loaded with other programs."""

EMPTY: Final = "empty"
"""The loader of an upstream that had no table at the position: there was nothing to load."""


COPIED: Final = "copy"
"""The loader of an initial copy: the applier itself has read upstream."""


class InitialState(StrEnum):
    """What a sink held when its replica began."""

    LOADED = "loaded"
    """A dump that ``applier load`` has loaded."""
    DECLARED = DECLARED
    """What other programs have loaded, as the operator says."""
    EMPTY = EMPTY
    """Nothing: upstream had no table."""
    LOADING = "loading"
    """A part of a dump: its load runs, or has failed."""
    COPIED = "copied"
    """What the initial copy has read."""
    COPYING = "copying"
    """A part of that: the copy runs, or waits for its next run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedDump:
    """A dump of upstream at ``start_ts``. ``ended_at`` is None while it is being loaded, and after a load that failed.

    ``directory`` of a declared one, and of a copy, may be a text of ``source.start``.
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
        """Whether the operator has recorded it, and ``applier load`` has loaded nothing."""
        return self.loader in {DECLARED, EMPTY}

    @property
    def is_copy(self) -> bool:
        """Whether it is no dump: the initial copy has read upstream."""
        return self.loader == COPIED

    @property
    def is_empty(self) -> bool:
        """Whether upstream had no table at the position."""
        return self.loader == EMPTY

    @property
    def kind(self) -> InitialState:
        """Who has recorded what the sink held."""
        if self.is_copy:
            return InitialState.COPIED if self.is_whole else InitialState.COPYING
        if not self.is_whole:
            return InitialState.LOADING
        return InitialState(self.loader) if self.is_declared else InitialState.LOADED

    @property
    def declared_as(self) -> str:
        """What names its position more exactly than ``start_ts``: of a declared one and of a copy; '' for a dump that was loaded."""
        return self.directory if self.is_declared or self.is_copy else ""
