"""A third format, small and made up: what a folder of a format must have, and that nothing else has to know of it.

A record holds events as lines of text, its key is null. Fields are separated by blanks and percent-encoded::

    put 20 shop orders id:3:11=1 n:3:65=5      a row, after its change: name:type:flags=value, ~ for NULL
    del 21 shop orders id:3:11=1               a row, before it is deleted
    upd 22 shop seats a:3:?=1 | a:3:?=2        a row, before and after its change
    ddl 10 shop orders 3 CREATE%20TABLE%20t    a DDL: its type, its text
    resolved 30                                no row or DDL with a smaller timestamp follows in this partition

A ``?`` in place of the flags says that the format does not tell the table's key. Each change of such a row has the row before it.
"""
