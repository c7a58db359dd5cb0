"""``[source] kind = "binlog"``: its keys, and which keys of the other kind are refused, by name."""

import pytest

from applier.config import load_config
from applier.config.binlog_source import BinlogSourceConfig
from applier.config.kafka_source import KafkaSourceConfig
from applier.database.session import Tls, TlsMode
from applier.model.errors import ConfigError
from applier.model.events import TableName

BINLOG = {"kind": "binlog", "url": "mysql+pymysql://applier@primary:3306/"}
KAFKA = {"bootstrap_servers": "kafka:9092", "topics": ["changefeed"]}
SINK = {"url": "sqlite:///replica.db"}
SECRET = "not-in-any-text"  # noqa: S105 - a marker


def load(source=BINLOG, environment=None, **sections):
    return load_config(None, {"source": source, "sink": SINK, **sections}, environment=environment or {})


def refusal(source, **sections):
    with pytest.raises(ConfigError) as raised:
        load(source, **sections)
    return raised.value


def test_a_source_without_a_kind_is_kafka():
    assert isinstance(load(KAFKA).source, KafkaSourceConfig)
    assert isinstance(load({"kind": "kafka", **KAFKA}).source, KafkaSourceConfig)


def test_a_binlog_needs_its_url_only():
    config = load()
    settings = config.source_settings()
    assert isinstance(config.source, BinlogSourceConfig)
    assert (settings.url, settings.tls, settings.start) == ("mysql+pymysql://applier@primary:3306/", Tls(), "")
    assert settings.server_ids == (430000000, 430000063)
    assert (config.source.time_zone, config.source.selection().is_everything, config.source.on_unreadable) == ("UTC", True, "stop")


def test_all_keys_of_a_binlog_reach_its_settings_and_the_password_is_never_shown(tmp_path):
    (tmp_path / "password").write_text(SECRET, encoding="utf-8")
    more = {"server_ids": "7 - 9", "start": "dump:/backup/dump.sql", "tls_mode": "required", "stall_after_s": 5, "tables": "shop.*"}
    config = load(BINLOG | more | {"password_file": str(tmp_path / "password")})
    settings = config.source_settings()
    assert settings.url == f"mysql+pymysql://applier:{SECRET}@primary:3306/"
    assert (settings.server_ids, settings.start, settings.tls) == ((7, 9), "dump:/backup/dump.sql", Tls(mode=TlsMode.REQUIRED))
    assert (config.source.stall_after_s, config.source.selection().is_everything) == (5, False)
    assert config.source.upstream_settings().url == settings.url
    assert SECRET not in f"{config!r}{settings!r}{config.source.address}{config.source.upstream_settings()!r}"


def test_the_environment_sets_the_keys_of_a_binlog():
    environment = {"APPLIER_SOURCE__KIND": "binlog", "APPLIER_SOURCE__URL": BINLOG["url"], "APPLIER_SOURCE__PASSWORD": SECRET}
    assert SECRET in load({}, environment).source_settings().url


@pytest.mark.parametrize("start", ["mariadb-bin.000042:4", "mysql-bin.1000000:157", "gtid:0-1-5,1-2-7", "now", "dump:/backup/metadata"])
def test_a_replica_begins_at_a_place_of_each_form(start):
    assert load(BINLOG | {"start": start}).source_settings().start == start


def test_a_gtid_set_of_mysql_has_intervals_tags_and_line_ends():
    uuid = "3e11fa47-71ca-11e1-9e33-c80aa9429562"
    for gtids in (f"{uuid}:1-5:7", f"{uuid}:1-3,\n{uuid}:blue:1"):
        assert load(BINLOG | {"start": f"gtid:{gtids}"}).source_settings().start.endswith(gtids)


@pytest.mark.parametrize(
    ("key", "value", "words", "remedy"),
    [
        ("kind", "bin", "unknown kind", '"kafka" or "binlog"'),
        ("url", "sqlite:///x.db", "not a server of the MySQL family", "mysql+pymysql://"),
        ("server_ids", "5", "not a range of server ids", "430000000-430000063"),
        ("server_ids", "9-7", "from a smaller id", "430000000-430000063"),
        ("server_ids", "7-7000", "more than 1024", "430000000-430000063"),
        ("server_ids", "7-7", "each connection", "430000000-430000063"),
        ("start", "mariadb-bin.000042", "not a position in a binlog", "mariadb-bin.000042:4"),
        ("start", "gtid:what?", "not a position in a binlog", "gtid:"),
        ("tls_cert", __file__, "does not require TLS", "verify_identity"),
        ("dispatcher", "table", 'is a key of kind = "kafka" only', "one stream"),
        ("partitions", 3, 'is a key of kind = "kafka" only', "one stream"),
        ("claim_check", {"storage": "/x"}, 'is a key of kind = "kafka" only', "no such storage"),
        ("upstream", "mysql+pymysql://u@h/", 'is a key of kind = "kafka" only', "nothing is looked up"),
        ("start_ts", 5, 'is a key of kind = "kafka" only', "Set start"),
        ("kafka", {"group.id": "x"}, 'is a key of kind = "kafka" only', 'kind = "kafka"'),
        ("strat", "now", "is not a configuration key", "source.start"),
    ],
)
def test_a_wrong_key_of_a_binlog_is_refused_by_its_name(key, value, words, remedy):
    found = refusal(BINLOG | {key: value, "tls_mode": "preferred"})
    assert words in found.message
    assert remedy in found.remedy


def test_a_key_of_a_binlog_without_its_kind_is_refused_with_the_kind_to_set():
    found = refusal(KAFKA | {"server_ids": "1-2"})
    assert found.message == 'source.server_ids is a key of kind = "binlog" only'
    assert 'kind = "binlog"' in found.remedy


def test_two_passwords_are_refused():
    assert "both password and password_file" in refusal(BINLOG | {"password": "a", "password_file": __file__}).message


def test_rows_of_a_binlog_are_not_written_ahead():
    found = refusal(BINLOG, sink={"url": "mysql+pymysql://u@h/", "consistency": "row"})
    assert 'sink.consistency = "row"' in found.message
    assert found.remedy == "Remove sink.consistency"


def test_all_errors_of_a_binlog_are_told_at_once():
    found = refusal({"kind": "binlog", "topics": ["t"], "server_ids": "x"})
    assert found.message == "the configuration has 3 errors"
    assert set(found.facts) >= {"source.url", "source.topics", "source.server_ids"}


def test_tables_of_tools_that_copy_tables_are_known_by_the_rules_of_the_configuration():
    copy, table = TableName("shop", "_orders_gho"), TableName("shop", "orders")
    by_default = load().source.selection()
    assert by_default.online.is_copy(copy, table)
    assert by_default.is_everything
    assert not load({**BINLOG, "online_ddl": "off"}).source.selection().online.is_copy(copy, table)
    always = {**BINLOG, "online_ddl": "always", "shadow_table_rules": ["^tmp_(.+)$"], "trash_table_rules": ["^old_(.+)$"]}
    selection = load(always).source.selection()
    assert [selection.has(TableName("shop", name)) for name in ("tmp_orders", "old_orders", "_orders_gho", "orders")] == [
        False,
        False,
        True,
        True,
    ]
    environment = {"APPLIER_SOURCE__ONLINE_DDL": "always", "APPLIER_SOURCE__SHADOW_TABLE_RULES": "^a_(.+)$,^b_(.+)$"}
    assert not load(environment=environment).source.selection().has(TableName("shop", "b_orders"))


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("online_ddl", "sometimes", "source.online_ddl"),
        ("shadow_table_rules", ["^_.+_gho$"], "shadow_table_rules has a regular expression without exactly one group"),
        ("trash_table_rules", ["^_(.+_del$"], "trash_table_rules has a regular expression that cannot be read"),
    ],
)
def test_a_rule_for_such_tables_that_is_none_is_refused_by_its_key(key, value, words):
    assert words in str(refusal({**BINLOG, key: value}))
