"""A changefeed's STORED columns in a file: the values that came, where SQLite would compute others."""

import re
import sqlite3
from contextlib import closing

from tests.builders.generated import CHANGES, EXPECTED, ROWS, SELECTED, beginning
from tests.builders.handwritten import log_of
from tests.rig.fake_source import FakeSource
from tests.rig.local_replica import Replica


def test_stored_columns_have_the_values_that_came_on_the_wire(tmp_path):
    parts = (beginning(), ROWS, CHANGES)
    source = FakeSource(log_of(*(place for part in parts for place in part)), hidden=True)
    replica = Replica(f"sqlite:///{tmp_path}/replica.db", source)
    for part in parts:
        source.advance(len(part))
        replica.catch_up()
    with closing(sqlite3.connect(tmp_path / "replica.db")) as file:
        query = re.sub(r"shop\.\w+", r'"\g<0>"', SELECTED)
        assert set(file.execute(query).fetchall()) == EXPECTED
