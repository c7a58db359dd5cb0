"""What a table of the sink is made of, in one form for every server and version.

DDLs are compared as structures (``sinks/mysql/ddl``), and the table check reads them (``examination``). It may import ``applier.ddl``, and
everything in ``sinks/mysql`` but ``ddl``, the sink and the writer. Read ``model`` first, then ``reader``.
"""
