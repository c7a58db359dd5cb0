"""Wrong settings: what the remedy says is written into the file, and the configuration is read."""

from pathlib import Path

import pytest

from applier.config import load as origin
from applier.config import load_config

SERVER = "mysql+pymysql://root@127.0.0.1:1/"
REMOVED = None
MYSQL = {"sink.url": SERVER}
BINLOG = {"source.kind": "binlog", "source.url": SERVER, "source.bootstrap_servers": REMOVED, "source.topics": REMOVED}
ROW = {"sink.url": SERVER, "sink.consistency": "row"}


def url(text):
    return {"sink.url": text}


CASES = {
    "url with a database": (url(SERVER + "shop"), url(SERVER)),
    "url of another database": (url("postgresql://u@h/"), url("sqlite:///file.db")),
    "url that is none": (url("replica.db"), url("sqlite:///file.db")),
    "url that is none, with an at": (url("u@h"), url("mysql+pymysql://user@host:3306/")),
    "password with an at": (url("mysql+pymysql://u:p@ss@h/"), url("mysql+pymysql://u:p%40ss@h/")),
    "url without host": (url("mysql+pymysql://"), url("mysql+pymysql://user@host:3306/")),
    "option given twice": (url(SERVER + "?program_name=a&program_name=b"), url(SERVER + "?program_name=a")),
    "option of secrets": (url(SERVER + "?passwd=secret"), {"sink.url": SERVER, "sink.password": "secret"}),
    "long connect_timeout": (url(SERVER + "?connect_timeout=100"), url(SERVER + "?connect_timeout=60")),
    "autocommit": (url(SERVER + "?autocommit=true"), url(SERVER)),
    "charset": (url(SERVER + "?charset=latin1"), url(SERVER)),
    "sql_mode": (url(SERVER + "?sql_mode=ANSI"), url(SERVER)),
    "init_command": (url(SERVER + "?init_command=x"), url(SERVER)),
    "read_timeout": (url(SERVER + "?read_timeout=1"), url(SERVER)),
    "local_infile": (url(SERVER + "?local_infile=1"), url(SERVER)),
    "defaults file": (url(SERVER + "?read_default_file=x"), url(SERVER)),
    "host as option": (url(SERVER + "?host=h"), url("mysql+pymysql://user@host:3306/")),
    "tls as option": (url(SERVER + "?ssl_disabled=1"), {"sink.url": SERVER, "sink.tls_mode": "disabled"}),
    "unknown option": (url(SERVER + "?zebra=1"), url(SERVER)),
    "file with a host": (url("sqlite://host/replica.db"), url("sqlite:///replica.db")),
    "in memory": (url("sqlite:///:memory:"), url("sqlite:///replica.db")),
    "file with an option": (url("sqlite:///replica.db?timeout=1"), url("sqlite:///replica.db")),
    "secrets twice": (MYSQL | {"sink.password": "a", "sink.password_file": "secret.txt"}, {"sink.password": REMOVED}),
    "upstream's secrets twice": (
        {"source.upstream": SERVER, "source.upstream_password": "a", "source.upstream_password_file": "secret.txt"},
        {"source.upstream_password": REMOVED},
    ),
    "unknown format": ({"source.protocol": "csv"}, {"source.protocol": "open-protocol"}),
    "upstream is a file": ({"source.upstream": "sqlite:///u.db"}, {"source.upstream": "mysql+pymysql://reader@tidb:4000/"}),
    "file of a secret is missing": (MYSQL | {"sink.password_file": "nowhere.txt"}, {"sink.password_file": "secret.txt"}),
    "file of a secret is empty": (MYSQL | {"sink.password_file": "empty.txt"}, {"sink.password_file": "secret.txt"}),
    "property and its file": (
        {"source.kafka": {"sasl.password": "a", "sasl.password.file": "secret.txt"}},
        {"source.kafka": {"sasl.password.file": "secret.txt"}},
    ),
    "property of the applier": ({"source.kafka": {"enable.auto.commit": "true"}}, {"source.kafka": REMOVED}),
    "tls of a file": ({"sink.tls_mode": "required"}, {"sink.tls_mode": REMOVED}),
    "tls key alone": (MYSQL | {"sink.tls_key": "secret.txt"}, {"sink.tls_cert": "secret.txt"}),
    "tls ca that is ignored": (MYSQL | {"sink.tls_ca": "secret.txt", "sink.tls_mode": "required"}, {"sink.tls_mode": "verify_identity"}),
    "tls ca is missing": (MYSQL | {"sink.tls_ca": "nowhere.txt"}, {"sink.tls_ca": "secret.txt"}),
    "tls cert without tls": (MYSQL | {"sink.tls_cert": "secret.txt", "sink.tls_mode": "preferred"}, {"sink.tls_mode": "required"}),
    "a remote master of a file": ({"spark.master": "spark://h:7077"}, None),
    "spark.master as property": ({"spark.conf": {"spark.master": "local"}}, {"spark.conf": REMOVED, "spark.master": "local"}),
    "builds beside a file": ({"ddl.background": True}, {"ddl.background": REMOVED}),
    "writers of a file": ({"sink.writers": 2}, {"sink.writers": REMOVED}),
    "rows without dispatcher": (ROW, {"source.dispatcher": "table"}),
    "listen": ({"http.listen": "nowhere"}, {"http.listen": "127.0.0.1:9464"}),
    "short token": ({"http.token": "abc"}, {"http.token": "0123456789abcdef0123456789abcdef"}),
    "tokens twice": ({"http.token": "0123456789abcdef0123456789abcdef", "http.token_file": "secret.txt"}, {"http.token_file": REMOVED}),
    "time zone": ({"source.time_zone": "Middle/Earth"}, {"source.time_zone": "UTC"}),
    "size": ({"run.memory": "much"}, {"run.memory": "512MiB"}),
    "small size": ({"run.memory": "1KiB"}, {"run.memory": "64KiB"}),
    "float": ({"source.start_ts": 1.5}, {"source.start_ts": 1}),
    "seconds": ({"run.lease_s": "soon"}, {"run.lease_s": 15}),
    "system schema": (MYSQL | {"sink.schema": "mysql"}, {"sink.schema": "applier"}),
    "schema's name": ({"sink.schema": "a-b"}, {"sink.schema": "a_b"}),
    "brokers": ({"source.bootstrap_servers": "a b"}, {"source.bootstrap_servers": "a:9092,b:9092"}),
    "no topics": ({"source.topics": []}, None),
    "a topic twice": ({"source.topics": ["a", "a"]}, {"source.topics": ["a"]}),
    "topic's name": ({"source.topics": ["a/b"]}, {"source.topics": ["^cdc_.*"]}),
    "pattern of topics": ({"source.topics": ["^("]}, {"source.topics": ["^cdc_.*"]}),
    "a missing key": ({"source.topics": REMOVED}, {"source.topics": ["feed"]}),
    "no table of settings": ({"run": 1}, {"run": REMOVED, "run.lease_s": 15}),
    "several errors": ({"run.lease_s": "soon", "source.topics": []}, {"run.lease_s": 15, "source.topics": ["changefeed"]}),
    "accepted differences": ({"sink.accept": {"orders": ["trigger"]}}, {"sink.accept": {"shop.orders": ["trigger"]}}),
    "equal rows of a table": ({"sink.equal_rows_of": {"visits": "all"}}, {"sink.equal_rows_of": {"shop.visits": "all"}}),
    "no table is taken in": ({"source.tables": ["!a.*"]}, {"source.tables": ["*.*", "!a.*"]}),
    "no tables": (
        {"source.event_filter": [{"tables": [], "ignore": ["delete"]}]},
        {"source.event_filter": [{"tables": ["*.*"], "ignore": ["delete"]}]},
    ),
    "a file of tables is missing": ({"source.tables": ["@nowhere.txt"]}, {"source.tables": ["@tables.txt"]}),
    "a file in a file": ({"source.tables": ["@nested.txt"]}, {"source.tables": ["@tables.txt"]}),
    "schema alone": ({"source.tables": ["shop"]}, {"source.tables": ["shop.*"]}),
    "special character": ({"source.tables": ["shop.a-b"]}, {"source.tables": ["shop.`a-b`"]}),
    "after the table": ({"source.tables": ["a.b.c"]}, {"source.tables": ["`a.b`.`c-d`"]}),
    "endless expression": ({"source.tables": ["/a.b"]}, {"source.tables": ["/a/.b"]}),
    "endless name": ({"source.tables": ["`a.b"]}, {"source.tables": ["`a`.b"]}),
    "wrong expression": ({"source.tables": ["/(/.b"]}, {"source.tables": ["/a/.b"]}),
    "route": (
        {"source.route": [{"from": "a.*", "to": "b"}]},
        {"source.route": [{"from": "a.*", "to": "archive.{table}"}]},
    ),
    "key of a route": ({"source.route": [{"to": "a.{table}"}]}, {"source.route": [{"from": "a.*", "to": "a.{table}"}]}),
    "kind of event": (
        {"source.event_filter": [{"tables": ["a.*"], "ignore": ["erase"]}]},
        {"source.event_filter": [{"tables": ["a.*"], "ignore": ["delete"]}]},
    ),
    "ignore_sql": (
        {"source.event_filter": [{"tables": ["a.*"], "ignore_sql": ["("]}]},
        {"source.event_filter": [{"tables": ["a.*"], "ignore_sql": ["^drop"]}]},
    ),
    "kind of source": ({"source.kind": "binlogs"}, {"source.kind": "kafka"}),
    "key of another kind of source": (BINLOG | {"source.partitions": 2}, {"source.partitions": REMOVED}),
    "a binlog's secrets twice": (
        BINLOG | {"source.password": "a", "source.password_file": "secret.txt"},
        {"source.password": REMOVED},
    ),
    "a binlog's server is a file": (BINLOG | {"source.url": "sqlite:///u.db"}, {"source.url": "mysql+pymysql://applier@primary:3306/"}),
    "a binlog's server ids": (BINLOG | {"source.server_ids": "430000000"}, {"source.server_ids": "430000000-430000063"}),
    "a binlog's start": (BINLOG | {"source.start": "mariadb-bin.42"}, {"source.start": "mariadb-bin.000042:4"}),
    "rows of a binlog ahead": (MYSQL | BINLOG | {"sink.consistency": "row"}, {"sink.consistency": REMOVED}),
    "claim check's options alone": (
        {"source.claim_check.options": {"key": "k"}},
        {"source.claim_check.storage": "s3://bucket/path"},
    ),
    "claim check's path": ({"source.claim_check.storage": "here"}, {"source.claim_check.storage": "/tmp"}),  # noqa: S108 - not used
    "claim check's credentials": (
        {"source.claim_check.storage": "s3://bucket/path?access-key=x"},
        {"source.claim_check.storage": "s3://bucket/path", "source.claim_check.options": {"key": "x"}},
    ),
    "claim check's own option": (
        {"source.claim_check.storage": "s3://bucket/path", "source.claim_check.options": {"asynchronous": "true"}},
        {"source.claim_check.options": {"key": "x"}},
    ),
}
"""What is wrong, and what the remedy says; None: its own setting, word by word."""


@pytest.fixture
def files(newcomer):
    texts = {"secret.txt": "secret", "empty.txt": "", "tables.txt": "shop.*", "nested.txt": "@tables.txt"}
    for name, text in texts.items():
        Path(name).write_text(text, encoding="utf-8")
    return newcomer


@pytest.mark.parametrize("name", CASES)
def test_the_configuration_is_read_after_its_remedy(name, files):
    wrong, right = CASES[name]
    files.configure()
    files.change(wrong)
    said = files.fails("migrate", 2)
    files.change(said.settings if right is None else right)
    load_config(Path("applier.toml"), environment={})


def test_a_configuration_that_may_not_be_read_gets_its_permissions(newcomer, monkeypatch):
    # The user of the tests may be root, who may read anything.
    read = origin.TomlConfigSettingsSource

    def source(settings, path):
        if path.stat().st_mode & 0o400:
            return read(settings, path)
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(origin, "TomlConfigSettingsSource", source)
    newcomer.configure()
    Path("applier.toml").chmod(0)
    newcomer.fails("migrate", 2, "Permission denied")
    Path("applier.toml").chmod(0o600)
    newcomer.succeeds("migrate")
