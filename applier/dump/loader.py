"""The programs that load a dump: the client of MariaDB or MySQL, or myloader. Found on this machine; run without a shell.

The password is in a file that only this user can read, never on a command line. Other option files of the user do not count: they may
name another server.
"""

import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from applier.model.errors import ConfigError
from applier.mysql_client.tls import TlsMode
from applier.sinks.address import sink_url
from applier.sinks.settings import SinkSettings

MYLOADER: Final = "myloader"
CLIENTS: Final = ("mariadb", "mysql")
AUTO: Final = "auto"
PROGRAMS: Final = (AUTO, *CLIENTS, MYLOADER)
PORT: Final = 3306


@dataclass(frozen=True, slots=True)
class LoaderProgram:
    """A program on this machine."""

    name: str
    path: str

    @property
    def is_client(self) -> bool:
        """Whether it takes statements on its standard input."""
        return self.name != MYLOADER


@dataclass(frozen=True, slots=True)
class LoadTarget:
    """How the programs reach the sink: the same server as the applier's own sessions."""

    settings: SinkSettings
    time_zone: str = "+00:00"
    """Zone of the TIMESTAMP texts in files that do not name one."""

    @property
    def host(self) -> str:
        """The host. ``localhost`` would make the programs take a socket, which may be another server's."""
        host = sink_url(self.settings.url).host or "127.0.0.1"
        return "127.0.0.1" if host == "localhost" else host

    @property
    def port(self) -> int:
        """The port."""
        return sink_url(self.settings.url).port or PORT

    @property
    def user(self) -> str:
        """The user."""
        return sink_url(self.settings.url).username or ""

    @property
    def socket(self) -> str:
        """The socket that the URL names; empty: none."""
        return str(sink_url(self.settings.url).query.get("unix_socket", ""))

    @property
    def arguments(self) -> list[str]:
        """The address and the user for a command line. MySQL's client reads a login file (.mylogin.cnf) after every option file."""
        reached = ["--socket", self.socket] if self.socket else ["--host", self.host, "--port", str(self.port)]
        return [*reached, "--user", self.user]

    def options(self, program: LoaderProgram) -> list[str]:
        """Return the lines of an option file."""
        password = sink_url(self.settings.url).password
        reached = [f"socket={_quoted(self.socket)}"] if self.socket else [f"host={_quoted(self.host)}", f"port={self.port}", "protocol=tcp"]
        lines = ["[client]", *reached, f"user={_quoted(self.user)}", *self._tls(program)]
        return lines if password is None else [*lines, f"password={_quoted(str(password))}"]

    def _tls(self, program: LoaderProgram) -> Iterator[str]:
        tls = self.settings.tls
        for name, value in (("ssl-ca", tls.ca), ("ssl-cert", tls.cert), ("ssl-key", tls.key)):
            if value is not None:
                yield f"{name}={_quoted(value)}"
        if program.name == "mysql" and tls.mode is not TlsMode.PREFERRED:
            yield f"ssl-mode={tls.mode.value.upper()}"
        elif tls.mode is TlsMode.DISABLED:
            yield "skip-ssl"
        elif tls.mode is not TlsMode.PREFERRED:
            yield "ssl"
            yield "ssl-verify-server-cert" if tls.mode is TlsMode.VERIFY_IDENTITY else "skip-ssl-verify-server-cert"


def find_loader(wanted: str, *, needs_client: bool) -> LoaderProgram | None:
    """Return the program to use; None: there is none. ``needs_client``: the dump, or a part of it, is nothing for myloader."""
    if wanted != AUTO and (wanted not in PROGRAMS or shutil.which(wanted) is None):
        raise ConfigError(f"--loader {wanted} is not on this machine", remedy=f"Install it, or use one of {', '.join(PROGRAMS)}")
    if wanted == MYLOADER and needs_client:
        raise ConfigError("myloader cannot load this dump, or not the chosen tables of it alone", remedy="Use --loader mariadb or mysql")
    # A client before myloader: it takes the zone and the sql_mode that the applier gives it, and says of each statement whether it failed.
    names: Sequence[str] = (wanted,) if wanted != AUTO else CLIENTS if needs_client else (*CLIENTS, MYLOADER)
    return next((LoaderProgram(name, path) for name in names if (path := shutil.which(name)) is not None), None)


@contextmanager
def option_file(target: LoadTarget, program: LoaderProgram) -> Iterator[Path]:
    """Write the option file into a directory of this user; it ends with the block."""
    with TemporaryDirectory(prefix="applier-load-") as directory:  # mode 0700
        path = Path(directory) / "options.cnf"
        path.touch(mode=0o600)
        path.write_text("\n".join([*target.options(program), ""]), encoding="utf-8")
        yield path


def myloader_command(program: LoaderProgram, target: LoadTarget, options: Path, directory: Path, threads: int) -> list[str]:
    """Return the call of myloader. It writes no binary log unless it is told to, and the sink's own replicas need it."""
    return [
        program.path,
        f"--defaults-file={options}",
        *target.arguments,
        "--threads",
        str(threads),
        "--directory",
        str(directory),
        "--enable-binlog",
        "--verbose",
        "1",
    ]


def client_command(program: LoaderProgram, target: LoadTarget, options: Path, schema: str, *, is_strict: bool = False) -> list[str]:
    """Return the call of a client that reads statements. In binary mode it takes no commands of its own from a file.

    ``is_strict``: a value that does not fit is an error, and not stored cut.
    """
    strict = ",STRICT_ALL_TABLES" if is_strict else ""
    session = (
        f"SET SESSION sql_mode='NO_AUTO_VALUE_ON_ZERO,ALLOW_INVALID_DATES{strict}', foreign_key_checks=0, unique_checks=0, "
        f"time_zone='{target.time_zone}', collation_server=utf8mb4_bin"
    )
    command = [program.path, f"--defaults-file={options}", *target.arguments, "--batch", "--binary-mode", "--default-character-set=utf8mb4"]
    return [*command, "--max-allowed-packet=1G", f"--init-command={session}", *([f"--database={schema}"] if schema else [])]


def version_of(program: LoaderProgram) -> str:
    """Return what a program says about itself, for the bookkeeping."""
    done = subprocess.run([program.path, "--version"], capture_output=True, text=True, errors="replace", check=False)  # noqa: S603 - found on the path
    return (done.stdout or done.stderr).strip().partition("\n")[0][:200] or program.name


def _quoted(value: str) -> str:
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
