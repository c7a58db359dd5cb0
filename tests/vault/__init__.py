"""A made-up database, as a complete folder: it proves that a database is nothing but its kit.

A "vault" is two files of SQLite, but it looks like no other sink: URLs ``vault:///…``, its own words in the bookkeeping, which lies in a
schema of its own (standard upserts, another clock, other locks), rows written by INSERT … ON CONFLICT, tables without types, its own
errors.
"""

from applier.sinks.registry import SinkEntry

ENTRY = SinkEntry("tests.vault", {"vault": "vault:///replica.vault"})
