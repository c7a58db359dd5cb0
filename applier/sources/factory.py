"""The registry of sources: the only module that knows which there are. A new one adds its settings and its kit here."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final, TypeAlias

from applier.model.position import DIGITS, Timeline
from applier.sources.binlog.kit import BinlogKit
from applier.sources.binlog.settings import BinlogSettings
from applier.sources.changefeed import ChangefeedKit
from applier.sources.kafka.reader import KafkaRangeReader
from applier.sources.kafka.settings import KafkaSettings
from applier.sources.kit import KindOfSource, SourceKit
from applier.sources.port import Decoder, RangeReader, Source
from applier.sources.ticdc.tso import implausible as implausible_tso

SourceSettings: TypeAlias = KafkaSettings | BinlogSettings


KITS: Final[Mapping[type, KindOfSource]] = MappingProxyType({KafkaSettings: ChangefeedKit, BinlogSettings: BinlogKit})
"""The kit of each kind of settings."""
CHANGELOGS: Final = tuple(kind.changelog for kind in KITS.values())
"""The data sources for PySpark of all sources."""


def kit_of(settings: SourceSettings) -> SourceKit:
    """Return the kit of the source that the settings name."""
    return KITS[type(settings)](settings)


def open_source(settings: SourceSettings, decoder: Decoder | None = None, zone_of_sessions: Callable[[], str] = str) -> Source:
    """Make the source: see ``SourceKit.open``."""
    return kit_of(settings).open(decoder, zone_of_sessions)


def is_position(text: str) -> bool:
    """Return whether a text is a position as some source spells it."""
    return any(kind.is_position(text) for kind in KITS.values())


def implausible(ts: int, now_ms: int) -> str | None:
    """Say why an operator cannot mean ``ts``, given as digits, at the time ``now_ms``; None: it is plausible."""
    return implausible_tso(ts, now_ms)


def executed_set(state: str | None) -> str | None:
    """Return the transactions that a replica with this stored state has applied, where its source has such a set."""
    return None if state is None else next(filter(None, (kind.executed(state) for kind in KITS.values())), None)


def stored_timeline(state: str | None) -> Timeline:
    """Return what timestamps mean to a replica with this stored state, of whatever kind its source is."""
    return next((known for kind in KITS.values() if (known := kind.timeline_of(state)) is not None), DIGITS)


def range_reader(settings: KafkaSettings) -> RangeReader:
    """Return the reading part of a source alone, for executors; it connects where it reads."""
    return KafkaRangeReader(settings)
