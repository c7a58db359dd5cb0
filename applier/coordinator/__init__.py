"""Reports in, steps out: when rows and DDLs may be applied. No I/O, no clock, no Spark, no threads.

Imports model and ddl. Read ``coordinator`` first: it opens with the theory of operation and names the module of each part.
"""

from applier.coordinator.coordinator import Coordinator
from applier.coordinator.policy import Policy
from applier.coordinator.stream_state import StreamStatus

__all__ = ["Coordinator", "Policy", "StreamStatus"]
