"""Whether the locks of this server hold for ``consistency = "row"``: its writers share a lock on the progress row, and each other's window.

Two servers take the statement and give no such lock: TiDB's shared lock is none, and in a Galera cluster a lock is known to one node only,
while transactions of others are certified by the rows that they change. There a late writer could commit behind the progress.
"""

from typing import Final

from sqlalchemy import Connection, text

from applier.model.errors import ConfigError
from applier.model.remedy import Remedy

VERSION: Final = text("SELECT VERSION()")
GALERA: Final = text("SHOW GLOBAL VARIABLES WHERE Variable_name IN ('wsrep_on', 'wsrep_provider')")


def refuse_unshared_locks(connection: Connection) -> None:
    """Raise ConfigError, with the server's name, if its shared locks do not hold."""
    variables = {str(name).casefold(): str(value).casefold() for name, value in connection.execute(GALERA)}
    server = server_without_shared_locks(str(connection.execute(VERSION).scalar_one()), variables)
    if server is not None:
        raise ConfigError(
            f'sink.consistency = "row" cannot be used with {server}: its shared locks do not stop a late writer',
            remedy=Remedy("mysql.set-transaction-consistency", 'Set sink.consistency = "transaction"'),
            server=server,
        )


def server_without_shared_locks(version: str, variables: dict[str, str]) -> str | None:
    """Return the name of a server whose shared locks do not hold; None for others."""
    if "tidb" in version.casefold():
        return "TiDB"
    # MariaDB knows both variables without a cluster, too.
    is_cluster = variables.get("wsrep_on") in {"on", "1"} and variables.get("wsrep_provider", "none") not in {"", "none"}
    return "a Galera cluster" if is_cluster else None
