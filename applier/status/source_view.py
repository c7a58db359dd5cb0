"""What the source adds to a status: the ends of its streams, and what timestamps mean to people."""

from dataclasses import replace
from typing import NamedTuple, Protocol

from applier.model.position import Listing
from applier.model.timeline import Timeline
from applier.sources.binlog.log_view import LogStatus, LogView
from applier.sources.binlog.settings import BinlogSettings
from applier.sources.factory import open_source
from applier.sources.kafka.settings import KafkaSettings
from applier.sources.ticdc.tso import TSO_TIMELINE


class SourceAnswer(NamedTuple):
    """``listing`` is None where the source was not asked, or does not answer. ``log``: of a binlog."""

    listing: Listing | None
    timeline: Timeline
    log: LogStatus | None = None


class SourceView(Protocol):
    """Asks a source for its ends; connects when it is first asked."""

    def stored(self, state: str | None) -> SourceAnswer:
        """Return what the stored state of a replica tells, without asking the source."""
        ...

    def ask(self, state: str | None) -> SourceAnswer:
        """Return what the source adds. SourceError: it does not answer."""
        ...

    def close(self) -> None:
        """Close the connection."""
        ...


def open_view(settings: KafkaSettings | BinlogSettings, patience_s: float) -> SourceView:
    """Return the view of the source that the settings name."""
    if isinstance(settings, BinlogSettings):
        return BinlogView(replace(settings, unreachable_after_s=patience_s))
    return TopicsView(replace(settings, unreachable_after_s=patience_s))


class TopicsView:
    """Of topics: a TSO holds its time, so nothing but the ends has to be asked."""

    def __init__(self, settings: KafkaSettings) -> None:
        self._source = open_source(settings)

    def stored(self, state: str | None) -> SourceAnswer:
        """Return the timeline alone."""
        del state
        return SourceAnswer(None, TSO_TIMELINE)

    def ask(self, state: str | None) -> SourceAnswer:
        """Return the ends of the partitions."""
        del state
        return SourceAnswer(self._source.listing(), TSO_TIMELINE)

    def close(self) -> None:
        """Close the connection."""
        self._source.close()


class BinlogView:
    """Of a binlog: where the server writes, and where the replica stands by its stored state."""

    def __init__(self, settings: BinlogSettings) -> None:
        self._view = LogView(settings)

    def stored(self, state: str | None) -> SourceAnswer:
        """Return place and GTID set of the replica."""
        log, timeline = self._view.stored(state)
        return SourceAnswer(None, timeline, log)

    def ask(self, state: str | None) -> SourceAnswer:
        """Return the end of the log too, and how many bytes lie before it."""
        listing, log, timeline = self._view.asked(state)
        return SourceAnswer(listing, timeline, log)

    def close(self) -> None:
        """Close the session."""
        self._view.close()
