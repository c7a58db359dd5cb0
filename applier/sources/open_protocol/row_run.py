"""Placing a run of rows: the images of many rows of one shape are checked and their keys found by one call.

A body ``{"u":`` + X + ``}`` is split by its bytes, and a known shape's matcher reads X as one whole JSON object; the same with ``,"p":``
in between, and with ``d``. Everything else (another shape, compression, a repeated image, invalid UTF-8 in a key, anything wrong) takes the
full parse, which decides. The two agree, because the fast path accepts only what the full parse would read alike. Values outside of the
key are not looked at: the image decoder finds what is wrong with them.

Images are read as lines of one text. Why that accepts exactly what reading each of them alone accepts: every image begins with ``{`` and
ends with ``}``, JSON refuses a line feed within a string, and in JSON ``}`` is followed by ``{`` only between two documents. So no
document reaches over the end of an image, and if there are as many documents as images, each image is one. (As the elements of one array
they could: three images may be two halves of an element and two whole ones.)
"""

from collections.abc import Sequence
from itertools import compress
from operator import itemgetter
from typing import Any, Final, TypeAlias

from applier.model.errors import ProtocolError
from applier.model.events import PlacedRow, RowKind, RowOperation, Shape, TableName
from applier.model.position import Offset, Place, Stream
from applier.selection import EVERYTHING, TableSelection
from applier.sources.open_protocol.event import locate
from applier.sources.open_protocol.head import ROW, Head
from applier.sources.open_protocol.matcher import Matcher, compile_matcher, intern_shape
from applier.sources.open_protocol.row_parse import place_parsed
from applier.sources.placed_rows import rows_of
from applier.sources.port import PlacedRows

MAX_TABLE_SHAPES = 8
"""Shapes tried per table and kind before the full parse: whole images, deletes with keys only, and some that column changes leave."""

WORTH_JOINING: Final = 3
"""Rows of one table and kind in a run from which on they are read together. Two cost the same either way."""

AFTER, DELETED, OLD, END = b'{"u":{', b'{"d":{', b'}},"p":{', b"}}"
"""The fixed bytes of a body. A text value cannot hold those of OLD, since its quotes would be escaped; a column named p can, and then
nothing matches."""

_UNUSUAL: Final = -1

FRONT: Final = len(b'{"u":')


class KnownTable:
    """The shapes of one table that a placer has seen, by what its rows do; ``unusual`` are rows that only the full parse can take.

    ``schema`` and ``name`` are upstream's. ``ignored``: row changes that an event filter leaves out; ``is_filtered``: the table filter
    leaves the whole table out; ``is_out``: none of its rows is placed. ``is_partitioned``: these rows name their physical partition.
    """

    __slots__ = ("_sink_name", "deletes", "ignored", "is_filtered", "is_out", "is_partitioned", "name", "schema", "unusual", "upserts")

    def __init__(self, name: TableName, selection: TableSelection = EVERYTHING, *, is_partitioned: bool = False) -> None:
        self.schema, self.name = name
        self.is_partitioned = is_partitioned
        self.ignored = selection.ignored_rows(name)
        self.is_filtered = not selection.has(name)
        self.is_out = self.is_filtered or len(self.ignored) == len(RowOperation)
        self._sink_name = selection.name(name)
        self.upserts, self.deletes = KnownShapes(self, RowKind.UPSERT), KnownShapes(self, RowKind.DELETE)
        self.unusual = KnownShapes(self, _UNUSUAL)

    @property
    def is_routed(self) -> bool:
        """Whether the table has another name in the sink."""
        return self._sink_name != (self.schema, self.name)

    def routed(self, rows: list[PlacedRow]) -> list[PlacedRow]:
        """Return rows of this table under the sink's name."""
        return [row._replace(shape=self._routed_shape(row.shape)) for row in rows] if self.is_routed else rows

    def _routed_shape(self, shape: Shape) -> Shape:
        schema, table = self._sink_name
        return intern_shape(shape._replace(schema=schema, table=table, routed_from=TableName(self.schema, self.name)))

    def learn(self, rows: Sequence[PlacedRow]) -> None:
        """Remember the shapes of rows that the full parse has read."""
        for row in rows:
            (self.upserts if row.kind == RowKind.UPSERT else self.deletes).learn(row.shape)


class KnownShapes:
    """The matchers of the shapes of one table and kind of row, the last used one first."""

    __slots__ = ("_matchers", "has_old", "kind", "table")

    def __init__(self, table: KnownTable, kind: int) -> None:
        self.table, self.kind = table, int(kind)
        # Of this range only. What the process knows from earlier ranges must not count: a bad value outside of the key is found by the
        # full parse and not by a matcher, and a range that another process reads again must give the same report.
        self._matchers: list[Matcher] = []
        self.has_old = False
        """Whether an update with an old image has come: where none comes, nobody looks for one in each row (0.13 us)."""

    def learn(self, shape: Shape) -> None:
        """Remember a shape, unless it cannot be compiled."""
        matcher = compile_matcher(shape)
        if matcher is not None and matcher not in self._matchers:
            self._matchers.insert(0, matcher)
            del self._matchers[MAX_TABLE_SHAPES:]

    def match_all(self, images: Sequence[bytes], old: Sequence[bytes]) -> tuple[Shape, list[bytes]] | None:
        """Return the shape and the keys of rows that all have the shape used last; None if not all of them do. ``old``: b"" for none."""
        if not self._matchers:
            return None
        matcher = self._matchers[0]
        try:
            rows = matcher.match_lines(b"\n".join(images))
            if len(rows) != len(images):
                return None
            if any(old):
                old_rows = matcher.match_old_lines(b"\n".join(filter(None, old)))
                if not matcher.keep_keys(old_rows, list(compress(rows, old))):
                    return None
            return matcher.shape, matcher.keys_of(rows)
        except (ValueError, RecursionError, ProtocolError):  # ValueError: msgspec's errors and UnicodeDecodeError
            return None

    def match_one(self, image: bytes, old: bytes) -> tuple[Shape, bytes] | None:
        """Return the shape and the key of a row of a known shape; None if it needs the full parse."""
        for matcher in self._matchers:
            try:
                row = matcher.match(image)
                if old and not matcher.keeps_key(matcher.match_old(old), row):
                    continue
                key = matcher.key_of(row)
            except (ValueError, RecursionError, ProtocolError):
                continue
            if matcher is not self._matchers[0]:
                self._matchers.remove(matcher)
                self._matchers.insert(0, matcher)
            return matcher.shape, key
        return None


RunRow: TypeAlias = tuple[int, KnownShapes, int, int, bytes, bytes]
"""A row event of a run: commit_ts, what it may be, offset, index, image, old image (b"": none). For an unusual one the last is the body."""


def run_row(ts: int, table: KnownTable, offset: int, index: int, body: bytes) -> RunRow:
    """Split the body of a row event."""
    if body[-2:] == END:
        if body[:6] == AFTER:
            known = table.upserts
            return (
                (ts, known, offset, index, *split_old(body[FRONT:-1])) if known.has_old else (ts, known, offset, index, body[FRONT:-1], b"")
            )
        if body[:6] == DELETED:
            return ts, table.deletes, offset, index, body[FRONT:-1], b""
    return ts, table.unusual, offset, index, b"", body


def split_old(images: bytes) -> tuple[bytes, bytes]:
    """Split what follows ``{"u":`` into the image and the old image."""
    end = images.rfind(OLD)
    return (images, b"") if end < 0 else (images[: end + 2], images[end + len(OLD) - 1 :])


def place_run(stream: Stream, run: Sequence[RunRow]) -> PlacedRows:
    """Return the rows of a run of at least one. ProtocolError, with its place, of the first that cannot be read."""
    commit_ts, known, offset, index, image, old = zip(*run, strict=True)
    first = known[0]
    if known.count(first) == len(run) and (found := first.match_all(image, old)) is not None:
        shape, keys = found
        return PlacedRows((shape,), bytes(len(run)), commit_ts, bytes((first.kind,)) * len(run), offset, index, keys, image)
    matched = _Matched(len(run))
    places: dict[KnownShapes, list[int]] = {}
    for number, one in enumerate(known):
        places.setdefault(one, []).append(number)
    for one, numbers in places.items():
        matched.match(one, numbers, image, old)
    if None in matched.keys:
        return _place_in_order(stream, run, matched)
    kinds = [one.kind for one in known]
    return PlacedRows(tuple(matched.shapes), matched.shape, commit_ts, kinds, offset, index, matched.keys, image)


class _Matched:
    """The shapes and keys of a run of several tables or kinds. The key is None for a row that may need the full parse."""

    __slots__ = ("_numbers", "keys", "shape", "shapes")

    def __init__(self, count: int) -> None:
        self.shapes: list[Shape] = []
        self.shape = [0] * count
        self.keys: list[Any] = [None] * count
        self._numbers: dict[int, int] = {}

    def match(self, known: KnownShapes, places: Sequence[int], image: Sequence[bytes], old: Sequence[bytes]) -> None:
        """Match the rows of one table and kind: together, where they are several of one shape."""
        if len(places) >= WORTH_JOINING:
            chosen = itemgetter(*places)
            if (found := known.match_all(chosen(image), chosen(old))) is not None:
                number = self._number(found[0])
                for place, key in zip(places, found[1], strict=True):
                    self.keys[place], self.shape[place] = key, number
                return
        for place in places:
            if (one := known.match_one(image[place], old[place])) is not None:
                self.keys[place], self.shape[place] = one[1], self._number(one[0])

    def _number(self, shape: Shape) -> int:
        number = self._numbers.get(id(shape))
        if number is None:
            number = self._numbers[id(shape)] = len(self.shapes)
            self.shapes.append(shape)
        return number


def _place_in_order(stream: Stream, run: Sequence[RunRow], matched: _Matched) -> PlacedRows:
    """Place what was not matched by the full parse. In order, so that the first error is that of the first row."""
    rows = []
    for event, key, shape in zip(run, matched.keys, matched.shape, strict=True):
        if key is not None:
            rows.append((event[2], event[3], PlacedRow(event[0], event[1].kind, matched.shapes[shape], key, event[4])))
            continue
        try:
            rows += [(event[2], event[3], row) for row in place_row(event)]
        except ProtocolError as error:
            raise locate(error, Place(stream, Offset(event[2])), event[3], _head(event)) from error
    return rows_of(rows)


def place_row(event: RunRow) -> list[PlacedRow]:
    """Return the row of an event, or two where an update changed its handle key. ProtocolError, without a place."""
    ts, known, _, _, image, old = event
    if not old and known.kind == RowKind.UPSERT:
        image, old = split_old(image)
        known.has_old = known.has_old or bool(old)
    found = known.match_one(image, old) if image else None
    if found is not None:
        return [PlacedRow(ts, known.kind, found[0], found[1], image)]
    rows = known.table.routed(place_parsed(_head(event), _body(known, image, old)))
    known.table.learn(rows)
    return rows


def _head(event: RunRow) -> Head:
    table = event[1].table
    return Head(ts=event[0], t=ROW, scm=table.schema, tbl=table.name, ptn=0 if table.is_partitioned else None)


def _body(known: KnownShapes, image: bytes, old: bytes) -> bytes:
    """Put the body together again, byte by byte as it came."""
    if not image:
        return old
    if known.kind == RowKind.DELETE:
        return b'{"d":' + image + b"}"
    return b'{"u":' + image + (b',"p":' + old if old else b"") + b"}"
