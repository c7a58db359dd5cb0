"""Named points at which a test kills the process: ``APPLIER_FAILPOINT=name`` or ``name:3`` (the third time); ``name:3:stop`` freezes it.

Faults are injected, not imagined; without the variable, reaching a point costs one dictionary lookup.
"""

import os
import signal
from collections import Counter

VARIABLE = "APPLIER_FAILPOINT"
STOP = "stop"
_reached: Counter[str] = Counter()


def reach(point: str) -> None:
    """Kill this process (SIGKILL), or stop it (SIGSTOP), if the environment names ``point``."""
    wanted = os.environ.get(VARIABLE)
    if wanted is None:
        return
    name, _, rest = wanted.partition(":")
    if name == point:
        count, _, how = rest.partition(":")
        _reached[point] += 1
        if _reached[point] == int(count or 1):
            os.kill(os.getpid(), signal.SIGSTOP if how == STOP else signal.SIGKILL)
