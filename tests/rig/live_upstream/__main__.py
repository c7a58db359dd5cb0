"""``python -m tests.rig.live_upstream run|compare``: the program of the containers ``upstream`` and of their comparison."""

import logging
import signal
import sys
from pathlib import Path
from threading import Event
from typing import Annotated, Final, TypeAlias

import pymysql
import typer

from applier.demo.simulator.kafka_log import create_topic
from applier.demo.simulator.live_log import LiveLog
from applier.model.errors import ApplierError, FatalSinkError
from applier.sinks.settings import SinkSettings
from tests.rig.live_upstream.comparison import compare_live
from tests.rig.live_upstream.feed import FeedPace, UpstreamFeed
from tests.rig.live_upstream.upstream_copy import UpstreamCopy

RETENTION_MS: Final = 24 * 3600 * 1000
DATABASE_HELP: Final = "SQLAlchemy URL of upstream's own database (MySQL or MariaDB)."
PREFIX_HELP: Final = "Beginning of the names of upstream's schemas in the database: others are not touched."
Prefix: TypeAlias = Annotated[str, typer.Option(envvar="UPSTREAM_PREFIX", metavar="TEXT", help=PREFIX_HELP)]
app: Final = typer.Typer(
    add_completion=False, no_args_is_help=True, help="A simulated upstream that lives, and its comparison with a replica."
)


@app.command()
def run(
    *,
    database: Annotated[str, typer.Option(envvar="UPSTREAM_DATABASE", metavar="URL", help=DATABASE_HELP)],
    kafka: Annotated[str, typer.Option(envvar="UPSTREAM_KAFKA", metavar="HOST:PORT", help="Kafka's bootstrap servers.")],
    topic: Annotated[str, typer.Option(envvar="UPSTREAM_TOPIC", metavar="NAME", help="Topic of the changefeed.")] = "changefeed",
    partitions: Annotated[int, typer.Option(min=1, metavar="N", help="Partitions of the topic.")] = 4,
    rows_per_s: Annotated[float, typer.Option(envvar="UPSTREAM_ROWS_PER_S", metavar="N", help="Row changes in a second.")] = 50.0,
    prefix: Prefix = "",
    yes_drop: Annotated[
        bool, typer.Option("--yes-drop", envvar="UPSTREAM_YES_DROP", help="Drop the schemas of the database that begin with the prefix.")
    ] = False,
    ready: Annotated[Path | None, typer.Option(metavar="FILE", help="File to make when the feed has begun.")] = None,
) -> None:
    """Write a live changefeed until SIGTERM or Ctrl-C."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s", stream=sys.stderr)
    stopped = Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopped.set())
    with UpstreamCopy(database, prefix) as copy:
        copy.refuse_foreign(may_drop=yes_drop)
        # Behind the refusal: who has given the wrong server gets no topic either.
        create_topic(kafka, topic, partitions, retention_ms=RETENTION_MS)
        feed = UpstreamFeed(copy, LiveLog(topic, partitions), kafka, FeedPace(rows_per_s=rows_per_s))
        feed.start_over()
        if ready is not None:
            ready.touch()
        feed.run(stopped)


@app.command()
def compare(
    *,
    database: Annotated[str, typer.Option(envvar="UPSTREAM_DATABASE", metavar="URL", help=DATABASE_HELP)],
    replica: Annotated[str, typer.Option(envvar="UPSTREAM_REPLICA", metavar="URL", help="SQLAlchemy URL of the replica.")],
    prefix: Prefix = "",
    name: Annotated[str, typer.Option(metavar="NAME", help="Name of the replica.")] = "replica",
    within_s: Annotated[float, typer.Option(metavar="SECONDS", help="How long to wait until the replica has everything.")] = 60.0,
) -> None:
    """Hold the feed, wait for the replica, and compare every value of every table."""
    found = compare_live(database, SinkSettings(url=replica, name=name), within_s=within_s, prefix=prefix)
    for problem in found.problems:
        typer.echo(problem, err=True)
    if found.problems:
        raise typer.Exit(1)
    typer.echo(f"the replica equals upstream: {found.tables} tables, {found.rows} rows")


def main() -> None:
    """Run the command; an expected error is one sentence."""
    try:
        app()
    except ApplierError as error:
        typer.echo(f"{error}", err=True)
        sys.exit(error.exit_code)
    except pymysql.MySQLError as error:
        typer.echo(f"upstream's database: {error}", err=True)
        sys.exit(FatalSinkError.exit_code)


if __name__ == "__main__":
    main()
