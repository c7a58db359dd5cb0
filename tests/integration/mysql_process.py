"""A run in its own process, to be killed: ``hold`` owns the replica, ``write`` stops in a transaction, ``rows`` writes rows ahead,
``ddl`` runs a history, ``beside`` begins to build an index in the background.

Arguments: url, what to do, and for ``ddl`` the number of DDLs to do. Prints one word per step.
"""

import json
import os
import signal
import sys
import time
from collections.abc import Iterator

from applier.planner.port import Statement
from applier.sinks import write_transaction
from applier.sinks.ledger_entry import DdlState
from tests.integration.mysql_replica import SHOP, Replica, commit_at, replica, rows


def say(word: object) -> None:
    """Report to the test."""
    sys.stdout.write(f"{word}\n")
    sys.stdout.flush()


def hold(shop: Replica) -> None:
    """Own the replica until killed; report what the heartbeat says."""
    say("ready")
    while True:
        error = shop.sink.heartbeat_lost()
        if error is not None:
            say(type(error).__name__)
            return
        time.sleep(0.05)


def write(shop: Replica) -> None:
    """Stop inside a transaction that holds the progress row (SIGSTOP of the whole process), then try to continue."""

    def statements() -> Iterator[Statement]:
        yield rows(f"REPLACE INTO {SHOP}.t (id) VALUES (1)", shop.ts)
        say("ready")
        os.kill(os.getpid(), signal.SIGSTOP)

    outcome = shop.sink.writer.write(shop.fence, statements(), commit_at(shop.tick()))
    say(outcome.state)
    say(shop.write(f"REPLACE INTO {SHOP}.t (id) VALUES (2)").state)
    try:
        shop.ddl(f"CREATE TABLE {SHOP}.zombie (id INT PRIMARY KEY)")
    except Exception as error:  # noqa: BLE001 -- the test looks at its kind
        say(type(error).__name__)


def write_rows(shop: Replica) -> None:
    """Write rows ahead of the checkpoint, each in a transaction of its own (a failpoint stops the process), and then one more."""
    write_transaction.CHUNK_ROWS = 1  # type: ignore[misc]
    for numbers in ((1, 2, 3), (4,)):
        statements = [rows(f"REPLACE INTO {SHOP}.t (id) VALUES ({number})", shop.ts) for number in numbers]
        say(shop.sink.writer.write_rows(shop.fence, statements).state)


def ddl(shop: Replica, history: list[tuple[str, str]]) -> None:
    """Settle what was left, then run what the ledger does not know."""
    shop.fence = shop.sink.settle(shop.fence)
    done = [entry for entry in shop.sink.bookkeeping.ledger() if entry.state is DdlState.DONE]
    for table, query in history[len(done) :]:
        shop.ddl(query, table)
        say(len(shop.sink.bookkeeping.ledger()))


def beside(shop: Replica, query: str) -> None:
    """Begin to build an index, and go on until killed."""
    shop.ddl(query, "t")
    hold(shop)


def main() -> None:
    """Do what the arguments say."""
    url, what, *rest = sys.argv[1:]
    with replica(url, background=what == "beside") as shop:
        if what == "ddl":
            ddl(shop, json.loads(rest[0]))
        elif what == "beside":
            beside(shop, rest[0])
        else:
            {"hold": hold, "write": write, "rows": write_rows}[what](shop)


if __name__ == "__main__":
    main()
