"""What the sink stores about its replica: progress, streams, ledger, quarantine, owner; and the migrations that create their tables.

Read ``progress_table`` first (the fence), then ``epochs``. ``bookkeeping`` names the replica's rows; the other modules have the methods of
its tables; the statements are in ``sql/queries.sql``. Does not import any dialect: it works on any SQLAlchemy connection.
"""
