"""The whole configuration: its sections, and what holds between them (DESIGN.md 12). Frozen; secrets are never part of a ``repr``.

The small sections are here: ``[log]``, ``[run]``, ``[ddl]``.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal, Self

from pydantic import BeforeValidator, ConfigDict, Field, field_validator, model_validator

from applier.config.http import HttpConfig
from applier.config.section import Consistency, DdlPolicy, Seconds, Section, WaitSeconds
from applier.config.sink import SinkConfig
from applier.config.source import SourceConfig, SourceSettings
from applier.config.spark import SparkConfig
from applier.config.value import nearest, parse_size, refuse
from applier.ddl.policy import DDL_TYPE_NAMES
from applier.model.errors import ConfigError, Remedy
from applier.planner.table_check import Acceptance
from applier.sinks.settings import Collations, SinkSettings


class LogConfig(Section):
    """Format and level of the log on standard error."""

    format: Literal["text", "json"] = "text"
    """Text for people, or one JSON object per line."""
    level: Literal["debug", "info", "warning", "error"] = "info"
    """For ``run`` without a terminal. Other commands log warnings, or more with ``--verbose``."""


class RunConfig(Section):
    """Memory, lease and timeouts of one run."""

    memory: Annotated[int, BeforeValidator(parse_size)] = 2 * 1024**3
    """Rows that are read ahead of the watermark: above it, streams that are ahead wait. They are in files of Spark."""
    # A heartbeat is due three times per lease, so a single late one makes no run frozen.
    lease_s: Seconds = 15.0
    lock_timeout_s: WaitSeconds = 30.0
    shutdown_timeout_s: Seconds = 30.0
    retry_for_s: WaitSeconds = 600.0
    """How long a daemon retries a transient failure; then it stops."""


DDL_TYPES: Final = frozenset(DDL_TYPE_NAMES.values())

Collation = Annotated[str, Field(pattern=r"^[A-Za-z0-9_]{1,64}$")]


class DdlConfig(Section):
    """The operator's policy for each type, in addition to the keys below."""

    # The types are keys of this very table, so that truncate_table = "stop" stands alone.
    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, DdlPolicy] = Field(init=False)

    background: bool = False
    """Whether a new non-unique index is built in the background."""
    collations: dict[str, Collation] = Field(default_factory=dict)
    """What the sink calls upstream's collations."""

    @model_validator(mode="before")
    @classmethod
    def _check_types(cls, section: Any) -> Any:
        known = DDL_TYPES | cls.model_fields.keys()
        for name in section if isinstance(section, Mapping) else ():
            if name not in known:
                raise refuse(f"has an unknown DDL type: {name!r}", nearest(name, known))
        return section

    @field_validator("collations")
    @classmethod
    def _fold_names(cls, collations: dict[str, str]) -> dict[str, str]:
        return {name.casefold(): own.casefold() for name, own in collations.items()}

    @property
    def policies(self) -> dict[str, DdlPolicy]:
        """The policies that the operator sets, by DDL type."""
        return dict(self.__pydantic_extra__)

    @property
    def collation_pairs(self) -> Collations:
        """The operator's collations as the sink takes them."""
        return tuple(sorted(self.collations.items()))


LOCAL_REMEDY: Final = Remedy("config.set-spark-master-local", 'Set spark.master = "local[*]", or use a sink on a server')
SUBMITTED_REMEDY: Final = Remedy("config.submit-with-local-master", 'Run spark-submit with --master "local[*]", or use a sink on a server')


class Config(Section):
    """Everything that an operator may set."""

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9_.-]{1,48}$")] = "replica"
    """One progress row per name."""
    source: SourceConfig
    sink: SinkConfig
    ddl: DdlConfig = DdlConfig()
    run: RunConfig = RunConfig()
    spark: SparkConfig = SparkConfig()
    http: HttpConfig = HttpConfig()
    log: LogConfig = LogConfig()

    @model_validator(mode="after")
    def _check_master(self) -> Self:
        # An executor on another machine would write to its own file, and report success.
        problem = self.master_problem(self.spark.master)
        if problem:
            raise refuse(f"spark.master: {problem}", LOCAL_REMEDY)
        return self

    @model_validator(mode="after")
    def _check_background(self) -> Self:
        if self.ddl.background and self.sink.kit.local:
            raise refuse(
                f"ddl.background is for servers: {self.sink.kit.local} has one writer",
                Remedy("config.remove-ddl-background", "Remove ddl.background"),
            )
        return self

    @model_validator(mode="after")
    def _check_rows(self) -> Self:
        if self.sink.consistency is Consistency.ROW and self.source.has_whole_transactions:
            raise refuse(
                'sink.consistency = "row" is for Kafka: a binlog is one stream of whole transactions',
                Remedy("config.remove-sink-consistency", "Remove sink.consistency"),
            )
        if self.sink.consistency is Consistency.ROW and self.source.dispatcher is None:
            raise refuse(
                'source.dispatcher is missing: sink.consistency = "row" needs to know it',
                Remedy(
                    "config.set-table-dispatcher",
                    'Set it to "table" or "index-value", as the changefeed has it; with any other dispatcher, remove sink.consistency',
                ),
            )
        if self.sink.kit.local and (self.sink.writers or 1) > 1:
            raise refuse(f"sink.writers: {self.sink.kit.local} has one writer", Remedy("config.remove-sink-writers", "Remove sink.writers"))
        return self

    @property
    def writers(self) -> int:
        """How many tasks write at once: several with ``consistency = "row"`` only."""
        if self.sink.consistency is not Consistency.ROW or self.sink.kit.local:
            return 1
        return self.sink.writers or self.spark.writers

    # Under spark-submit the file's master is ignored, so the check is repeated with the one that counts.
    def submitted_to(self, master: str) -> Self:
        """Return the configuration with spark-submit's master; ConfigError if the sink cannot be written from its executors."""
        problem = self.master_problem(master)
        if problem:
            raise ConfigError(problem, remedy=SUBMITTED_REMEDY, master=master)
        return self.model_copy(update={"spark": self.spark.model_copy(update={"master": master})})

    def master_problem(self, master: str) -> str | None:
        """Return why the executors of ``master`` cannot write to the sink; None if they can."""
        if self.sink.kit.local and not master.startswith("local"):
            return f"{self.sink.kit.local} as a sink needs a local Spark master"
        return None

    @property
    def acceptance(self) -> Acceptance:
        """Return which differences of tables the operator accepts."""
        return Acceptance(self.sink.accept, self.source.new_collations, self.ddl.collation_pairs)

    def sink_settings(self, *, retries: int = 8) -> SinkSettings:
        """Return the sink's settings. ``retries``: of a statement, by the sink itself. Its ``repr`` hides the password."""
        return SinkSettings(
            url=self.sink.full_url(),
            tls=self.sink.tls,
            name=self.name,
            schema=self.sink.bookkeeping_schema,
            time_zone=self.source.time_zone,
            lease_s=self.run.lease_s,
            lock_timeout_s=self.run.lock_timeout_s,
            bulk_load=self.sink.bulk_load,
            collations=self.ddl.collation_pairs,
            background=self.ddl.background,
            rows_ahead=self.sink.consistency is Consistency.ROW,
            checks_rows=not self.source.has_whole_transactions,
            retries=retries,
        )

    def source_settings(self) -> SourceSettings:
        """Return the source's settings. Their ``repr`` hides secrets."""
        return self.source.settings(self.name)
