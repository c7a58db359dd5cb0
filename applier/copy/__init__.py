"""The initial copy of upstream into a sink, as far as it is pure: which chunks there are, and what follows from their views.

Theory. A *view* is what one transaction of upstream sees. Every chunk is read in a view of its own, which is opened after the *start* P0
was taken: all transactions at or before P0 are in it. The *end* P1 is a position at or behind everything that any of the views has seen.
First all chunks are written, then the changes behind P0 are replayed in the order of the log, as whole final images (REPLACE) and deletes.
The replica is consistent, from then on, when the checkpoint has passed P1:

1. A key that no transaction of (P0, P1] touches has one value in all views, and exactly one chunk has read it.
2. A key that is touched is settled by its last change in (P0, P1], whatever the chunks had. A row that moved between two chunks may have
   been read twice or never; both of its keys are touched.
3. Two rows hold one value of a secondary unique key, in two views, only if one of them got it or gave it up in (P0, P1]; that row is
   written again where it did so. So REPLACE may remove the other one, while chunks are loaded and while changes are replayed.

A table without a key has no final images: replay counts its rows. It is read whole in the view at P0, which must be exact.

The definitions are read before P0 is taken, and again in each chunk's transaction, behind its rows. If they are equal, no DDL lies between
that the chunk has seen; the DDLs behind P0 are replayed in the order of the log. If not, the chunk is not committed.
"""
