"""Edits of a statement's text: everything outside of them stays byte by byte as it is."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import Enum
from typing import Final, NamedTuple

from applier.ddl.tokens import DdlSyntaxError, Token, scan
from applier.ddl.tree import Span


class Edit(NamedTuple):
    """The text from ``start`` to ``end`` becomes ``text``."""

    start: int
    end: int
    text: str


class Action(Enum):
    """What happens to marked tokens."""

    DROP = "drop"
    TIDB = "tidb"
    """They move into a comment that only TiDB executes."""
    REPLACE = "replace"


class Mark(NamedTuple):
    """The tokens from ``first`` to ``last`` (indexes), and what happens to them."""

    first: int
    last: int
    action: Action
    text: str = ""


def edited(text: str, edits: Iterable[Edit]) -> str:
    """Return the text with all edits made; they must not overlap."""
    pieces, at = list[str](), 0
    # Lists inside of clauses yield their edits apart from those of the clauses.
    for start, end, new in sorted(edits):
        pieces += [text[at:start], new]
        at = end
    return "".join([*pieces, text[at:]])


def quoted_name(name: str) -> str:
    """Write a name as MySQL quotes it."""
    return "`" + name.replace("`", "``") + "`"


def list_edits(text: str, tokens: Sequence[Token], items: Sequence[Span], marks: Iterable[Mark]) -> Iterator[Edit]:
    """Edit a list with commas between its items. An item that goes as a whole takes one comma with it, so that the list stays one."""
    fates = list(_with_marks(items, marks))
    # Commas: an item that goes takes the one before it, and the first items take the next one, until one has stayed.
    last_that_stays = max((index for index, item in enumerate(fates) if item.whole is not Action.DROP), default=-1)
    is_first = True
    for index, item in enumerate(fates):
        if item.whole is None:
            is_first = False
            yield from (_mark_edit(text, tokens, mark) for mark in item.marks)
            continue
        is_followed = index < last_that_stays
        commas = (", ", "") if not is_first else ("", " ," if is_followed else "")
        yield from _whole_edits(text, tokens, item, commas)
        comma = item.span[0] - 1 if not is_first else item.span[1] + 1
        # The only item of a list has no comma to take.
        if not is_first or index + 1 < len(fates):
            yield Edit(tokens[comma].start, tokens[comma].end, "")


class _Item(NamedTuple):
    """``whole``: what happens to all of its tokens: DROP or TIDB; None if some of them stay."""

    span: Span
    marks: list[Mark]
    whole: Action | None


def _with_marks(items: Sequence[Span], marks: Iterable[Mark]) -> Iterator[_Item]:
    waiting = sorted(marks, key=lambda mark: mark.first, reverse=True)
    for span in items:
        own = list[Mark]()
        while waiting and waiting[-1].first <= span[1]:
            own.append(waiting.pop())
        yield _Item(span, own, _whole(span, own))


def _whole(span: Span, marks: Sequence[Mark]) -> Action | None:
    at = span[0]
    for mark in marks:
        if mark.first != at or mark.action is Action.REPLACE:
            return None
        at = mark.last + 1
    if at <= span[1]:
        return None
    return Action.TIDB if any(mark.action is Action.TIDB for mark in marks) else Action.DROP


def _whole_edits(text: str, tokens: Sequence[Token], item: _Item, commas: tuple[str, str]) -> Iterator[Edit]:
    """Edit an item of which nothing stays; the first and the last that TiDB gets carry the comma that TiDB must see."""
    kept = [mark for mark in item.marks if mark.action is Action.TIDB]
    for mark in item.marks:
        before = commas[0] if kept and mark is kept[0] else ""
        after = commas[1] if kept and mark is kept[-1] else ""
        yield _mark_edit(text, tokens, mark, before, after)


def _mark_edit(text: str, tokens: Sequence[Token], mark: Mark, before: str = "", after: str = "") -> Edit:
    start, end = tokens[mark.first].start, tokens[mark.last].end
    match mark.action:
        case Action.REPLACE:
            return Edit(start, end, mark.text)
        case Action.TIDB:
            # Token by token: a comment inside would end the one around it.
            inside = "".join(_spaced(text, tokens, at, is_first=at == mark.first) for at in range(mark.first, mark.last + 1))
            return Edit(start, end, f"{TIDB_ONLY[0]}{before}{inside}{after}{TIDB_ONLY[1]}")
        case Action.DROP:
            return Edit(start - 1 if text[start - 1 : start] in {" ", "\n", "\t"} else start, end, "")


def _spaced(text: str, tokens: Sequence[Token], at: int, *, is_first: bool) -> str:
    """Return a token with a blank before it, but none inside of a number: 0.5 is three tokens."""
    is_inside = tokens[at].start == tokens[at - 1].end and "." in {tokens[at].kind, tokens[at - 1].kind}
    return ("" if is_first or is_inside else " ") + text[tokens[at].start : tokens[at].end]


TIDB_ONLY: Final = ("/*T! ", " */")


def with_new_names(expression: str, names: Mapping[str, str]) -> str:
    """Return an expression with its columns renamed. ``names``: casefolded old name -> new name. A function keeps its name."""
    try:
        tokens = scan(expression)
    except DdlSyntaxError:
        return expression
    edits = []
    for token, after in zip(tokens, [*tokens[1:], None], strict=True):
        new = names.get(token.text.casefold()) if token.is_name else None
        is_call = token.kind == "word" and after is not None and after.kind == "("
        if new is not None and new != token.text and not is_call:
            edits.append(Edit(token.start, token.end, "`" + new.replace("`", "``") + "`"))
    return edited(expression, edits)
