"""Configurations of tests: the smallest file, a file with every key, and what is said of a wrong one."""

from pathlib import Path
from textwrap import dedent

import pytest

from applier.config import load_config
from applier.model.errors import ConfigError

MINIMAL = """
[source]
bootstrap_servers = "127.0.0.1:9092"
topics = ["changefeed"]
[sink]
url = "sqlite:///replica.db"
"""


WHOLE = """
name = "orders"
[source]
bootstrap_servers = "a:9092, b:9093"
topics = ["one", "two"]
time_zone = "+08:00"
start_ts = 458173202432000001
partitions = { one = 3 }
on_unreadable = "stop"
stall_after_s = 5
[source.kafka]
"security.protocol" = "SASL_SSL"
"enable.ssl.certificate.verification" = false
"session.timeout.ms" = 9000
[sink]
url = "mysql+pymysql://root@db:3306/?program_name=orders"
password = "pa:ss/word"
consistency = "transaction"
max_transaction_rows = 7
keyless = "stop"
equal_rows = "once"
on_rejected_row = "stop"
schema = "books"
[sink.accept]
"shop.orders" = ["trigger", "engine"]
[ddl]
truncate_table = "stop"
add_index = "skip"
[run]
memory = "1.5 GiB"
lease_s = 4
lock_timeout_s = 2.5
shutdown_timeout_s = 9
[spark]
master = "spark://host:7077"
[spark.conf]
"spark.executor.memory" = "2g"
"spark.speculation" = true
"""


def load(tmp_path: Path, text: str = MINIMAL, environment: dict[str, str] | None = None, **overrides: object):
    path = tmp_path / "applier.toml"
    path.write_text(dedent(text), encoding="utf-8")
    return load_config(path, overrides, environment=environment or {})


def refusal(tmp_path: Path, text: str = MINIMAL, environment: dict[str, str] | None = None, **overrides: object) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, text, environment, **overrides)
    assert caught.value.exit_code == 2
    assert caught.value.remedy or caught.value.message
    return caught.value


def with_key(section: str, line: str) -> str:
    return MINIMAL.replace(f"[{section}]", f"[{section}]\n{line}") if f"[{section}]" in MINIMAL else f"{MINIMAL}[{section}]\n{line}\n"
