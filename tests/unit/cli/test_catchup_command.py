"""What ``applier catchup`` says at its end."""

import json

import pytest

from applier.cli.catchup import as_lines, as_object
from applier.model.position import Ts
from applier.run.catchup import CatchupResult
from applier.sources.ticdc.tso import TSO_TIMELINE

TS = Ts(1_700_000_000_123 << 18 | 7)
STREAM = {"next_offset": 5, "end_offset": 6, "resolved_ts": TS}


def result(**changes):
    values = {
        "checkpoint_ts": TS,
        "timeline": TSO_TIMELINE,
        "rows": 1200,
        "transactions": 3,
        "ddls": 1,
        "seconds": 4.25,
        "streams": {"feed/0": STREAM},
    }
    return CatchupResult(**values | changes)


def test_programs_get_one_object_with_exact_integers():
    shown = json.loads(json.dumps(as_object(result(pending_ddls=["DROP TABLE t"]))))
    assert shown == {
        "checkpoint_ts": TS,
        "rows": 1200,
        "transactions": 3,
        "ddls": 1,
        "streams": {"feed/0": STREAM},
        "seconds": 4.25,
        "pending_ddls": ["DROP TABLE t"],
        "quarantined": 0,
    }


def test_people_get_what_was_done_and_how_far_the_replica_is():
    assert as_lines(result(), "sqlite:///r.db") == [
        "caught up: 1,200 rows in 3 transactions, 1 DDL, 4.2 s",
        f"checkpoint 2023-11-14 22:13:20.123Z (ts {TS}) in sqlite:///r.db",
    ]


def test_nothing_to_do_is_said_plainly():
    assert as_lines(result(rows=0, transactions=0, ddls=0), "s")[0] == "nothing to apply: the replica is up to date (4.2 s)"


@pytest.mark.parametrize("counts", [{"rows": 0, "transactions": 1, "ddls": 0}, {"rows": 0, "transactions": 0, "ddls": 1}])
def test_a_checkpoint_or_a_ddl_without_rows_is_something(counts):
    assert as_lines(result(**counts), "s")[0].startswith("caught up: 0 rows")


def test_skipped_ddls_are_no_ddls_that_ran():
    assert as_lines(result(ddls=1, skipped_ddls=27), "s")[0] == "caught up: 1,200 rows in 3 transactions, 1 DDL (27 skipped), 4.2 s"
    assert as_lines(result(rows=0, transactions=0, ddls=0, skipped_ddls=2), "s")[0].startswith("caught up: 0 rows")


def test_a_pending_ddl_is_named():
    assert "pending DDL: DROP TABLE t (it runs when the watermark has passed its commit timestamp)" in as_lines(
        result(pending_ddls=["DROP\nTABLE t"]), "s"
    )


def test_the_stream_that_holds_the_watermark_is_named_if_others_are_ahead():
    streams = {"feed/0": STREAM, "feed/1": STREAM | {"resolved_ts": TS + 1}}
    assert as_lines(result(streams=streams, holding_stream="feed/0"), "s")[-1] == (
        "feed/0 holds back the watermark: 1 stream resolved beyond it"
    )


def test_no_stream_holds_the_watermark_if_the_limit_was_the_operators():
    streams = {"feed/0": STREAM | {"resolved_ts": TS + 2}, "feed/1": STREAM | {"resolved_ts": TS + 1}}
    assert len(as_lines(result(streams=streams, holding_stream="feed/1"), "s")) == 2
