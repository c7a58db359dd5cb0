"""Planning one bucket of some segments: cached chunks in, whole statements out.

Per table: the last version of each key; DELETEs for the keys that are gone; REPLACEs for the rest. ``Statement.phase`` puts all deletes
of a segment before its first REPLACE, so two spellings of one key under a ``_ci`` collation, which are two keys here, end right.
Why any order is right among deletes and among REPLACEs: the final rows satisfy all unique constraints at the window's end, and a stale
row of the sink that a REPLACE collides with has changed inside the window, so that its own final state is written too.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from applier.model.chunk import unpack
from applier.model.errors import FatalSinkError, InvariantViolation, NeedsOperator
from applier.model.events import MARKER_IMAGE, FoldedName, RowKind
from applier.model.rejected_event import RejectedEvent
from applier.model.segment import SegmentWindow, are_contiguous
from applier.planner.catalogue import TableDescription
from applier.planner.column_match import Origin, key_names
from applier.planner.compaction import COMMIT_TS, IMAGE, OFFSET, ORIGIN, Compaction, Version
from applier.planner.division import by_window
from applier.planner.port import Dialect, RowDecoder
from applier.planner.rejected_rows import STOP, QuarantinePolicy, RejectedRows
from applier.planner.rendering import TableRenderer, image_keys, with_place
from applier.planner.statement import Phase, Statement, StatementRows
from applier.planner.transactions import TransactionSet


class PlanTarget(NamedTuple):
    """The sink, as statements must fit it: its tables as they are now, and its dialect.

    ``rekeyed`` holds the sink's key columns of tables whose events do not give a usable key.
    """

    tables: Mapping[FoldedName, TableDescription]
    rekeyed: Mapping[FoldedName, tuple[str, ...]]
    dialect: Dialect


Planned: TypeAlias = Statement | RejectedEvent | TransactionSet


def plan_segments(
    chunks: Iterable[bytes], windows: Sequence[SegmentWindow], target: PlanTarget, decoder: RowDecoder, policy: QuarantinePolicy = STOP
) -> Iterator[tuple[int, Planned]]:
    """Yield, window by window, the statements of one bucket, the rows that ``policy`` quarantines and, last, one TransactionSet.

    Each comes with the number of its window. ``windows`` are contiguous and ascending; rows outside of all of them are left out.
    ProtocolError: a final image cannot be read (it is never replaced by an older version). FatalSinkError: the sink lacks the table or
    a column, or cannot take a row of this size. NeedsOperator: a partial image, or rows without a key.
    """
    if not are_contiguous(windows):
        message = "the windows of segments that are planned together are not contiguous"
        raise InvariantViolation(message)
    keys = image_keys(target.rekeyed, target.tables, decoder.image_decoder)
    rejected_rows = [RejectedRows(policy, decoder.decode_key) for _ in windows]
    compactions = [Compaction(window, keys, rejected.refuse) for window, rejected in zip(windows, rejected_rows, strict=True)]
    for data in chunks:
        for number, part in by_window(unpack(data), windows):
            compactions[number].feed(part)
    # Each window's rows are freed once its statements are taken.
    compactions.reverse()
    for number, rejected in enumerate(rejected_rows):
        for item in _planned(compactions.pop(), rejected, target, decoder):
            yield number, item


def plan_bucket(
    chunks: Iterable[bytes], window: SegmentWindow, target: PlanTarget, decoder: RowDecoder, policy: QuarantinePolicy = STOP
) -> Iterator[Planned]:
    """Yield what ``plan_segments`` yields for one window."""
    for _, item in plan_segments(chunks, (window,), target, decoder, policy):
        yield item


def _planned(compaction: Compaction, rejected_rows: RejectedRows, target: PlanTarget, decoder: RowDecoder) -> Iterator[Planned]:
    tables, rekeyed, dialect = target
    origins = compaction.origins
    for name, finals in compaction.tables():
        # Markers are rare: the comparison of all images runs in C, and the list is copied only if there is one.
        versions = [version for version in finals if IMAGE(version) != MARKER_IMAGE] if MARKER_IMAGE in map(IMAGE, finals) else finals
        if not versions:
            continue
        description = _described(name, versions, origins, tables)
        if name not in rekeyed:
            _check_key(versions, origins)
        renderer = TableRenderer(description, rekeyed.get(name), dialect, decoder.image_decoder, rejected_rows)
        yield from _TablePlan(renderer, rejected_rows, rekeyed.get(name), origins).statements(versions)
    yield from rejected_rows.drain()
    yield compaction.transactions()


def _described(
    name: FoldedName, versions: Sequence[Version], origins: Sequence[Origin], tables: Mapping[FoldedName, TableDescription]
) -> TableDescription:
    description = tables.get(name)
    if description is None:
        # The earliest row: the DDL that is missing lies before it.
        first = min(versions, key=COMMIT_TS)
        raise FatalSinkError(
            "the table is missing in the sink",
            remedy="Create the table in the sink as upstream has it, with its rows. A DDL was skipped, or the table was dropped by hand",
            **origins[ORIGIN(first)].facts(COMMIT_TS(first), OFFSET(first)),
        )
    return description


def _check_key(versions: Sequence[Version], origins: Sequence[Origin]) -> None:
    first = min(versions, key=COMMIT_TS)
    origin = origins[ORIGIN(first)]
    if not key_names(origin.shape):
        raise NeedsOperator(
            "the table has no key, so its rows cannot be applied exactly once",
            remedy="Give the table a primary key upstream, or leave it out of the changefeed",
            **origin.facts(COMMIT_TS(first), OFFSET(first)),
        )


class _TablePlan:
    """The statements of one table."""

    def __init__(
        self, renderer: TableRenderer, rejected_rows: RejectedRows, key: tuple[str, ...] | None, origins: Sequence[Origin]
    ) -> None:
        self._renderer, self._rejected_rows = renderer, rejected_rows
        self._description, self._dialect = renderer.description, renderer.dialect
        self._key = key
        self._origins = origins

    def statements(self, versions: Sequence[Version]) -> Iterator[Statement]:
        """Yield DELETEs, then REPLACEs. Where no unique index is exactly the key, REPLACE would not find the row: it is deleted before."""
        key = self._key_columns(versions[0])
        upserts = [version for version in versions if version[1] == RowKind.UPSERT]
        is_unique = self._description.has_unique_key(key)
        # DELETE and REPLACE, never ON DUPLICATE KEY UPDATE: an update may hit another row through a secondary key. With it,
        # 318 of 3,000 simulated histories end wrong.
        deleted = [version for version in versions if version[1] == RowKind.DELETE] if is_unique else versions
        if deleted:
            yield from self._cut(Phase.DELETE, key, deleted, self._renderer.key_texts(deleted, self._origins))
        # A row that was rejected at its DELETE is not written either.
        upserts = [version for version in upserts if id(version) not in self._rejected_rows.dropped]
        if upserts:
            written = tuple(column.name for column in self._description.columns if not column.generated)
            yield from self._cut(Phase.REPLACE, written, upserts, self._renderer.row_texts(upserts, self._origins))

    def _key_columns(self, version: Version) -> tuple[str, ...]:
        return tuple(self._spelling(name) for name in self._key or key_names(self._origins[ORIGIN(version)].shape))

    def _spelling(self, name: str) -> str:
        """Return the sink's spelling; a column that it lacks is reported with the first row that needs it."""
        return next((column.name for column in self._description.columns if column.name.casefold() == name.casefold()), name)

    def _cut(self, phase: Phase, columns: tuple[str, ...], versions: Sequence[Version], texts: Iterator[Any]) -> Iterator[Statement]:
        """Pair the statements with the timestamps of their rows. ``texts`` leaves out rejected rows."""
        render = self._dialect.deletes if phase is Phase.DELETE else self._dialect.replaces
        rendered = _Rendered(versions, self._rejected_rows.dropped, texts, keeps_texts=self._rejected_rows.policy.trace_rows)
        while True:
            try:
                for text, rows in render(self._description, columns, rendered.texts):
                    yield self._statement(phase, columns, text, *rendered.take(rows))
            # From the dialect, which knows no rows: an error with a commit_ts was raised here and has its place already.
            except FatalSinkError as error:
                if "commit_ts" in error.facts:
                    raise
                # The dialect has yielded all rows before the one that is too large. The next call begins after that row.
                (version,), _ = rendered.take(1)
                origin = self._origins[ORIGIN(version)]
                refusal = with_place(error, origin.facts(COMMIT_TS(version), OFFSET(version)))
                refusal.__cause__ = error
                self._rejected_rows.refuse(origin, version, refusal, self._key)
            else:
                break
        if left := rendered.left():
            raise InvariantViolation(
                "the dialect rendered fewer rows than it received",
                table=str(self._description.folded),
                rows=len(versions),
                rendered=len(versions) - left,
            )

    def _statement(self, phase: Phase, columns: tuple[str, ...], text: str, versions: Sequence[Version], texts: Sequence[Any]) -> Statement:
        commits = list(map(COMMIT_TS, versions))
        source_rows = None
        if texts:
            rows = tuple(self._rejected_rows.described(self._origins[ORIGIN(version)], version, self._key) for version in versions)
            source_rows = StatementRows(
                phase=phase,
                table=self._description,
                columns=columns,
                key=self._key_columns(versions[0]),
                dialect=self._dialect,
                texts=tuple(texts),
                rows=rows,
            )
        return Statement(phase, str(self._description.folded), text.encode(), len(versions), min(commits), max(commits), source_rows)


class _Rendered:
    """Versions and their texts. With ``keeps_texts``, the texts of rows that are in no statement yet are kept."""

    def __init__(self, versions: Sequence[Version], dropped: set[int], texts: Iterator[Any], *, keeps_texts: bool) -> None:
        self._versions, self._dropped = versions, dropped
        self._done = 0
        self._kept: list[Any] = []
        self.texts = self._keep(texts) if keeps_texts else texts

    def _keep(self, texts: Iterator[Any]) -> Iterator[Any]:
        for text in texts:
            self._kept.append(text)
            yield text

    def take(self, rows: int) -> tuple[Sequence[Version], Sequence[Any]]:
        """Return the next ``rows`` versions that were not dropped, and their texts if these are kept."""
        texts = self._kept[:rows]
        del self._kept[:rows]
        # A slice in the usual case; only after a rejected row they are checked one by one.
        if not self._dropped:
            self._done += rows
            return self._versions[self._done - rows : self._done], texts
        taken: list[Version] = []
        while len(taken) < rows:
            if id(self._versions[self._done]) not in self._dropped:
                taken.append(self._versions[self._done])
            self._done += 1
        return taken, texts

    def left(self) -> int:
        """Count the versions that are in no statement and were not rejected."""
        return sum(id(version) not in self._dropped for version in self._versions[self._done :])
