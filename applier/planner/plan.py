"""Planning one bucket of some segments: cached chunks in, whole statements out.

Per table: the last version of each key; DELETEs for the keys that are gone; then loads and REPLACEs for the rest. ``Statement.phase`` puts
all deletes of a segment before its first REPLACE, so two spellings of a key under a ``_ci`` collation, two keys here, end in the right
state. Why any order is right among deletes and among REPLACEs: the final rows satisfy all unique constraints at the window's end, and a
stale row of the sink that a REPLACE collides with has changed inside the window, so that its own final state is written too.

A row's text is made in one of three ways, each for the rows that the one before it leaves: lines of a bulk load, REPLACEs rendered many
rows at a time, and row by row. If a statement must know its rows (``policy.trace_rows``), they are rendered row by row.

Placeholders are final rows that hold their handle key only; their whole rows are read from upstream. Compaction comes first, so no
superseded placeholder and no delete is looked up. The rows are read at the end of the segment. That is the version of each row's own last
event: a later change at or below the segment's end would be in the segment, and would be its last. An event filter may exclude that change:
so a row that no longer exists then is read at its own commit.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain, compress
from operator import not_
from typing import Any, Final, NamedTuple, TypeAlias

from applier.model.chunk import unpack
from applier.model.errors import SKIP_RECORD, ApplierError, FatalSinkError, InvariantViolation, NeedsOperator, ProtocolError, Remedy
from applier.model.events import MARKER_IMAGE, FoldedName, RowKind, Shape
from applier.model.rejected_event import RejectedEvent
from applier.model.segment import SegmentWindow, are_contiguous
from applier.planner.column_match import Origin, key_names
from applier.planner.compaction import Compaction, RowOrder, TransactionSet
from applier.planner.division import by_window
from applier.planner.final_rows import STOP, PlannedRows, QuarantinePolicy, RejectedRows, picked, with_position
from applier.planner.keyless import ALL_REAL, AmbiguousRows, EqualRows, EqualRowsRule, Image, Repeats, counted_rows, earliest, net_rows
from applier.planner.ordered_plan import OrderedPlan, OrderedTable
from applier.planner.ordered_rows import PartialRows
from applier.planner.partial_plan import PartialPlan
from applier.planner.port import Dialect, Phase, RowDecoder, RowLookup, Statement, StatementRows, TableDescription, WritingDialect
from applier.planner.rendering import GroupPass, Renderers, TableRenderer, TableRenderers, image_keys

NO_ADDRESS = Remedy("planner.set-source-upstream", "Set source.upstream to the address of upstream's TiDB, where such rows are read")
MISSING = Remedy(
    "planner.check-source-upstream",
    f"Check that source.upstream is the changefeed's cluster, and that its user may see the table. Or skip the record: `{SKIP_RECORD}`",
)


def placeholders_of(rows: PlannedRows, chosen: Sequence[int]) -> list[int]:
    """Return the rows that must be looked up."""
    waiting = {number for number, origin in enumerate(rows.origins) if origin.shape.placeholder}
    if not waiting:
        return []
    return [row for row in chosen if rows.final.origin[row] in waiting and rows.final.kind[row] == RowKind.UPSERT]


def look_up(rows: PlannedRows, waiting: Sequence[int], decoder: RowDecoder, window: SegmentWindow) -> Iterator[list[int]]:
    """Yield some rows at a time, with whole images instead of placeholders. A row that upstream lacks is refused, and is in none.

    As ``RowLookup``; the error names the earliest row.
    """
    earliest = rows.position(rows.final.first(waiting))
    if decoder.row_lookup is None:
        raise NeedsOperator("the row was too large for Kafka: only its handle key was sent", remedy=NO_ADDRESS, **earliest.facts)
    ts = window.snapshot_ts(max(rows.final.commit_ts[row] for row in waiting))
    by_shape: dict[Shape, list[int]] = {}
    for row in waiting:
        by_shape.setdefault(rows.origin(row).shape, []).append(row)
    for shape, some in by_shape.items():
        missing = {*some}
        try:
            for found in _of_shape(rows, some, decoder, (decoder.row_lookup, shape, ts)):
                missing.difference_update(found)
                yield found
            yield from _as_committed(rows, sorted(missing), decoder, (decoder.row_lookup, shape, ts))
        except ApplierError as error:
            if "commit_ts" in error.facts:
                raise
            raise with_position(error, earliest.facts) from error


def _as_committed(
    rows: PlannedRows, missing: Sequence[int], decoder: RowDecoder, asked: tuple[RowLookup, Shape, int]
) -> Iterator[list[int]]:
    """Look up, each at its own commit, rows that upstream lacks at the segment's end: a filter has skipped the events of their end."""
    lookup, shape, ts = asked
    by_commit: dict[int, list[int]] = {}
    for row in missing:
        by_commit.setdefault(rows.final.commit_ts[row], []).append(row)
    for commit_ts, some in sorted(by_commit.items()):
        left = {*some}
        # Upstream may have forgotten that time, and not the segment's end.
        with suppress(NeedsOperator):
            for found in _of_shape(rows, some, decoder, (lookup, shape, commit_ts)):
                left.difference_update(found)
                yield found
        for row in sorted(left):
            error = ProtocolError("upstream has no row with this key at this time", remedy=MISSING, kind="handle_key_only", snapshot=ts)
            rows.refuse(row, error)
            rows.final.image[row] = MARKER_IMAGE


def _of_shape(rows: PlannedRows, waiting: Sequence[int], decoder: RowDecoder, asked: tuple[RowLookup, Shape, int]) -> Iterator[list[int]]:
    """Yield rows that are found, with their whole images."""
    lookup, shape, ts = asked
    decode = decoder.image_decoder(shape)
    places = [shape.columns.index(column) for column in shape.handle_key]
    decoded = [decode(rows.final.image[row]) for row in waiting]
    for part in lookup.rows(shape, [[values[place] for place in places] for values in decoded], ts):
        found = [waiting[place] for place in part.found]
        for row, values in zip(found, part.rows, strict=True):
            rows.final.image[row] = decoder.encode_image(part.shape, values)
            rows.final.origin[row] = _number(rows.origins, Origin(rows.origin(row).stream, part.shape))
        yield found


def _number(origins: list[Origin], origin: Origin) -> int:
    try:
        return origins.index(origin)
    except ValueError:
        origins.append(origin)
        return len(origins) - 1


BULK_ROWS: Final = 300
"""From so many rows on, a table's rows are loaded in bulk: fewer become one REPLACE."""


class TablePlan:
    """The statements of some rows of one table."""

    def __init__(self, renderers: TableRenderers, rows: PlannedRows) -> None:
        self._renderers, self._rows = renderers, rows
        self._description, self._dialect = renderers.exact.description, renderers.exact.dialect

    def statements(self, chosen: Sequence[int]) -> Iterator[Statement]:
        """Yield DELETEs, then REPLACEs. Where no unique index is exactly the key, REPLACE would not find the row: it is deleted before."""
        key = self._key_columns(chosen[0])
        kinds = picked(self._rows.final.kind, chosen)
        has_deletes = RowKind.DELETE in kinds
        upserts = list(compress(chosen, kinds)) if has_deletes else chosen
        # DELETE and REPLACE, never ON DUPLICATE KEY UPDATE: an update may hit another row through a secondary key. With it,
        # 318 of 3,000 simulated histories end wrong.
        deleted: Sequence[int] = list(compress(chosen, map(not_, kinds))) if has_deletes else ()
        if not self._description.has_unique_key(key):
            deleted = chosen
        yield from self._row_by_row(Phase.DELETE, key, deleted)
        # A row that was rejected at its DELETE is not written either.
        if dropped := self._rows.dropped:
            upserts = [row for row in upserts if row not in dropped]
        yield from self._replaces(upserts)

    def _key_columns(self, row: int) -> tuple[str, ...]:
        return tuple(self._spelling(name) for name in self._rows.key or key_names(self._rows.origin(row).shape))

    def _spelling(self, name: str) -> str:
        """Return the sink's spelling; a missing column is reported with the first row that needs it."""
        return next((column.name for column in self._description.columns if column.name.casefold() == name.casefold()), name)

    def _replaces(self, chosen: Sequence[int]) -> Iterator[Statement]:
        _, columns, replaces, loads = self._renderers
        must_trace = self._rows.rejected.policy.trace_rows
        if loads is not None and len(chosen) >= BULK_ROWS and not must_trace:
            groups = GroupPass(loads, self._rows)
            for text, data, number in loads.statements(groups.texts(chosen)):
                yield self._statement(Phase.REPLACE, text, groups.take(number), data=data)
            chosen = groups.left_after()
        if replaces is not None and chosen and not must_trace:
            groups = GroupPass(replaces, self._rows)
            for text, number in replaces.statements(groups.texts(chosen)):
                yield self._statement(Phase.REPLACE, text, groups.take(number))
            chosen = groups.left_after()
        yield from self._row_by_row(Phase.REPLACE, columns, chosen)

    def _row_by_row(self, phase: Phase, columns: tuple[str, ...], chosen: Sequence[int]) -> Iterator[Statement]:
        """Yield the statements of rows that are rendered one by one; a row that cannot be is refused."""
        if not chosen:
            return
        rows, is_delete = self._rows, phase is Phase.DELETE
        render = self._dialect.deletes if is_delete else self._dialect.replaces
        texts: Iterator[Any] = self._renderers.exact.key_texts(rows, chosen) if is_delete else self._renderers.exact.row_texts(rows, chosen)
        rendered = _Rendered(chosen, rows.dropped, texts, keeps_texts=rows.rejected.policy.trace_rows)
        while True:
            try:
                for text, number in render(self._description, columns, rendered.texts):
                    taken, kept = rendered.take(number)
                    yield self._statement(phase, text.encode(), taken, source=self._source(phase, columns, taken, kept))
            # From the dialect, which knows no rows: an error with a commit_ts was raised here and has its position already.
            except FatalSinkError as error:
                if "commit_ts" in error.facts:
                    raise
                # The dialect has yielded all rows before the row that is too large. The next call begins after that row.
                (row,), _ = rendered.take(1)
                rows.refuse(row, error)
            else:
                break
        if left := rendered.left():
            raise InvariantViolation(
                "the dialect rendered fewer rows than it received",
                table=str(self._description.folded),
                rows=len(chosen),
                rendered=len(chosen) - left,
            )

    def _source(self, phase: Phase, columns: tuple[str, ...], taken: Sequence[int], texts: Sequence[Any]) -> StatementRows | None:
        if not texts:
            return None
        return StatementRows(
            phase=phase,
            table=self._description,
            columns=columns,
            key=self._key_columns(taken[0]),
            dialect=self._dialect,
            texts=tuple(texts),
            rows=self._rows.described(taken),
        )

    def _statement(
        self, phase: Phase, text: bytes, taken: Sequence[int], *, data: bytes = b"", source: StatementRows | None = None
    ) -> Statement:
        commits, table = picked(self._rows.final.commit_ts, taken), str(self._description.folded)
        present = self._count_present(taken) if phase is Phase.DELETE else 0
        return Statement(phase, table, text, len(taken), min(commits), max(commits), source, data, present=present)

    def _count_present(self, taken: Sequence[int]) -> int:
        final = self._rows.final
        # Where each row is deleted before it is replaced, the statement's count of rows does not count the deleted ones.
        return 0 if any(picked(final.kind, taken)) else final.count_only(taken)


class _Rendered:
    """Rows and their texts. With ``keeps_texts``, the texts of rows that are in no statement yet are kept."""

    def __init__(self, rows: Sequence[int], dropped: set[int], texts: Iterator[Any], *, keeps_texts: bool) -> None:
        self._rows, self._dropped = rows, dropped
        self._done = 0
        self._kept: list[Any] = []
        self.texts = self._keep(texts) if keeps_texts else texts

    def _keep(self, texts: Iterator[Any]) -> Iterator[Any]:
        for text in texts:
            self._kept.append(text)
            yield text

    def take(self, rows: int) -> tuple[Sequence[int], Sequence[Any]]:
        """Return the next ``rows`` rows that were not dropped, and their texts if these are kept."""
        texts = self._kept[:rows]
        del self._kept[:rows]
        # A slice in the usual case; only after a rejected row they are checked one by one.
        if not self._dropped:
            self._done += rows
            return self._rows[self._done - rows : self._done], texts
        taken: list[int] = []
        while len(taken) < rows:
            if self._rows[self._done] not in self._dropped:
                taken.append(self._rows[self._done])
            self._done += 1
        return taken, texts

    def left(self) -> int:
        """Count the rows that are in no statement and were not rejected."""
        return sum(row not in self._dropped for row in self._rows[self._done :])


class KeylessPlan:
    """The statements of one table without a key in one segment."""

    def __init__(self, renderer: TableRenderer, columns: tuple[str, ...], rows: PlannedRows) -> None:
        """``columns``: of the sink's table, as a whole row writes them."""
        self._renderer, self._columns, self._rows = renderer, columns, rows
        self._dialect: WritingDialect = renderer.dialect.whole_rows()

    def statements(self, repeats: Repeats, equal_rows: EqualRows) -> Iterator[Statement]:
        """Yield DELETEs of one row each, then INSERTs. Errors as ``plan_segments``."""
        images = self._images()
        deleted, inserted = net_rows(counted_rows(self._rows.final, self._rows.origins, images, repeats, equal_rows))
        yield from self._rendered(Phase.DELETE, deleted, images)
        yield from self._rendered(Phase.REPLACE, inserted, images)

    def _images(self) -> dict[int, Image]:
        """Return the literals of each row that can be read."""
        images: dict[int, Image] = {}
        renderers: dict[int, Callable[[bytes], Image]] = {}
        for row, image in enumerate(self._rows.final.image):
            # The event of a marker is quarantined. It represents no other version of a row, since there are none.
            if image == MARKER_IMAGE:
                continue
            number = self._rows.final.origin[row]
            try:
                if (render := renderers.get(number)) is None:
                    render = renderers[number] = self._renderer.whole_row(self._rows.position(row))
                images[row] = render(image)
            except (ApplierError, TypeError, ValueError, AttributeError) as error:
                self._rows.refuse(row, error)
        return images

    def _rendered(self, phase: Phase, chosen: Sequence[int], images: Mapping[int, Image]) -> Iterator[Statement]:
        """Yield the statements of some rows; rows that are too large for the database are refused."""
        left = list(chosen)
        while left:
            done = 0
            try:
                for text, number in self._texts(phase, [images[row] for row in left]):
                    yield self._statement(phase, text, left[done : done + number], images)
                    done += number
            except FatalSinkError as error:
                # The dialect has rendered all rows before the row that is too large.
                self._rows.refuse(left[done], error)
                done += 1
            left = left[done:]

    def _texts(self, phase: Phase, images: Sequence[Image]) -> Iterator[tuple[str, int]]:
        description = self._renderer.description
        if phase is Phase.DELETE:
            return self._dialect.deletes(description, self._columns, images)
        return self._dialect.replaces(description, self._columns, (f"({','.join(image)})" for image in images))

    def _statement(self, phase: Phase, text: str, taken: Sequence[int], images: Mapping[int, Image]) -> Statement:
        rows, description, is_delete = self._rows, self._renderer.description, phase is Phase.DELETE
        source = None
        if rows.rejected.policy.trace_rows:
            source = StatementRows(
                phase=phase,
                table=description,
                columns=self._columns,
                key=(),
                dialect=self._dialect,
                texts=tuple(images[row] if is_delete else f"({','.join(images[row])})" for row in taken),
                rows=rows.described(taken),
            )
        commits = [rows.final.commit_ts[row] for row in taken]
        return Statement(
            phase, str(description.folded), text.encode(), len(taken), min(commits), max(commits), source, deletes_exactly=is_delete
        )


NO_KEY: Final = "the table has no key, so its rows cannot be applied exactly once"
NO_KEY_REMEDY: Final = Remedy(
    "planner.add-primary-key-upstream",
    "Give the table a primary key upstream, or exclude it with source.tables. "
    'Or set sink.keyless = "best_effort" and read `applier docs tables` about what it cannot tell apart',
)


class PlanTarget(NamedTuple):
    """The sink, as statements must fit it: its tables as they are now, and its dialect.

    ``rekeyed`` holds the sink's key columns of tables whose events do not give a usable key. ``repeats``: the points after which the rows
    of streams are repeated, if tables without a key are written; None: they are refused.
    """

    tables: Mapping[FoldedName, TableDescription]
    rekeyed: Mapping[FoldedName, tuple[str, ...]]
    dialect: Dialect
    repeats: Repeats | None = None
    equal_rows: EqualRowsRule = ALL_REAL
    """What happens to equal rows of such tables that may be one row."""
    ordered: frozenset[FoldedName] = frozenset()
    """Tables that are written in the order of their rows, with the actions of foreign keys: ``ordered_rows``."""


Planned: TypeAlias = Statement | RejectedEvent | TransactionSet


def plan_segments(
    chunks: Iterable[bytes],
    windows: Sequence[SegmentWindow],
    target: PlanTarget,
    decoder: RowDecoder,
    policy: QuarantinePolicy = STOP,
    *,
    bulk: bool = False,
) -> Iterator[tuple[int, Planned]]:
    """Yield, window by window, the statements of one bucket, the rows that ``policy`` quarantines and, last, one TransactionSet.

    Each comes with the number of its window. ``windows`` are contiguous and ascending; rows outside of all of them are skipped.
    ``bulk``: tables with many rows are loaded (``Statement.data``), if the dialect can.
    ProtocolError: a final image cannot be read (it is never replaced by an older version). FatalSinkError: the sink lacks the table or
    a column, or cannot take a row of this size. NeedsOperator: a partial image, or rows without a key.
    """
    if not are_contiguous(windows):
        message = "the windows of segments that are planned together are not contiguous"
        raise InvariantViolation(message)
    keys = image_keys(target.rekeyed, target.tables, decoder.image_decoder)
    rejected_rows = [RejectedRows(policy, decoder.decode_key) for _ in windows]
    compactions = [
        Compaction(window, keys, rejected.refuse, target.tables, RowOrder(decoder.keeps_order, target.ordered))
        for window, rejected in zip(windows, rejected_rows, strict=True)
    ]
    for data in chunks:
        for number, part in by_window(unpack(data), windows):
            compactions[number].feed(part)
    tables = _Tables(target, decoder, Renderers(decoder, target.dialect, bulk=bulk))
    # Each window's rows are freed once its statements are taken.
    compactions.reverse()
    for number, rejected in enumerate(rejected_rows):
        for item in _planned(compactions.pop(), rejected, tables, windows[number]):
            yield number, item


def plan_bucket(
    chunks: Iterable[bytes], window: SegmentWindow, target: PlanTarget, decoder: RowDecoder, policy: QuarantinePolicy = STOP
) -> Iterator[Planned]:
    """Yield what ``plan_segments`` yields for one window."""
    for _, item in plan_segments(chunks, (window,), target, decoder, policy):
        yield item


class _Tables:
    """The sink's tables, and how their rows are rendered."""

    def __init__(self, target: PlanTarget, decoder: RowDecoder, renderers: Renderers) -> None:
        self.target, self.decoder = target, decoder
        self._renderers = renderers
        self._found: dict[FoldedName, TableRenderers] = {}

    def of(self, name: FoldedName) -> TableRenderers | None:
        """Return the renderers of a table; None if the sink lacks it."""
        if name not in self._found and (description := self.target.tables.get(name)) is not None:
            self._found[name] = self._renderers.of(description, self.target.rekeyed.get(name))
        return self._found.get(name)


def _planned(compaction: Compaction, rejected_rows: RejectedRows, tables: _Tables, window: SegmentWindow) -> Iterator[Planned]:
    ambiguous: list[AmbiguousRows] = []
    for name, final, partial in compaction.tables():
        rows = PlannedRows(final, compaction.origins, tables.target.rekeyed.get(name), rejected_rows)
        # Markers are rare: the comparison of all images runs in C, and the rows are listed only if there is one.
        chosen: Sequence[int] = range(len(final))
        if MARKER_IMAGE in final.image:
            chosen = list(compress(chosen, final.image))
        if not chosen and partial is None:
            continue
        renderers = tables.of(name)
        if renderers is None:
            raise _missing(rows, chosen)
        # All rows of a table that is not rekeyed agree on its key.
        if rows.key is None and partial is None and not key_names(rows.origin(chosen[0]).shape):
            plan = KeylessPlan(renderers.exact, renderers.columns, rows)
            # A source that keeps the order sends each row once.
            equal_rows = EqualRows.ALL if tables.decoder.keeps_order else tables.target.equal_rows.of(name)
            try:
                yield from plan.statements(_repeats(tables.target, rows, chosen), equal_rows)
            except AmbiguousRows as error:  # in another table an earlier commit may have such rows
                ambiguous.append(error)
        elif waiting := placeholders_of(rows, chosen):
            whole = look_up(rows, waiting, tables.decoder, window)
            plain = sorted({*chosen}.difference(waiting))
            yield from _with_placeholders(renderers, rows, partial, plain, whole)
        else:
            yield from _statements(renderers, rows, partial, chosen)
    if ambiguous:
        raise earliest(ambiguous)
    yield from OrderedPlan(_ordered_tables(compaction, rejected_rows, tables)).statements()
    yield from rejected_rows.drain()
    yield compaction.transactions()


def _ordered_tables(compaction: Compaction, rejected_rows: RejectedRows, tables: _Tables) -> dict[FoldedName, OrderedTable]:
    found: dict[FoldedName, OrderedTable] = {}
    for name, final in compaction.ordered().items():
        rows = PlannedRows(final, compaction.origins, tables.target.rekeyed.get(name), rejected_rows)
        if (renderers := tables.of(name)) is None:
            raise _missing(rows, range(len(final)))
        found[name] = OrderedTable(renderers, rows)
    return found


def _with_placeholders(
    renderers: TableRenderers, rows: PlannedRows, partial: PartialRows | None, plain: Sequence[int], whole: Iterator[Sequence[int]]
) -> Iterator[Statement]:
    """Plan rows some of which are read from upstream: as they come, so that few of them are held at once."""
    # The parts that lie over a placeholder need all of its columns.
    if partial is not None:
        yield from _statements(renderers, rows, partial, sorted([*plain, *chain.from_iterable(whole)]))
        return
    yield from _statements(renderers, rows, None, plain)
    for group in whole:
        yield from _statements(renderers, rows, None, group)
        rows.final.forget(group)


def _statements(renderers: TableRenderers, rows: PlannedRows, partial: PartialRows | None, chosen: Sequence[int]) -> Iterator[Statement]:
    if partial is not None:
        laid = PartialPlan(renderers, rows, partial)
        yield from laid.statements()
        chosen = [row for row in chosen if row not in laid.superseded]
    if not chosen:
        return
    yield from TablePlan(renderers, rows).statements(chosen)


def _missing(rows: PlannedRows, chosen: Sequence[int]) -> FatalSinkError:
    # The earliest row: the DDL that is missing lies before it.
    return FatalSinkError(
        "the table is missing in the sink",
        remedy=Remedy(
            "planner.create-table-with-rows",
            "Create the table in the sink as upstream has it, with its rows. A DDL was skipped, or the table was dropped by hand",
        ),
        **rows.position(rows.final.first(chosen)).facts,
    )


def _repeats(target: PlanTarget, rows: PlannedRows, chosen: Sequence[int]) -> Repeats:
    if target.repeats is None:
        raise NeedsOperator(NO_KEY, remedy=NO_KEY_REMEDY, **rows.position(rows.final.first(chosen)).facts)
    return target.repeats
