"""Who may only look, with the privileges of sql/grants_status.sql, sees the replica and can change nothing."""

import pytest
from sqlalchemy.exc import DBAPIError

from applier.sinks.mysql.sink import MysqlSink
from applier.sinks.overview import OwnerState
from tests.integration.mysql_replica import clean, replica, run, settings
from tests.rig.least_privilege import make_user


@pytest.fixture
def looker(mysql_url):
    clean(mysql_url)
    yield make_user(mysql_url, "grants_status.sql", "applier_status")
    clean(mysql_url)


def test_the_privileges_for_looking_suffice_to_see_a_living_run(mysql_url, looker):
    with replica(mysql_url) as shop, MysqlSink(settings(looker)) as sink:
        shop.write()
        seen = sink.bookkeeping.overview()
    assert (seen.progress.checkpoint_ts, seen.owner.state, seen.undecided, seen.quarantined) == (shop.ts, OwnerState.ALIVE, (), 0)
    with pytest.raises(DBAPIError, match="denied"):
        run(looker, "DELETE FROM applier.progress")
