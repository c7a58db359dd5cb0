"""Histories in every form of the wire: what a changefeed is set up to send, how the replica must be set up for it, and what must come out.

Each form is drawn from a seed, on top of everything that ``ProducerOptions.drawn`` draws (dispatchers, replays, growth, flavours).
"""

import random
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

from applier.coordinator.policy import RowPolicy
from applier.demo.simulator.dispatch import Dispatcher
from applier.demo.simulator.history import History, HistoryOptions
from applier.demo.simulator.item import ColumnSelector, ImageOptions, LargeRowOption, LargeRowSettings
from applier.demo.simulator.operation import UpstreamStep
from applier.demo.simulator.producer import LogRecord, Producer, ProducerOptions
from applier.demo.simulator.table_family import TableFamily
from applier.model.position import Ts
from applier.planner.keyless import EqualRows
from applier.selection import EVERYTHING, TableSelection
from applier.sources.claim_check.settings import ClaimCheckSettings
from applier.sources.claim_check.store import FsspecStore
from applier.sources.port import Decoder
from applier.sources.ticdc.large_row import WholeRowSources
from applier.upstream.row_lookup import TidbRowLookup
from applier.upstream.settings import UpstreamSettings
from tests.rig.fake_source import FakeSource
from tests.rig.projection import seen_by_sink
from tests.rig.protocol import families_of, in_format
from tests.rig.selected import SELECTIONS, differences_from_projection
from tests.rig.tidb import tidb_server
from tests.rig.tidb_history import give_history


class Form(StrEnum):
    """One option of a changefeed beyond whole rows with keys."""

    SELECTED = "column selectors"
    WITHOUT_FLAGS = "the oldest producers, which write no flags"
    STALE_FLAGS = "flags of a table as it was"
    CLAIM_CHECK = "large rows in a store"
    HANDLE_KEY_ONLY = "large rows of which only the handle key is sent"
    KEYLESS = "tables without a key"
    SELECTION = "a table filter and routes"


FORMS = list(Form)
NOT_TOGETHER = (
    # Upstream gives whole rows, so nothing would be left out of the large ones.
    frozenset({Form.SELECTED, Form.HANDLE_KEY_ONLY}),
    # A changefeed has one way to send large rows.
    frozenset({Form.CLAIM_CHECK, Form.HANDLE_KEY_ONLY}),
)


@dataclass(frozen=True)
class World:
    """A history, the log that a changefeed makes of it, and the last common resolved ts."""

    history: History
    options: ProducerOptions
    forms: frozenset[Form]
    log: tuple[LogRecord, ...]
    final_ts: Ts
    counts: dict[str, int]
    objects: Path
    settings: dict[str, Any] = field(default_factory=dict)

    @property
    def expected(self) -> Iterable[UpstreamStep]:
        """What the sink must hold, as steps that an oracle executes."""
        return seen_by_sink(self.history, self.options.sent_images)

    @property
    def selection(self) -> TableSelection:
        """The tables that the replica takes, and their names in the sink."""
        return SELECTIONS[self.history.seed % len(SELECTIONS)] if Form.SELECTION in self.forms else EVERYTHING

    def whole_rows(self, upstream_url: str = "") -> WholeRowSources:
        """Where large rows are found; ``upstream_url``: a server that answers as upstream's TiDB."""
        claims = FsspecStore(ClaimCheckSettings(storage=str(self.objects))) if Form.CLAIM_CHECK in self.forms else None
        lookup = TidbRowLookup(UpstreamSettings(url=upstream_url)) if Form.HANDLE_KEY_ONLY in self.forms else None
        return WholeRowSources(claims=claims, lookup=lookup)

    def decoder(self, upstream_url: str = "") -> Decoder:
        """A decoder that finds large rows, and takes the tables of the selection."""
        return self.source(upstream_url).decoder

    def source(self, upstream_url: str = "") -> FakeSource:
        """The log as a source in memory."""
        made = FakeSource(self.log)
        made.whole_rows, made.selection = self.whole_rows(upstream_url), self.selection
        return made

    def differences(self, url: str) -> list[str]:
        """List what differs in the sink from what it must hold at the end."""
        return differences_from_projection(self.expected, self.final_ts, url, self.selection)


@contextmanager
def upstream_of(world: World) -> Iterator[str]:
    """Run a server that answers as upstream's TiDB where the forms need one, and yield its URL."""
    if Form.HANDLE_KEY_ONLY not in world.forms:
        yield ""
        return
    with tidb_server() as upstream:
        give_history(upstream, world.history)
        yield upstream.url


def forms_of(seed: int) -> frozenset[Form]:
    """One form after the other, each alone; every second time another one beside it."""
    first = FORMS[seed % len(FORMS)]
    second = random.Random(f"forms {seed}").choice(FORMS)
    both = frozenset({first, second})
    return both if seed // len(FORMS) % 2 and both not in NOT_TOGETHER else frozenset({first})


def rows_world_of(seed: int, objects: Path, **more) -> World:
    """Draw a world that a replica with ``consistency = "row"`` may follow: rows stay in their streams."""
    dispatcher = (Dispatcher.TABLE, Dispatcher.INDEX_VALUE)[seed // len(FORMS) % 2]
    by_table = dispatcher is Dispatcher.TABLE
    # Where a table has several streams, a raw change of a key would cross from one to another.
    raw = {} if by_table else {"raw_updates": False}
    world = world_of(seed, objects, dispatcher=dispatcher, images=raw, **more)
    return replace(world, settings=world.settings | {"rows": RowPolicy(by_table=by_table, most_rows=50, settle_span=0)})


def world_of(
    seed: int,
    objects: Path,
    *,
    transactions: int = 30,
    forms: frozenset[Form] | None = None,
    images: dict[str, bool] | None = None,
    **changes,
) -> World:
    """Draw a history and its log. ``objects`` is an empty directory for the objects of claim checks."""
    forms = forms_of(seed) if forms is None else forms
    drawn = ProducerOptions.drawn(seed)
    options = replace(
        drawn, images=_images(drawn, forms), large=_large(forms, objects), admin_events=seed % 2 == 0, partitions=1 + seed % 6
    )
    families, settings = families_of(seed), {}
    if Form.KEYLESS in forms:
        # What is sent again must show, or equal rows cannot be told from repeated ones (docs/tables.md).
        options = replace(options, announced_restarts=True, growth=0)
        families, settings = families | {TableFamily.KEYLESS}, {"writes_keyless": True, "equal_rows": EqualRows.ALL}
    options = replace(options, images=replace(options.images, **(images or {})), **changes)
    options = in_format(options)
    history = History(seed, HistoryOptions(transactions=transactions, families=families, keyless_twins=True))
    producer = Producer(history, options)
    log = tuple(producer.log())
    return World(history, options, forms, log, producer.final_ts, dict(producer.counts), objects, settings)


def _images(drawn: ProducerOptions, forms: frozenset[Form]) -> ImageOptions:
    return replace(
        drawn.images,
        selector=ColumnSelector(drawn.seed, share=0.5) if Form.SELECTED in forms else None,
        flags=Form.WITHOUT_FLAGS not in forms,
        stale_flags=Form.STALE_FLAGS in forms,
        old_value=drawn.images.old_value or Form.KEYLESS in forms,
    )


def _large(forms: frozenset[Form], objects: Path) -> LargeRowSettings | None:
    if Form.CLAIM_CHECK in forms:
        return LargeRowSettings(option=LargeRowOption.CLAIM_CHECK, limit=700, directory=objects)
    return LargeRowSettings(option=LargeRowOption.HANDLE_KEY_ONLY, limit=700) if Form.HANDLE_KEY_ONLY in forms else None
