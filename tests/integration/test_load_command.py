"""``applier load`` from fake dumps of Dumpling and mysqldump into a real MariaDB."""

import json
from contextlib import closing, suppress
from uuid import uuid4

import pytest
from pymysql.err import ProgrammingError

from applier.cli.main import run
from applier.config import load_config
from applier.model.events import TableName
from applier.model.position import Ts
from applier.planner.table_check import Acceptance
from applier.replica.sink_tables import TableGuard
from applier.sinks.registry import open_sink
from tests.rig.dump_directory import HEADER, MYDUMPER, TS, age, dumpling
from tests.rig.mysql_oracle import connect

ON_ONE = pytest.mark.on_one_server("mariadb", reason="it is about files, or about what all servers of the family do")


@pytest.fixture
def schema(mysql_url):
    name = f"load_{uuid4().hex[:8]}"
    yield name
    execute(mysql_url, f"DROP SCHEMA IF EXISTS {name}")
    with suppress(ProgrammingError):  # the test has a bookkeeping of its own
        execute(mysql_url, f"DELETE FROM applier.loaded_dump WHERE name = '{name}'")


def execute(url, *statements):
    with closing(connect(url)) as connection, connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)
        connection.commit()
        return list(cursor.fetchall())


@pytest.fixture
def load(tmp_path, mysql_url, schema, capsys):
    """Run the command; return its exit code, and what it has printed."""
    path = tmp_path / "applier.toml"
    path.write_text(f'name = "{schema}"\n[source]\nbootstrap_servers = "127.0.0.1:1"\ntopics = ["cdc"]\n[sink]\nurl = "{mysql_url}"\n')

    def command(directory, *options):
        code = run(["load", str(directory), "--config", str(path), *options])
        shown = capsys.readouterr()
        return code, shown.out + shown.err

    return command


def rows(url, schema):
    return execute(url, f"SELECT id, note, CAST(at AS CHAR) FROM {schema}.orders ORDER BY id")


WHOLE = [(0, "ä 'q'\\", "2026-01-01 00:00:00"), (1, None, None), (2, "x", "0000-00-00 00:00:00")]


@pytest.mark.parametrize("packed", [False, True])
def test_a_dump_is_loaded_whole_and_its_timestamp_is_recorded(load, tmp_path, mysql_url, schema, packed):
    code, text = load(dumpling(tmp_path / "dump", schema, packed=packed), "--json")
    assert code == 0, text
    said = json.loads(text[text.index("{") : text.index("}") + 1])
    assert (said["start_ts"], said["tables"], said["rows"]) == (TS, 2, 3)
    assert said["bytes"] > 100
    assert rows(mysql_url, schema) == WHOLE
    assert execute(mysql_url, f"SELECT COUNT(*) FROM {schema}.v, {schema}.empty") == [(0,)]
    assert execute(mysql_url, f"SELECT default_collation_name FROM information_schema.schemata WHERE schema_name = '{schema}'") == [
        ("utf8mb4_bin",)
    ]
    assert execute(mysql_url, f"SELECT start_ts, state FROM applier.loaded_dump WHERE name = '{schema}'") == [(TS, "done")]


@ON_ONE
def test_a_second_load_needs_a_word_and_a_failed_one_is_remembered(load, tmp_path, mysql_url, schema):
    directory = dumpling(tmp_path / "dump", schema)
    broken = directory / f"{schema}.orders.000000002.sql"
    broken.write_text("INSERT INTO `orders` VALUES (0,'secret value',NULL);\n")
    code, text = load(directory)
    assert (code, "code: 1062" in text or "code=1062" in text or "1062" in text, "secret" in text) == (4, True, False), text
    assert execute(mysql_url, f"SELECT state FROM applier.loaded_dump WHERE name = '{schema}'") == [("loading",)]
    broken.unlink()
    code, text = load(directory)
    assert code == 6
    assert "its load runs, or has failed" in text
    # The remedy, as it stands.
    code, text = load(directory, "--overwrite")
    assert code == 0, text
    assert rows(mysql_url, schema) == WHOLE


@ON_ONE
def test_tables_of_others_are_not_touched(load, tmp_path, mysql_url, schema):
    execute(mysql_url, f"CREATE SCHEMA {schema}", f"CREATE TABLE {schema}.orders (id INT)")
    code, text = load(dumpling(tmp_path / "dump", schema))
    assert code == 6
    assert f"{schema}.orders" in text
    assert execute(mysql_url, f"SELECT state FROM applier.loaded_dump WHERE name = '{schema}'") == []
    # One half of the remedy, as it stands.
    assert load(tmp_path / "dump", "--overwrite")[0] == 0
    assert rows(mysql_url, schema) == WHOLE


@ON_ONE
def test_a_dump_without_a_timestamp_is_loaded_with_the_one_that_is_given(load, tmp_path, mysql_url, schema):
    directory = dumpling(tmp_path / "dump", schema)
    (directory / "metadata").unlink()
    code, text = load(directory)
    assert (code, "Give it with --start-ts TSO" in text) == (2, True)
    code, text = load(directory, "--start-ts", str(TS + 7))
    assert code == 0, text
    assert execute(mysql_url, f"SELECT start_ts FROM applier.loaded_dump WHERE name = '{schema}'") == [(TS + 7,)]


@ON_ONE
def test_a_start_that_is_not_the_dumps_is_removed(load, tmp_path, schema):
    directory, path = dumpling(tmp_path / "dump", schema), tmp_path / "applier.toml"
    right = path.read_text()
    path.write_text(right.replace("[sink]", f"start_ts = {TS + 1}\n[sink]"))
    code, text = load(directory)
    assert (code, "Remove source.start_ts: the dump's is used" in text) == (2, True)
    path.write_text(right)
    assert load(directory)[0] == 0


@ON_ONE
@pytest.mark.parametrize(("by_s", "word"), [(3600, "older"), (-3600, "newer")])
def test_files_of_another_dump_are_refused(load, tmp_path, schema, by_s, word):
    directory = dumpling(tmp_path / "dump", schema)
    age(directory / f"{schema}.orders.000000001.sql", by_s)
    code, text = load(directory)
    assert (code, f"files are {word} than the dump" in text, f"{schema}.orders.000000001.sql" in text) == (2, True, True)
    assert load(directory, "--accept-file-times")[0] == 0


@ON_ONE
def test_a_dump_with_a_missing_file_of_rows_is_refused(load, tmp_path, mysql_url, schema):
    (dumpling(tmp_path / "dump", schema) / f"{schema}.orders.000000000.sql").unlink()
    code, text = load(tmp_path / "dump")
    assert (code, f"{schema}.orders.000000000.sql" in text) == (2, True), text
    # The remedy, as it stands: here the chunk was empty.
    assert load(tmp_path / "dump", "--accept-missing-files")[0] == 0
    assert rows(mysql_url, schema) == WHOLE[2:]


@ON_ONE
def test_rows_are_counted_where_the_metadata_counts_them(load, tmp_path, schema):
    metadata = dumpling(tmp_path / "dump", schema) / "metadata"
    metadata.write_text(f"{MYDUMPER.format(ts=TS)}\n[`{schema}`.`orders`]\nrows = 4\n")
    code, text = load(tmp_path / "dump")
    assert (code, f"{schema}.orders: 3 of 4" in text) == (4, True), text


@ON_ONE
def test_a_file_of_mysqldump_in_a_directory_is_loaded(load, tmp_path, mysql_url, schema):
    directory = tmp_path / "dump"
    directory.mkdir()
    made = f"CREATE DATABASE `{schema}`;\nUSE `{schema}`;\nCREATE TABLE orders (id INT PRIMARY KEY);\nINSERT INTO orders VALUES (1);\n"
    (directory / "backup.2026-11-22.sql").write_text(f"{HEADER.format(ts=TS)}{made}-- Dump completed\n")
    code, text = load(directory)
    assert (code, "loaded 1 table" in text) == (0, True), text
    assert execute(mysql_url, f"SELECT id FROM {schema}.orders") == [(1,)]


@ON_ONE
def test_a_file_of_mysqldump_does_not_drop_tables_of_others(load, tmp_path, mysql_url, schema):
    execute(mysql_url, f"CREATE SCHEMA {schema}", f"CREATE TABLE {schema}.orders (id INT)")
    (tmp_path / "dump").mkdir()
    made = f"USE `{schema}`;\nDROP TABLE IF EXISTS `orders`;\nCREATE TABLE `orders` (id INT PRIMARY KEY);\n-- Dump completed\n"
    (tmp_path / "dump/all.sql").write_text(HEADER.format(ts=TS) + made)
    code, text = load(tmp_path / "dump")
    assert (code, f"{schema}.orders" in text) == (6, True), text


@ON_ONE
def test_timestamps_are_read_in_the_zone_that_is_given(load, tmp_path, mysql_url, schema):
    assert load(dumpling(tmp_path / "dump", schema), "--time-zone", "+08:00")[0] == 0
    assert execute(mysql_url, f"SELECT UNIX_TIMESTAMP(at) FROM {schema}.orders WHERE id = 0") == [(1767196800,)]


def test_a_value_that_does_not_fit_is_not_stored_cut(load, tmp_path, schema):
    directory = dumpling(tmp_path / "dump", schema)
    (directory / f"{schema}.orders.000000002.sql").write_text(f"INSERT INTO `orders` VALUES (3,'{'x' * 65}',NULL);\n")
    code, text = load(directory)
    assert (code, "changed a value silently" in text, "xxx" in text) == (4, True, False), text


OF_TIDB = """CREATE TABLE `orders` (
  `id` int NOT NULL, `e` enum('a','b') DEFAULT NULL, `v` vector(3) DEFAULT NULL, `l` varchar(9) CHARACTER SET latin1 COLLATE latin1_bin,
  `c` varchar(9) COLLATE utf8mb4_0900_ai_ci, `code` varchar(9) CHARACTER SET gbk COLLATE gbk_chinese_ci,
  `g` int GENERATED ALWAYS AS (`id` + 1) STORED,
  PRIMARY KEY (`id`) /*T![clustered_index] CLUSTERED */, KEY `expression_index` ((lower(`c`))), UNIQUE KEY (`code`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
"""


def test_definitions_are_rewritten_as_ddls_of_the_stream_and_explain_the_tables(load, tmp_path, mysql_url, schema):
    directory = dumpling(tmp_path / "dump", schema, view=False)
    (directory / f"{schema}.orders-schema.sql").write_text(OF_TIDB)
    (directory / f"{schema}.s-schema-sequence.sql").write_text("CREATE SEQUENCE `s` start with 1 cache 1000;\n")
    rows_of = "INSERT INTO `orders` (`id`,`e`,`v`,`l`,`c`,`code`) VALUES\n"
    (directory / f"{schema}.orders.000000000.sql").write_text(f"{rows_of}(1,'','[1,2,3]','日','ä','x');\n")
    (directory / f"{schema}.orders.000000001.sql").write_text(f"{rows_of}(2,'b',NULL,NULL,NULL,NULL);\n")
    code, text = load(directory)
    assert (code, "sequence s" in text) == (0, True), text
    assert execute(mysql_url, f"SELECT id, e + 0, l, c, g FROM {schema}.orders") == [(1, 0, "日", "ä", 2), (2, 2, None, None, 3)]
    is_vector = execute(mysql_url, f"SHOW COLUMNS FROM {schema}.orders LIKE 'v'")[0][1].startswith("vector")
    vector = "VECTOR_TO_STRING(v)" if is_vector else "v"
    assert [json.loads(text) for (text,) in execute(mysql_url, f"SELECT {vector} FROM {schema}.orders WHERE v IS NOT NULL")] == [[1, 2, 3]]
    kept = execute(mysql_url, f"SELECT ddl_ts, state FROM applier.ddl_ledger WHERE name = '{schema}'")
    assert kept == [(TS, "done")] * 3
    with open_sink(load_config(tmp_path / "applier.toml").sink_settings()) as sink:
        guard = TableGuard(sink, sink.bookkeeping.statements, Acceptance(), lambda *_, **__: None)
        guard.check([TableName(schema, "orders")], {})


def test_foreign_keys_of_two_tables_may_have_one_name_as_in_tidb(load, tmp_path, mysql_url, schema):
    directory = dumpling(tmp_path / "dump", schema)
    for table in ("a", "b"):
        key = "CONSTRAINT `fk_1` FOREIGN KEY (`up`) REFERENCES `orders` (`id`)"
        definition = f"CREATE TABLE `{table}` (`id` bigint NOT NULL, `up` bigint, PRIMARY KEY (`id`), KEY `fk_1` (`up`), {key});\n"
        (directory / f"{schema}.{table}-schema.sql").write_text(definition)
    assert load(directory)[0] == 0
    asked = f"SELECT table_name FROM information_schema.referential_constraints WHERE constraint_schema = '{schema}' ORDER BY 1"
    assert execute(mysql_url, asked) == [("a",), ("b",)]


@ON_ONE
def test_rows_are_committed_now_and_then(load, tmp_path, mysql_url, schema, monkeypatch):
    monkeypatch.setattr("applier.sinks.mysql.dump_loader.COMMIT_BYTES", 100)
    values = "".join(f"INSERT INTO `orders` VALUES ({number},'x',NULL);\n" for number in range(10, 30))
    (dumpling(tmp_path / "dump", schema) / f"{schema}.orders.000000002.sql").write_text(values)
    assert load(tmp_path / "dump")[0] == 0
    assert len(rows(mysql_url, schema)) == len(WHOLE) + 20


@ON_ONE
def test_a_row_that_is_gone_after_the_load_is_missed(load, tmp_path, schema, monkeypatch):
    monkeypatch.setattr("applier.sinks.mysql.dump_loader.ServerRows.commit", lambda _session: None)
    code, text = load(dumpling(tmp_path / "dump", schema))
    assert (code, f"{schema}.orders: 0 of 3" in text) == (4, True), text


@ON_ONE
def test_a_file_of_definitions_holds_no_rows(load, tmp_path, schema):
    with (dumpling(tmp_path / "dump", schema) / f"{schema}.empty-schema.sql").open("a") as file:
        file.write("INSERT INTO `empty` VALUES (1);\n")
    code, text = load(tmp_path / "dump")
    assert (code, "a file of definitions holds rows" in text) == (2, True), text


@ON_ONE
def test_tables_that_would_be_one_are_refused(load, tmp_path, schema):
    path = tmp_path / "applier.toml"
    right = path.read_text()
    path.write_text(right.replace("[sink]", f'[[source.route]]\nfrom = "*.*"\nto = "{schema}.all"\n[sink]'))
    code, text = load(dumpling(tmp_path / "dump", schema, view=False))
    assert (code, "would be one in the sink" in text) == (2, True), text
    path.write_text(right.replace("[sink]", f'[[source.route]]\nfrom = "*.*"\nto = "{schema}.{{table}}_x"\n[sink]'))
    assert load(tmp_path / "dump")[0] == 0


@ON_ONE
def test_a_file_without_a_schema_is_dumped_with_one(load, tmp_path, mysql_url, schema):
    path, head = tmp_path / "x.sql", HEADER.format(ts=TS)
    made = "CREATE TABLE t (id INT);\nINSERT INTO t VALUES (1);\n-- Dump completed\n"
    path.write_text(f"{head}{made}")
    code, text = load(path)
    assert (code, "Dump with --databases" in text) == (2, True), text
    path.write_text(f"{head}CREATE DATABASE {schema};\nUSE {schema};\n{made}")
    assert load(path, "--overwrite")[0] == 0
    # mysqldump of one schema says it in its header.
    path.write_text(f"{head}-- Host: h    Database: {schema}\n{made}")
    assert load(path, "--overwrite")[0] == 0
    assert execute(mysql_url, f"SELECT id FROM {schema}.t") == [(1,)]


def test_one_file_of_several_schemas_is_chosen_and_routed(load, tmp_path, mysql_url, schema):
    path = tmp_path / "applier.toml"
    route = f'[[source.route]]\nfrom = "{schema}_*.*"\nto = "{schema}.{{schema}}_{{table}}"\n'
    path.write_text(path.read_text().replace("[sink]", f'tables = ["{schema}_*.*", "!*.log"]\n{route}[sink]'))
    made = "CREATE TABLE `t` (\n  `id` int NOT NULL,\n  PRIMARY KEY (`id`)\n);\nLOCK TABLES `t` WRITE;\n"
    text = HEADER.format(ts=TS)
    for number in (1, 2):
        text += f"CREATE DATABASE /*!32312 IF NOT EXISTS*/ `{schema}_{number}`;\nUSE `{schema}_{number}`;\n{made}"
        text += f"INSERT INTO `t` VALUES\n({number}),\n(7);\nUNLOCK TABLES;\n"
        text += (
            "DELIMITER ;;\n/*!50003 CREATE*/ /*!50017 DEFINER=`a`@`b`*/ /*!50003 TRIGGER x BEFORE INSERT ON t FOR EACH ROW SET @a = 1; */"
        )
        text += ";;\nDELIMITER ;\nCREATE TABLE `log` (id INT);\nINSERT INTO `log` VALUES (1);\n"
    (tmp_path / "all.sql").write_text(text + "-- Dump completed on 2026-11-22\n")
    try:
        code, said = load(tmp_path / "all.sql")
        assert (code, "2 tables with 4 rows from 1 file" in said, "trigger x" in said) == (0, True, True), said
        tables = execute(mysql_url, f"SELECT table_name FROM information_schema.tables WHERE table_schema = '{schema}' ORDER BY 1")
        assert tables == [(f"{schema}_1_t",), (f"{schema}_2_t",)]
        assert execute(mysql_url, f"SELECT id FROM {schema}.{schema}_2_t ORDER BY id") == [(2,), (7,)]
    finally:
        execute(mysql_url, *(f"DROP SCHEMA IF EXISTS {schema}_{number}" for number in (1, 2)))


@ON_ONE
def test_a_replica_that_has_begun_stays_and_another_one_gets_the_dump(load, tmp_path, mysql_url, schema):
    books, path = f"{schema}_books", tmp_path / "applier.toml"
    path.write_text(path.read_text() + f'schema = "{books}"\n')
    try:
        with open_sink(load_config(path).sink_settings()) as sink:
            sink.migrate()
            sink.acquire()
            sink.begin(Ts(0))
        code, text = load(dumpling(tmp_path / "dump", schema))
        assert (code, "Give the new replica another name" in text) == (6, True), text
        path.write_text(path.read_text().replace(f'name = "{schema}"', 'name = "other"'))
        assert load(tmp_path / "dump")[0] == 0
    finally:
        execute(mysql_url, f"DROP SCHEMA IF EXISTS {books}")
    assert rows(mysql_url, schema) == WHOLE
