"""Rewrites the clauses of a definition: reads which statement it is, and where in it which clauses may stand. Pure.

A statement that is not a definition, or cannot be cut into tokens, stays as it is: the server judges it.
"""

from collections.abc import Callable, Iterator
from typing import Final

from applier.ddl.alter_parser import CLAUSE_WORDS
from applier.ddl.clause import ClausePlace
from applier.ddl.clause_reader import ClauseReader
from applier.ddl.edit import Action, Edit, Mark, Span, edited, list_edits
from applier.ddl.tokens import DdlSyntaxError, scan

ADD_FULLTEXT_INDEX: Final = 230
"""The DDL type of a FULLTEXT index that upstream really has."""
_INDEX_HEADS: Final = frozenset({"PRIMARY", "UNIQUE", "KEY", "INDEX", "FULLTEXT", "SPATIAL"})
_INDEX_WORDS: Final = frozenset({"PRIMARY", "UNIQUE", "FULLTEXT", "SPATIAL", "VECTOR", "COLUMNAR", "KEY", "INDEX"})
_NAMELESS: Final = frozenset({"(", "USING", ""})


def without_ignored_clauses(query: str, ddl_type: int = 0) -> str:
    """Return the statement with only those clauses on which upstream has acted, in words that the sink's server understands."""
    try:
        tokens = scan(query)
    except DdlSyntaxError:
        return query
    return edited(query, _Definition(query, ClauseReader(tokens), keeps_fulltext=ddl_type == ADD_FULLTEXT_INDEX).edits())


class _Definition:
    """One statement on its way to the sink."""

    __slots__ = ("_keeps_fulltext", "_last", "_reader", "_text")

    def __init__(self, text: str, reader: ClauseReader, *, keeps_fulltext: bool) -> None:
        self._text, self._reader, self._keeps_fulltext = text, reader, keeps_fulltext
        self._last = len(reader.tokens) - 1

    def edits(self) -> Iterator[Edit]:
        """Yield the edits of the statement."""
        reader, at = self._reader, 1
        verb = reader.word(0)
        while reader.word(at) in {"OR", "REPLACE", "TEMPORARY", "IGNORE", "GLOBAL", *_INDEX_WORDS - {"INDEX"}}:
            at += 1
        readers: dict[tuple[str, str], Callable[[int], Iterator[Edit]]] = {
            ("CREATE", "TABLE"): self._create_table,
            ("ALTER", "TABLE"): self._alter_table,
            ("CREATE", "INDEX"): self._index,
            ("DROP", "INDEX"): self._index,
            **{(verb, word): self._schema for verb in ("CREATE", "ALTER") for word in ("DATABASE", "SCHEMA")},
        }
        if read := readers.get((verb, reader.word(at))):
            yield from read(at + 1)

    # Statements

    def _schema(self, at: int) -> Iterator[Edit]:
        yield from self._listed([(at, self._last)], self._reader.marks(ClausePlace.SCHEMA, at, self._last))

    def _create_table(self, at: int) -> Iterator[Edit]:
        reader = self._reader
        at = self._table_name(at + 3 if reader.sees(at, "IF", "NOT", "EXISTS") else at)
        if reader.word(at) != "(" or reader.word(at + 1) == "LIKE":
            return
        close = reader.closing(at)
        yield from self._elements(at + 1, close - 1)
        partitioning = next((n for n in range(close, self._last) if reader.sees(n, "PARTITION", "BY")), self._last + 1)
        options = reader.items(close + 1, partitioning - 1)
        yield from self._listed(options, reader.marks(ClausePlace.TABLE, close + 1, partitioning - 1))
        yield from self._partitioning(partitioning, self._last)

    def _alter_table(self, at: int) -> Iterator[Edit]:
        reader = self._reader
        if reader.word(1) == "IGNORE":
            yield from self._listed([(0, self._last)], [Mark(1, 1, Action.DROP)])
        exists = list(self._conditions(at, at))
        yield from self._listed([(at, self._last)], exists)
        items, marks = self._specifications(self._table_name(at + 2 if exists else at)), list[Mark]()
        for first, last in items:
            marks += self._conditions(first, min(last, first + 4))
            marks += self._specification(first, last)
            yield from self._inside(first, last)
        yield from self._listed(items, marks)

    def _index(self, at: int) -> Iterator[Edit]:
        reader = self._reader
        marks = list(self._conditions(at, at))
        at += 1 + (marks[0].last - marks[0].first + 1 if marks else 0)
        on = next((n for n in range(at, self._last) if reader.word(n) == "ON"), self._last)
        marks += reader.marks(ClausePlace.INDEX, at, on - 1)
        after = self._table_name(on + 1)
        after = reader.closing(after) + 1 if reader.word(after) == "(" else after
        yield from self._listed([(0, self._last)], [*marks, *reader.marks(ClausePlace.INDEX, after, self._last)])

    # Parts of statements

    def _specifications(self, at: int) -> list[Span]:
        """Cut ALTER TABLE at the commas between its clauses; behind other commas (DROP PARTITION a, b) the clause goes on."""
        spans = list[Span]()
        for first, last in self._reader.items(at, self._last):
            if spans and self._reader.word(first) not in CLAUSE_WORDS:
                spans[-1] = (spans[-1][0], last)
            else:
                spans.append((first, last))
        return spans

    def _specification(self, first: int, last: int) -> Iterator[Mark]:
        reader = self._reader
        match reader.word(first), reader.word(first + 1):
            case "ADD", ("(" | "PARTITION"):
                return
            case "ADD", head:
                begin = first + 1 + (head == "COLUMN")
                inner = list(self._element(self._after_condition(begin), last))
                is_dropped = any((mark.first, mark.last) == (self._after_condition(begin), last) for mark in inner)
                yield from [Mark(first, last, Action.DROP)] if is_dropped else inner
            case ("MODIFY" | "CHANGE") as verb, head:
                begin = self._after_condition(first + 1 + (head == "COLUMN"))
                yield from reader.marks(ClausePlace.COLUMN, begin + 1 + (verb == "CHANGE"), last)
            case (("DROP" | "ALTER"), ("CHECK" | "CONSTRAINT")):
                yield Mark(first, last, Action.DROP)
            case "ALTER", "INDEX":
                yield from reader.marks(ClausePlace.INDEX, first + 3, last)
            case _:
                yield from self._options(first, last)

    def _options(self, first: int, last: int) -> Iterator[Mark]:
        """Read options that follow one another, of the table and of ALTER TABLE itself."""
        reader, at = self._reader, first
        while at <= last:
            place = next((place for place in (ClausePlace.ALTER, ClausePlace.TABLE) if reader.clause(place, at, last)), None)
            found = None if place is None else reader.clause(place, at, last)
            if place is None or found is None:
                return
            yield from reader.marks(place, at, found[1], alters=True, only_clauses=True)
            at = found[1] + 1

    def _inside(self, first: int, last: int) -> Iterator[Edit]:
        """Edit the lists inside a clause of ALTER TABLE: several columns, partitions."""
        reader = self._reader
        begin = self._after_condition(first + 1 + (reader.word(first + 1) == "COLUMN"))
        if reader.word(first) == "ADD" and reader.word(begin) == "(":
            yield from self._elements(begin + 1, reader.closing(begin) - 1)
        elif reader.word(first) in {"ADD", "REORGANIZE", "PARTITION"} and "PARTITION" in {reader.word(first), reader.word(first + 1)}:
            yield from self._partitioning(first, last)

    def _elements(self, first: int, last: int) -> Iterator[Edit]:
        items = self._reader.items(first, last)
        yield from self._listed(items, [mark for span in items for mark in self._element(*span)])

    def _element(self, first: int, last: int) -> Iterator[Mark]:
        """Read a column, an index or a constraint."""
        reader, at = self._reader, first
        if reader.word(at) == "CONSTRAINT":
            at += 1 if reader.word(at + 1) in {"PRIMARY", "UNIQUE", "FOREIGN", "CHECK"} else 2
        head = reader.word(at)
        if (head == "CHECK" and reader.word(at + 1) == "(") or (head == "FULLTEXT" and not self._keeps_fulltext):
            yield Mark(first, last, Action.DROP)
        elif head in _INDEX_HEADS or (head in {"VECTOR", "COLUMNAR"} and reader.word(at + 1) in {"INDEX", "KEY"}):
            while reader.word(at) in _INDEX_WORDS:
                at += 1
            at = self._after_condition(at)
            at += reader.word(at) not in _NAMELESS and reader.word(at + 1) in {"(", "USING", "TYPE"}
            yield from reader.marks(ClausePlace.INDEX, at, last)
        elif head != "FOREIGN":
            yield from reader.marks(ClausePlace.COLUMN, at + 1, last)

    def _partitioning(self, first: int, last: int) -> Iterator[Edit]:
        """Edit PARTITION BY with its definitions, or the definitions of ADD and REORGANIZE PARTITION."""
        reader = self._reader
        begins = [n for n in range(first, last) if reader.sees(n, "(", "PARTITION")]
        end = begins[0] - 1 if begins else last
        yield from self._listed([(first, last)], reader.marks(ClausePlace.PARTITION, first, end))
        if begins:
            items = reader.items(begins[0] + 1, reader.closing(begins[0]) - 1)
            yield from self._listed(items, [mark for span in items for mark in self._partition(*span)])

    def _partition(self, first: int, last: int) -> Iterator[Mark]:
        reader = self._reader
        yield from reader.marks(ClausePlace.PARTITION, first + 2, last)
        for at in range(first, last):
            if reader.sees(at, "(", "SUBPARTITION"):
                yield Mark(at, reader.closing(at), Action.DROP)

    # Names, conditions, lists

    def _table_name(self, at: int) -> int:
        """Return the place behind a table's name."""
        return at + 3 if self._reader.word(at + 1) == "." else at + 1

    def _after_condition(self, at: int) -> int:
        if self._reader.sees(at, "IF", "NOT", "EXISTS"):
            return at + 3
        return at + 2 if self._reader.sees(at, "IF", "EXISTS") else at

    def _conditions(self, first: int, last: int) -> Iterator[Mark]:
        """MySQL knows IF [NOT] EXISTS of tables and schemas only."""
        for at in range(first, last + 1):
            end = self._after_condition(at) - 1
            if end >= at:
                words = " ".join(self._reader.word(n) for n in range(at, end + 1))
                yield Mark(at, end, Action.REPLACE, f"/*M! {words} */ /*T! {words} */")

    def _listed(self, items: list[Span], marks: Iterator[Mark] | list[Mark]) -> Iterator[Edit]:
        return list_edits(self._text, self._reader.tokens, items, list(marks))
