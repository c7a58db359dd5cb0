"""Examines the source that the configuration names."""

from collections.abc import Iterator
from typing import Final

from applier.check.kafka import examine_kafka
from applier.check.primary import examine_primary
from applier.check.shared_facts import SharedFacts
from applier.check.time_zone import session_zone_finding
from applier.config import Config
from applier.model.finding import CheckFinding
from applier.sources.binlog.settings import BinlogSettings

KAFKA: Final = "Kafka"
PRIMARY: Final = "primary"


def name_of_source(config: Config) -> str:
    """Return what messages call the source's server."""
    return PRIMARY if isinstance(config.source_settings(), BinlogSettings) else KAFKA


def examine_source(config: Config, shared: SharedFacts, *, patience_s: float, wait_s: float | None = None) -> Iterator[CheckFinding]:
    """Examine the source. ``wait_s``: also what it holds, and wait so long for new events; None: do not."""
    settings = config.source_settings()
    if isinstance(settings, BinlogSettings):
        yield from examine_primary(config, settings, shared, patience_s=patience_s, is_whole=wait_s is not None)
        return
    if wait_s is not None:
        yield session_zone_finding(config)
    yield from examine_kafka(config, settings, shared, patience_s=patience_s, wait_s=wait_s)
