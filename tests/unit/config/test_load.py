"""What is wrong with a configuration: every problem is named with its key and a remedy, and no secret is quoted."""

import pytest

from tests.builders.configuration import MINIMAL, refusal, with_key


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


def test_every_problem_is_named_at_once_each_on_a_line_with_its_key_and_its_remedy(tmp_path):
    error = refusal(tmp_path, '[source]\ntopics = ["a", "a"]\n[sink]\nurll = "x"\n')
    assert error.message == "the configuration has 4 errors"
    assert error.facts == {
        "file": tmp_path / "applier.toml",
        "source.bootstrap_servers": (
            "is missing. Set it in the configuration file, or APPLIER_SOURCE__BOOTSTRAP_SERVERS in the environment."
        ),
        "source.topics": "names a topic twice. Remove one of them.",
        "sink.url": "is missing. Set it in the configuration file, or APPLIER_SINK__URL in the environment.",
        "sink.urll": "is not a configuration key. Did you mean sink.url?",
    }


@pytest.mark.parametrize(
    ("section", "line", "message", "remedy"),
    [
        ("source", 'time_zone = "Asia/Shangai"', "source.time_zone is not a time zone: 'Asia/Shangai'", "'Asia/Shanghai'"),
        ("source", 'time_zone = "+15:00"', "source.time_zone is not a time zone", "+08:00"),
        ("source", 'time_zone = "utc"\nstart_ts = 1.5', "source.start_ts must be a whole number", ""),
        ("run", "memory = 1.5e9", "run.memory must be a whole number", ""),
        ("run", "memory = []", "run.memory is invalid: input should be a valid integer", ""),
        ("source", 'time_zone = "../etc"', "source.time_zone is not a time zone", "zone of the TiCDC server"),
        ("source", "start_ts = 4.58e17", "source.start_ts must be a whole number", "without quotes, decimal point or exponent"),
        ("source", "start_ts = true", "source.start_ts must be a whole number", ""),
        ("source", "start_ts = -1", "source.start_ts is invalid: input should be greater than or equal to 0", ""),
        ("source", "partitions = 0", "source.partitions is invalid", ""),
        ("source", "partitions = { other = 1 }", "source limits a topic that is not in source.topics: 'other'", "changefeed"),
        ("source", 'partitions = { "^x" = 1 }', "source limits a topic that is not in source.topics: '^x'", "changefeed"),
        ("source", 'tables = ["shop"]', "source tables has no table: 'shop'", "shop.*"),
        ("source", 'tables = ["!shop.*"]', "source tables excludes every table", "*.*"),
        ("source", 'tables = ["@/no/such/file"]', "source tables names a file that cannot be read: '/no/such/file'", "path after @"),
        ("source", 'tables = ["/dev/null/(/.x"]', "source tables has no table", ""),
        ("source", 'route = [{ from = "shop.*", to = "x" }]', "source route is not a name for tables: 'x'", "{table}"),
        ("source", 'route = [{ form = "shop.*", to = "a.b" }]', "source.route has an unknown key: 'form'", "'from'"),
        ("source", 'route = [{ from = "shop.*" }]', "source.route lacks the key 'to'", "from, to"),
        ("source", 'event_filter = [{ tables = [], ignore = ["insert"] }]', "source event_filter names no tables", "*.*"),
        (
            "source",
            'event_filter = [{ tables = ["*.*"], ignore = ["remove"] }]',
            "source event_filter has an unknown kind of event",
            "delete",
        ),
        (
            "source",
            'event_filter = [{ tables = ["*.*"], ignore_sql = ["("] }]',
            "source event_filter has a regular expression",
            "ignore_sql",
        ),
        ("source", 'on_unreadable = "ignore"', "source.on_unreadable is invalid: input should be 'stop' or 'quarantine'", ""),
        ("source", "stall_after_s = nan", "source.stall_after_s is invalid", ""),
        ("source.kafka", '"auto.offset.reset" = "latest"', "source.kafka cannot set 'auto.offset.reset'", "must stop the applier"),
        ("source.kafka", '"x" = ["a"]', "source.kafka.x is invalid", ""),
        ("sink", 'consistency = "row"', "source.dispatcher is missing", "index-value"),
        ("sink", "max_transaction_rows = 0", "sink.max_transaction_rows is invalid", ""),
        ("sink.equal_rows_of", '"orders" = "all"', "sink.equal_rows_of 'orders' is not a table", '"shop.visits" = "all"'),
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
    ("text", "environment", "table"),
    [
        ('source = 5\n[sink]\nurl = "sqlite:///replica.db"\n', {}, "source"),
        (MINIMAL + "[run]\n[spark]\nconf = 3\n", {}, "spark.conf"),
        (MINIMAL, {"APPLIER_SOURCE__KAFKA": "plain", "APPLIER_SOURCE__KAFKA__SASL_PASSWORD": "s"}, "source.kafka"),
    ],
)
def test_a_value_in_the_place_of_a_table_is_refused(tmp_path, text, environment, table):
    error = refusal(tmp_path, text, environment)
    assert f"{table} must be a table" in error.message
    assert f"Write [{table}] on its own line" in error.remedy


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


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("bootstrap_servers", "", "is not a list of brokers"),
        ("bootstrap_servers", "host:port", "is not a list of brokers"),
        ("bootstrap_servers", "a:1,,b:2", "is not a list of brokers"),
        ("topics", [], "is empty"),
        ("topics", ["a", "a"], "names a topic twice"),
        ("topics", ["feed.*"], "is not a topic name"),
        ("topics", ["^feed("], "is not a pattern of topics"),
        ("topics", 7, "source.topics is invalid"),
    ],
)
def test_a_source_that_cannot_be_is_refused(tmp_path, key, value, message):
    assert message in refusal(tmp_path, source={key: value}).message
