"""A producer: writes a history as records that tiflow or ticdc may legally write (open_protocol.md section 3).

Everything here is a choice that a real changefeed can make: which table goes ahead, which partition gets a resolved ts late or not at
all, when an owner dies and the next one starts from a persisted checkpoint, when partitions are added. Same seed, same bytes.

Read ``run`` first: its loop draws what happens next. ``ProducerState`` is what the actions share.
"""

from applier.demo.simulator.producer.options import LogRecord, ProducerOptions
from applier.demo.simulator.producer.run import Producer

__all__ = ["LogRecord", "Producer", "ProducerOptions"]
