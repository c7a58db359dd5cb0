"""The configuration: every key, every refusal, and where values come from."""

import os
import pickle
import re
from pathlib import Path
from textwrap import dedent

import pytest

from applier.config import load_config
from applier.model.errors import ConfigError
from applier.model.events import FoldedName
from applier.model.position import Ts
from applier.planner.table_check import DifferenceKind
from applier.run.assembly import engine_settings

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


def test_two_sections_are_enough_and_the_rest_has_the_documented_defaults(tmp_path):
    config = load(tmp_path)

    assert (config.name, config.source.time_zone, config.source.start_ts, config.source.stall_after_s) == ("replica", "UTC", 0, 60)
    assert (config.source.required_partitions(), config.source.on_unreadable) == (None, "stop")
    assert (config.sink.consistency, config.sink.max_transaction_rows, config.sink.keyless) == ("transaction", 100_000, "stop")
    assert (config.run.memory, config.run.lease_s, config.run.lock_timeout_s, config.run.shutdown_timeout_s) == (2 * 1024**3, 15, 30, 30)
    assert (config.spark.master, config.spark.conf, config.ddl) == ("local[*]", {}, {})


def test_every_documented_key_is_read(tmp_path):
    config = load(tmp_path, WHOLE)

    assert config.source.bootstrap_servers == "a:9092,b:9093"
    assert config.source.start_ts == 458173202432000001
    assert config.source.required_partitions() == {"one": 3}
    assert config.run.memory == 3 * 512 * 1024**2
    assert config.spark.conf == {"spark.executor.memory": "2g", "spark.speculation": "true"}
    settings = config.sink_settings()
    assert settings.url == "mysql+pymysql://root:pa%3Ass%2Fword@db:3306/?program_name=orders"
    assert (settings.name, settings.time_zone, settings.lease_s, settings.lock_timeout_s) == ("orders", "+08:00", 4, 2.5)
    kafka = config.kafka_settings()
    assert (kafka.bootstrap_servers, kafka.topics, kafka.group_id) == ("a:9092,b:9093", ("one", "two"), "applier-orders")
    assert dict(kafka.properties) == {
        "security.protocol": "SASL_SSL",
        "enable.ssl.certificate.verification": "false",
        "session.timeout.ms": "9000",
    }


def test_a_lock_timeout_of_zero_means_to_look_once(tmp_path):
    assert load(tmp_path, with_key("run", "lock_timeout_s = 0")).sink_settings().lock_timeout_s == 0


def test_one_number_of_partitions_holds_for_every_topic(tmp_path):
    text = WHOLE.replace("partitions = { one = 3 }", "partitions = 4")
    assert load(tmp_path, text).source.required_partitions() == {"one": 4, "two": 4}


def test_the_bookkeeping_lies_where_the_configuration_says(tmp_path):
    assert load(tmp_path).sink_settings().schema == "applier"
    assert load(tmp_path, with_key("sink", 'schema = "Books_2"')).sink_settings().schema == "Books_2"
    assert load(tmp_path, environment={"APPLIER_SINK__SCHEMA": "books"}).sink_settings().schema == "books"


@pytest.mark.parametrize(
    "name", ["", "1a", "a-b", "a.b", "a`b", "a" * 49, "_a", "é", "a b", "MySQL", "sys", "information_schema", "sqlite_x"]
)
def test_the_bookkeeping_does_not_lie_in_a_schema_that_a_sink_could_not_take(tmp_path, name):
    error = refusal(tmp_path, with_key("sink", f'schema = "{name}"'))
    assert error.facts["key"] == "sink.schema"
    assert "schema" in error.remedy or "letters" in error.remedy


def test_a_misspelled_schema_is_told_its_right_name(tmp_path):
    assert "sink.schema" in refusal(tmp_path, with_key("sink", 'shema = "books"')).remedy


def test_the_group_id_is_the_operators_choice(tmp_path):
    kafka = load(tmp_path, with_key("source.kafka", '"group.id" = "mine"')).kafka_settings()
    assert (kafka.group_id, kafka.properties) == ("mine", ())


def test_the_engine_gets_its_limits_and_the_policy_of_each_ddl_type(tmp_path):
    settings = engine_settings(load(tmp_path, WHOLE), until_ts=Ts(9))

    assert settings.ddl_policy == {"truncate_table": "stop", "add_index": "skip"}
    assert settings.accept.accepts(FoldedName("shop", "orders"), DifferenceKind.ENGINE)
    assert not settings.accept.accepts(FoldedName("shop", "orders"), DifferenceKind.VIEW)
    assert settings.accept.new_collations
    assert not engine_settings(load(tmp_path, with_key("source", "new_collations = false"))).accept.new_collations
    assert settings.until_ts == 9
    policy = settings.policy
    assert (policy.required_partitions, policy.segment_rows, policy.cached_bytes) == ({"one": 3}, 7, 3 * 512 * 1024**2)


@pytest.mark.parametrize(
    ("master", "conf", "buckets"),
    [
        ("local", {}, 1),
        ("local[3]", {}, 3),
        ("local[2,4]", {}, 2),
        ("local[*]", {}, os.cpu_count()),
        ("local[*, 4]", {}, os.cpu_count()),
        ("local[*]", {"spark.default.parallelism": 5}, 5),
        ("spark://h:7077", {}, 16),
        ("spark://h:7077", {"spark.default.parallelism": "48"}, 48),
    ],
)
def test_a_segment_is_rendered_by_as_many_tasks_as_there_are_cores(tmp_path, master, conf, buckets):
    config = load(tmp_path, sink={"url": "mysql+pymysql://u@h/"}, spark={"master": master, "conf": conf})
    assert config.spark.buckets == engine_settings(config).buckets == buckets


def test_the_environment_goes_over_the_file_and_the_caller_over_both(tmp_path):
    environment = {
        "APPLIER_NAME": "from_environment",
        "APPLIER_SOURCE__TOPICS": "a, b",
        "APPLIER_SOURCE__PARTITIONS": "2",
        "APPLIER_SOURCE__KAFKA__SASL_PASSWORD": "secret",
        "APPLIER_SPARK__CONF": '{"spark.executor.memoryOverhead": "1g"}',
        "APPLIER_RUN__MEMORY": "1GiB",
        "APPLIER_SINK__PASSWORD": "",
        "APPLIER_DEBUG": "1",
        "APPLIER_FAILPOINT": "write.before_commit",
        "PATH": "/bin",
    }
    config = load(tmp_path, MINIMAL, environment, run={"memory": "3GiB"})

    assert (config.name, config.source.topics, config.source.partitions) == ("from_environment", ("a", "b"), 2)
    assert config.source.kafka == {"sasl.password": "secret"}
    assert config.spark.conf == {"spark.executor.memoryOverhead": "1g"}
    assert config.run.memory == 3 * 1024**3
    assert config.sink.password is None


def test_lists_and_tables_in_the_environment_may_be_json(tmp_path):
    environment = {"APPLIER_SOURCE__TOPICS": '["a", "b"]', "APPLIER_SOURCE__PARTITIONS": '{"a": 1}', "APPLIER_DDL__ADD_INDEX": "skip"}
    config = load(tmp_path, MINIMAL, environment)
    assert (config.source.topics, config.source.partitions, config.ddl) == (("a", "b"), {"a": 1}, {"add_index": "skip"})


def test_the_environment_alone_is_a_configuration():
    environment = {
        "APPLIER_SOURCE__BOOTSTRAP_SERVERS": "k:9092",
        "APPLIER_SOURCE__TOPICS": "t",
        "APPLIER_SINK__URL": "mariadb+pymysql://u@h/",
        "APPLIER_SINK__PASSWORD": "p",
    }
    assert load_config(None, environment=environment).sink_settings().url == "mariadb+pymysql://u:p@h/"


def test_secrets_are_in_no_repr_and_survive_pickling(tmp_path):
    text = WHOLE.replace("root@db", "root:other-secret@db").replace('"security.protocol" = "SASL_SSL"', '"sasl.password" = "kafka-secret"')
    config = load(tmp_path, text)

    for shown in (repr(config), str(config), repr(config.sink_settings()), repr(config.kafka_settings()), config.sink.address):
        assert not any(secret in shown for secret in ("pa:ss/word", "pa%3Ass", "other-secret", "kafka-secret"))
    assert pickle.loads(pickle.dumps(config)) == config  # noqa: S301 - our own bytes
    assert config.sink.address == "mysql+pymysql://root:***@db:3306/?program_name=orders"


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(ConfigError, match="the configuration file does not exist") as caught:
        load_config(tmp_path / "no.toml", environment={})
    assert caught.value.facts["file"] == tmp_path / "no.toml"


def test_a_directory_is_not_a_configuration_file(tmp_path):
    with pytest.raises(ConfigError, match="cannot be read: Is a directory"):
        load_config(tmp_path, environment={})


def test_a_file_that_is_not_toml_is_refused_with_the_line(tmp_path):
    assert "line 2" in refusal(tmp_path, "[source]\nbootstrap_servers\n").message


def test_a_file_that_is_not_utf8_is_refused(tmp_path):
    path = tmp_path / "applier.toml"
    path.write_bytes(b'name = "\xff"')
    with pytest.raises(ConfigError, match="not UTF-8"):
        load_config(path, environment={})


def test_broken_json_in_the_environment_names_the_variable(tmp_path):
    assert "APPLIER_SOURCE__TOPICS" in refusal(tmp_path, environment={"APPLIER_SOURCE__TOPICS": '["a"'}).message


@pytest.mark.parametrize(
    ("text", "key", "hint"),
    [
        (with_key("source", 'time_zome = "UTC"'), "source.time_zome", "source.time_zone?"),
        (with_key("sink", "max_transaction_row = 5"), "sink.max_transaction_row", "sink.max_transaction_rows?"),
        (with_key("run", "lease_s = 5\nlock_timeout = 3"), "run.lock_timeout", "run.lock_timeout_s?"),
        (with_key("sink", "start_ts = 5"), "sink.start_ts", "source.start_ts?"),
        ("nmae = 'x'\n" + MINIMAL, "nmae", "name?"),
        (MINIMAL + "[snik]\nx = 1\n", "snik", "sink?"),
        (with_key("run", "zzzzzz = 1"), "run.zzzzzz", "The keys here are: memory"),
    ],
)
def test_an_unknown_key_is_an_error_that_suggests_the_nearest_name(tmp_path, text, key, hint):
    error = refusal(tmp_path, text)
    assert error.message == f"{key} is not a configuration key"
    assert hint in error.remedy
    assert error.facts == {"key": key, "file": tmp_path / "applier.toml"}


@pytest.mark.parametrize("variable", ["APPLIER_SUORCE__TOPICS", "APPLIER_SOURCE__TOPCIS"])
def test_an_unknown_key_in_the_environment_is_an_error_that_names_the_variable(tmp_path, variable):
    error = refusal(tmp_path, environment={variable: "x"})
    assert error.facts["environment"] in {variable, "APPLIER_SUORCE"}
    assert "Did you mean" in error.remedy


def test_every_missing_key_is_named_at_once(tmp_path):
    error = refusal(tmp_path, "[source]\n[sink]\n")
    for key in ("source.bootstrap_servers", "source.topics", "sink.url"):
        assert f"{key} is missing" in error.message
    assert "APPLIER_SINK__URL" in error.remedy


@pytest.mark.parametrize(
    ("section", "line", "message", "remedy"),
    [
        ("source", 'time_zone = "Asia/Shangai"', "source.time_zone is not a time zone: 'Asia/Shangai'", "'Asia/Shanghai'"),
        ("source", 'time_zone = "+15:00"', "source.time_zone is not a time zone", "+08:00"),
        ("source", 'time_zone = "utc"\nstart_ts = 1.5', "source.start_ts must be a whole number", ""),
        ("run", "memory = 1.5e9", "run.memory must be a whole number", ""),
        ("run", "memory = []", "run.memory is invalid: input should be a valid integer", ""),
        ("source", 'time_zone = "../etc"', "source.time_zone is not a time zone", "zone of the TiCDC server"),
        ("source", "start_ts = 4.58e17", "source.start_ts must be a whole number", "without quotes, point or exponent"),
        ("source", "start_ts = true", "source.start_ts must be a whole number", ""),
        ("source", "start_ts = -1", "source.start_ts is invalid: input should be greater than or equal to 0", ""),
        ("source", "partitions = 0", "source.partitions is invalid", ""),
        ("source", "partitions = { other = 1 }", "source limits partitions of a topic outside of source.topics: 'other'", "changefeed"),
        ("source", 'on_unreadable = "ignore"', "source.on_unreadable is invalid: input should be 'stop' or 'quarantine'", ""),
        ("source", "stall_after_s = nan", "source.stall_after_s is invalid", ""),
        ("source.kafka", '"auto.offset.reset" = "latest"', "source.kafka cannot set 'auto.offset.reset'", "must stop the applier"),
        ("source.kafka", '"x" = ["a"]', "source.kafka.x is invalid", ""),
        ("sink", 'consistency = "row"', 'sink.consistency "row" is not available yet', '"transaction"'),
        ("sink", 'keyless = "best_effort"', 'sink.keyless "best_effort" is not available yet', '"stop"'),
        ("sink", "max_transaction_rows = 0", "sink.max_transaction_rows is invalid", ""),
        ("sink.accept", '"shop.orders" = ["triger"]', "sink.accept has an unknown kind of difference: 'triger'", "'trigger'"),
        ("sink.accept", '"orders" = ["trigger"]', "sink.accept 'orders' is not a table", '"shop.orders" = ["trigger"]'),
        ("sink.accept", '"shop.orders" = "trigger"', "sink.accept is invalid: input should be a valid tuple", ""),
        ("ddl", 'truncate_tabel = "stop"', "ddl has an unknown DDL type: 'truncate_tabel'", "'truncate_table'"),
        ("ddl", 'add_index = "ignore"', "ddl.add_index is invalid: input should be 'apply', 'skip' or 'stop'", ""),
        ("run", 'memory = "2 gigs"', "run.memory is not a size: '2 gigs'", "2GiB"),
        ("run", "memory = 5", "run.memory is too small: 5 bytes", "64KiB"),
        ("run", "lock_timeout_s = -1", "run.lock_timeout_s is invalid: input should be greater than or equal to 0", ""),
        ("run", "lease_s = 0", "run.lease_s is invalid: input should be greater than 0", ""),
        ("spark", 'master = ""', "spark.master is invalid", ""),
    ],
)
def test_a_bad_value_is_refused_with_its_key_and_a_remedy(tmp_path, section, line, message, remedy):
    error = refusal(tmp_path, with_key(section, line))
    assert error.message.startswith(message)
    assert remedy in error.remedy


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("bootstrap_servers", "", "is not a list of brokers"),
        ("bootstrap_servers", "host:port", "is not a list of brokers"),
        ("bootstrap_servers", "a:1,,b:2", "is not a list of brokers"),
        ("topics", [], "is empty"),
        ("topics", ["a", "a"], "names a topic twice"),
        ("topics", ["^feed.*"], "is not a topic name"),
        ("topics", 7, "source.topics is invalid"),
    ],
)
def test_a_source_that_cannot_be_is_refused(tmp_path, key, value, message):
    assert message in refusal(tmp_path, source={key: value}).message


@pytest.mark.parametrize(
    ("text", "environment", "table"),
    [
        ("source = 5\n" + MINIMAL.replace("[source]", "[other]"), {}, "source"),
        (MINIMAL + "[run]\n[spark]\nconf = 3\n", {}, "spark.conf"),
        (MINIMAL, {"APPLIER_SOURCE__KAFKA": "plain", "APPLIER_SOURCE__KAFKA__SASL_PASSWORD": "s"}, "source.kafka"),
    ],
)
def test_a_value_in_the_place_of_a_table_is_refused(tmp_path, text, environment, table):
    error = refusal(tmp_path, text, environment)
    assert f"{table} must be a table" in error.message
    assert f"Write [{table}] on a line of its own" in error.remedy


def test_a_table_in_the_environment_and_single_properties_of_it_go_together(tmp_path):
    environment = {
        "APPLIER_SOURCE__KAFKA": '{"security.protocol": "SASL_SSL", "sasl.username": "u"}',
        "APPLIER_SOURCE__KAFKA__SASL_USERNAME": "v",
    }
    assert load(tmp_path, MINIMAL, environment).source.kafka == {"security.protocol": "SASL_SSL", "sasl.username": "v"}


@pytest.mark.parametrize("servers", ["kafka:9092", "[::1]:9092", "10.0.0.1:9092,b", "SASL_SSL://broker.example.com:9093"])
def test_brokers_are_named_as_librdkafka_names_them(tmp_path, servers):
    assert load(tmp_path, source={"bootstrap_servers": servers}).source.bootstrap_servers == servers


@pytest.mark.parametrize(
    ("url", "message", "remedy"),
    [
        ("not a url", "sink.url is not a URL of a database", "mysql+pymysql://"),
        ("mysql://u:secret@h/", "sink.url names a kind of database that is not supported: 'mysql'", "Did you mean 'mysql+pymysql'?"),
        ("postgresql://u:secret@h/d", "sink.url names a kind of database that is not supported: 'postgresql'", "Write mysql+pymysql://"),
        ("sqlite://", "sink.url names no file", "sqlite:///replica.db"),
        ("sqlite:///:memory:", "sink.url names no file", "sqlite:///replica.db"),
        ("mysql+pymysql://", "sink.url names no host", "mysql+pymysql://user@host:3306/"),
        ("mysql+pymysql://u:secret@h:port/", "sink.url is not a URL of a database", "mysql+pymysql://"),
    ],
)
def test_a_bad_url_is_refused_without_being_quoted(tmp_path, url, message, remedy):
    error = refusal(tmp_path, sink={"url": url})
    assert error.message == message
    assert remedy in error.remedy
    assert "secret" not in str(error)


def test_a_secret_of_a_wrong_type_is_not_quoted(tmp_path):
    assert "12345" not in str(refusal(tmp_path, with_key("sink", "password = 12345")))


@pytest.mark.parametrize("name", ["", "a b", "x" * 49])
def test_a_replica_is_named_with_letters_digits_and_a_few_signs(tmp_path, name):
    assert refusal(tmp_path, name=name).message == "name must be 1 to 48 letters, digits, '_', '.' or '-'"


@pytest.mark.parametrize("master", ["spark://host:7077", "yarn", "k8s://https://host"])
def test_a_file_of_sqlite_cannot_be_written_by_a_cluster(tmp_path, master):
    error = refusal(tmp_path, spark={"master": master})
    assert "a SQLite sink needs a local Spark master" in error.message
    assert load(tmp_path, sink={"url": "mysql+pymysql://u@h/"}, spark={"master": master}).spark.master == master


@pytest.mark.parametrize(("text", "size"), [("64KiB", 65536), ("1MB", 10**6), ("70000", 70000), ("2 gib", 2 * 1024**3), (131072, 131072)])
def test_sizes_have_units(tmp_path, text, size):
    assert load(tmp_path, run={"memory": text}).run.memory == size


@pytest.mark.parametrize("uncommented", [False, True])
def test_the_example_that_the_project_ships_holds_only_keys_that_exist(tmp_path, uncommented):
    text = (Path(__file__).parents[3] / "applier.example.toml").read_text(encoding="utf-8")
    if uncommented:
        (tmp_path / "kafka-password").write_text("k", encoding="utf-8")
        (tmp_path / "sink-password").write_text("s", encoding="utf-8")
        text = re.sub(r'^# (?=["\w.]+ = )', "", text, flags=re.MULTILINE).replace("/run/secrets", str(tmp_path))
    config = load(tmp_path, text)
    assert config.source.topics == ("changefeed",)
    assert bool(config.ddl) == uncommented
    assert bool(config.sink.accept) == uncommented
