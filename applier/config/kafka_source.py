"""``[source]`` with ``kind = "kafka"``: topics of a changefeed."""

from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, SecretStr, field_validator, model_validator

from applier.config.choice import DeclaredDispatcher
from applier.config.claim_check import ClaimCheckConfig
from applier.config.readable_file import ReadableFile, check_kafka_files
from applier.config.secret import SecretFile, with_files_read
from applier.config.section import Properties
from applier.config.selected_source import SelectedSource
from applier.config.time_zone import ambiguous_years, check_session_zone, check_time_zone
from applier.config.tls import tls_of
from applier.config.value import Whole, check_servers, check_topics, nearest, parse_server_url, refuse, split_text
from applier.database.tls import Tls, TlsMode
from applier.model.position import MAX_TS
from applier.model.remedy import Remedy
from applier.model.topic_name import PartitionLimits, is_named
from applier.sources.claim_check.settings import ClaimCheckSettings
from applier.sources.formats import DEFAULT, FORMATS
from applier.sources.kafka.settings import OWNED_PROPERTIES, KafkaSettings
from applier.upstream.settings import UpstreamSettings


def check_protocol(name: str) -> str:
    """Refuse a format that is not known."""
    if name not in FORMATS:
        raise refuse(f"is not a format that the applier reads: {name!r}", nearest(name, FORMATS))
    return name


PartitionCount = Annotated[Whole, Field(ge=1)]


class KafkaSourceConfig(SelectedSource):
    """Where the topics of a changefeed are, and what is known about them."""

    kind: Literal["kafka"] = "kafka"
    """Topics of a changefeed."""
    protocol: Annotated[str, AfterValidator(check_protocol)] = DEFAULT
    """The format of the records: ``protocol`` of the changefeed's sink URI."""
    bootstrap_servers: Annotated[str, AfterValidator(check_servers)]
    """Kafka's brokers: `host:port`, separated by commas."""
    topics: Annotated[tuple[str, ...], BeforeValidator(split_text), AfterValidator(check_topics)]
    """Names of topics, or patterns of them: ``"^cdc_.*"`` matches all topics of such names, also later ones."""
    time_zone: Annotated[str, AfterValidator(check_time_zone)] = "UTC"
    """Zone of TIMESTAMP text on the wire: that of the TiCDC server. With daylight saving, one hour of a year is ambiguous."""
    ddl_time_zone: Annotated[str, AfterValidator(check_session_zone)] = ""
    """Zone of upstream's sessions, for DDLs that depend on it. Not set: asked of ``upstream``; if that is not set, such a DDL stops."""
    start_ts: Annotated[Whole, Field(ge=0, le=MAX_TS)] = 0
    """TSO of the snapshot that the sink was loaded from; 0: sink and topic both began empty."""
    new_collations: bool = True
    """TiDB's ``new_collations_enabled_on_first_bootstrap``; False: upstream compares all texts byte by byte."""
    partitions: PartitionCount | dict[str, PartitionCount] | None = None
    """How many partitions are required, if fewer than the topic has; or by topic: ``{ "^cdc_.*" = 4, changefeed = 8 }``."""
    dispatcher: DeclaredDispatcher | None = None
    """The changefeed's rule for partitions; needed for ``sink.consistency = "row"`` only."""
    claim_check: ClaimCheckConfig = ClaimCheckConfig()
    upstream: SecretStr | None = None
    """Upstream's TiDB: rows of which the topic has the handle key only are read there."""
    upstream_password: SecretStr | None = None
    """Upstream's password. Prefer the environment or a file."""
    upstream_password_file: SecretFile | None = None
    """The file that holds it."""
    upstream_tls_mode: TlsMode | None = None
    """TLS to upstream, as ``sink.tls_mode``."""
    upstream_tls_ca: ReadableFile | None = None
    """The authority that signed upstream's certificate."""
    upstream_tls_cert: ReadableFile | None = None
    """The applier's own certificate for upstream."""
    upstream_tls_key: ReadableFile | None = None
    """The key of that certificate."""
    kafka: Properties = Field(default_factory=dict, repr=False)
    """Any property of librdkafka; with ``.file`` after its name: the file that holds its value."""

    @field_validator("kafka")
    @classmethod
    def _refuse_owned_properties(cls, given: dict[str, str]) -> dict[str, str]:
        # Files first: "group.instance.id.file" must be refused as well.
        properties = with_files_read(given)
        for name in properties:
            if name in OWNED_PROPERTIES:
                raise refuse(f"cannot set {name!r}", Remedy("config.remove-fixed-kafka-property", f"Remove it: {OWNED_PROPERTIES[name]}"))
        check_kafka_files(properties)
        return properties

    @model_validator(mode="after")
    def _check_partition_topics(self) -> Self:
        for topic in self.partitions if isinstance(self.partitions, dict) else ():
            if not is_named(topic, self.topics):
                raise refuse(f"limits a topic that is not in source.topics: {topic!r}", nearest(topic, self.topics))
        return self

    @field_validator("upstream")
    @classmethod
    def _check_upstream(cls, url: SecretStr | None) -> SecretStr | None:
        # Checked, but kept as it is: the parsed form would show the password in a repr.
        if url is not None:
            parse_server_url(url.get_secret_value())
        return url

    @model_validator(mode="after")
    def _check_upstream_keys(self) -> Self:
        if self.upstream_password is not None and self.upstream_password_file is not None:
            raise refuse(
                "sets both upstream_password and upstream_password_file",
                Remedy("config.remove-upstream-password-or-file", "Remove one of them"),
            )
        self._upstream_tls()
        return self

    def _upstream_tls(self) -> Tls:
        return tls_of(self.upstream_tls_mode, self.upstream_tls_ca, self.upstream_tls_cert, self.upstream_tls_key)

    def claim_check_settings(self) -> ClaimCheckSettings | None:
        """Return where the objects of large rows are; None if no storage is configured."""
        return self.claim_check.settings()

    def users(self) -> dict[str, str]:
        """Return the user of upstream's database."""
        return {} if self.upstream is None else {"upstream": parse_server_url(self.upstream.get_secret_value()).username or ""}

    def upstream_settings(self) -> UpstreamSettings | None:
        """Return where upstream is; None if no address is configured. Its ``repr`` hides the password."""
        if self.upstream is None:
            return None
        url = parse_server_url(self.upstream.get_secret_value())
        password = self.upstream_password_file if self.upstream_password is None else self.upstream_password
        if password is not None:
            url = url.set(password=password.get_secret_value())
        return UpstreamSettings(url=url.render_as_string(hide_password=False), tls=self._upstream_tls(), time_zone=self.time_zone)

    def time_zone_warning(self) -> dict[str, Any] | None:
        """Return the facts of a warning if TIMESTAMP text of the zone can have two meanings, else None."""
        years = ambiguous_years(self.time_zone)
        if years is None:
            return None
        remedy = Remedy(
            "config.use-utc-changefeed",
            "TIMESTAMP values of that hour may be one hour off. Use a changefeed of a TiCDC server with --tz=UTC, and a new replica",
        )
        return {"time_zone": self.time_zone, "first_year": years[0], "last_year": years[1], "remedy": remedy}

    def required_partitions(self) -> PartitionLimits | None:
        """Return how many partitions of each limited topic are required; None without a limit."""
        if self.partitions is None:
            return None
        limits = dict.fromkeys(self.topics, self.partitions) if isinstance(self.partitions, int) else self.partitions
        return PartitionLimits(tuple(limits.items()))

    def settings(self, name: str) -> KafkaSettings:
        """Return the settings for the replica ``name``. The consumer group only shows offsets to lag tools; it assigns no partitions."""
        return KafkaSettings(
            bootstrap_servers=self.bootstrap_servers,
            topics=self.topics,
            group_id=self.kafka.get("group.id", f"applier-{name}"),
            protocol=self.protocol,
            properties=tuple(sorted((k, v) for k, v in self.kafka.items() if k != "group.id")),
        )
