"""What the page asks of a sink, on each database: beside a run, without its sessions, and without waiting for its locks."""

import time

import pytest
from sqlalchemy import create_engine, make_url, text

from applier.model.errors import SinkError
from applier.model.position import Offset, Stream, Ts
from applier.model.rejected_event import EventPosition, KeptRecord, RejectedEvent
from applier.sinks.progress import WriteState
from applier.sinks.quarantine import Quarantined
from applier.sources.ticdc.tso import TSO_TIMELINE
from applier.status import replica_access
from applier.status.replica_access import FRESH_S, SinkAccess
from tests.contract.replica_on_database import CREATE, DatabaseReplica, settings

HELD = RejectedEvent(
    position=EventPosition(Stream("feed", 0), Offset(7), 0), error="it broke", schema="shop", table="t", key="id=7", commit_ts=Ts(8)
)


def access_to(replica: DatabaseReplica) -> SinkAccess:
    return SinkAccess(settings(replica.url), lambda: TSO_TIMELINE)


def test_the_newest_ddls_come_first_with_their_texts_and_exact_timestamps(replica: DatabaseReplica) -> None:
    found = access_to(replica).ddls()["ddls"]
    assert (found[0]["ts"], found[0]["query"], found[0]["state"]) == ("5", CREATE, "done")
    assert found[0]["ended_at"] >= found[0]["began_at"]
    assert found[0]["time"].startswith("1970-01-01")


def test_long_texts_are_cut_and_old_entries_left_out(replica: DatabaseReplica, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replica_access, "MAX_TEXT", 6)
    monkeypatch.setattr(replica_access, "MAX_ENTRIES", 1)
    assert [each["query"] for each in access_to(replica).ddls()["ddls"]] == ["CREATE"]


def test_the_quarantine_is_shown_without_values_of_rows(replica: DatabaseReplica) -> None:
    replica.write([], quarantined=Quarantined(lambda _: KeptRecord(b"k", b"v"), (HELD,)))
    found = access_to(replica).quarantine()
    (entry,) = found["entries"]
    assert (found["held"], entry["position"], entry["error"], entry["state"]) == (1, "feed/0@7#0", "it broke", "held")
    assert "id=7" not in str(found)


def test_a_look_disturbs_no_session_of_the_run_and_waits_for_no_lock(replica: DatabaseReplica) -> None:
    assert replica.write(replica.replaces("(1, 'a')"), ts=9).state is WriteState.COMMITTED
    with replica.locked_progress():
        began = time.monotonic()
        access = access_to(replica)
        assert (access.ddls()["at_most"], access.quarantine()["held"], access.last_end()["end"]) == (100, 0, None)
        assert time.monotonic() - began < 2
    # The writer's session, the owner's and its heartbeat are as they were.
    assert replica.write(replica.replaces("(2, 'b')"), ts=10).state is WriteState.COMMITTED
    replica.run_ddl("ALTER TABLE `t` ADD `w` INT", 12)
    assert replica.sink.heartbeat_lost() is None
    assert len(replica.rows()) == 2


def test_how_the_last_run_ended_is_shown(replica: DatabaseReplica) -> None:
    table = "applier_run_end" if replica.is_file else "applier.run_end"
    with create_engine(make_url(replica.root_url)).begin() as connection:
        columns = "name, epoch, run_id, command, exit_code, error_class, message, facts, remedy, ended_at"
        values = "'replica', 3, 'x', 'run', 4, 'FatalSinkError', 'it broke', '{}', 'mend it', '2026-01-02 03:04:05.678'"
        connection.execute(text(f"INSERT INTO {table} ({columns}) VALUES ({values})"))
    assert access_to(replica).last_end()["end"] == {
        "command": "run",
        "exit_code": 4,
        "error_class": "FatalSinkError",
        "message": "it broke",
        "remedy": "mend it",
        "ended_at": "2026-01-02T03:04:05.678+00:00",
    }


def test_the_page_pauses_and_resumes_the_replica_that_a_run_owns(replica: DatabaseReplica) -> None:
    access = access_to(replica)
    access.pause("http from 10.0.0.1")
    access.pause("somebody else")
    paused = replica.sink.bookkeeping.pauses.read()
    assert paused is not None
    assert paused.said_by == "http from 10.0.0.1"
    access.resume()
    access.resume()
    assert replica.sink.bookkeeping.pauses.read() is None
    assert replica.write(replica.replaces("(1, 'a')"), ts=9).state is WriteState.COMMITTED


def test_many_who_look_at_once_cost_the_sink_one_question(replica: DatabaseReplica) -> None:
    access = access_to(replica)
    before = access.ddls()
    replica.run_ddl("ALTER TABLE `t` ADD `w` INT", 12)
    assert access.ddls() is before
    time.sleep(FRESH_S)
    assert len(access.ddls()["ddls"]) == len(before["ddls"]) + 1


def test_a_sink_without_bookkeeping_is_an_error_and_not_an_empty_list(fresh: DatabaseReplica) -> None:
    with pytest.raises(SinkError):
        access_to(fresh).ddls()
