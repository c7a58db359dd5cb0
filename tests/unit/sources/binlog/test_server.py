"""What is said of a server that cannot be asked."""

import pymysql
import pytest
from pymysql.constants import CR, ER

from applier.sources.binlog.server import Server, failed
from applier.sources.binlog.settings import BinlogSettings

SETTINGS = BinlogSettings(url="mysql+pymysql://applier:hidden@primary:3306/", server_ids=(1, 2), name="replica")


def test_an_error_of_tls_names_the_settings():
    error = failed(SETTINGS, "connecting", pymysql.err.OperationalError(CR.CR_SSL_CONNECTION_ERROR, "SSL is required"))
    assert error.message == "no TLS to the server of the binlog: connecting"
    assert "source.tls_mode" in error.remedy
    assert error.facts["kind"] == "refused"


@pytest.mark.parametrize("code", [CR.CR_SERVER_LOST, CR.CR_SSL_CONNECTION_ERROR, ER.ACCESS_DENIED_ERROR, ER.PARSE_ERROR])
def test_no_error_shows_the_password(code):
    assert "hidden" not in str(failed(SETTINGS, "connecting", pymysql.err.OperationalError(code, "refused")))


class BeginningOfFile(Server):
    """A MariaDB that shows the first events of a file."""

    is_mariadb = True

    def __init__(self, *events):
        super().__init__(SETTINGS)
        self.events = events

    def rows(self, what, statement, *values):
        return self.events[: int(statement.rpartition(" ")[2])]


def test_what_was_executed_before_a_file_is_read_from_an_encrypted_one_too():
    began = (("b.000002", 4, "Format_desc", 1, 256, "MariaDB"), ("b.000002", 297, "Gtid_list", 1, 340, "[0-2-13,0-1-7]"))
    encrypted = (began[0], ("b.000002", 256, "Start_encryption", 1, 297, ""), began[1])
    assert str(BeginningOfFile(*began).executed_before("b.000002")) == "0-1-7"
    assert str(BeginningOfFile(*encrypted).executed_before("b.000002")) == "0-1-7"
