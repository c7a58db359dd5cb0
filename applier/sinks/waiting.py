"""Says for whom a run waits before it is the replica's owner."""

import logging
from typing import Final

from applier.model.errors import Fenced

_log: Final = logging.getLogger(__name__)


def tell_wait(refusal: Fenced) -> None:
    """Log whose end is waited for: ``refusal`` is the error with which the wait will end if that does not come."""
    # "process" is an attribute that every log record has.
    facts = {"owner_process" if name == "process" else name: value for name, value in refusal.facts.items()}
    _log.warning("waiting_for_replica_lock", extra=facts)
