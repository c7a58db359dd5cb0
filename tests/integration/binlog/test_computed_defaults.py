"""What a default computes for old rows: the same as upstream where it is portable; anything else stops before it has changed something."""

import pytest

from applier.model.errors import NeedsOperator
from applier.sources.binlog.settings import BinlogSettings
from tests.integration.mysql_replica import read
from tests.rig.binlog_replica import BinlogReplica
from tests.rig.database import Kind

pytestmark = pytest.mark.timeout(300)
PORTABLE = (
    "a INT DEFAULT (-5)",
    "b INT DEFAULT (id + 1)",
    "c VARCHAR(90) CHARACTER SET utf8mb4 DEFAULT (CONCAT(name, '-', id))",
    "d DATE DEFAULT (CURRENT_DATE)",
    "e INT DEFAULT (IF(id > 1, 7, 8))",
    "f DECIMAL(5,2) DEFAULT (-1.5)",
    "g DATETIME DEFAULT CURRENT_TIMESTAMP",
)
STOPPED = {
    Kind.MARIADB: ("SET @v = 5", "ALTER TABLE computed.t ADD z INT DEFAULT (@v)"),
    Kind.MYSQL: ("SET lc_time_names = 'de_DE'", "ALTER TABLE computed.t ADD z VARCHAR(20) DEFAULT (DAYNAME('2026-11-23'))"),
}


def test_old_rows_get_what_upstreams_got_or_the_run_stops(primary, mariadb_sink):
    replica = BinlogReplica(mariadb_sink, BinlogSettings(url=primary.url, start=primary.place()))
    primary.run(
        "CREATE SCHEMA computed",
        "CREATE TABLE computed.t (id INT PRIMARY KEY, name VARCHAR(40) CHARACTER SET utf8mb4)",
        "INSERT INTO computed.t VALUES (1, 'one'), (2, 'zwölf')",
        "SET time_zone = '-11:00', lc_time_names = 'de_DE'",
        "SET timestamp = 1700000000",
        *(f"ALTER TABLE computed.t ADD {definition}" for definition in PORTABLE),
    )
    replica.catch_up()
    query = "SELECT * FROM computed.t ORDER BY id"
    assert read(mariadb_sink, query) == read(primary.url, query)
    primary.run(*STOPPED[primary.kind])
    with pytest.raises(NeedsOperator, match="may differ from upstream"):
        replica.catch_up()
    assert read(mariadb_sink, "SHOW COLUMNS FROM computed.t LIKE 'z'") == []
