"""Planning one bucket of a segment: cached chunks in, whole statements out.

Per table: the last version of each key; DELETEs for the keys that are gone; REPLACEs for the rest. ``Statement.phase`` puts all deletes
of a segment before its first REPLACE, so two spellings of one key under a ``_ci`` collation, which are two keys here, end right.
Why any order is right among deletes and among REPLACEs: the final rows satisfy all unique constraints at the window's end, and a stale
row of the sink that a REPLACE collides with has changed inside the window, so that its own final state is written too.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from applier.errors import FatalSinkError, InvariantViolation, NeedsOperator
from applier.events import FoldedName, RowKind
from applier.planner.binding import Origin, key_names
from applier.planner.catalogue import TableDescription
from applier.planner.compaction import COMMIT_TS, OFFSET, ORIGIN, Compaction, Version
from applier.planner.port import Dialect, ImageDecoders, Phase, Statement
from applier.planner.rendering import KeyDecoder, TableRenderer, image_keys, placed
from applier.planner.transactions import TransactionSet
from applier.planner.window import SegmentWindow


def plan_bucket(  # noqa: PLR0913, PLR0917 -- one bucket's whole input in one call: Spark tasks have nowhere to keep half of it
    chunks: Iterable[bytes],
    window: SegmentWindow,
    tables: Mapping[FoldedName, TableDescription],
    rekeyed: Mapping[FoldedName, tuple[str, ...]],
    dialect: Dialect,
    image_decoders: ImageDecoders,
    decode_key: KeyDecoder,
) -> Iterator[Statement | TransactionSet]:
    """Yield the statements of one bucket and, last, one TransactionSet.

    ``tables`` describe the sink as it is now; ``rekeyed`` holds the key columns of tables whose events cannot be trusted about them.
    ProtocolError: a final image cannot be read (it is never replaced by an older version). FatalSinkError: the sink lacks the table or
    a column, or cannot take a row of this size. NeedsOperator: a partial image, or rows without a key.
    """
    compaction = Compaction(window, image_keys(rekeyed, tables, image_decoders))
    for data in chunks:
        compaction.feed(data)
    origins = compaction.origins
    for name, versions in compaction.tables():
        description = _described(name, versions, origins, tables)
        if name not in rekeyed:
            _check_key(versions, origins)
        renderer = TableRenderer(description, rekeyed.get(name), dialect, image_decoders)
        yield from _TablePlan(renderer, description, rekeyed.get(name), dialect, origins).statements(versions, decode_key)
    yield compaction.transactions()


def _described(
    name: FoldedName, versions: Sequence[Version], origins: Sequence[Origin], tables: Mapping[FoldedName, TableDescription]
) -> TableDescription:
    description = tables.get(name)
    if description is None:
        first = min(versions, key=COMMIT_TS)
        raise FatalSinkError(
            "sink table missing",
            remedy="Create the table in the sink as upstream has it, with its rows (a DDL was skipped, or the table was dropped by hand)",
            **origins[ORIGIN(first)].facts(COMMIT_TS(first), OFFSET(first)),
        )
    return description


def _check_key(versions: Sequence[Version], origins: Sequence[Origin]) -> None:
    first = min(versions, key=COMMIT_TS)
    origin = origins[ORIGIN(first)]
    if not key_names(origin.shape):
        raise NeedsOperator(
            "rows of a table without a key cannot be applied exactly once",
            remedy="Give the table a primary key upstream, or leave it out of the changefeed",
            **origin.facts(COMMIT_TS(first), OFFSET(first)),
        )


class _TablePlan:
    """The statements of one table."""

    def __init__(
        self,
        renderer: TableRenderer,
        description: TableDescription,
        key: tuple[str, ...] | None,
        dialect: Dialect,
        origins: Sequence[Origin],
    ) -> None:
        self._renderer = renderer
        self._description = description
        self._key = key
        self._dialect = dialect
        self._origins = origins

    def statements(self, versions: Sequence[Version], decode_key: KeyDecoder) -> Iterator[Statement]:
        """Yield DELETEs, then REPLACEs. Where no unique index is exactly the key, REPLACE would not find the row: it is deleted before."""
        upserts = [version for version in versions if version[1] == RowKind.UPSERT]
        key = self._key or key_names(self._origins[versions[0][6]].shape)
        is_unique = self._description.has_unique_key(key)
        deleted = [version for version in versions if version[1] == RowKind.DELETE] if is_unique else versions
        columns = [self._spelling(name) for name in key]
        if deleted:
            texts = self._renderer.key_texts(deleted, self._origins, decode_key)
            yield from self._cut(Phase.DELETE, deleted, self._dialect.deletes(self._description, columns, texts))
        if upserts:
            rows = self._renderer.row_texts(upserts, self._origins)
            written = [column.name for column in self._description.columns if not column.generated]
            yield from self._cut(Phase.REPLACE, upserts, self._dialect.replaces(self._description, written, rows))

    def _spelling(self, name: str) -> str:
        """Return the sink's spelling; a column that it lacks is reported where a row is at hand."""
        return next((column.name for column in self._description.columns if column.name.casefold() == name.casefold()), name)

    def _cut(self, phase: Phase, versions: Sequence[Version], rendered: Iterator[tuple[str, int]]) -> Iterator[Statement]:
        """Pair the texts with the timestamps of their rows."""
        table, done = str(self._description.folded), 0
        try:
            for text, rows in rendered:
                commits = list(map(COMMIT_TS, versions[done : done + rows]))
                done += rows
                yield Statement(phase, table, text, rows, min(commits), max(commits))
        except FatalSinkError as error:
            if "commit_ts" in error.facts:
                raise
            # A dialect has yielded all rows before the one that does not fit.
            version = versions[done]
            raise placed(error, self._origins[ORIGIN(version)].facts(COMMIT_TS(version), OFFSET(version))) from error
        if done != len(versions):
            raise InvariantViolation("a dialect lost rows", table=table, rows=len(versions), rendered=done)
