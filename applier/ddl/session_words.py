"""Removes the words of a statement that are about how it ran upstream: waits for locks, ONLINE, the account of a view. Pure."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final

from applier.ddl.tokens import Cursor, Token
from applier.ddl.tree import Edit, edited

_VIEW_HEADS: Final = frozenset({"VIEW", "ALGORITHM", "DEFINER", "SQL"})
_LOCK_HEADS: Final = frozenset({"ALTER", "DROP", "RENAME", "TRUNCATE", "CREATE"})


def without_session_words(text: str) -> str:
    """Return the statement without words that are about how it ran, so that it can be parsed; ALTER VIEW becomes CREATE OR REPLACE VIEW.

    How long it waited for locks (``WAIT n``), ``ONLINE``, that its rows follow (``START TRANSACTION``, MySQL's CREATE TABLE … SELECT), and
    the account of upstream that a view belongs to, which the sink need not have: there it is the applier's. DdlSyntaxError.
    """
    tokens = Cursor(text).tokens
    return edited(text, [*_prefix(text, tokens), *_definer(tokens), *_waits(tokens)])


def _prefix(text: str, tokens: Sequence[Token]) -> Iterator[Edit]:
    words = [token.keyword for token in tokens]
    if words[:2] == ["ALTER", "ONLINE"]:
        yield Edit(tokens[1].start, tokens[1].end, "")
    elif words[:1] == ["ALTER"] and set(words[1:2]) & _VIEW_HEADS:
        yield Edit(tokens[0].start, tokens[0].end, "CREATE OR REPLACE")
    elif words[:2] == ["CREATE", "TABLE"] and "TRANSACTION" in words:
        yield from (
            Edit(text.rindex(" ", 0, one.start + 1), other.end, "")
            for one, other in pairwise(tokens)
            if (one.keyword, other.keyword) == ("START", "TRANSACTION")
        )


def _definer(tokens: Sequence[Token]) -> Iterator[Edit]:
    words = [token.keyword for token in tokens]
    head = words[: words.index("VIEW")] if words[:1] in (["CREATE"], ["ALTER"]) and "VIEW" in words else []
    for at, (word, sign) in enumerate(zip(head, [token.text for token in tokens[1:]], strict=False)):
        if word == "DEFINER" and sign == "=":
            end = next((place for place in range(at, len(head)) if head[place] == "SQL"), len(head))
            yield Edit(tokens[at].start, tokens[end].start, "")


def _waits(tokens: Sequence[Token]) -> Iterator[Edit]:
    if not tokens or tokens[0].keyword not in _LOCK_HEADS:
        return
    depth = 0
    for at, token in enumerate(tokens[:-1]):
        depth += (token.kind == "(") - (token.kind == ")")
        if depth == 0 and token.keyword == "WAIT" and tokens[at + 1].text.isdecimal() and tokens[at - 1].kind not in {",", "."}:
            yield Edit(token.start, tokens[at + 1].end, "")
    if tokens[-1].keyword == "NOWAIT":
        yield Edit(tokens[-1].start, tokens[-1].end, "")
