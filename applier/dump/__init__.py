"""Dumps of upstream: which timestamp they have, what they consist of, and how they are loaded into the sink. Read ``into_sink`` first."""
