"""``applier pause``: the daemon keeps the replica and reads nothing, until ``applier resume``."""

from typing import Final

from applier.cli.ddl import open_sink_of
from applier.cli.option import ConfigPath, read_config
from applier.cli.output import DEFAULT_CONFIG, command_line, print_line
from applier.sinks.overview import OwnerState
from applier.telemetry.log import utc_text
from applier.telemetry.wording import operator

OF_RUN: Final = "The daemon ends its present segment or DDL, keeps the replica, and reads nothing more"
OF_NONE: Final = "No run is alive. The next daemon will wait, and applier catchup will refuse to start"


def pause(config: ConfigPath = DEFAULT_CONFIG) -> None:
    """Pause the replica: a run keeps it, and applies nothing more.

    It takes effect within two seconds, after the segment or DDL that runs. The pause stays when the daemon is restarted. The sink may be
    changed meanwhile, and queried: it holds whole transactions. Topics or the binlog must be kept until applier resume.
    """
    settings = read_config(config)
    with open_sink_of(settings) as sink:
        overview = sink.bookkeeping.overview()  # refuses a sink without bookkeeping, or with that of another version
        before = sink.bookkeeping.pauses.begin(operator())
    way_on = command_line("resume", config)
    if before is None:
        is_alive = overview.owner is not None and overview.owner.state is OwnerState.ALIVE
        print_line(f"paused: {settings.name}. {OF_RUN if is_alive else OF_NONE}. To continue: {way_on}")
    else:
        print_line(f"already paused: {settings.name}, by {before.said_by} at {utc_text(before.said_at)}. To continue: {way_on}")
