"""Texts of VECTOR columns are wrapped, wherever the column stands; everything else stays byte by byte as it is."""

import pytest

from applier.sinks.mysql.dump_loader import with_vectors

COLUMNS = ["id", "v", "note"]


@pytest.mark.parametrize(
    ("text", "wrapped"),
    [
        (" VALUES\n(1,'[1]','a,(''b'')'),\n(2,NULL,\"v\")", " VALUES\n(1,STRING_TO_VECTOR('[1]'),'a,(''b'')'),\n(2,NULL,\"v\")"),
        (" (`note`, `V`) VALUES ('x','[1,2]')", " (`note`, `V`) VALUES ('x',STRING_TO_VECTOR('[1,2]'))"),
        (" (id,note) VALUES (1,'x')", " (id,note) VALUES (1,'x')"),
        (" VALUES (1,f('x','y'),'z')", " VALUES (1,f('x','y'),'z')"),
    ],
)
def test_texts_of_vectors_are_wrapped(text, wrapped):
    assert with_vectors(text.encode(), COLUMNS, {"v"}) == wrapped.encode()
