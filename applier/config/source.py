"""``[source]``: the change stream. ``kind`` says which one; without it the topics of a changefeed."""

from collections.abc import Mapping
from typing import Annotated, Any, Final, TypeAlias

from pydantic import BaseModel, Discriminator, Tag

from applier.config.binlog_source import BinlogSourceConfig
from applier.config.kafka_source import KafkaSourceConfig
from applier.model.errors import Remedy
from applier.sources.binlog.settings import BinlogSettings
from applier.sources.kafka.settings import KafkaSettings

SourceSettings: TypeAlias = KafkaSettings | BinlogSettings

KAFKA: Final = "kafka"
BINLOG: Final = "binlog"
KINDS: Final[Mapping[str, type[BaseModel]]] = {KAFKA: KafkaSourceConfig, BINLOG: BinlogSourceConfig}

INSTEAD: Final = {
    "start_ts": "Set start to the position where a new replica begins",
    "bootstrap_servers": "Set url to the primary",
    "time_zone": "A binlog's TIMESTAMPs are UTC",
    "ddl_time_zone": "A binlog names the zone of each statement",
    "new_collations": "Keys are compared by the collations that the binlog names",
    "upstream": "Each row of a binlog is whole, so nothing is looked up",
    "claim_check": "Each row of a binlog is whole, so there is no such storage",
    "partitions": "A binlog is one stream",
    "dispatcher": "A binlog is one stream",
}
"""Keys of Kafka's source that an operator may look for with a binlog."""


def _kind_of(given: Any) -> str | None:
    """Return the kind that a table names; for other values, their ``kind``."""
    named = given.get("kind", KAFKA) if isinstance(given, Mapping) else getattr(given, "kind", KAFKA)
    return named if named in KINDS else None


SourceConfig: TypeAlias = Annotated[
    Annotated[KafkaSourceConfig, Tag(KAFKA)] | Annotated[BinlogSourceConfig, Tag(BINLOG)],
    Discriminator(
        _kind_of,
        custom_error_type="refused",
        custom_error_message="{message}",
        custom_error_context={
            "message": "has an unknown kind",
            "remedy": Remedy("config.set-source-kind", 'Set kind to "kafka" or "binlog"'),
        },
    ),
]


def of_other_kind(kind: str, key: str) -> tuple[str, Remedy] | None:
    """Return what is wrong with a key that only the other kind of source has, and what to do; None for other keys."""
    other = BINLOG if kind == KAFKA else KAFKA
    if key not in KINDS[other].model_fields:
        return None
    hint = INSTEAD.get(key, "") if kind == BINLOG else ""
    if hint:
        remedy = Remedy("config.replace-key-of-other-kind", f"Remove it. {hint}")
    else:
        remedy = Remedy("config.remove-key-of-other-kind", f'Remove it, or set kind = "{other}" under [source]')
    return f'is a key of kind = "{other}" only', remedy
