"""``[source]``: the change stream. ``kind`` says which one; without it the topics of a changefeed."""

from collections.abc import Mapping
from typing import Annotated, Any, Final, TypeAlias

from pydantic import Discriminator, Tag

from applier.config.binlog_source import BinlogSourceConfig
from applier.config.kafka_source import KafkaSourceConfig
from applier.config.selection import SelectedSource
from applier.model.errors import Remedy
from applier.sources.binlog.settings import BinlogSettings
from applier.sources.kafka.settings import KafkaSettings

SourceSettings: TypeAlias = KafkaSettings | BinlogSettings

KAFKA: Final = "kafka"
BINLOG: Final = "binlog"
KINDS: Final[Mapping[str, type[SelectedSource]]] = {KAFKA: KafkaSourceConfig, BINLOG: BinlogSourceConfig}


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
            "remedy": Remedy("config.set-source-kind", "Set kind to " + " or ".join(map('"{}"'.format, KINDS))),
        },
    ),
]


def of_other_kind(kind: str, key: str) -> tuple[str, Remedy] | None:
    """Return what is wrong with a key that only another kind of source has, and what to do; None for other keys."""
    other = next((name for name, section in KINDS.items() if name != kind and key in section.model_fields), None)
    if other is None:
        return None
    if hint := KINDS[kind].instead.get(key):
        remedy = Remedy("config.replace-key-of-other-kind", f"Remove it. {hint}")
    else:
        remedy = Remedy("config.remove-key-of-other-kind", f'Remove it, or set kind = "{other}" under [source]')
    return f'is a key of kind = "{other}" only', remedy
