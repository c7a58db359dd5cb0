"""Bad input beside Kafka: configuration, access to the sink, tables changed by hand. Exit code, place, remedy, progress intact."""

import sqlite3
from contextlib import closing
from pathlib import Path
from uuid import uuid4

import pytest
from sqlalchemy import make_url

from tests.rig.bad_input import assert_reports, half_way
from tests.rig.mysql_oracle import connect
from tests.rig.program import catchup, write_config
from tests.rig.upstream import clear_sink

pytestmark = [
    pytest.mark.slow,
    pytest.mark.usually_on("mariadb", reason="exit codes and messages are the program's; integration tests show each server's errors"),
]

CONFIG, SINK = 2, 4
NOBODY = "127.0.0.1:1"
STATEMENT = ("min_ts: ", "max_ts: ")
"""The place of a statement of many rows, where it is not one of them that is wrong."""
ROW = ("topic: ", "partition: ", "offset: ", "event: ", "commit_ts: ", "key_columns: ")
STRANGER = "applier_stranger"
IN_PROCESS = pytest.mark.soak(
    reason="each is a start of Spark; the integration tests have these errors in this process, with their remedies"
)
KEPT = "CREATE SCHEMA oracle_kept"
REPAIRED = (
    "DROP TABLE IF EXISTS bank.accounts",
    "RENAME TABLE oracle_kept.accounts TO bank.accounts",
    "DROP SCHEMA oracle_kept",
)
MADE_ANEW = (KEPT, "RENAME TABLE bank.accounts TO oracle_kept.accounts", "CREATE TABLE bank.accounts LIKE oracle_kept.accounts")


def reported(config):
    with catchup(config) as program:
        return program.wait()


def execute(url, *statements):
    with closing(connect(url)) as connection, connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)
        connection.commit()


def test_an_unknown_configuration_key(tmp_path):
    config = write_config(tmp_path, servers=NOBODY, url=f"sqlite:///{tmp_path}/replica.db")
    config.write_text(config.read_text().replace("lease_s", "leese_s"))
    assert_reports(reported(config), CONFIG, "run.leese_s", f"file: {config}", "Did you mean run.lease_s?")


@pytest.mark.parametrize("make", [Path.mkdir, lambda path: path.write_bytes(b"\xff = 1")], ids=["directory", "not text"])
def test_an_unreadable_configuration_file(make, tmp_path):
    config = tmp_path / "other.toml"
    assert_reports(reported(config), CONFIG, str(config))
    make(config)
    assert_reports(reported(config), CONFIG, str(config))


@pytest.mark.parametrize("place", ["/proc/replica.db", "{directory}/missing/replica.db"])
def test_a_file_that_is_not_writable(place, tmp_path, mock_kafka):
    stage = half_way(tmp_path, mock_kafka, f"sqlite:///{tmp_path}/replica.db")
    path = place.format(directory=tmp_path)
    assert_reports(reported(write_config(tmp_path, servers=mock_kafka, url=f"sqlite:///{path}", topics=[stage.topic])), SINK, path)


def test_a_table_of_the_file_that_was_dropped_by_hand(tmp_path, mock_kafka):
    stage = half_way(tmp_path, mock_kafka, f"sqlite:///{tmp_path}/replica.db")
    stage.produce(stage.late)
    with closing(sqlite3.connect(tmp_path / "replica.db")) as connection:
        connection.execute('ALTER TABLE "bank.accounts" RENAME TO "kept"')
    assert_reports(stage.refusal(), SINK, "table: bank.accounts", "commit_ts: ")
    with closing(sqlite3.connect(tmp_path / "replica.db")) as connection:
        connection.execute('ALTER TABLE "kept" RENAME TO "bank.accounts"')
    stage.catch_up_in_process()
    assert stage.world.wrong_in(stage.url) == []


@pytest.fixture(scope="module")
def stage(tmp_path_factory, kafka, mysql_url):
    """A replica on a real server whose late records are there; each test damages it, and repairs what it has damaged."""
    clear_sink(mysql_url)
    servers = kafka.bootstrap_servers
    made = half_way(tmp_path_factory.mktemp("server"), servers, mysql_url, create=lambda world: world.create_topics(servers))
    made.produce(made.late)
    yield made
    clear_sink(mysql_url)


@pytest.mark.parametrize(
    ("damage", "repair", "words"),
    [
        pytest.param(
            (KEPT, "RENAME TABLE bank.accounts TO oracle_kept.accounts"),
            REPAIRED,
            ("table: bank.accounts", "commit_ts: "),
            id="table dropped by hand",
            marks=IN_PROCESS,
        ),
        pytest.param(
            ("ALTER TABLE bank.accounts CHANGE owner keeper VARCHAR(64) NOT NULL",),
            ("ALTER TABLE bank.accounts CHANGE keeper owner VARCHAR(64) NOT NULL",),
            ("table: bank.accounts", "commit_ts: ", "owner"),
            id="column removed by hand",
            marks=IN_PROCESS,
        ),
        pytest.param(
            (*MADE_ANEW, "ALTER TABLE bank.accounts MODIFY owner VARCHAR(3) NOT NULL"),
            REPAIRED,
            ("table: bank.accounts", *ROW, "owner", "applier skip", "--stream"),
            id="value too long",
        ),
    ],
)
def test_a_table_of_the_server_that_was_changed_by_hand(damage, repair, words, stage):
    execute(stage.url, *damage)
    try:
        ended = stage.refusal()
    finally:
        execute(stage.url, *repair)
    assert_reports(ended, SINK, *words)
    assert "owner-1" not in ended.stderr, "values of rows are nobody's business"


def test_a_wrong_password(stage):
    wrong = uuid4().hex
    ended = stage.refusal(url=make_url(stage.url).set(password=wrong).render_as_string(hide_password=False))
    assert_reports(ended, SINK, "Access denied", "APPLIER_SINK__PASSWORD")
    assert wrong not in ended.stderr


def test_a_missing_privilege(stage):
    password = uuid4().hex
    execute(
        stage.url,
        f"DROP USER IF EXISTS {STRANGER}@'%'",
        f"CREATE USER {STRANGER}@'%' IDENTIFIED BY '{password}'",
        f"GRANT ALL PRIVILEGES ON applier.* TO {STRANGER}@'%'",
        f"GRANT SELECT, SHOW VIEW, TRIGGER ON *.* TO {STRANGER}@'%'",
    )
    stranger = make_url(stage.url).set(username=STRANGER, password=password).render_as_string(hide_password=False)
    try:
        ended = stage.refusal(url=stranger)
    finally:
        execute(stage.url, f"DROP USER {STRANGER}@'%'")
    assert_reports(ended, SINK, "command denied to user", "applier grants sink", "table: ", *STATEMENT)
    assert password not in ended.stderr


@IN_PROCESS
def test_a_replica_that_was_damaged_and_repaired_continues_to_the_end(stage):
    execute(stage.url, KEPT, "RENAME TABLE bank.accounts TO oracle_kept.accounts")
    stage.refusal()
    execute(stage.url, *REPAIRED)
    stage.catch_up_in_process()
    assert stage.world.wrong_in(stage.url) == []
