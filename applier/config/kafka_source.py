"""``[source]`` with ``kind = "kafka"``: topics of a changefeed, the zone of their times, and ``[source.claim_check]``."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from difflib import get_close_matches
from typing import Annotated, Any, ClassVar, Final, Literal, Self
from zoneinfo import ZoneInfo, available_timezones

from pydantic import AfterValidator, BeforeValidator, Field, SecretStr, field_validator, model_validator

from applier.config.section import DeclaredDispatcher, Properties, ReadableFile, SecretFile, Section, check_kafka_files, with_files_read
from applier.config.selection import SelectedSource
from applier.config.server import ServerSection
from applier.config.value import Whole, check_servers, check_topics, nearest, parse_server_url, parse_size, refuse, split_text
from applier.database.session import TlsMode
from applier.model.errors import Remedy
from applier.model.position import MAX_TS
from applier.model.topic_name import PartitionLimits, is_named
from applier.sources.claim_check.settings import FORM, MAX_OBJECT_BYTES, BadStorage, ClaimCheckSettings, address_of
from applier.sources.formats import DEFAULT, FORMATS
from applier.sources.kafka.settings import OWNED_PROPERTIES, KafkaSettings
from applier.upstream.settings import UpstreamSettings

TIMESTAMP_END: Final = 2038
"""The year in which TIMESTAMP ends."""
ZONE_OFFSET: Final = re.compile(r"[+-](0\d|1[0-4]):[0-5]\d")
"""What MySQL accepts as ``time_zone`` besides names."""


def check_session_zone(value: str) -> str:
    """Accept what ``check_time_zone`` accepts, and '': not known."""
    return value and _checked(value, "upstream's sessions")


def check_time_zone(value: str) -> str:
    """Accept ``UTC``, an offset such as ``+08:00``, or a name of the zone database."""
    return _checked(value, "the TiCDC server")


def _checked(value: str, which: str) -> str:
    if value.upper() == "UTC":
        return "UTC"
    if ZONE_OFFSET.fullmatch(value):
        return value
    try:
        ZoneInfo(value)
    except (KeyError, OSError, ValueError):
        near = get_close_matches(value, available_timezones(), n=1)
        hint = f"Did you mean {near[0]!r}?" if near else 'Give "UTC", an offset such as "+08:00", or a name such as "Asia/Shanghai".'
        raise refuse(f"is not a time zone: {value!r}", Remedy("config.give-time-zone", f"{hint} It is the zone of {which}")) from None
    return value


def ambiguous_years(zone: str) -> tuple[int, int] | None:
    """Return the first and last year, within the range of TIMESTAMP, in which an hour comes twice in the zone; None if there is none."""
    if zone == "UTC" or ZONE_OFFSET.fullmatch(zone):
        return None
    info, day = ZoneInfo(zone), datetime(1970, 1, 1, tzinfo=UTC)
    before, years = day.astimezone(info).utcoffset(), []
    # Day by day, about 25,000 steps and 0.05 s: zoneinfo does not show its transitions.
    while day.year < TIMESTAMP_END:
        day += timedelta(days=1)
        after = day.astimezone(info).utcoffset()
        if after is not None and before is not None and after < before:
            years.append(day.year)
        before = after
    return (years[0], years[-1]) if years else None


OWNED: Final = frozenset({"asynchronous", "loop", "skip_instance_cache", "use_listings_cache"})
"""Options of every filesystem of fsspec that the applier sets itself."""
_OPTION: Final = "options__"
"""``APPLIER_SOURCE__CLAIM_CHECK__OPTIONS__SECRET`` sets one option; the environment's names are cut before it."""


class ClaimCheckConfig(Section):
    """The storage of the changefeed's large messages, and how it is read. ``options`` go to fsspec's filesystem."""

    storage: str | None = None
    """``s3://bucket/path``, ``gcs://…``, ``azblob://…``, a directory, ``nfs:///mnt/…``. Object stores need the extra s3, gcs or azure."""
    options: dict[str, Any] = Field(default_factory=dict, repr=False)
    """Options of the filesystem (s3fs, gcsfs, adlfs); with ``.file`` after a name: the file that holds its value."""
    max_object_size: Annotated[Whole, BeforeValidator(parse_size)] = MAX_OBJECT_BYTES
    """A larger object is refused."""

    @model_validator(mode="before")
    @classmethod
    def _take_single_options(cls, values: Any) -> Any:
        if not isinstance(values, Mapping):
            return values
        single = {str(name).removeprefix(_OPTION): value for name, value in values.items() if str(name).startswith(_OPTION)}
        if not single:
            return values
        others = {name: value for name, value in values.items() if not str(name).startswith(_OPTION)}
        given = others.get("options", {})
        return {**others, "options": {**given, **single} if isinstance(given, Mapping) else given}

    @field_validator("storage")
    @classmethod
    def _check_storage(cls, storage: str | None) -> str | None:
        if storage is not None:
            try:
                address_of(storage)
            except BadStorage as bad:
                # Not quoted: the producer's own URI holds credentials.
                raise refuse(bad.problem, bad.remedy) from None
        return storage

    @field_validator("options")
    @classmethod
    def _read_options(cls, given: dict[str, Any]) -> dict[str, Any]:
        texts = with_files_read({name: value for name, value in given.items() if isinstance(value, str)})
        options = {name: value for name, value in given.items() if not isinstance(value, str)} | texts
        for name in OWNED & options.keys():
            raise refuse(f"cannot set {name!r}", Remedy("config.remove-own-storage-option", "Remove it: the applier sets it itself"))
        return options

    @model_validator(mode="after")
    def _check_use(self) -> "ClaimCheckConfig":
        if self.storage is None and self.options:
            raise refuse("sets options without storage", FORM)
        return self

    def settings(self) -> ClaimCheckSettings | None:
        """Return where the objects are; None if no storage is configured."""
        if self.storage is None:
            return None
        return ClaimCheckSettings(storage=self.storage, options=self.options, max_object_bytes=self.max_object_size)


def check_protocol(name: str) -> str:
    """Refuse a format that is not known."""
    if name not in FORMATS:
        raise refuse(f"is not a format that the applier reads: {name!r}", nearest(name, FORMATS))
    return name


PartitionCount = Annotated[Whole, Field(ge=1)]


class _UpstreamServer(ServerSection):
    prefix: ClassVar[str] = "upstream_"


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
    """Upstream's TiDB: rows that the topic has only by their handle key are read there."""
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
        self._server().check()
        return self

    def _server(self) -> "_UpstreamServer":
        """Return upstream's keys without their prefix. Each is checked already."""
        keys = {name: getattr(self, f"upstream_{name}") for name in ServerSection.model_fields if name != "url"}
        return _UpstreamServer.model_construct(url=self.upstream or SecretStr(""), **keys)

    def claim_check_settings(self) -> ClaimCheckSettings | None:
        """Return where the objects of large rows are; None if no storage is configured."""
        return self.claim_check.settings()

    def users(self) -> dict[str, str]:
        """Return the user of upstream's database."""
        return {} if self.upstream is None else {"upstream": self._server().user}

    def upstream_settings(self) -> UpstreamSettings | None:
        """Return where upstream is; None if no address is configured. Its ``repr`` hides the password."""
        if self.upstream is None:
            return None
        server = self._server()
        return UpstreamSettings(url=server.full_url(), tls=server.tls, time_zone=self.time_zone)

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
            time_zone=self.time_zone,
            properties=tuple(sorted((k, v) for k, v in self.kafka.items() if k != "group.id")),
        )
