"""Writes the texts of VECTOR columns as MySQL takes them: it converts no text to a vector (6136), and a dump of TiDB has texts. Pure."""

import re
from collections.abc import Collection, Iterator, Sequence
from typing import Final

_TOKEN: Final = re.compile(rb"'(?:[^'\\]++|\\.)*+'|\"(?:[^\"\\]++|\\.)*+\"|`(?:[^`]|``)*+`|[(),]|[^'\"`(),]++|.", re.DOTALL)
_VALUES: Final = re.compile(rb"\s*VALUES?\s*", re.IGNORECASE)
_QUOTES: Final = (b"'", b'"')


def with_vectors(text: bytes, columns: Sequence[str], vectors: Collection[str]) -> bytes:
    """Return the part of an INSERT behind the table's name with ``STRING_TO_VECTOR`` around each text of ``vectors``.

    ``columns``: the table's, for an INSERT that lists none; all names casefolded.
    """
    return b"".join(_rewritten(text, columns, vectors))


def _rewritten(text: bytes, columns: Sequence[str], vectors: Collection[str]) -> Iterator[bytes]:
    tokens = (match.group() for match in _TOKEN.finditer(text))
    listed = list[str]()
    for token in tokens:
        yield token
        if _VALUES.fullmatch(token):
            break
        if name := token.strip(b"` \n\t(),"):
            listed.append(name.decode(errors="surrogateescape").replace("``", "`").casefold())
    places = {at for at, name in enumerate(listed or columns) if name in vectors}
    depth = at = 0
    for token in tokens:
        depth += (token == b"(") - (token == b")")
        if depth == 1 and token in {b"(", b","}:
            at = 0 if token == b"(" else at + 1
        is_text = depth == 1 and at in places and token.startswith(_QUOTES)
        yield b"STRING_TO_VECTOR(" + token + b")" if is_text else token
