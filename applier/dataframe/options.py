"""The options of ``spark.read.format("ticdc")``: those of ``[source]`` by the configuration's names, and those of reading.

``config`` names a configuration file, whose ``[source]`` the other options override.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final

from applier.config import Config, load_config
from applier.model.errors import ConfigError
from applier.model.events import FoldedName, TableName
from applier.selection import TableSelection
from applier.sources.claim_check.settings import ClaimCheckSettings
from applier.sources.kafka.settings import KafkaSettings

SOURCE: Final = frozenset({"bootstrap_servers", "topics", "time_zone", "tables"})
"""Keys of ``[source]``; those that only matter to a replica are no options."""
OPEN: Final = ("kafka.", "claim_check.options.", "claim_check.")
READING: Final = frozenset(
    {
        "config",
        "partition",
        "start",
        "end",
        "table",
        "columns",
        "resolved",
        "on_unreadable",
        "max_records_per_batch",
        "max_records_per_task",
    }
)
STOP, KEEP = "stop", "keep"
RECORDS_PER_TASK: Final = 500_000
"""Offsets that one task reads: enough to hide its start, few enough to keep all cores busy."""
EARLIEST, LATEST = "earliest", "latest"


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangelogOptions:
    """What a query reads. Holds secrets in ``kafka`` and ``claim_check``, which no ``repr`` shows.

    ``start`` and ``end``: earliest, latest, a time, or offsets as JSON; ``applier.dataframe.extent`` reads them. ``partitions`` None: all.
    """

    kafka: KafkaSettings
    claim_check: ClaimCheckSettings | None
    time_zone: str
    tables: TableSelection
    partitions: frozenset[int] | None
    table: FoldedName | None
    columns: str | None
    start: str
    end: str
    resolved: bool
    keeps_unreadable: bool
    records_per_batch: int | None
    records_per_task: int


def read_options(given: Mapping[str, str]) -> ChangelogOptions:
    """Return the options. ConfigError that names the option."""
    options = {name.lower(): value for name, value in given.items()}
    _check_names(options)
    config = _config(options)
    if "columns" in options and "table" not in options:
        raise ConfigError("the option columns is without table", remedy='Name the table too: .option("table", "shop.orders")')
    kafka = config.source_settings()
    if not isinstance(kafka, KafkaSettings):
        message = "the format ticdc reads topics, and source.kind is not kafka"
        raise ConfigError(message, remedy="Give the configuration file of a replica that reads topics, or bootstrap_servers and topics")
    return ChangelogOptions(
        kafka=kafka,
        claim_check=config.source.claim_check_settings(),
        time_zone=config.source.time_zone,
        tables=TableSelection(config.source.selection().tables),
        partitions=_partitions(options.get("partition")),
        table=_table(options.get("table")),
        columns=options.get("columns"),
        start=options.get("start", EARLIEST),
        end=options.get("end", LATEST),
        resolved=_choice(options, "resolved", ("false", "true")) == "true",
        keeps_unreadable=_choice(options, "on_unreadable", (STOP, KEEP)) == KEEP,
        records_per_batch=_number(options, "max_records_per_batch"),
        records_per_task=_number(options, "max_records_per_task") or RECORDS_PER_TASK,
    )


def _check_names(options: Mapping[str, str]) -> None:
    for name in options:
        if name in SOURCE | READING or name.startswith(OPEN):
            continue
        near = get_close_matches(name, sorted(SOURCE | READING), n=1)
        remedy = f"Did you mean {near[0]}?" if near else f"The options are: {', '.join(sorted(SOURCE | READING))}, kafka.…, claim_check.…"
        raise ConfigError(f"the format ticdc has no option {name!r}", remedy=remedy, option=name)


def _config(options: Mapping[str, str]) -> Config:
    """Read the configuration's part. The environment counts as for every command (APPLIER_SOURCE__…)."""
    source: dict[str, Any] = {}
    for name, value in options.items():
        if name in SOURCE:
            source[name] = value
        prefix = next((prefix for prefix in OPEN if name.startswith(prefix)), None)
        if prefix is not None:
            table = source
            for part in prefix.strip(".").split("."):
                table = table.setdefault(part, {})
            table[name.removeprefix(prefix)] = value
    path = Path(options["config"]) if "config" in options else None
    # A sink is required of a configuration, and nothing opens it here.
    overrides: dict[str, Any] = {"source": source} | ({} if path else {"sink": {"url": "sqlite:///unused.db"}})
    try:
        return load_config(path, overrides)
    except ConfigError as error:
        if path is not None:
            raise
        remedy = f'Options have the names of [source]: .option("bootstrap_servers", "kafka:9092"). {error.remedy}'
        raise ConfigError(error.message, remedy=remedy, **error.facts) from None


def _partitions(text: str | None) -> frozenset[int] | None:
    if text is None:
        return None
    try:
        return frozenset(int(part) for part in text.split(","))
    except ValueError:
        raise ConfigError(f"the option partition is no list of numbers: {text!r}", remedy='For instance "0" or "0,2,3"') from None


def _table(text: str | None) -> FoldedName | None:
    if text is None:
        return None
    schema, dot, table = text.partition(".")
    if not (schema and dot and table):
        raise ConfigError(f"the option table names no table: {text!r}", remedy='Write schema and table: "shop.orders"')
    return TableName(schema, table).fold()


def _choice(options: Mapping[str, str], name: str, values: tuple[str, ...]) -> str:
    value = options.get(name, values[0]).lower()
    if value not in values:
        raise ConfigError(f"the option {name} cannot be {value!r}", remedy=f"Write one of: {', '.join(values)}")
    return value


def _number(options: Mapping[str, str], name: str) -> int | None:
    text = options.get(name)
    if text is None:
        return None
    if not text.isdecimal() or int(text) < 1:
        raise ConfigError(f"the option {name} is no number of records: {text!r}", remedy="Write a whole number of at least 1")
    return int(text)
