"""Histories in every form of the wire: what a changefeed is set up to send, how the replica must be set up for it, and what must come out.

Each form is drawn from a seed, on top of everything that ``ProducerOptions.drawn`` draws (dispatchers, replays, growth, flavours).
"""

import random
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

from applier.demo.simulator.history import History, HistoryOptions
from applier.demo.simulator.image_options import ColumnSelector
from applier.demo.simulator.large_row import LargeRowOption, LargeRowSettings
from applier.demo.simulator.operation import UpstreamStep
from applier.demo.simulator.producer import LogRecord, Producer, ProducerOptions
from applier.demo.simulator.projection import seen_by_sink
from applier.model.position import Ts
from applier.selection import EVERYTHING, TableSelection
from applier.sources.claim_check.settings import ClaimCheckSettings
from applier.sources.claim_check.store import FsspecStore
from applier.sources.open_protocol.decoder import OpenProtocolDecoder
from applier.sources.open_protocol.large_row import WholeRowSources
from tests.rig.fake_source import FakeSource
from tests.rig.selected import SELECTIONS, differences_from_projection


class Form(StrEnum):
    """One option of a changefeed beyond whole rows with keys."""

    SELECTED = "column selectors"
    WITHOUT_FLAGS = "the oldest producers, which write no flags"
    STALE_FLAGS = "flags of a table as it was"
    CLAIM_CHECK = "large rows in a store"
    SELECTION = "a table filter and routes"


FORMS = list(Form)


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
        return seen_by_sink(self.history, self.options.images)

    @property
    def selection(self) -> TableSelection:
        """The tables that the replica takes, and their names in the sink."""
        return SELECTIONS[self.history.seed % len(SELECTIONS)] if Form.SELECTION in self.forms else EVERYTHING

    @property
    def decoder(self) -> OpenProtocolDecoder:
        """A decoder that finds large rows, and takes the tables of the selection."""
        claims = ClaimCheckSettings(storage=str(self.objects)) if Form.CLAIM_CHECK in self.forms else None
        return OpenProtocolDecoder(WholeRowSources(claims=FsspecStore(claims) if claims else None), self.selection)

    def source(self, **options) -> FakeSource:
        """The log as a source in memory."""
        made = FakeSource(self.log, **options)
        made.whole_rows, made.selection = self.decoder.whole_rows, self.selection
        return made

    def differences(self, url: str) -> list[str]:
        """List what differs in the sink from what it must hold at the end."""
        return differences_from_projection(self.expected, self.final_ts, url, self.selection)


def forms_of(seed: int) -> frozenset[Form]:
    """One form after the other, each alone; every second time another one beside it."""
    first = FORMS[seed % len(FORMS)]
    second = random.Random(f"forms {seed}").choice(FORMS)
    return frozenset({first, second}) if seed // len(FORMS) % 2 else frozenset({first})


def world_of(seed: int, objects: Path, *, transactions: int = 30, forms: frozenset[Form] | None = None, **changes) -> World:
    """Draw a history and its log. ``objects`` is an empty directory for the objects of claim checks."""
    forms = forms_of(seed) if forms is None else forms
    options = ProducerOptions.drawn(seed)
    images = replace(
        options.images,
        selector=ColumnSelector(seed, share=0.5) if Form.SELECTED in forms else None,
        flags=Form.WITHOUT_FLAGS not in forms,
        stale_flags=Form.STALE_FLAGS in forms,
    )
    large = LargeRowSettings(option=LargeRowOption.CLAIM_CHECK, limit=700, directory=objects) if Form.CLAIM_CHECK in forms else None
    options = replace(options, images=images, large=large, admin_events=seed % 2 == 0, partitions=1 + seed % 6, **changes)
    history = History(seed, HistoryOptions(transactions=transactions))
    producer = Producer(history, options)
    log = tuple(producer.log())
    return World(history, options, forms, log, producer.final_ts, dict(producer.counts), objects)
