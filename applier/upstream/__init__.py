"""Reads rows from upstream: rows that were too large for Kafka, for which the topic holds the handle key only.

May import sinks (sessions, names and literals of the MySQL family) and sources. Read ``row_lookup`` first.
"""
