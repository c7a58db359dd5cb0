"""The sink of MySQL, MariaDB and TiDB. Read ``sink`` first, then ``writer`` and ``ddl``."""
