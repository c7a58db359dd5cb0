"""Finds the clauses of ``clause.py`` in the tokens of a statement: where each begins and ends, and what happens to it. Pure.

Words count as clauses only where one may stand: names, strings, comments, types and expressions are stepped over. It goes by places, and
not with a cursor: what it yields are places to edit, and a clause that is none after all must cost nothing.
"""

from collections.abc import Collection, Iterator, Sequence
from typing import Final

from applier.ddl.clause import CLAUSES, Clause, ClausePlace, Decision, Extent
from applier.ddl.edit import Action, Mark
from applier.ddl.tokens import Token
from applier.ddl.tree import Span

# BTREE is not among them: it stays, because it is what every server makes anyway.
_KINDS: Final = frozenset({"HASH", "RTREE", "HYPO", "INVERTED"})
_VISIBLE, _INVISIBLE = "/*!80000 VISIBLE */ /*M!100600 NOT IGNORED */", "/*!80000 INVISIBLE */ /*M!100600 IGNORED */"
_VISIBILITY: Final = {"VISIBLE": _VISIBLE, "INVISIBLE": _INVISIBLE, "NOT IGNORED": _VISIBLE, "IGNORED": _INVISIBLE}
"""Each server executes the comment with its keyword (MariaDB ignores versions from 50700 to 99999, TiDB executes them)."""


def _by_first_word(place: ClausePlace) -> dict[str, list[tuple[tuple[str, ...], Clause]]]:
    found: dict[str, list[tuple[tuple[str, ...], Clause]]] = {}
    for clause in CLAUSES[place]:
        words = tuple(clause.words.split())
        found.setdefault(words[0], []).append((words, clause))
    # The longer clause first: DEFAULT CHARACTER SET before DEFAULT.
    return {word: sorted(clauses, key=lambda pair: -len(pair[0])) for word, clauses in found.items()}


_CLAUSES: Final = {place: _by_first_word(place) for place in ClausePlace}


class ClauseReader:
    """The tokens of one statement, as places of clauses."""

    __slots__ = ("_closing", "_kept", "_words", "tokens")

    def __init__(self, tokens: Sequence[Token], kept: Collection[str] = ()) -> None:
        """``kept``: words of clauses that stay, whatever is decided about them for TiDB."""
        self.tokens, self._kept = tokens, kept
        self._words = [token.keyword for token in tokens]
        self._closing: dict[int, int] = {}
        opened = list[int]()
        for at, word in enumerate(self._words):
            if word == "(":
                opened.append(at)
            elif word == ")" and opened:
                self._closing[opened.pop()] = at

    def word(self, at: int) -> str:
        """Return the keyword, mark or class of a token; '' beyond the end."""
        return self._words[at] if 0 <= at < len(self._words) else ""

    def sees(self, at: int, *words: str) -> bool:
        """Return whether ``words`` stand at ``at``."""
        return all(self.word(at + n) == word for n, word in enumerate(words))

    def closing(self, at: int) -> int:
        """Return the place of the parenthesis that closes the one at ``at``, or the last token."""
        return self._closing.get(at, len(self.tokens) - 1)

    def items(self, first: int, last: int) -> list[Span]:
        """Cut a list at its commas."""
        spans, begin, at = list[Span](), first, first
        while at <= last:
            if self.word(at) == ",":
                spans.append((begin, at - 1))
                begin = at + 1
            at = self.closing(at) + 1 if self.word(at) == "(" else at + 1
        return [span for span in [*spans, (begin, last)] if span[0] <= span[1]]

    def marks(self, place: ClausePlace, first: int, last: int, *, alters: bool = False) -> Iterator[Mark]:
        """Read the clauses of ``place`` between ``first`` and ``last``; what is none is stepped over. ``alters``: in ALTER TABLE."""
        at = first
        while at <= last:
            found = self.clause(place, at, last)
            if found is not None:
                clause, end = found
                yield from self._decided(clause, at, end, alters=alters)
                at = end + 1
            else:
                at = self.closing(at) + 1 if self.word(at) == "(" else at + 1

    def option(self, at: int, last: int) -> tuple[ClausePlace, int] | None:
        """Return the place and the last token of the option of ALTER TABLE, or of the table, that begins at ``at``; None: none does."""
        for place in (ClausePlace.ALTER, ClausePlace.TABLE):
            found = self.clause(place, at, last)
            if found is not None:
                return place, found[1]
        return None

    def clause(self, place: ClausePlace, at: int, last: int) -> tuple[Clause, int] | None:
        """Return the clause that begins at ``at``, and the place of its last token."""
        for words, clause in _CLAUSES[place].get(self.word(at), ()):
            if self.sees(at, *words):
                end = self._end(clause.extent, at + len(words) - 1, last)
                return None if end is None else (clause, min(end, last))
        return None

    def _decided(self, clause: Clause, first: int, last: int, *, alters: bool) -> Iterator[Mark]:
        match clause.decision:
            case _ if clause.words in self._kept:
                return
            case Decision.KEEP:
                return
            case Decision.DROP:
                yield Mark(self._with_constraint(clause, first), last, Action.DROP)
            case Decision.TIDB:
                yield Mark(first, last, Action.TIDB)
            case Decision.MYSQL:
                yield Mark(first, last, Action.REPLACE, f"/*!80000 {clause.words} */")
            case Decision.VISIBILITY:
                yield Mark(first, last, Action.REPLACE, _VISIBILITY[clause.words])
            case Decision.ENGINE:
                # InnoDB in its place would make the sink rebuild the table, for a change that upstream has not made.
                if alters:
                    yield Mark(first, last, Action.DROP)
                elif self.tokens[last].text.strip("'\"").casefold() != "innodb":
                    yield Mark(last, last, Action.REPLACE, "InnoDB")

    def _with_constraint(self, clause: Clause, first: int) -> int:
        if clause.extent in {Extent.CHECK, Extent.REFERENCES}:
            for begin in (first - 1, first - 2):
                if self.word(begin) == "CONSTRAINT":
                    return begin
        return first

    def _end(self, extent: Extent, at: int, last: int) -> int | None:
        """Return the last token of a clause whose words end at ``at``; None: it is no clause after all."""
        has_group = self.word(at + 1) == "("
        match extent:
            case Extent.WORDS:
                end: int | None = at
            case Extent.VALUE:
                end = self._value(at)
            case Extent.GROUP:
                end = self.closing(at + 1) if has_group else at
            case Extent.CHECK:
                end = self._check(at) if has_group else None
            case Extent.REFERENCES:
                end = self._references(at)
            case Extent.TTL:
                # TTL = `c` + INTERVAL 1.5 DAY: + and INTERVAL after the column, and a unit after the number.
                end = self._value(self._value(at) + 2) + 1
            case Extent.METHOD:
                end = self._method(at)
            case Extent.KIND:
                end = at + 1 if self.word(at + 1) in _KINDS else None
            case Extent.REST:
                end = last
        return end

    def _value(self, at: int) -> int:
        at += 1 + (self.word(at + 1) == "=")
        if self.word(at) == "(":
            return self.closing(at)
        at += self.word(at) in {"-", "+"}
        # COMMENT _utf8mb4'x' is one value.
        at += self.word(at).startswith("_") and self.word(at + 1) == "string"
        # 0.5 and s.t are three tokens.
        while self.word(at + 1) == ".":
            at += 2
        return at

    def _check(self, at: int) -> int:
        at = self.closing(at + 1)
        at += 1 if self.sees(at + 1, "NOT", "ENFORCED") else 0
        return at + (self.word(at + 1) == "ENFORCED")

    def _references(self, at: int) -> int:
        at = self._value(at)
        at = self.closing(at + 1) if self.word(at + 1) == "(" else at
        while self.word(at + 1) in {"MATCH", "ON"}:
            at += 2 if self.word(at + 1) == "MATCH" else 3
            at += self.word(at) in {"SET", "NO"}
        return at

    def _method(self, at: int) -> int:
        while self.word(at + 1) not in {"(", ""}:
            at += 1
        at = self.closing(at + 1)
        return at + 2 if self.word(at + 1) == "SUBPARTITIONS" else at
