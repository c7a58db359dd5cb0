"""Planning one bucket of some segments: cached chunks in, whole statements out.

Per table: the last version of each key; DELETEs for the keys that are gone; REPLACEs for the rest. ``Statement.phase`` puts all deletes
of a segment before its first REPLACE, so two spellings of one key under a ``_ci`` collation, which are two keys here, end right.
Why any order is right among deletes and among REPLACEs: the final rows satisfy all unique constraints at the window's end, and a stale
row of the sink that a REPLACE collides with has changed inside the window, so that its own final state is written too.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, compress
from typing import Final, NamedTuple, TypeAlias

from applier.model.chunk import unpack
from applier.model.errors import FatalSinkError, InvariantViolation, NeedsOperator
from applier.model.events import MARKER_IMAGE, FoldedName
from applier.model.rejected_event import RejectedEvent
from applier.model.remedy import Remedy
from applier.model.segment import SegmentWindow, are_contiguous
from applier.planner.catalogue import TableDescription
from applier.planner.column_match import key_names
from applier.planner.compaction import Compaction, RowOrder, TransactionSet
from applier.planner.division import by_window
from applier.planner.keyless import ALL_REAL, AmbiguousRows, EqualRows, EqualRowsRule, Repeats, earliest
from applier.planner.keyless_plan import KeylessPlan
from applier.planner.ordered_plan import OrderedPlan, OrderedTable
from applier.planner.partial_plan import PartialPlan
from applier.planner.partial_rows import PartialRows
from applier.planner.placeholders import look_up, placeholders_of
from applier.planner.port import Dialect, RowDecoder
from applier.planner.rejected_rows import STOP, PlannedRows, QuarantinePolicy, RejectedRows
from applier.planner.rendering import Renderers, TableRenderers, image_keys
from applier.planner.statement import Statement
from applier.planner.table_plan import TablePlan

NO_KEY: Final = "the table has no key, so its rows cannot be applied exactly once"
NO_KEY_REMEDY: Final = Remedy(
    "planner.add-primary-key-upstream",
    "Give the table a primary key upstream, or leave it out with source.tables. "
    'Or set sink.keyless = "best_effort" and read `applier docs tables` about what it cannot tell apart',
)


class PlanTarget(NamedTuple):
    """The sink, as statements must fit it: its tables as they are now, and its dialect.

    ``rekeyed`` holds the sink's key columns of tables whose events do not give a usable key. ``repeats``: from which points on the rows of
    streams are repeated, if tables without a key are written; None: they are refused.
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

    Each comes with the number of its window. ``windows`` are contiguous and ascending; rows outside of all of them are left out.
    ``bulk``: tables with many rows are loaded (``Statement.data``), as far as the dialect can.
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
        **rows.place(rows.final.first(chosen)).facts,
    )


def _repeats(target: PlanTarget, rows: PlannedRows, chosen: Sequence[int]) -> Repeats:
    if target.repeats is None:
        raise NeedsOperator(NO_KEY, remedy=NO_KEY_REMEDY, **rows.place(rows.final.first(chosen)).facts)
    return target.repeats
