"""Where in a binlog a dump of MySQL or MariaDB was made, and whether it may be loaded into a sink."""

import re
from itertools import islice
from pathlib import Path
from typing import Final

from applier.dump.compressed import open_text
from applier.dump.moment import HEADER_LINES, METADATA
from applier.model.errors import ConfigError
from applier.sources.binlog.dump_place import place_of_dump

_CHANGES_THE_SINK: Final = re.compile(
    r"^(?:CHANGE (?:MASTER|REPLICATION SOURCE) TO|SET @@GLOBAL\.GTID_PURGED|SET GLOBAL gtid_slave_pos)", re.MULTILINE | re.IGNORECASE
)


def start_of_dump(directory: Path) -> str:
    """Return the value of ``source.start`` for the dump in a directory. ConfigError: it does not say its place, or there are several."""
    if (directory / METADATA[0]).is_file():
        return f"dump:{directory}"
    files = [directory] if directory.is_file() else sorted(directory.glob("*.sql*"))
    if len(files) != 1:
        raise ConfigError(
            "the directory holds no dump that says its place in the binlog",
            remedy="Give the directory of mydumper, or one that holds one file of mariadb-dump or mysqldump",
            directory=directory,
        )
    with open_text(files[0]) as lines:
        found = _CHANGES_THE_SINK.search("\n".join(islice(lines, HEADER_LINES)))
    if found is not None:
        raise ConfigError(
            f"the dump would make a replica of the sink: {found[0]}",
            remedy="Dump with --master-data=2 (mariadb-dump), or with --source-data=2 --set-gtid-purged=COMMENTED (mysqldump)",
            file=files[0],
        )
    place_of_dump(str(files[0]))
    return f"dump:{files[0]}"
