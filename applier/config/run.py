"""``[run]``: the limits of one run."""

from typing import Annotated

from pydantic import BeforeValidator

from applier.config.section import Seconds, Section, WaitSeconds
from applier.config.value import parse_size


class RunConfig(Section):
    """Memory, lease and timeouts of one run."""

    memory: Annotated[int, BeforeValidator(parse_size)] = 2 * 1024**3
    """Rows that are read ahead of the watermark: above it, streams that are ahead wait. They are in files of Spark."""
    # A heartbeat is due three times per lease, so a single late one makes no run frozen.
    lease_s: Seconds = 15.0
    lock_timeout_s: WaitSeconds = 30.0
    shutdown_timeout_s: Seconds = 30.0
    retry_for_s: WaitSeconds = 600.0
    """How long a daemon retries a transient failure; then it stops."""
