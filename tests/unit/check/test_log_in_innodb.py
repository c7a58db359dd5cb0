"""MariaDB 12.3 with binlog_storage_engine = innodb, as it answers: refused by name, by a check, at a start, and when asked for files."""

import pytest

from applier.check.primary import log_findings
from applier.model.errors import NeedsOperator
from applier.model.finding import Severity
from applier.sources.binlog.server import IN_FILES, Server, require
from applier.sources.binlog.settings import BinlogSettings

SETTINGS = BinlogSettings(url="mysql+pymysql://applier@primary:3306/", server_ids=(1, 2), name="replica")
VARIABLES = {
    "binlog_format": "ROW",
    "binlog_row_image": "FULL",
    "binlog_row_metadata": "FULL",
    "binlog_storage_engine": "innodb",
    "log_bin": "ON",
}


class InnodbLog(Server):
    """Answers as MariaDB 12.3 does."""

    def rows(self, what, statement, *values):
        if statement.startswith("SELECT VERSION()"):
            return [("12.3.1-MariaDB-log",)]
        if statement.startswith("SHOW GLOBAL VARIABLES"):
            return list(VARIABLES.items())
        if statement.startswith("SHOW MASTER STATUS"):
            return [("binlog-000000.ibb", 4096, "", "")]
        assert statement == "SHOW BINARY LOGS"
        return [("binlog-000000.ibb", 1 << 30), ("binlog-000001.ibb", 1 << 30)]


def test_a_check_names_the_setting_and_asks_nothing_else():
    (found,) = log_findings(InnodbLog(SETTINGS))
    assert (found.level, found.remedy) == (Severity.ERROR, IN_FILES)
    assert "binlog_storage_engine" in found.detail
    assert ".ibb" in found.detail


def test_a_start_is_refused():
    with pytest.raises(NeedsOperator, match="binlog_storage_engine is set") as refused:
        require(InnodbLog(SETTINGS))
    assert refused.value.remedy.startswith(IN_FILES)


@pytest.mark.parametrize("ask", [InnodbLog.files, InnodbLog.end])
def test_whoever_asks_for_files_is_told_by_name(ask):
    with pytest.raises(NeedsOperator, match=r"binlog-00000\d\.ibb") as refused:
        ask(InnodbLog(SETTINGS))
    assert refused.value.remedy == IN_FILES
    assert refused.value.facts["address"] == "primary:3306"


def test_a_server_without_that_setting_and_one_that_does_not_use_it_are_taken(monkeypatch):
    monkeypatch.setitem(VARIABLES, "binlog_storage_engine", "")
    require(InnodbLog(SETTINGS))
    monkeypatch.delitem(VARIABLES, "binlog_storage_engine")
    require(InnodbLog(SETTINGS))
