"""What is said of the server whose binlog is followed, without a server."""

import pytest

from applier.check.primary import retention_finding, version_finding
from applier.model.finding import Severity


@pytest.mark.parametrize(
    ("version", "level", "words"),
    [
        ("10.11.19-MariaDB-0+deb12u1-log", Severity.OK, "(tested)"),
        ("5.5.5-10.6.2-MariaDB", Severity.OK, "not tested"),
        ("10.4.30-MariaDB", Severity.ERROR, "does not say the names"),
        ("9.7.4-2", Severity.OK, "(tested)"),
        ("8.0.36", Severity.OK, "not tested"),
        ("5.7.44-log", Severity.ERROR, "does not say the names"),
    ],
)
def test_a_server_whose_binlog_has_no_names_of_columns_is_refused(version, level, words):
    found = version_finding(version)
    assert found.level is level
    assert words in found.detail
    assert found.level is Severity.OK or found.remedy in {"Use MariaDB 10.5 or newer", "Use MySQL 8.0 or newer"}


def test_a_short_retention_is_a_warning():
    assert [retention_finding(seconds).level for seconds in (0, 7 * 86400, 3600)] == [Severity.OK, Severity.OK, Severity.WARNING]
