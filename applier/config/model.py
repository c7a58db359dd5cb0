"""The keys of the configuration and what each may hold (DESIGN.md 12). Frozen; secrets are never part of a ``repr``."""

import os
import re
from enum import StrEnum
from typing import Annotated, Any, Final, Literal, Self

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, SecretStr, field_validator, model_validator

from applier.config.secret import SecretFile, with_files_read
from applier.config.tls import tls_of
from applier.config.value import (
    LOOPBACK,
    Listen,
    Whole,
    ambiguous_years,
    available,
    check_schema,
    check_servers,
    check_time_zone,
    check_topics,
    nearest,
    parse_listen,
    parse_size,
    parse_url,
    refuse,
)
from applier.ddl.ddl_type import DDL_TYPE_NAMES
from applier.model.errors import ConfigError
from applier.model.position import MAX_TS
from applier.planner.table_check import Acceptance, DifferenceKind, check_pattern
from applier.sinks.settings import SCHEMA, SinkSettings, Tls, TlsMode
from applier.sources.kafka.settings import OWNED_PROPERTIES, KafkaSettings

Seconds = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Patience = Annotated[float, Field(ge=0, allow_inf_nan=False)]
"""Seconds to wait for something; 0: look once."""
PartitionCount = Annotated[Whole, Field(ge=1)]


DEFAULT_LISTEN: Final = Listen(LOOPBACK, 9464)
DIFFERENCES: Final = frozenset(str(kind) for kind in DifferenceKind)
DDL_TYPES: Final = frozenset(DDL_TYPE_NAMES.values())
LOCAL_THREADS: Final = re.compile(r"local(?:\[(\*|\d+)(?:,\s*\d+)?\])?$")
LOCAL_REMEDY: Final = 'Set spark.master = "local[*]", or use a MySQL or MariaDB sink'
SUBMITTED_REMEDY: Final = 'Call spark-submit with --master "local[*]", or use a MySQL or MariaDB sink'
CLUSTER_BUCKETS: Final = 16
"""A cluster's cores are not known before it is asked: enough for one replica, whose single writer is the ceiling."""


class OnBadEvent(StrEnum):
    """What happens to a record that cannot be read, or a row that the sink rejects."""

    STOP = "stop"
    QUARANTINE = "quarantine"


class Keyless(StrEnum):
    """What happens to rows of tables without a handle key."""

    STOP = "stop"
    BEST_EFFORT = "best_effort"


class Consistency(StrEnum):
    """What a reader of the sink sees (DESIGN.md 8)."""

    TRANSACTION = "transaction"
    ROW = "row"


class DdlPolicy(StrEnum):
    """What happens to a DDL of one type."""

    APPLY = "apply"
    SKIP = "skip"
    STOP = "stop"


def _split(value: Any) -> Any:
    return tuple(part.strip() for part in value.split(",")) if isinstance(value, str) else value


def _texts(properties: Any) -> Any:
    """Write scalars as the texts that librdkafka and Spark expect: ``true``, not ``True``."""
    if not isinstance(properties, dict):
        return properties
    return {name: str(v).lower() if isinstance(v, bool) else str(v) if isinstance(v, int | float) else v for name, v in properties.items()}


Properties = Annotated[dict[str, str], BeforeValidator(_texts)]


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)


class SourceConfig(_Section):
    """``[source]``: where the change stream is, and what is known about it."""

    bootstrap_servers: Annotated[str, AfterValidator(check_servers)]
    topics: Annotated[tuple[str, ...], BeforeValidator(_split), AfterValidator(check_topics)]
    time_zone: Annotated[str, AfterValidator(check_time_zone)] = "UTC"
    """Zone of TIMESTAMP text on the wire: that of the TiCDC server. With daylight saving, an hour that comes twice cannot be told apart."""
    start_ts: Annotated[Whole, Field(ge=0, le=MAX_TS)] = 0
    """TSO of the snapshot that the sink was loaded from; 0: the sink began empty, with the topic."""
    new_collations: bool = True
    """TiDB's ``new_collations_enabled_on_first_bootstrap``; False: upstream compares all texts byte by byte."""
    partitions: PartitionCount | dict[str, PartitionCount] | None = None
    on_unreadable: OnBadEvent = OnBadEvent.STOP
    stall_after_s: Seconds = 60.0
    kafka: Properties = Field(default_factory=dict, repr=False)

    @field_validator("kafka")
    @classmethod
    def _leave_what_the_applier_sets(cls, given: dict[str, str]) -> dict[str, str]:
        properties = with_files_read(given)
        for name in properties:
            if name in OWNED_PROPERTIES:
                raise refuse(f"may not set {name!r}", f"Remove it: {OWNED_PROPERTIES[name]}")
        return properties

    @model_validator(mode="after")
    def _partitions_of_known_topics(self) -> Self:
        for topic in self.partitions if isinstance(self.partitions, dict) else ():
            if topic not in self.topics:
                raise refuse(f"limits the partitions of a topic that is not read: {topic!r}", nearest(topic, self.topics))
        return self

    def zone_doubt(self) -> dict[str, Any] | None:
        """Return what to warn of where TIMESTAMP text of the zone has two meanings; None where it has one."""
        years = ambiguous_years(self.time_zone)
        if years is None:
            return None
        remedy = "TIMESTAMPs in that hour may be an hour off. Run the TiCDC server with --tz=UTC for a new changefeed and replica"
        return {"time_zone": self.time_zone, "first_year": years[0], "last_year": years[1], "remedy": remedy}

    def required_partitions(self) -> dict[str, int] | None:
        """Return how many partitions of each limited topic are required; None without a limit."""
        if isinstance(self.partitions, int):
            return dict.fromkeys(self.topics, self.partitions)
        return self.partitions


class SinkConfig(_Section):
    """``[sink]``: the database, and what it is asked to promise."""

    url: SecretStr
    password: SecretStr | None = None
    password_file: SecretFile | None = None
    tls_mode: TlsMode | None = None
    tls_ca: str | None = None
    tls_cert: str | None = None
    tls_key: str | None = None
    consistency: Consistency = Consistency.TRANSACTION
    max_transaction_rows: Annotated[Whole, Field(ge=1)] = 100_000
    keyless: Keyless = Keyless.STOP
    on_rejected_row: OnBadEvent = OnBadEvent.STOP
    # Under another name here: pydantic's models have an attribute of this one.
    bookkeeping_schema: Annotated[str, Field(alias="schema"), AfterValidator(check_schema)] = SCHEMA
    """Where the bookkeeping lies: a schema of its own, in SQLite the prefix of its tables."""
    accept: dict[str, tuple[DifferenceKind, ...]] = Field(default_factory=dict)
    """Table (``*`` and ``?`` are wild) -> differences from upstream's table that do not stop the replica."""

    @field_validator("url")
    @classmethod
    def _is_a_sink(cls, url: SecretStr) -> SecretStr:
        parse_url(url.get_secret_value())
        return url

    @field_validator("accept", mode="before")
    @classmethod
    def _know_tables_and_differences(cls, accept: Any) -> Any:
        for table, names in accept.items() if isinstance(accept, dict) else ():
            if problem := check_pattern(table):
                raise refuse(f"{table!r} {problem}", 'For instance "shop.orders" = ["trigger"]')
            for name in names if isinstance(names, list | tuple) else ():
                if name not in DIFFERENCES:
                    raise refuse(f"names no difference of a table: {name!r}", nearest(str(name), DIFFERENCES))
        return accept

    @model_validator(mode="after")
    def _is_one_password_and_one_tls(self) -> Self:
        if self.password is not None and self.password_file is not None:
            raise refuse("sets both password and password_file", "Leave one of them out")
        if self.tls != Tls() and self.is_sqlite:
            raise refuse("sets TLS beside a file, which no network is between", "Leave one of them out")
        return self

    @field_validator("consistency", "keyless")
    @classmethod
    def _is_built(cls, value: StrEnum) -> StrEnum:
        available(value, Consistency.TRANSACTION if isinstance(value, Consistency) else Keyless.STOP)
        return value

    @property
    def is_sqlite(self) -> bool:
        """Whether the sink is a file of this machine."""
        return self.url.get_secret_value().startswith("sqlite")

    @property
    def tls(self) -> Tls:
        """TLS to the database."""
        return tls_of(self.tls_mode, self.tls_ca, self.tls_cert, self.tls_key)

    @property
    def address(self) -> str:
        """The URL as it may be shown: the password is masked."""
        return parse_url(self.url.get_secret_value()).render_as_string(hide_password=True)

    def full_url(self) -> str:
        """Return the URL with the password in it. Never log or print it."""
        url = parse_url(self.url.get_secret_value())
        password = self.password_file if self.password is None else self.password
        if password is not None and not self.is_sqlite:
            url = url.set(password=password.get_secret_value())
        return url.render_as_string(hide_password=False)


class RunConfig(_Section):
    """``[run]``: limits of one run."""

    memory: Annotated[int, BeforeValidator(parse_size)] = 2 * 1024**3
    """Bytes of cached chunks."""
    lease_s: Seconds = 15.0
    lock_timeout_s: Patience = 30.0
    shutdown_timeout_s: Seconds = 30.0
    retry_for_s: Patience = 600.0
    """How long a daemon tries again what fails in a way that may pass."""


class SparkConfig(_Section):
    """``[spark]``: where the tasks run. ``master`` is ignored under spark-submit."""

    master: Annotated[str, Field(min_length=1)] = "local[*]"
    conf: Properties = Field(default_factory=dict, repr=False)

    @field_validator("conf")
    @classmethod
    def _leave_the_master_in_its_place(cls, properties: dict[str, str]) -> dict[str, str]:
        if "spark.master" in properties:
            raise refuse("may not set 'spark.master'", "Set master under [spark]; under spark-submit give it --master")
        return properties

    @property
    def buckets(self) -> int:
        """How many tasks render a segment: one per core where that is known. What ``[spark.conf]`` says goes first."""
        stated = self.conf.get("spark.default.parallelism", "")
        if stated.isdecimal() and int(stated):
            return int(stated)
        threads = LOCAL_THREADS.match(self.master)
        if threads is None:
            return CLUSTER_BUCKETS
        return (os.cpu_count() or 1) if threads[1] == "*" else int(threads[1] or 1)


class HttpConfig(_Section):
    """``[http]``: where ``run`` answers about itself."""

    listen: Annotated[Listen | None, BeforeValidator(parse_listen)] = DEFAULT_LISTEN
    unhealthy_after_s: Seconds = 600.0
    """``/healthz`` fails when the loop has given no sign of life for so long."""


class LogConfig(_Section):
    """``[log]``: how log lines are written to standard error."""

    format: Literal["text", "json"] = "text"
    level: Literal["debug", "info", "warning", "error"] = "info"
    """What ``run`` logs where it has no terminal; the other commands log warnings, and more with ``--verbose``."""


class Config(_Section):
    """Everything that an operator may set."""

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9_.-]{1,48}$")] = "replica"
    """One progress row per name."""
    source: SourceConfig
    sink: SinkConfig
    ddl: dict[str, DdlPolicy] = Field(default_factory=dict)
    run: RunConfig = RunConfig()
    spark: SparkConfig = SparkConfig()
    http: HttpConfig = HttpConfig()
    log: LogConfig = LogConfig()

    @field_validator("ddl", mode="before")
    @classmethod
    def _know_the_type(cls, policies: Any) -> Any:
        for name in policies if isinstance(policies, dict) else ():
            if name not in DDL_TYPES:
                raise refuse(f"names no DDL type: {name!r}", nearest(name, DDL_TYPES))
        return policies

    @model_validator(mode="after")
    def _keep_a_file_on_one_machine(self) -> Self:
        problem = self.master_problem(self.spark.master)
        if problem:
            raise refuse(f"spark.master: {problem}", LOCAL_REMEDY)
        return self

    def submitted_to(self, master: str) -> Self:
        """Return the configuration with the master that spark-submit has chosen; ConfigError if the sink cannot be written from there."""
        problem = self.master_problem(master)
        if problem:
            raise ConfigError(problem, remedy=SUBMITTED_REMEDY, master=master)
        return self.model_copy(update={"spark": self.spark.model_copy(update={"master": master})})

    def master_problem(self, master: str) -> str | None:
        """Say why the sink cannot be written from executors of ``master``; None if it can."""
        if self.sink.is_sqlite and not master.startswith("local"):
            return "a SQLite file can be written on this machine only, and the master is not local"
        return None

    @property
    def acceptance(self) -> Acceptance:
        """Return what the operator has said about the tables."""
        return Acceptance(self.sink.accept, self.source.new_collations)

    def sink_settings(self, *, retries: int = 8) -> SinkSettings:
        """Return the sink's part, with how often it tries again by itself. It holds the password and does not show it."""
        return SinkSettings(
            url=self.sink.full_url(),
            tls=self.sink.tls,
            name=self.name,
            schema=self.sink.bookkeeping_schema,
            time_zone=self.source.time_zone,
            lease_s=self.run.lease_s,
            lock_timeout_s=self.run.lock_timeout_s,
            retries=retries,
        )

    def kafka_settings(self) -> KafkaSettings:
        """Return the source's part. The consumer group only shows offsets to lag tools; it assigns nothing."""
        return KafkaSettings(
            bootstrap_servers=self.source.bootstrap_servers,
            topics=self.source.topics,
            group_id=self.source.kafka.get("group.id", f"applier-{self.name}"),
            properties=tuple(sorted((k, v) for k, v in self.source.kafka.items() if k != "group.id")),
        )
