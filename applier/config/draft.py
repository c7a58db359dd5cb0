"""Writes a commented ``applier.toml`` from a few answers: what a first replica needs, and the names of the rest as comments."""

import json
from dataclasses import dataclass
from typing import Final

from applier.model.position import NO_TS, Ts
from applier.sinks.registry import kit_of
from applier.sources.formats import DEFAULT

DEFAULT_NAME: Final = "replica"
COMMON: Final = (
    '# tables = ["shop.*", "!shop.log_*"]  # only these tables; the last rule that matches counts',
    '# on_unreadable = "stop"  # a record that cannot be read; "quarantine": store it and continue',
)
"""What ``[source]`` has for each kind."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicsDraft:
    """The answers about the topics of a changefeed."""

    servers: str
    topics: tuple[str, ...]
    protocol: str = DEFAULT
    time_zone: str = "UTC"
    start_ts: Ts = NO_TS
    start_ts_from: str = ""
    """Where ``start_ts`` comes from: an option, or a file of the dump."""

    def lines(self) -> list[str]:
        """Return the section ``[source]``."""
        start = f"start_ts = {self.start_ts}" if self.start_ts else "# start_ts = 420747102018863124"
        told = (
            f"from {self.start_ts_from}"
            if self.start_ts_from
            else "TSO of the dump that the sink was loaded from; `applier load` records it"
        )
        return [
            "[source]",
            f"protocol = {_quoted(self.protocol)}  # that of the changefeed's sink URI",
            f"bootstrap_servers = {_quoted(self.servers)}",
            f'topics = {json.dumps(list(self.topics), ensure_ascii=False)}  # a name, or a pattern such as "^cdc_.*"',
            f"time_zone = {_quoted(self.time_zone)}  # that of the TiCDC server (--tz)",
            '# ddl_time_zone = "+08:00"  # that of upstream\'s sessions, for DDLs that depend on it; default: asked of source.upstream',
            f"{start}  # {told}",
            *COMMON,
            "",
            "[source.kafka]  # properties of librdkafka, for TLS and SASL",
            '# "security.protocol" = "SASL_SSL"',
            '# "sasl.mechanism" = "SCRAM-SHA-512"',
            '# "sasl.username" = "applier"',
            '# "sasl.password.file" = "/run/secrets/kafka-password"',
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class BinlogDraft:
    """The answers about a server whose binlog is followed. ``primary`` is its URL without a password."""

    primary: str
    start: str = ""

    def lines(self) -> list[str]:
        """Return the section ``[source]``."""
        start = f"start = {_quoted(self.start)}" if self.start else '# start = "mariadb-bin.000042:4"'
        return [
            "[source]",
            'kind = "binlog"  # of a MySQL or MariaDB server',
            f"url = {_quoted(self.primary)}  # without its password",
            '# password_file = "/run/secrets/source-password"  # or APPLIER_SOURCE__PASSWORD in the environment',
            f'{start}  # where a new replica begins: "FILE:POS", "gtid:SET", "now", "dump:PATH"; `applier load` records it',
            '# server_ids = "430000000-430000063"  # unused ids: each connection that reads needs one',
            '# tls_ca = "/etc/applier/source-ca.pem"  # trust only this authority',
            *COMMON,
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigDraft:
    """The answers. ``url`` has no password: ``password_file`` names its file."""

    name: str
    source: TopicsDraft | BinlogDraft
    url: str
    password_file: str = ""

    def text(self) -> str:
        """Return the file."""
        return "".join(line + "\n" for line in self._lines())

    def _lines(self) -> list[str]:
        return [
            "# Settings of the applier. All settings: applier docs configuration. The environment sets keys too: APPLIER_SINK__PASSWORD, …",
            "",
            f"name = {_quoted(self.name)}  # one progress row per name",
            "",
            *self.source.lines(),
            "",
            "[sink]",
            f"url = {_quoted(self.url)}  # without its password",
            *self._password(),
            '# tls_ca = "/etc/applier/sink-ca.pem"  # trust only this authority',
            '# on_rejected_row = "stop"  # a row that the sink rejects; "quarantine": store it and continue',
            "",
            "[run]",
            '# memory = "2GiB"  # rows that are read ahead; twice as much free disk',
            "# retry_for_s = 600  # a daemon retries a transient failure for so long",
            "",
            "[spark]",
            'master = "local[*]"  # all cores of this machine',
            "",
            "[http]",
            '# listen = "127.0.0.1:9464"  # the page, /metrics, /healthz, /readyz, /status',
        ]

    def _password(self) -> list[str]:
        if kit_of(self.url).local:
            return []
        if self.password_file:
            return [f"password_file = {_quoted(self.password_file)}"]
        return ['# password_file = "/run/secrets/sink-password"  # or APPLIER_SINK__PASSWORD in the environment']


def _quoted(value: str) -> str:
    """Write a text as TOML does: as JSON, whose escapes TOML's basic strings accept, except surrogate pairs."""
    return json.dumps(value, ensure_ascii=False)
