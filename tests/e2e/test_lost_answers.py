"""The program against a server that commits and does not say so: a proxy cuts the writer's connection after its COMMIT."""

from collections import defaultdict
from contextlib import closing
from uuid import uuid4

import pytest
from sqlalchemy import make_url

from applier.demo.simulator.history import History, HistoryOptions
from applier.demo.simulator.producer import ProducerOptions
from applier.demo.simulator.table_family import TRANSFERS, TableFamily
from tests.integration.tcp_proxy import proxy_to
from tests.rig.money import reading_money
from tests.rig.mysql_oracle import connect
from tests.rig.program import run, write_config
from tests.rig.upstream import clear_sink, fence_of, upstream

pytestmark = [
    pytest.mark.slow,
    pytest.mark.usually_on("mariadb", reason="tests/integration/test_mysql_writer.py has lost answers on each server"),
]

CUT = frozenset({1, 4, 9})
ROWS = 12
WATCH = (
    "CREATE SCHEMA oracle_watch",
    "CREATE TABLE oracle_watch.written (id BIGINT UNSIGNED, window_id BIGINT)",
    """CREATE TRIGGER bank.watch AFTER INSERT ON bank.transfers FOR EACH ROW
    INSERT INTO oracle_watch.written SELECT NEW.id, window_id FROM applier.progress""",
)
"""Upstream inserts transfers and never changes them: each one that is written twice shows that its segment was."""


def money_in_motion(topic):
    """Mostly transfers, some DDLs; no replays, after which a group of rows is rightly written again."""
    options = HistoryOptions(transactions=90, families=frozenset({TableFamily.MONEY, TableFamily.LAB}), ddl_share=0.1)
    return upstream(History(61, options), ProducerOptions(seed=61, topic=topic, partitions=3, replays=0))


def write_all(url, *statements):
    with closing(connect(url)) as connection, connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)
        connection.commit()
        return cursor.fetchall()


def repeated(world, url):
    """Return the transfers that were written twice, but for those at the very end of a segment.

    A run that reads again from its checkpoint cannot know whether it has seen all rows at that very ts: it writes these once more.
    """
    made = [(change, step.ts) for step in world.history for change in step.rows if change.table.name == TRANSFERS]
    # By its name: a DDL may put another column in front of it.
    times = {
        int(str(change.after[[column.name for column in change.table.columns].index("id")])): ts for change, ts in made if change.after
    }
    windows = defaultdict(dict)
    for number, window in write_all(url, "SELECT id, window_id FROM oracle_watch.written ORDER BY window_id"):
        windows[window][number] = times[number]
    assert any(len(set(segment.values())) > 1 for segment in windows.values()), "no segment holds two transactions: nothing was shown"
    seen, found = {}, []
    for window, segment in sorted(windows.items()):
        found += [number for number in segment if number in seen and times[number] != max(windows[seen[number]].values())]
        seen |= dict.fromkeys(segment, window)
    return found


@pytest.fixture
def world(kafka):
    made = money_in_motion(f"unheard-{uuid4().hex[:8]}")
    made.create_topics(kafka.bootstrap_servers)
    made.produce(kafka.bootstrap_servers)
    return made


def test_a_commit_whose_answer_was_lost_is_neither_repeated_nor_lost(tmp_path, kafka, mysql_url, least_privileged_url, world):
    clear_sink(mysql_url)
    places = {"servers": kafka.bootstrap_servers, "topics": list(world.topics), "rows": ROWS}
    funded_at = next(step.ts for step in world.history if step.rows)
    assert (
        run(write_config(tmp_path, url=least_privileged_url, **places), "--until-ts", str(funded_at)).result["checkpoint_ts"] == funded_at
    )
    write_all(mysql_url, *WATCH)
    url = make_url(least_privileged_url)
    with proxy_to(url.host, url.port) as proxy, reading_money(mysql_url) as reader:
        proxy.cut_segments = CUT
        through = url.set(port=proxy.port).render_as_string(hide_password=False)
        ended = run(write_config(tmp_path, url=through, accept={"bank.transfers": ["trigger"]}, **places))
    assert ended.result["checkpoint_ts"] == world.final_ts
    assert frozenset(proxy.cuts) == CUT
    # The epoch shows both runs and of each answer that was lost.
    assert fence_of(mysql_url)[0] == 2 + len(CUT)
    assert repeated(world, mysql_url) == []
    assert reader.totals == [world.history.money_total()]
    assert world.wrong_in(mysql_url) == []
