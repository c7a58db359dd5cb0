"""The commands that load a dump by hand, for a machine without a loader."""

import shlex
from pathlib import Path

from applier.dump.inventory import FileKind, Inventory
from applier.dump.loader import LoadTarget
from applier.model.position import Ts


def commands_of(directory: Path, inventory: Inventory, target: LoadTarget, start_ts: Ts) -> list[str]:
    """Return the lines of a shell script; the client asks for the password."""
    reached = ["--socket", target.socket] if target.socket else ["--protocol=tcp", "--host", target.host, "--port", str(target.port)]
    zone = f"SET time_zone='{target.time_zone}', foreign_key_checks=0, sql_mode='NO_AUTO_VALUE_ON_ZERO,ALLOW_INVALID_DATES'"
    client = shlex.join(["mysql", *reached, "--user", target.user, "--password", "--binary-mode", f"--init-command={zone}"])
    lines = []
    views = {file.table for file in inventory.of(FileKind.VIEW)}
    for schema in sorted({file.table.schema for file in inventory.files if file.table.schema}):
        lines.append(f"{client} -e {shlex.quote(f'CREATE SCHEMA IF NOT EXISTS `{schema}` COLLATE utf8mb4_bin')}")
        for kind in (FileKind.TABLE, FileKind.SEQUENCE, FileKind.ROWS, FileKind.VIEW):
            files = [f for f in inventory.of(kind) if f.table.schema == schema and (kind is not FileKind.TABLE or f.table not in views)]
            if files:
                names = " ".join(shlex.quote(str(directory / file.path.name)) for file in files)
                lines.append(f"zcat -f {names} | {client} {shlex.quote(schema)}")
    lines += [f"zcat -f {shlex.quote(str(file.path))} | {client}" for file in inventory.of(FileKind.WHOLE)]
    return [*lines, f"# then set source.start_ts = {start_ts} in the configuration"]
