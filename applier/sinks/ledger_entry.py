"""An entry of the ledger: one DDL that began, is done or was skipped."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple

from applier.model.events import DdlEvent, DdlIdentity


class DdlState(StrEnum):
    """State of a DDL in the ledger."""

    INTENT = "intent"
    BACKGROUND = "background"
    """It runs in the background; other steps do not wait for it."""
    DONE = "done"
    SKIPPED = "skipped"

    @property
    def is_open(self) -> bool:
        """Whether the DDL has begun and has not ended."""
        return self in {DdlState.INTENT, DdlState.BACKGROUND}


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerEntry:
    """One DDL of the ledger."""

    identity: DdlIdentity
    ddl: DdlEvent
    state: DdlState
    before: str
    """JSON of the touched tables as they were before the DDL ran."""
    began_at: datetime
    ended_at: datetime | None = None
    error: str = ""


class LedgerKey(NamedTuple):
    """The identity and the state of a DDL in the ledger, without its texts."""

    identity: DdlIdentity
    state: DdlState
