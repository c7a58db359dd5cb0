"""The sink of MySQL, MariaDB and TiDB. Read ``sink`` first, then ``writer``; ``ddl`` runs DDLs, ``structure`` describes tables."""
