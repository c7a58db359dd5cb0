"""What can be asked about a replica: ``applier status`` asks the sink, Kafka and the run; the run itself answers over HTTP.

May import ``telemetry`` and everything below it; not the configuration. Read ``replica_status`` first (what is known), then ``query``
(whom it asks), then ``server`` (what the run answers).
"""
