"""Where in a binlog a dump of MySQL or MariaDB was made, and whether it may be loaded into a sink."""

import re
from itertools import islice
from pathlib import Path
from typing import Final

from applier.dump.compressed import open_text
from applier.dump.moment import HEADER_LINES
from applier.model.errors import ConfigError
from applier.model.remedy import Remedy
from applier.sources.binlog.dump import DIRECTORY_REMEDY, METADATA, file_of_dump, place_of_dump

_CHANGES_THE_SINK: Final = re.compile(
    r"^(?:CHANGE (?:MASTER|REPLICATION SOURCE) TO|SET @@GLOBAL\.GTID_PURGED|SET GLOBAL gtid_slave_pos)", re.MULTILINE | re.IGNORECASE
)


def start_of_dump(directory: Path) -> str:
    """Return the value of ``source.start`` for the dump in a directory. ConfigError: it does not say its place, or there are several."""
    file = file_of_dump(directory)
    if file.name == METADATA:
        return f"dump:{directory}"
    if not file.is_file():
        raise ConfigError("there is no such dump", remedy=DIRECTORY_REMEDY, directory=directory)
    with open_text(file) as lines:
        found = _CHANGES_THE_SINK.search("\n".join(islice(lines, HEADER_LINES)))
    if found is not None:
        raise ConfigError(
            f"the dump would make a replica of the sink: {found[0]}",
            remedy=Remedy(
                "dump.dump-with-master-data",
                "Dump with --master-data=2 (mariadb-dump), or with --source-data=2 --set-gtid-purged=COMMENTED (mysqldump)",
            ),
            file=file,
        )
    place_of_dump(str(file))
    return f"dump:{file}"
