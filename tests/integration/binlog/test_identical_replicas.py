"""A primary under the simulator's transactions, DDLs and a load of sessions, followed into MariaDB and SQLite: nothing differs."""

from itertools import islice

import pytest

from applier.demo.simulator.history import History, HistoryOptions
from applier.demo.simulator.table_family import ACCOUNTS, WALLETS
from applier.sources.binlog.settings import BinlogSettings
from tests.rig.binlog_replica import BinlogReplica
from tests.rig.database import Kind
from tests.rig.least_privilege import make_user
from tests.rig.mysql_oracle import MysqlOracle
from tests.rig.oltp import MONEY, TOTAL, oltp_load
from tests.rig.primary_comparison import differences_from, tables_of
from tests.rig.totals import watching_totals

pytestmark = pytest.mark.timeout(300)
HISTORY = History(12, HistoryOptions(transactions=160, live_rows=60))
PIECES = 4
PIECE = 60


@pytest.mark.parametrize("sink", ["mariadb_sink", "sqlite_sink"])
def test_a_replica_is_identical_at_each_quiet_point_and_money_is_never_torn(primary, databases, sink, request):
    url = request.getfixturevalue(sink)
    # Both users have what the files of sql/ grant, and nothing else.
    source = BinlogSettings(url=make_user(primary.url, "grants_binlog.sql", "applier_source"), start=primary.place())
    replica = BinlogReplica(url if sink == "sqlite_sink" else databases.plain(Kind.MARIADB).least_privileged_url, source)
    steps = iter(HISTORY)
    with MysqlOracle(primary.url, prefix="") as upstream, watching_totals(url, (ACCOUNTS, WALLETS), MONEY) as (history_money, oltp_money):
        with oltp_load(primary) as load:
            for _ in range(PIECES):
                upstream.apply(islice(steps, PIECE))
                primary.rotate()
                replica.catch_up()
        assert load.committed > 0
        upstream.apply(steps)
        replica.catch_up()
        assert differences_from(primary, url, tables_of(HISTORY)) == []
    assert history_money.torn(HISTORY.money_total()) == []
    assert oltp_money.torn(TOTAL) == []
    assert history_money.reads > 0
    assert oltp_money.reads > 0
