"""What a changefeed leaves out of its images (open_protocol.md 2.4, 2.5, 2.8)."""

import random
from dataclasses import dataclass, replace
from functools import lru_cache

from applier.demo.simulator.schema import Table, UpstreamColumn
from applier.demo.simulator.wire_format import WireFormat, WireOptions


@dataclass(frozen=True, slots=True)
class ColumnSelector:
    """The ``column-selectors`` rule of a changefeed: some columns of each table are never sent.

    Which ones is drawn from ``seed`` and the names of table and column. Left out are only columns that a sink can fill without upstream:
    with a default, or nullable, and in no unique index that the default would violate.
    ``keeps_handle`` False: where a table has a second unique key that is complete, its handle key may be left out.
    """

    seed: int = 0
    share: float = 0.4
    keeps_handle: bool = True

    def places(self, table: Table) -> tuple[int, ...]:
        """Return the places of the columns that are sent."""
        return _selected(self, table)


@lru_cache(maxsize=4096)
def _selected(selector: ColumnSelector, table: Table) -> tuple[int, ...]:
    kept = _kept_key(selector, table)
    return tuple(
        place
        for place, column in enumerate(table.columns)
        if column.is_sent and (column.name in kept or not _can_be_left_out(table, column, kept) or not _is_drawn(selector, table, column))
    )


def _kept_key(selector: ColumnSelector, table: Table) -> frozenset[str]:
    """Return the columns of the key that stays: the handle, or the first other unique key that is NOT NULL."""
    if table.handle is None:
        return frozenset(table.position)
    nullable = {column.name for column in table.columns if column.nullable}
    others = [index for index in table.unique_indexes if index is not table.handle and not nullable & set(index.columns)]
    return frozenset((table.handle if selector.keeps_handle or not others else others[0]).columns)


def _can_be_left_out(table: Table, column: UpstreamColumn, kept: frozenset[str]) -> bool:
    if table.handle is not None and column.name in table.handle.columns:
        return column.name not in kept
    fills_many = any(column.name in index.columns for index in table.unique_indexes) and column.has_default
    return (column.nullable or column.has_default) and not fills_many


def _is_drawn(selector: ColumnSelector, table: Table, column: UpstreamColumn) -> bool:
    return random.Random(f"selector {selector.seed} {table.name} {column.name}").random() < selector.share


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageOptions:
    """What a changefeed leaves out of images (open_protocol.md 2.8) and whether it splits updates of keys (3.6).

    ``flags`` False: the oldest producers, whose columns have ``h`` but no ``f``. ``stale_flags``: columns keep the flags that they had
    when the owner first saw the table, and later columns have none (2.5, the new producer's cache).
    """

    raw_updates: bool = False
    old_value: bool = True
    only_updated_columns: bool = False
    delete_only_handle_key: bool = False
    flags: bool = True
    stale_flags: bool = False
    selector: ColumnSelector | None = None

    def sent(self, form: WireFormat, options: WireOptions) -> "ImageOptions":
        """Return what a format makes of them: all but Open Protocol have old images always, and simple has complete ones only."""
        match form:
            case WireFormat.OPEN_PROTOCOL:
                return self
            case WireFormat.CANAL_JSON:
                return replace(self, old_value=True, only_updated_columns=self.only_updated_columns or options.content_compatible)
            case WireFormat.SIMPLE | WireFormat.SIMPLE_AVRO:
                return replace(self, old_value=True, only_updated_columns=False, delete_only_handle_key=False)
