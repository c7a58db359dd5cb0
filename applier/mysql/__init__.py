"""The client of the MySQL family (MySQL, MariaDB, TiDB): for a sink, for upstream, and for the server of a binlog.

Address, TLS, sessions, errors, names, literals, privileges and the catalogue. It knows no sink and no source.
"""
