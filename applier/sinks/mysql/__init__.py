"""The sink of MySQL, MariaDB and TiDB.

Read ``sink`` first, then ``write_session``; ``ownership`` keeps other runs away, ``dialect`` renders statements, ``errors`` has the
table of error codes, ``ddl`` runs DDLs, ``structure`` describes tables.
"""
