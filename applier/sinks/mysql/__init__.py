"""The sink of MySQL, MariaDB and TiDB; the client of these servers is ``applier.mysql``.

Read ``sink`` first, then ``writer``; ``ownership`` keeps other runs away, ``dialect`` renders statements, ``ddl`` runs DDLs.
"""
