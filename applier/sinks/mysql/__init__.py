"""The sink of MySQL, MariaDB and TiDB; the client of these servers is ``applier.mysql``.

Read ``sink`` first, then ``write_session``; ``ownership`` keeps other runs away, ``dialect`` renders statements, ``ddl`` runs DDLs.
"""
