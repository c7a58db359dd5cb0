"""The place of a dump, in the forms that the tools write."""

import gzip

import pytest

from applier.model.errors import ConfigError
from applier.sources.binlog.dump import position_of_dump

# Written by the tools themselves: mariadb-dump and mydumper 0.10 of Debian 12 from a MariaDB 10.11; the others by their source code.
FORMS = {
    "mariadb-dump --master-data=2": (
        (
            "-- MariaDB dump\n-- CHANGE MASTER TO MASTER_LOG_FILE='mariadb-bin.000001', MASTER_LOG_POS=30113809;\n"
            "CREATE TABLE t (a int);\n-- SET GLOBAL gtid_slave_pos='0-3411-5171';\n"
        ),
        ("mariadb-bin.000001:30113809", "0-3411-5171"),
    ),
    "mariadb-dump --master-data=1 --gtid": (
        (
            "CHANGE MASTER TO MASTER_USE_GTID=slave_pos;\n-- CHANGE MASTER TO MASTER_LOG_FILE='m-bin.000001', MASTER_LOG_POS=330;\n"
            "SET GLOBAL gtid_slave_pos='0-3411-1,1-7-9';\n"
        ),
        ("m-bin.000001:330", "0-3411-1,1-7-9"),
    ),
    "mysqldump --source-data=2": (
        (
            "SET @@GLOBAL.GTID_PURGED=/*!80000 '+'*/ 'e7ac6f22-e6e5-11f1-9ffa-0242ac110002:1-5,\ne7ac6f22-e6e5-11f1-9ffa-0242ac110003:1';\n"
            "-- CHANGE REPLICATION SOURCE TO SOURCE_LOG_FILE='binlog.000002', SOURCE_LOG_POS=157;\n"
        ),
        ("binlog.000002:157", "e7ac6f22-e6e5-11f1-9ffa-0242ac110002:1-5,e7ac6f22-e6e5-11f1-9ffa-0242ac110003:1"),
    ),
    "mysqldump --source-data=1 --set-gtid-purged=OFF": (
        "CHANGE REPLICATION SOURCE TO SOURCE_LOG_FILE='binlog.000002', SOURCE_LOG_POS=157;\n",
        ("binlog.000002:157", ""),
    ),
    "mydumper 0.10": (
        "Started dump at: 2026\nSHOW MASTER STATUS:\n\tLog: m-bin.000001\n\tPos: 30113809\n\tGTID:0-3411-5171\n\nFinished dump\n",
        ("m-bin.000001:30113809", "0-3411-5171"),
    ),
    "mydumper 0.19": (
        (
            "# Started dump at: 2026\n[config]\nquote-character = BACKTICK\n\n[source]\n# Channel_Name = ''\nFile = \"binlog.000002\"\n"
            'Position = 157\nExecuted_Gtid_Set = "e7ac6f22-e6e5-11f1-9ffa-0242ac110002:1-5"\n\n[`db`.`t`]\nrows = 1\n'
        ),
        ("binlog.000002:157", "e7ac6f22-e6e5-11f1-9ffa-0242ac110002:1-5"),
    ),
}


@pytest.mark.parametrize("form", FORMS)
def test_the_place_is_read_from_the_text_and_from_the_metadata_of_all_tools(form, tmp_path):
    text, place = FORMS[form]
    (tmp_path / "metadata").write_text(text)
    assert position_of_dump(str(tmp_path)) == place
    assert position_of_dump(str(tmp_path / "metadata")) == place


def test_gtids_behind_a_large_dump_and_a_compressed_dump_are_read(tmp_path):
    text = FORMS["mariadb-dump --master-data=2"][0].replace("\nCREATE", f"\n-- {'x' * 3_000_000}\nCREATE")
    (tmp_path / "dump.sql").write_text(text)
    assert position_of_dump(str(tmp_path / "dump.sql")).gtid_set == "0-3411-5171"
    (tmp_path / "dump.sql.gz").write_bytes(gzip.compress(text.encode()))
    assert position_of_dump(str(tmp_path / "dump.sql.gz")) == ("mariadb-bin.000001:30113809", "")


@pytest.mark.parametrize("text", ["", "INSERT INTO t VALUES ('CHANGE MASTER TO MASTER_LOG_FILE=''x.1''');\n"])
def test_a_dump_without_a_place_is_refused(text, tmp_path):
    (tmp_path / "dump.sql").write_text(text)
    with pytest.raises(ConfigError, match="does not say at which position"):
        position_of_dump(str(tmp_path / "dump.sql"))
