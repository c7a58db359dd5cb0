"""Names members of records that no reader knows: a newer producer may mean something by them. The formats themselves log nothing."""

import logging
from collections.abc import Iterable
from typing import Final

LOGGER: Final = logging.getLogger("applier")
MAX_NOTED: Final = 64
"""Members that a process names at most: a record may have any number of them."""
MAX_NAME: Final = 60

_noted: Final[set[tuple[str, str]]] = set()


def note_unknown(protocol: str, members: Iterable[str]) -> None:
    """Log members that are ignored, each once in a process."""
    for member in members:
        if len(_noted) < MAX_NOTED and (protocol, member) not in _noted:
            _noted.add((protocol, member))
            LOGGER.warning("unknown_member", extra={"protocol": protocol, "member": member[:MAX_NAME]})
