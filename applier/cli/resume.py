"""``applier resume``: the end of ``applier pause``."""

from applier.cli.ddl import open_sink_of
from applier.cli.option import ConfigPath, read_config
from applier.cli.output import DEFAULT_CONFIG, print_line
from applier.telemetry.log import utc_text


def resume(config: ConfigPath = DEFAULT_CONFIG) -> None:
    """End a pause: the daemon continues from the checkpoint.

    It checks the sink's tables again first, because they may have been changed.
    """
    settings = read_config(config)
    with open_sink_of(settings) as sink:
        sink.bookkeeping.overview()  # refuses a sink without bookkeeping, or with that of another version
        ended = sink.bookkeeping.pauses.end()
    if ended is None:
        print_line(f"{settings.name} is not paused")
    else:
        print_line(f"resumed: {settings.name}. {ended.said_by} paused it at {utc_text(ended.said_at)}")
