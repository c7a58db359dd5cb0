"""The client of the MySQL family (MySQL, MariaDB, TiDB): for a sink, for upstream, and for the server of a binlog.

Address, TLS, sessions, errors, names, literals, privileges and the catalogue. It does not depend on a sink or a source.
"""
