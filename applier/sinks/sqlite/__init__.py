"""The sink in one SQLite file: the embedded default, for demo, tests and small replicas.

Read ``sink`` first, then ``writer``; ``ownership`` keeps other runs away, ``dialect`` renders statements, ``schema_change``
translates and runs DDLs, ``catalogue`` reads back what the tables are.
"""
