"""``applier migrate``: create or upgrade the bookkeeping tables in the sink."""

from applier.cli.option import ConfigPath, read_config
from applier.cli.output import DEFAULT_CONFIG, print_line
from applier.sinks.registry import open_sink


def migrate(config: ConfigPath = DEFAULT_CONFIG) -> None:
    """Create or upgrade the bookkeeping tables. Every run does this, too."""
    settings = read_config(config)
    with open_sink(settings.sink_settings()) as sink:
        revisions = sink.migrate()
    for revision in revisions:
        print_line(f"applied {revision}")
    if not revisions:
        print_line(f"nothing to do: the bookkeeping tables in {settings.sink.address} are up to date")
