"""How Kafka is reached: the operator's librdkafka properties, and the ones that the applier's correctness needs."""

import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from applier.model.errors import ConfigError, Remedy, SourceError
from applier.model.failure import FailureKind

LOGGER = logging.getLogger("applier.kafka")

OWNED_PROPERTIES: Mapping[str, str] = {
    "bootstrap.servers": "set source.bootstrap_servers",
    "enable.auto.commit": "offsets are stored in the sink",
    "enable.auto.offset.store": "offsets are stored in the sink",
    "auto.offset.reset": "a missing offset must stop the applier",
    "enable.partition.eof": "the end of a range is found by it",
    "group.instance.id": "the applier assigns partitions itself",
    "check.crcs": "the applier always compares the checksums of records",
}
"""Properties that the applier sets, with the reason why an operator may not."""

SECRET = re.compile(r"password|secret|token|key|jaas|oauthbearer\.config")
"""Names of properties whose values are never shown."""

PREFETCH: Mapping[str, int] = {
    "queued.max.messages.kbytes": 4 * 1024,
    "fetch.max.bytes": 2 << 20,
    "max.partition.fetch.bytes": 256 << 10,
    "fetch.queue.backoff.ms": 5,
}
"""How much a consumer holds of what was not asked for yet, over all of its partitions: what is queued, and one answer of a broker, which
may be compressed. What comes after the end of a range is fetched without use, so this is small; a full queue is looked at again soon."""

FETCH_WAIT_MS = 3
"""How long a broker may wait for records that are not there yet. What a reader asks for is there. But a request that waits at the end of
some partitions delays the next one, for others, on the same connection (measured: half a second per range with the default)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaSettings:
    """Where the topics are. ``properties`` are passed to librdkafka; they may hold secrets and are never shown."""

    bootstrap_servers: str
    topics: tuple[str, ...]
    group_id: str
    properties: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    protocol: str = "open-protocol"
    """The format of the records, as ``sources.formats`` names it. Nothing here looks at it: the records are bytes."""
    time_zone: str = ""
    """The zone of TIMESTAMP values; '': not known. Nothing here looks at it."""
    unreachable_after_s: float = 30.0
    """How long nothing may come from a broker before reading or listing fails."""

    def __post_init__(self) -> None:
        """Refuse properties that would break what the applier promises."""
        for name, _ in self.properties:
            if name in OWNED_PROPERTIES:
                message = f"source.kafka may not set {name!r}"
                raise ConfigError(
                    message,
                    remedy=Remedy("kafka.remove-fixed-property", f"Remove it: {OWNED_PROPERTIES[name]}"),
                    key=f"source.kafka.{name}",
                )

    def masked(self, text: str) -> str:
        """Return ``text``, which another has written, without the secrets among the properties."""
        for name, value in self.properties:
            if value and SECRET.search(name):
                text = text.replace(value, "***")
        return text

    def client(self) -> dict[str, Any]:
        """Return the properties of a client that only asks for metadata."""
        return {
            **dict(self.properties),
            "bootstrap.servers": self.bootstrap_servers,
            "logger": LOGGER,
            "log_level": 3,
        }

    def consumer(self) -> dict[str, Any]:
        """Return the properties of a consumer: manual assignment, nothing committed, a missing offset is an error."""
        return {
            "group.id": self.group_id,
            **PREFETCH,
            "fetch.wait.max.ms": FETCH_WAIT_MS,
            **self.client(),
            "enable.auto.commit": False,
            "enable.auto.offset.store": False,
            "auto.offset.reset": "error",
            "enable.partition.eof": True,
            "allow.auto.create.topics": False,
            # Off by default: a byte that has changed in a broker's log, or on the way, would be applied.
            "check.crcs": True,
        }


def unreachable(settings: KafkaSettings, what: str, cause: object) -> SourceError:
    """Make the error for a broker that does not answer."""
    return SourceError(
        f"Kafka does not answer: {what}",
        remedy=Remedy("kafka.check-brokers", "Check source.bootstrap_servers, the brokers, and source.kafka (TLS, SASL)"),
        kind=FailureKind.UNREACHABLE,
        bootstrap_servers=settings.bootstrap_servers,
        cause=settings.masked(str(cause)),
    )
