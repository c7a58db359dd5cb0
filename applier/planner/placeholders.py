"""Placeholders among the final rows of one table: they hold their handle key only, and their whole rows are read from upstream.

Only what is left after compaction is looked up: no superseded placeholder, and no delete. The rows come as of the end of the segment. That
is the version of each row's own last event: a later change at or below the segment's end would be in the segment, and would be its last.
Unless an event filter leaves that change out: so a row that is gone by then is read as of its own commit.
"""

from collections.abc import Iterator, Sequence
from contextlib import suppress

from applier.model.errors import ApplierError, NeedsOperator, ProtocolError
from applier.model.events import MARKER_IMAGE, RowKind, Shape
from applier.model.remedy import SKIP_RECORD, Remedy
from applier.model.segment import SegmentWindow
from applier.planner.column_match import Origin
from applier.planner.port import RowDecoder, RowLookup
from applier.planner.rejected_rows import PlannedRows, with_place

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
    """Yield some rows at a time, with whole images in the place of placeholders. A row that upstream lacks is refused, and is in none.

    As ``RowLookup``; the error names the earliest row.
    """
    earliest = rows.place(rows.final.first(waiting))
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
            raise with_place(error, earliest.facts) from error


def _as_committed(
    rows: PlannedRows, missing: Sequence[int], decoder: RowDecoder, asked: tuple[RowLookup, Shape, int]
) -> Iterator[list[int]]:
    """Look up, each as of its own commit, rows that upstream lacks at the segment's end: a filter has left out the events of their end."""
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
