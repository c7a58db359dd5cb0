"""Compares the sink with upstream, row by row where needed, without changing either.

Both databases compute checksums of the same ranges of keys; only ranges that differ are examined further. Read ``comparison.py``
first. Nothing here shows a value of a row, except in the file of statements that an operator asks for.
"""
