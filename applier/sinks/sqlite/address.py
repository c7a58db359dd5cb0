"""The URL of a file: which URLs are allowed, and why others are refused."""

from pathlib import Path
from typing import Final

from sqlalchemy.engine import URL

from applier.database.address import BadAddress, parse_address
from applier.model.errors import ConfigError
from applier.model.remedy import Remedy

DRIVERS: Final = ("sqlite", "sqlite+pysqlite")
FORM: Final = "sqlite:///file.db"
FILE_FORM: Final = Remedy(
    "sink.write-sqlite-url", "Write sqlite:///replica.db, or sqlite:////var/lib/applier/replica.db for an absolute path"
)


def read_file_url(text: str) -> URL:
    """Return the URL of a file; BadAddress for everything else, which executors could not share."""
    url, options = parse_address(text, FILE_FORM)
    if url.host or url.username or url.password or url.port:
        raise BadAddress("names a host, but a SQLite file has none", FILE_FORM)
    if not url.database or url.database == ":memory:" or ("mode", "memory") in options:
        raise BadAddress("names no file", Remedy("sink.use-file", f"A database in memory would lose the progress. {FILE_FORM}"))
    if url.database.startswith("file:"):
        raise BadAddress("names the file as a URI (file:…)", FILE_FORM)
    if options:
        raise BadAddress(
            f"has an option, but a SQLite sink has none: {options[0][0]!r}",
            Remedy("sink.remove-sqlite-options", "Remove it: the applier opens the file itself"),
        )
    return url


def database_path(url: str) -> Path:
    """Return the absolute path of ``sqlite:///replica.db``; ConfigError for anything but a file."""
    try:
        return Path(str(read_file_url(url).database)).absolute()
    except BadAddress as bad:
        raise ConfigError(f"the sink's url {bad.problem}", remedy=bad.remedy) from None
