"""A reader who types what a page shows: its shell blocks as they stand, in their order, with the installed wheel.

A block is executed by one ``bash -e`` in the reader's directory. Variables and functions that it sets stay for the next block, as in a
terminal. The first ``applier run`` of a page stays in the background, as in a second terminal, and the block goes on when it is ready.
Everything that is not as the page has it is declared: an address that stands for another one, a block that cannot run here and why.
"""

import os
import pty
import re
import shlex
import signal
import subprocess
import sys
import textwrap
import time
import venv
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from zipfile import ZipFile

from hatchling.builders.wheel import WheelBuilder

from tests.rig.port import free_port

ROOT = Path(__file__).parents[2]
PAGES = {path.name: path for path in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))}
BLOCK = re.compile(r"^( *)```(sh|toml)\n(.*?)^ *```", re.MULTILINE | re.DOTALL)
BLOCK_S, STOP_S = 90, 60
# `run` in the background until it is ready; every other command as it is.
WRAPPER = r"""#!/usr/bin/env bash
[ "${1:-}" = run ] || exec REAL "$@"
REAL "$@" </dev/null >>run.out 2>&1 &
pid=$!
echo $pid >run.pid
for _ in $(seq 600); do
  kill -0 $pid 2>/dev/null || { echo "applier run has ended:"; cat run.out; exit 1; } >&2
  if exec 3<>/dev/tcp/127.0.0.1/$WALK_PORT; then
    printf 'GET /readyz HTTP/1.0\r\n\r\n' >&3
    head -n 1 <&3 | grep -q ' 200 ' && exit 0
  fi 2>/dev/null
  sleep 0.1
done
echo "applier run is not ready:" >&2
cat run.out >&2
exit 1
"""


def blocks_of(text: str, language: str = "sh") -> list[str]:
    """Return the blocks of a language as a reader copies them, without the indent of a list."""
    return [textwrap.dedent(block) for _, kind, block in BLOCK.findall(text) if kind == language]


def pages_with_commands() -> set[str]:
    """Return the names of the pages that have shell blocks."""
    return {name for name, path in PAGES.items() if blocks_of(path.read_text(encoding="utf-8"))}


def install_wheel(directory: Path) -> Path:
    """Build the wheel and install it into an environment that borrows the packages of this one; return its ``bin``.

    Neither a download nor pip is needed, and the checkout is not on the path: an editable installation is a .pth file, which a path
    that another .pth file adds does not read.
    """
    (wheel,) = WheelBuilder(str(ROOT)).build(directory=str(directory / "dist"), versions=["standard"])
    venv.create(directory / "venv", symlinks=True)
    (packages,) = (directory / "venv" / "lib").glob("python3*/site-packages")
    with ZipFile(wheel) as archive:
        archive.extractall(packages)
    borrowed = next(path for path in sys.path if path.endswith("site-packages"))
    (packages / "borrowed.pth").write_text(f"{borrowed}\n", encoding="utf-8")
    script = directory / "venv" / "bin" / "applier"
    script.write_text(f"#!{directory}/venv/bin/python\nimport sys\nfrom applier.__main__ import main\nsys.exit(main())\n", encoding="utf-8")
    script.chmod(0o755)
    let_run_stay(script)
    return script.parent


def let_run_stay(script: Path) -> None:
    """Let ``applier run`` of this script stay in the background until it is ready, as in a second terminal."""
    real = script.rename(script.with_name("applier-itself"))
    script.write_text(WRAPPER.replace("REAL", shlex.quote(str(real))), encoding="utf-8")
    script.chmod(0o755)


@dataclass
class Walk:
    """One page in one reader's hands. ``means``: a text of the page -> what stands for it here."""

    page: str
    programs: Path
    directory: Path
    means: Mapping[str, str] = field(default_factory=dict)
    used: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        text = PAGES[self.page].read_text(encoding="utf-8")
        self.blocks, self.settings = blocks_of(text), blocks_of(text, "toml")
        self.port = free_port()
        (self.directory / "home").mkdir(parents=True)
        (self.directory / "state").touch()

    def writes_toml(self, beginning: str = "", *more: str) -> None:
        """Write ``applier.toml`` as the page shows it: its first block that contains ``beginning``; ``more`` lines at its end."""
        text = next(block for block in self.settings if beginning in block)
        (self.directory / "applier.toml").write_text("\n".join((self._here(text), *more)) + "\n", encoding="utf-8")

    def skips(self, beginning: str, reason: str) -> None:
        """Pass over the next block, which begins so; the reason is for the reader of the test."""
        assert reason
        self._next(beginning)

    def types(self, beginning: str, *answers: str) -> str:
        """Execute the next block, which begins so; return what it has printed. ``answers``: lines that are typed when it asks."""
        return self.executes(self._next(beginning), *answers)

    def executes(self, text: str, *answers: str) -> str:
        """Execute commands; return what they have printed."""
        # `declare -p` has read-only variables too, which cannot be set again.
        script = f"set -eo pipefail\nsource state\n{self._here(text)}\n{{ export -p; declare -f; }} >state\n"
        output = self.directory / "output"
        terminal, stdin = pty.openpty()
        os.write(terminal, "".join(f"{line}\n" for line in answers).encode())
        began = time.monotonic()
        try:
            with output.open("wb") as file:
                ended = subprocess.run(
                    ["bash", "-c", script],
                    cwd=self.directory,
                    env=self._environment(),
                    stdin=stdin,
                    stdout=file,
                    stderr=subprocess.STDOUT,
                    timeout=BLOCK_S,
                    check=False,
                )
        finally:
            os.close(terminal)
            os.close(stdin)
        printed = output.read_text(encoding="utf-8")
        print(f"--- {self.page}, {time.monotonic() - began:.1f} s\n{textwrap.indent(text, '$ ')}{printed}")
        assert ended.returncode == 0, (ended.returncode, printed)
        return printed

    def stops_run(self) -> None:
        """End ``applier run`` by SIGTERM, as a service manager does; its progress is saved."""
        pid = int((self.directory / "run.pid").read_text(encoding="utf-8"))
        os.kill(pid, signal.SIGTERM)
        give_up = time.monotonic() + STOP_S
        while Path(f"/proc/{pid}").exists():
            assert time.monotonic() < give_up, "applier run does not end"
            time.sleep(0.05)
        (self.directory / "run.pid").unlink()
        assert "shutdown_complete" in self.run_said(), self.run_said()

    def run_said(self) -> str:
        """Return the log of ``applier run``."""
        return (self.directory / "run.out").read_text(encoding="utf-8")

    def ends(self) -> None:
        """See that no block of the page is left, and that everything that was declared is on the page."""
        assert self.blocks == [], self.blocks
        assert set(self.means) == self.used

    def _next(self, beginning: str) -> str:
        assert self.blocks, f"{self.page} has no block {beginning!r} any more"
        assert self.blocks[0].startswith(beginning), (self.page, beginning, self.blocks[0])
        return self.blocks.pop(0)

    def _here(self, text: str) -> str:
        for word, meaning in self.means.items():
            if word in text:
                self.used.add(word)
                text = text.replace(word, meaning)
        return text

    def _environment(self) -> dict[str, str]:
        """Return the environment of a machine that has nothing of ours."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("APPLIER_", "PYTHON", "VIRTUAL_ENV"))}
        return kept | {
            "HOME": str(self.directory / "home"),
            "PATH": f"{self.programs}:{os.environ['PATH']}",
            "APPLIER_HTTP__LISTEN": f"127.0.0.1:{self.port}",
            "WALK_PORT": str(self.port),
            # With the archive of classes that the other tests use (tests.rig.class_archive).
            "SPARK_SUBMIT_OPTS": f"{os.environ.get('SPARK_SUBMIT_OPTS', '')} -XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
            "COLUMNS": "160",
        }


@contextmanager
def walking(page: str, programs: Path, directory: Path, means: Mapping[str, str]) -> Iterator[Walk]:
    """Give a walk; at its end the page must have been walked whole, and nothing of it runs any more."""
    walk = Walk(page, programs, directory, means)
    try:
        yield walk
        walk.ends()
    finally:
        kill_all_below(directory)


def kill_all_below(directory: Path) -> None:
    """SIGKILL the processes that a walk has left in its directory: a run, its JVM and workers."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal() and _is_below(entry, directory):
            os.kill(int(entry.name), signal.SIGKILL)


def _is_below(entry: Path, directory: Path) -> bool:
    try:
        return (entry / "cwd").readlink().is_relative_to(directory)
    except OSError:
        return False


def mysql_client(url: str, *, program: str = "mariadb") -> str:
    """Return the command of the plain client for an address."""
    from sqlalchemy import make_url  # noqa: PLC0415 - one caller

    parts = make_url(url)
    return shlex.join(_client_words(program, parts.host, parts.port, parts.username, parts.password))


def _client_words(program: str, host: str | None, port: int | None, user: str | None, password: str | None) -> Sequence[str]:
    return (program, "-h", str(host), "-P", str(port), "-u", str(user), f"-p{password}")
