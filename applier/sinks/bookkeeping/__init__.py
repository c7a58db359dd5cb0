"""What the sink keeps about its replica: progress, ledger, quarantine, owner; and the migrations that make their tables.

Read ``bookkeeping`` first; the statements are in ``sql/queries.sql``.
"""
