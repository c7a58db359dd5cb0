"""Runs upstream's DDLs exactly once on servers whose DDL commits implicitly (DESIGN.md section 9).

The way of a DDL:

1. **Intent**: one transaction writes the statement, a snapshot of its tables, and the checkpoint at its ts.
2. **Run**: the statement goes to the server, on the session that holds the replica's lock. A run that lost the replica has lost this
   session, so it cannot send the statement any more.
3. **Done**: a second transaction ends the intent and moves the progress.

The server's answer decides what follows the statement:

- Success: done. If its warnings say that it has found what it makes (IF NOT EXISTS), it stops as after a refusal.
- A definite refusal: the statement has not run, whatever happens to its tables later. The refusal is written into the intent, and the
  replica stops. Nothing is compared then.
- "Already so" (the table exists, …): done if it is about the existence of a schema, or everything that a DROP names is gone. Anything else
  is a refusal: only the operator knows whether a table and its rows are upstream's (``applier ddl done|retry``).
- No answer (a crash, a lost connection): the tables are compared with the intent's snapshot (``comparison``). The statement ran, did not
  run, or that cannot be decided: then the operator decides (``applier ddl done|retry``).

A new non-unique index may be built in the background, on a session of its own (``BackgroundDdls``). The intent then has the state
``background`` and has passed the progress already; the end of the build, or the next DDL of the table, makes it done.

Comparisons are between structures, not texts. The server itself makes what is compared, as a scratch table (``Scratch``).

Only ``sinks/mysql/sink.py`` imports this package. It may import everything else in ``sinks/mysql`` but the sink and the writer.
Read ``runner`` first, then ``comparison``.
"""
