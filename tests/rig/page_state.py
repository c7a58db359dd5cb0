"""A run as the page shows it, in each of the states that a person must tell apart; served without a replica behind it."""

import math
import time
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from applier.model.errors import FatalSinkError, Remedy, RetryableSinkError
from applier.model.position import Offset, Stream, Ts
from applier.sources.ticdc.tso import TSO_TIMELINE
from applier.status.http_endpoint import PageParts, RecentHistory, StatusApp, StatusServer
from applier.telemetry.run_state import Counts, RunState, Stall, StreamsView, StreamView
from tests.builders.run_state import status

LOOPBACK = "127.0.0.1"
TOKEN = "0123456789abcdef"  # noqa: S105 - of the tests
ALTER = "ALTER TABLE `shop`.`order_lines` ADD INDEX `by_product` (`product_id`, `created_at`)"


def ts_of(unix_s):
    return Ts(int(unix_s * 1000) << 18)


def view(stream, resolved_s, *, silent_s=0.4, behind=0):
    of = replace(status(stream, ts_of(resolved_s)), next_offset=Offset(84_200), end_offset=Offset(84_200 + behind))
    return StreamView(status=of, silent_s=silent_s, replays=0, fallbacks=0)


def state_of(lags_s, *, topic="tidb-shop", lag_s=None, stall=None, behind=0, **changes):
    now = time.time()
    each = tuple(view(Stream(topic, number), now - lag, behind=behind) for number, lag in enumerate(lags_s))
    oldest = max(range(len(lags_s)), key=lags_s.__getitem__)
    lag = max(lags_s) if lag_s is None else lag_s
    wanted = {
        "replica": "orders-eu",
        "started_at_s": now - 93_600,
        "progress_s": time.monotonic(),
        "phase": "listening",
        "is_ready": True,
        "epoch": 7,
        "checkpoint_ts": ts_of(now - lag),
        "watermark": ts_of(now - max(lags_s)),
        "counts": Counts(records=2_410_000, events=7_300_000, rows=7_184_211, transactions=913_240, ddls=14),
        "streams": StreamsView(each=each, holding=Stream(topic, oldest), stall=stall),
        "quarantined": 0,
    }
    return RunState(**({"timeline": TSO_TIMELINE} | wanted | changes))


def small_lags(number, seed=3):
    return [0.6 + (seed * (index + 1) % 11) / 10 for index in range(number)]


def idle():
    return state_of(small_lags(6), phase="idle")


def catching_up():
    return state_of([2530 + 37 * index for index in range(6)], is_ready=False, phase="writing", behind=41_300)


def ddl_running():
    return state_of([214 + index / 5 for index in range(6)], phase="ddl", current_ddl=ALTER, ddl_since_s=time.time() - 211)


def stopped():
    return state_of([31.4 + lag for lag in small_lags(6)], phase="stopped", is_ready=False)


def stalled(streams=6):
    silent = 252.0
    lags = small_lags(streams)
    lags[3] = silent
    state = state_of(lags, phase="waiting for a stream")
    return replace(state, streams=replace(state.streams, stall=Stall(Stream("tidb-shop", 3), ts_of(time.time() - silent), silent)))


@dataclass
class Records:
    """A ``ReplicaAccess`` with some entries; ``is_away``: the sink does not answer."""

    is_away: bool = False
    held: int = 0
    ddl: dict = field(default_factory=dict)
    end: dict | None = None
    asked: list = field(default_factory=list)

    def _check(self):
        if self.is_away:
            raise RetryableSinkError(
                "connecting failed: can't connect to 'db.internal'", remedy=Remedy("test.remedy", "Check that the server runs")
            )

    def ddls(self):
        self._check()
        now = time.time()
        past = [
            ddl(now - 4_000, "shop", "order_lines", "ALTER TABLE `order_lines` ADD COLUMN `discount` DECIMAL(10,2) DEFAULT 0", 3.4),
            ddl(now - 9_100, "shop", "coupons", "CREATE TABLE `coupons` (`code` VARCHAR(32) PRIMARY KEY, `percent` INT NOT NULL)", 0.2),
            ddl(now - 86_400, "audit", "log_2025", "DROP TABLE `audit`.`log_2025`", None, state="skipped"),
        ]
        return {"ddls": ([self.ddl] if self.ddl else []) + past, "at_most": 100}

    def quarantine(self):
        self._check()
        held = [entry(number) for number in range(self.held)]
        return {"held": self.held, "entries": held, "at_most": 100}

    def pause(self, said_by):
        self._check()
        self.asked.append(("pause", said_by))

    def resume(self):
        self._check()
        self.asked.append(("resume", ""))

    def last_end(self):
        self._check()
        return {"end": self.end}


def iso(unix_s):
    return datetime.fromtimestamp(unix_s, UTC).isoformat(timespec="milliseconds")


def ddl(began_s, schema, table, query, took_s, state="done"):
    return {
        "ts": str(ts_of(began_s)),
        "time": iso(began_s - 2),
        "schema": schema,
        "table": table,
        "type": "",
        "query": query,
        "state": state,
        "began_at": iso(began_s),
        "ended_at": None if took_s is None else iso(began_s + took_s),
        "error": "",
    }


def entry(number, table="customers"):
    return {
        "position": f"tidb-shop/{number % 6}@{84_000 + 17 * number}#0",
        "stream": f"tidb-shop/{number % 6}",
        "offset": 84_000 + 17 * number,
        "state": "held",
        "ts": str(ts_of(time.time() - 700)),
        "time": iso(time.time() - 700),
        "schema": "shop",
        "table": table,
        "error": "the database refused a row [code=1406, reason=Data too long for column 'vat_id' at row 1]",
        "found_at": iso(time.time() - 690 + number),
        "settled_at": None,
        "settled_by": "",
    }


def hour(lag_s, rows_per_s):
    """Return a history of the last hour from two functions of the minutes that are left."""
    history = RecentHistory(lambda: None)
    now = time.time()
    times = [round(now - 3600 + 5 * number, 1) for number in range(720)]
    left = [(now - each) / 60 for each in times]
    document = {"every_s": 5, "unix_s": times, "lag_s": [lag_s(each) for each in left], "rows_per_s": [rows_per_s(each) for each in left]}
    history.document = lambda: document
    return history


def wave(base, swing):
    return lambda left: round(max(0.0, base + swing * (math.sin(left / 3.1) + 0.6 * math.sin(left * 2.7) + 0.3 * math.sin(left * 17))), 2)


HOURS = {
    "idle": (wave(1.3, 0.25), wave(420, 160)),
    "catching_up": (lambda left: 2700 + 36 * left if left < 50 else None, wave(38_000, 2500)),
    "ddl_running": (lambda left: (214 - 60 * left) if left < 3.5 else 1.2, lambda left: 0.0 if left < 3.5 else wave(900, 200)(left)),
    "stalled": (lambda left: (252 - 60 * left) if left < 4.2 else 1.4, lambda left: 0.0 if left < 4.1 else wave(600, 180)(left)),
    "stopped": (
        lambda left: (32 - 60 * left) if left < 0.5 else wave(1.3, 0.25)(left),
        lambda left: 0.0 if left < 0.5 else wave(420, 160)(left),
    ),
}


class Shown:
    """A page that a test changes: its state, its records, what was asked of it."""

    def __init__(self, name):
        self.make = {"idle": idle, "catching_up": catching_up, "ddl_running": ddl_running, "stalled": stalled, "stopped": stopped}[name]
        self.records = Records()
        self.app = None
        self.address = ""
        if name == "ddl_running":
            self.records.ddl = ddl(time.time() - 211, "shop", "order_lines", ALTER, None, state="intent")
        if name == "stalled":
            self.records.held = 2
            self.make = lambda: replace(stalled(), quarantined=2)

    def state(self):
        return self.make()


@contextmanager
def page_of(name="idle", token=""):
    """Serve the page of a run that is ``name``; yield what it shows."""
    shown = Shown(name)
    parts = PageParts(access=shown.records, history=hour(*HOURS[name]), token=token)
    shown.app = StatusApp(shown.state, 600, parts)
    with StatusServer(LOOPBACK, 0, shown.app) as server:
        server.start()
        shown.address, shown.server = server.address, server
        if name == "stopped":
            shown.app.end(ended())
        yield shown


def ended():
    return FatalSinkError(
        "the database refused a row: Unknown column 'discount' in 'field list'",
        remedy=Remedy(
            "test.remedy", "Look at the table in the sink. `applier ddl list` shows which DDL was skipped: run it by hand, then start again"
        ),
        table="shop.order_lines",
    )
