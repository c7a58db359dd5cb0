"""The binlog of a MySQL or MariaDB server as a source: read like a replica, without a history of schemas.

Theory. The server is asked for row events with full metadata, so that each table map names its columns, keys and character sets. One
stream holds everything. An offset is the position where a group of events begins, the commit_ts of its rows the position where it ends
(``position``), so both grow with the log. The driver walks ahead of the reading and learns only where groups end; executors read exact
ranges between such positions, in parallel, and decode them.
"""
