"""The statements of a table without a key: DELETEs that find whole rows, then INSERTs. What is deleted and inserted: ``keyless``."""

from collections.abc import Callable, Iterator, Mapping, Sequence

from applier.model.errors import ApplierError, FatalSinkError
from applier.model.events import MARKER_IMAGE
from applier.planner.keyless import EqualRows, Image, Repeats, counted_rows, net_rows
from applier.planner.port import WritingDialect
from applier.planner.rejected_rows import PlannedRows
from applier.planner.rendering import TableRenderer
from applier.planner.statement import Phase, Statement, StatementRows


class KeylessPlan:
    """The statements of one table without a key in one segment."""

    def __init__(self, renderer: TableRenderer, columns: tuple[str, ...], rows: PlannedRows) -> None:
        """``columns``: those of the sink's table that a whole row writes."""
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
            # The event of a marker is quarantined. It stands for no other version of a row, since there are none.
            if image == MARKER_IMAGE:
                continue
            number = self._rows.final.origin[row]
            try:
                if (render := renderers.get(number)) is None:
                    render = renderers[number] = self._renderer.whole_row(self._rows.place(row))
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
