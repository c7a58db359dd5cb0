"""How a simulated changefeed is set up, what happens to it, and the records that it writes."""

import random
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from applier.demo.simulator.dispatch import Dispatcher
from applier.demo.simulator.item import ImageOptions, LargeRowSettings
from applier.demo.simulator.json_text import Flavour
from applier.demo.simulator.wire_format import WireFormat, WireOptions
from applier.model.position import Stream


class LogRecord(NamedTuple):
    """One record in the order of real time; ``time_ms`` is when it was produced."""

    stream: Stream
    key: bytes | None
    value: bytes
    time_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerOptions:
    """How a changefeed is set up, and what happens to it.

    ``partitions``: of each topic at first; ``growth``: partitions that are added at most, per topic. ``replays``: owner restarts,
    table moves and retries together. ``lookahead``: steps by which one table may be ahead of another; ``horizon``: steps that
    a restart may go back. ``open_tail``: the log ends with rows above the last resolved ts.
    ``upgrade``: a restart may change tiflow to ticdc. ``large``: how rows beyond a size are sent; None: as they are.
    ``announced_restarts``: all replays are restarts whose first events show it: a resolved ts below the last one of each stream.
    ``admin_events``: added partitions are announced on all streams of the topic, as in the founding design (Open Protocol only, like
    ``legacy_batches``). ``form`` and ``wire``: what the records are.
    """

    seed: int = 0
    topic: str = "changefeed"
    flavour: Flavour = Flavour.TIFLOW
    dispatcher: Dispatcher = Dispatcher.TABLE
    partitions: int = 3
    topic_per_schema: bool = False
    images: ImageOptions = field(default_factory=ImageOptions)
    compression: str = "none"
    batch_size: int = 16
    max_message_bytes: int = 1 << 20
    replays: int = 0
    growth: int = 0
    upgrade: bool = False
    open_tail: bool = False
    legacy_batches: bool = False
    lookahead: int = 12
    horizon: int = 400
    large: LargeRowSettings | None = None
    admin_events: bool = False
    announced_restarts: bool = False
    form: WireFormat = WireFormat.OPEN_PROTOCOL
    wire: WireOptions = field(default_factory=WireOptions)

    @property
    def sent_images(self) -> ImageOptions:
        """What the images omit in this format."""
        return self.images.sent(self.form, self.wire)

    def written_as(self, form: WireFormat) -> "ProducerOptions":
        """Return the options of a changefeed in another format, with what that format can be told besides drawn from the seed."""
        rng = random.Random(f"wire options {self.seed}")
        wire = WireOptions(
            content_compatible=form is WireFormat.CANAL_JSON and rng.random() < 0.4,
            bootstrap_ms=rng.choice((120_000, 120_000, 5_000)),
            bootstrap_rows=rng.choice((10_000, 10_000, 7)),
            bootstrap_everywhere=rng.random() < 0.8,
            bootstrap_at_start=rng.random() < 0.3,
        )
        large = self.large and replace(self.large, raw_value=rng.random() < 0.3)
        return replace(self, form=form, wire=wire, large=large)

    @classmethod
    def drawn(cls, seed: int) -> "ProducerOptions":
        """Draw everything from ``seed``: over a few hundred seeds each feature and most pairs of them appear."""
        rng = random.Random(f"producer options {seed}")
        raw = rng.random() < 0.3
        flavour = rng.choice(list(Flavour))
        return cls(
            seed=seed,
            flavour=flavour,
            dispatcher=rng.choice(list(Dispatcher)),
            partitions=rng.choice((1, 2, 3, 4)),
            topic_per_schema=rng.random() < 0.25,
            images=ImageOptions(
                raw_updates=raw,
                old_value=raw or rng.random() < 0.8,
                only_updated_columns=rng.random() < 0.3,
                delete_only_handle_key=rng.random() < 0.3,
            ),
            compression=rng.choice(("none", "none", "lz4", "snappy")),
            batch_size=rng.choice((1, 4, 16)),
            replays=rng.choice((0, 1, 3, 6)),
            growth=rng.choice((0, 0, 1, 3)),
            upgrade=rng.random() < 0.3,
            open_tail=rng.random() < 0.25,
            legacy_batches=rng.random() < 0.2,
        )
