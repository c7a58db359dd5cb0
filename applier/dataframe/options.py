"""The options of ``format("ticdc")`` and ``format("binlog")``: keys of ``[source]`` by the configuration's names, and options of reading.

``config`` names a configuration file, whose ``[source]`` the other options override.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final

from applier.config import Config, load_config
from applier.config.source import BINLOG as BINLOG_KIND
from applier.config.source import KAFKA
from applier.model.errors import ConfigError, Remedy
from applier.model.events import FoldedName, TableName
from applier.selection import TableSelection
from applier.sources.claim_check.settings import ClaimCheckSettings
from applier.sources.factory import kit_of
from applier.sources.kafka.settings import KafkaSettings
from applier.sources.kit import SourceKit

OF_ROWS: Final = frozenset({"config", "start", "end", "table", "columns", "resolved", "on_unreadable"})


@dataclass(frozen=True, slots=True)
class Format:
    """What the options of a format may be called. ``source``: keys of ``[source]``; keys that only matter to a replica are not options."""

    name: str
    kind: str
    source: frozenset[str]
    reading: frozenset[str]
    open: tuple[str, ...] = ()
    """Prefixes of options of any name."""
    example: str = ""


TICDC: Final = Format(
    name="ticdc",
    kind=KAFKA,
    source=frozenset({"bootstrap_servers", "topics", "protocol", "time_zone", "tables"}),
    reading=OF_ROWS | {"partition", "max_records_per_batch", "max_records_per_task"},
    open=("kafka.", "claim_check.options.", "claim_check."),
    example='.option("bootstrap_servers", "kafka:9092")',
)
BINLOG: Final = Format(
    name="binlog",
    kind=BINLOG_KIND,
    source=frozenset({"url", "password", "password_file", "tls_mode", "tls_ca", "tls_cert", "tls_key", "server_ids", "tables"}),
    reading=OF_ROWS | {"max_files_per_batch"},
    example='.option("url", "mysql+pymysql://applier@primary:3306/")',
)
STOP, KEEP = "stop", "keep"
RECORDS_PER_TASK: Final = 500_000
"""Offsets that one task reads: enough to hide its start, few enough to keep all cores busy."""
EARLIEST, LATEST = "earliest", "latest"


@dataclass(frozen=True, slots=True, kw_only=True)
class RowOptions:
    """What every format has. ``start`` and ``end``: earliest, latest, a time, or the source's own positions."""

    time_zone: str
    tables: TableSelection
    table: FoldedName | None
    columns: str | None
    start: str
    end: str
    resolved: bool
    keeps_unreadable: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangelogOptions(RowOptions):
    """What a query reads of topics. Holds secrets in ``kafka`` and ``claim_check``, which no ``repr`` shows. ``partitions`` None: all.

    ``applier.dataframe.reading`` reads ``start`` and ``end``.
    """

    kafka: KafkaSettings
    claim_check: ClaimCheckSettings | None
    partitions: frozenset[int] | None
    records_per_batch: int | None
    records_per_task: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BinlogOptions(RowOptions):
    """What a query reads of a binlog. ``applier.dataframe.binlog_source`` reads ``start`` and ``end``. ``files_per_batch`` None: all."""

    kit: SourceKit
    files_per_batch: int | None


def read_options(given: Mapping[str, str]) -> ChangelogOptions:
    """Return the options of ``ticdc``. ConfigError that names the option."""
    options = {name.lower(): value for name, value in given.items()}
    config = _read(TICDC, options)
    kafka = config.source_settings()
    if not isinstance(kafka, KafkaSettings):
        raise _other_kind(TICDC)
    return ChangelogOptions(
        **_of_rows(config, options),
        kafka=kafka,
        claim_check=config.source.claim_check_settings(),
        partitions=_partitions(options.get("partition")),
        records_per_batch=_number(options, "max_records_per_batch"),
        records_per_task=_number(options, "max_records_per_task") or RECORDS_PER_TASK,
    )


def read_binlog_options(given: Mapping[str, str]) -> BinlogOptions:
    """Return the options of ``binlog``. ConfigError that names the option."""
    options = {name.lower(): value for name, value in given.items()}
    config = _read(BINLOG, options)
    kit = kit_of(config.source_settings())
    if kit.has_partitions:
        raise _other_kind(BINLOG)
    return BinlogOptions(**_of_rows(config, options), kit=kit, files_per_batch=_number(options, "max_files_per_batch"))


def _read(form: Format, options: Mapping[str, str]) -> Config:
    _check_names(form, options)
    config = _config(form, options)
    if "columns" in options and "table" not in options:
        raise ConfigError(
            "the option columns is without table",
            remedy=Remedy("dataframe.name-table-option", 'Name the table too: .option("table", "shop.orders")'),
        )
    return config


def _of_rows(config: Config, options: Mapping[str, str]) -> dict[str, Any]:
    return {
        "time_zone": config.source.time_zone,
        "tables": TableSelection(config.source.selection().tables),
        "table": _table(options.get("table")),
        "columns": options.get("columns"),
        "start": options.get("start", EARLIEST),
        "end": options.get("end", LATEST),
        "resolved": _choice(options, "resolved", ("false", "true")) == "true",
        "keeps_unreadable": _choice(options, "on_unreadable", (STOP, KEEP)) == KEEP,
    }


def _other_kind(form: Format) -> ConfigError:
    return ConfigError(
        f"the format {form.name} cannot read the source of this configuration file",
        remedy=Remedy(
            "dataframe.give-matching-config", f'Give a file whose [source] is of kind = "{form.kind}", or options: {form.example}'
        ),
    )


def _check_names(form: Format, options: Mapping[str, str]) -> None:
    known = sorted(form.source | form.reading)
    for name in options:
        if name in known or name.startswith(form.open):
            continue
        near = get_close_matches(name, known, n=1)
        remedy = (
            Remedy("dataframe.correct-option-name", f"Did you mean {near[0]}?")
            if near
            else Remedy("dataframe.show-options", f"The options are: {', '.join([*known, *(f'{one}…' for one in form.open[::2])])}")
        )
        raise ConfigError(f"the format {form.name} has no option {name!r}", remedy=remedy, option=name)


def _config(form: Format, options: Mapping[str, str]) -> Config:
    """Read the configuration's part. The environment counts as for every command (APPLIER_SOURCE__…)."""
    source: dict[str, Any] = {}
    for name, value in options.items():
        if name in form.source:
            source[name] = value
        prefix = next((prefix for prefix in form.open if name.startswith(prefix)), None)
        if prefix is not None:
            table = source
            for part in prefix.strip(".").split("."):
                table = table.setdefault(part, {})
            table[name.removeprefix(prefix)] = value
    path = Path(options["config"]) if "config" in options else None
    # Without a file the format says which kind it is; a sink is required of a configuration, and nothing opens it here.
    kind = {} if path or form is TICDC else {"kind": form.kind}
    overrides: dict[str, Any] = {"source": kind | source} | ({} if path else {"sink": {"url": "sqlite:///unused.db"}})
    try:
        return load_config(path, overrides)
    except ConfigError as error:
        if path is not None:
            raise
        remedy = Remedy("dataframe.use-source-option-names", f"Options have the names of [source]: {form.example}. {error.remedy}")
        raise ConfigError(error.message, remedy=remedy, **error.facts) from None


def _partitions(text: str | None) -> frozenset[int] | None:
    if text is None:
        return None
    try:
        return frozenset(int(part) for part in text.split(","))
    except ValueError:
        raise ConfigError(
            f"the option partition is not a list of numbers: {text!r}",
            remedy=Remedy("dataframe.write-partition-numbers", 'For instance "0" or "0,2,3"'),
        ) from None


def _table(text: str | None) -> FoldedName | None:
    if text is None:
        return None
    schema, dot, table = text.partition(".")
    if not (schema and dot and table):
        raise ConfigError(
            f"the option table names no table: {text!r}",
            remedy=Remedy("dataframe.write-table-option", 'Write schema and table: "shop.orders"'),
        )
    return TableName(schema, table).fold()


def _choice(options: Mapping[str, str], name: str, values: tuple[str, ...]) -> str:
    value = options.get(name, values[0]).lower()
    if value not in values:
        raise ConfigError(
            f"the option {name} cannot be {value!r}", remedy=Remedy("dataframe.choose-option-value", f"Write one of: {', '.join(values)}")
        )
    return value


def _number(options: Mapping[str, str], name: str) -> int | None:
    text = options.get(name)
    if text is None:
        return None
    if not text.isdecimal() or int(text) < 1:
        raise ConfigError(
            f"the option {name} is not a number of records: {text!r}",
            remedy=Remedy("dataframe.write-positive-number", "Write a whole number of at least 1"),
        )
    return int(text)
