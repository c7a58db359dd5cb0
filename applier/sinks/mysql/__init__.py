"""The sink of MySQL, MariaDB and TiDB.

Read ``sink`` first, then ``write_session``; ``ownership`` keeps other runs away, ``dialect`` renders statements, ``error_table``
is the table of error codes, ``ddl`` runs DDLs, ``structure`` describes tables.
"""
