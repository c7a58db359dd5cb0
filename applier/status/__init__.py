"""What can be asked about a replica: by the query of ``applier status``, and over HTTP from the run itself.

May import ``telemetry`` and everything below it; not the configuration. Read ``replica_status`` first.
"""
