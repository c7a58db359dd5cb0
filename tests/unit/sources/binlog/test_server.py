"""What is said of a server that cannot be asked."""

import pymysql
import pytest
from pymysql.constants import CR, ER

from applier.sources.binlog.server import failed
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
