"""A third format, small and made up: what a folder of a format must have, and that nothing else has to know of it.

A record holds events as lines of text, its key is null. Fields are separated by blanks and percent-encoded::

    put 20 shop orders id:3:11=1 n:3:65=5      a row, after its change: name:type:flags=value, ~ for NULL
    del 21 shop orders id:3:11=1               a row, before it is deleted
    ddl 10 shop orders 3 CREATE%20TABLE%20t    a DDL: its type, its text
    resolved 30                                no row or DDL with a smaller timestamp follows in this partition
"""
