"""The keys of the configuration: what each may hold, and what the program gets of it."""

import pickle
import re
from pathlib import Path

import pytest

from applier.config.spark import usable_cores
from applier.model.events import FoldedName, TableName
from applier.model.position import Ts
from applier.model.topic_name import PartitionLimits
from applier.planner.keyless import EqualRows
from applier.planner.table_check import DifferenceKind
from applier.run.assembly import engine_settings
from tests.builders.configuration import WHOLE, load, refusal, with_key


def test_two_sections_are_enough_and_the_rest_has_the_documented_defaults(tmp_path):
    config = load(tmp_path)

    assert (config.name, config.source.time_zone, config.source.start_ts, config.source.stall_after_s) == ("replica", "UTC", 0, 60)
    assert (config.source.required_partitions(), config.source.on_unreadable) == (None, "stop")
    assert (config.sink.consistency, config.sink.max_transaction_rows, config.sink.keyless) == ("transaction", 100_000, "stop")
    assert (config.run.memory, config.run.lease_s, config.run.lock_timeout_s, config.run.shutdown_timeout_s) == (2 * 1024**3, 15, 30, 30)
    assert (config.spark.master, config.spark.conf, config.ddl.policies) == ("local[*]", {}, {})


def test_every_documented_key_is_read(tmp_path):
    config = load(tmp_path, WHOLE)

    assert config.source.bootstrap_servers == "a:9092,b:9093"
    assert config.source.start_ts == 458173202432000001
    assert config.source.required_partitions() == PartitionLimits((("one", 3),))
    assert config.run.memory == 3 * 512 * 1024**2
    assert config.spark.conf == {"spark.executor.memory": "2g", "spark.speculation": "true"}
    settings = config.sink_settings()
    assert settings.url == "mysql+pymysql://root:pa%3Ass%2Fword@db:3306/?program_name=orders"
    assert (settings.name, settings.time_zone, settings.lease_s, settings.lock_timeout_s) == ("orders", "+08:00", 4, 2.5)
    kafka = config.source_settings()
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
    assert load(tmp_path, text).source.required_partitions() == PartitionLimits((("one", 4), ("two", 4)))


def test_the_bookkeeping_lies_where_the_configuration_says(tmp_path):
    assert load(tmp_path).sink_settings().schema == "applier"
    assert load(tmp_path, with_key("sink", 'schema = "Books_2"')).sink_settings().schema == "Books_2"
    assert load(tmp_path, environment={"APPLIER_SINK__SCHEMA": "books"}).sink_settings().schema == "books"


@pytest.mark.parametrize("url", ["sqlite:///replica.db", "mysql+pymysql://applier@db/"])
@pytest.mark.parametrize("name", ["", "1a", "a-b", "a.b", "a`b", "a" * 49, "_a", "é", "a b"])
def test_the_bookkeeping_does_not_lie_in_a_schema_that_no_sink_could_take(tmp_path, name, url):
    error = refusal(tmp_path, with_key("sink", f'schema = "{name}"'), sink={"url": url})
    assert error.facts["key"] == "sink.schema"
    assert "letters" in error.remedy


@pytest.mark.parametrize(
    ("name", "url"),
    [
        ("MySQL", "mysql+pymysql://applier@db/"),
        ("sys", "mariadb+pymysql://applier@db/"),
        ("information_schema", "mysql+pymysql://applier@db/"),
        ("sqlite_x", "sqlite:///replica.db"),
    ],
)
def test_the_bookkeeping_does_not_lie_in_a_schema_of_the_database(tmp_path, name, url):
    error = refusal(tmp_path, with_key("sink", f'schema = "{name}"'), sink={"url": url})
    assert error.facts["key"] == "sink.schema"
    assert "schema" in error.remedy


def test_a_misspelled_key_of_the_schema_is_corrected(tmp_path):
    assert "sink.schema" in refusal(tmp_path, with_key("sink", 'shema = "books"')).remedy


def test_the_group_id_is_the_operators_choice(tmp_path):
    kafka = load(tmp_path, with_key("source.kafka", '"group.id" = "mine"')).source_settings()
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
    assert (policy.required_partitions, policy.segment_rows, policy.cached_bytes) == (PartitionLimits((("one", 3),)), 7, 3 * 512 * 1024**2)


@pytest.mark.parametrize(
    ("master", "conf", "buckets"),
    [
        ("local", {}, 1),
        ("local[3]", {}, 3),
        ("local[2,4]", {}, 2),
        ("local[*]", {}, usable_cores()),
        ("local[*, 4]", {}, usable_cores()),
        ("local[*]", {"spark.default.parallelism": 5}, 5),
        ("spark://h:7077", {}, 16),
        ("spark://h:7077", {"spark.default.parallelism": "48"}, 48),
    ],
)
def test_a_segment_is_rendered_by_as_many_tasks_as_there_are_cores(tmp_path, master, conf, buckets):
    config = load(tmp_path, sink={"url": "mysql+pymysql://u@h/"}, spark={"master": master, "conf": conf})
    assert config.spark.buckets == engine_settings(config).buckets == buckets


@pytest.mark.parametrize(
    ("master", "given"),
    [
        ("local", "local[3]"),
        ("local[0]", "local[3]"),
        ("local[2]", "local[5]"),
        ("local[2, 4]", "local[5, 4]"),
        ("local[*]", f"local[{2 * usable_cores() + 1}]"),
        ("spark://h:7077", "spark://h:7077"),
        ("local-cluster[2,1,700]", "local-cluster[2,1,700]"),
    ],
)
def test_a_local_spark_has_slots_to_read_prepare_and_write_at_once(tmp_path, master, given):
    assert load(tmp_path, sink={"url": "mysql+pymysql://u@h/"}, spark={"master": master}).spark.session_master() == given


@pytest.mark.parametrize(
    ("master", "conf", "parallelism"),
    [
        ("local[2]", {}, "2"),
        ("local[2]", {"spark.default.parallelism": 5}, "5"),
        ("spark://h:7077", {}, None),
    ],
)
def test_slots_of_a_local_spark_do_not_make_its_jobs_larger(tmp_path, master, conf, parallelism):
    config = load(tmp_path, sink={"url": "mysql+pymysql://u@h/"}, spark={"master": master, "conf": conf})
    assert config.spark.session_conf.get("spark.default.parallelism") == parallelism


def test_secrets_are_in_no_repr_and_survive_pickling(tmp_path):
    text = WHOLE.replace("root@db", "root:other-secret@db").replace('"security.protocol" = "SASL_SSL"', '"sasl.password" = "kafka-secret"')
    config = load(tmp_path, text)

    for shown in (repr(config), str(config), repr(config.sink_settings()), repr(config.source_settings()), config.sink.address):
        assert not any(secret in shown for secret in ("pa:ss/word", "pa%3Ass", "other-secret", "kafka-secret"))
    assert pickle.loads(pickle.dumps(config)) == config  # noqa: S301 - our own bytes
    assert config.sink.address == "mysql+pymysql://root:***@db:3306/?program_name=orders"


@pytest.mark.parametrize("servers", ["kafka:9092", "[::1]:9092", "10.0.0.1:9092,b", "SASL_SSL://broker.example.com:9093"])
def test_brokers_are_named_as_librdkafka_names_them(tmp_path, servers):
    assert load(tmp_path, source={"bootstrap_servers": servers}).source.bootstrap_servers == servers


@pytest.mark.parametrize("name", ["", "a b", "x" * 49])
def test_a_replica_is_named_with_letters_digits_and_a_few_signs(tmp_path, name):
    assert refusal(tmp_path, name=name).message == "name must be 1 to 48 letters, digits, '_', '.' or '-'"


@pytest.mark.parametrize("master", ["spark://host:7077", "yarn", "k8s://https://host"])
def test_a_file_of_sqlite_cannot_be_written_by_a_cluster(tmp_path, master):
    error = refusal(tmp_path, spark={"master": master})
    assert "a SQLite file as a sink needs a local Spark master" in error.message
    assert load(tmp_path, sink={"url": "mysql+pymysql://u@h/"}, spark={"master": master}).spark.master == master


@pytest.mark.parametrize(("text", "size"), [("64KiB", 65536), ("1MB", 10**6), ("70000", 70000), ("2 gib", 2 * 1024**3), (131072, 131072)])
def test_sizes_have_units(tmp_path, text, size):
    assert load(tmp_path, run={"memory": text}).run.memory == size


TLS_FILES = ("tidb-ca.pem", "kafka-ca.pem", "sink-ca.pem", "client.pem", "client.key")


@pytest.mark.parametrize("uncommented", [False, True])
def test_the_example_that_the_project_ships_holds_only_keys_that_exist(tmp_path, uncommented):
    text = (Path(__file__).parents[3] / "applier.example.toml").read_text(encoding="utf-8")
    if uncommented:
        for secret in ("kafka-password", "sink-password", "upstream-password", "s3-secret", "applier-token", *TLS_FILES):
            (tmp_path / secret).write_text("s" * 16, encoding="utf-8")
        text = re.sub(r'^# (?=["\w.]+ = |\[\[)', "", text, flags=re.MULTILINE)
        text = text.replace("/run/secrets", str(tmp_path)).replace("/etc/applier", str(tmp_path))
    config = load(tmp_path, text)
    assert config.source.topics == ("changefeed",)
    assert bool(config.ddl.policies) == bool(config.ddl.collations) == config.ddl.background == uncommented
    assert bool(config.sink.accept) == uncommented
    assert config.source.selection().is_everything != uncommented
    assert bool(config.source.claim_check.settings()) == bool(config.source.upstream_settings()) == uncommented


def test_topics_may_be_patterns_with_their_own_numbers_of_partitions(tmp_path):
    config = load(tmp_path, source={"topics": ["^cdc_.*", "changefeed"], "partitions": {"^cdc_.*": 4, "cdc_big": 8}})
    limits = config.source.required_partitions()
    assert [limits.get(topic, 99) for topic in ("cdc_small", "cdc_big", "changefeed")] == [4, 8, 99]
    assert config.source_settings().topics == ("^cdc_.*", "changefeed")


def test_rules_may_come_from_a_file_and_from_the_environment(tmp_path):
    (tmp_path / "rules").write_text("# ours\n*.*\n!shop.log_*\n", encoding="utf-8")
    config = load(tmp_path, source={"tables": f"@{tmp_path}/rules, shop.log_1"})
    names = [TableName("shop", table) for table in ("orders", "log_1", "log_2")]
    assert [config.source.selection().has(name) for name in names] == [True, True, False]


def test_tables_without_a_key_are_written_where_the_file_says_so(tmp_path):
    config = load(tmp_path, with_key("sink", 'keyless = "best_effort"'))
    assert engine_settings(config).writes_keyless
    assert not engine_settings(load(tmp_path)).writes_keyless


def test_what_equal_rows_are_is_said_for_all_tables_or_for_some(tmp_path):
    visits, orders = FoldedName("log", "visits"), FoldedName("shop", "orders")
    assert engine_settings(load(tmp_path)).equal_rows.of(visits) is EqualRows.STOP
    assert engine_settings(load(tmp_path, with_key("sink", 'equal_rows = "once"'))).equal_rows.of(visits) is EqualRows.ONCE
    text = with_key("sink", 'equal_rows = "once"') + '\n[sink.equal_rows_of]\n"LOG.*" = "all"\n"log.visits" = "stop"\n'
    rule = engine_settings(load(tmp_path, text)).equal_rows
    assert [rule.of(table) for table in (visits, orders)] == [EqualRows.ALL, EqualRows.ONCE]
