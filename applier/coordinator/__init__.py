"""Reports in, steps out: when rows and DDLs may be applied. No I/O, no clock, no Spark, no threads."""

from applier.coordinator.coordinator import Coordinator
from applier.coordinator.policy import Policy
from applier.coordinator.stream_state import StreamStatus

__all__ = ["Coordinator", "Policy", "StreamStatus"]
