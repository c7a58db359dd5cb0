"""The vocabulary that all packages share: positions, events, ranges and their reports, errors, and the rules of time.

Imports nothing of the applier, and does not depend on any source or database. Read ``segment`` first: it alone decides ``<`` against ``<=``
of timestamps. Then ``events`` (what arrives) and ``range_report`` (what a listener says of it).

**A table** has several descriptions, which differ in where they come from and in what they answer:

- ``events.Shape``: what rows say of their table on the wire. ``range_report.TableRows``: the rows of one range.
- ``ddl``'s ``TableDefinition``: what a CREATE TABLE says. ``TableDraft``: the same, while an ALTER changes it.
- ``planner``'s ``TableDescription``: the sink's columns and keys, as rows are written by. ``SinkTable``: what else the sink's table has
  (triggers, foreign keys, collations), as the table check compares it. ``UpstreamKeys``: the keys of upstream's table for that comparison.
- ``mysql``'s ``TableStructure``: everything that a server's catalogue shows, to tell two tables apart after a DDL.
- ``sinks``' ``SideTable``: a ``TableDescription`` with the types of its columns, for ``verify``. ``TablePair``: upstream's and the sink's.
- ``upstream``'s ``UpstreamTable``: a ``TableDescription`` with the way to read each column at a snapshot.
"""
