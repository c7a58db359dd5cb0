"""Loads the files of a dump by a program: the schemas first, then tables, rows, views."""

import shutil
import subprocess
from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile
from threading import Event
from typing import Final

from applier.dump.compressed import PACKED, open_bytes
from applier.dump.inventory import DumpFile, FileKind, Inventory
from applier.dump.loader import LoaderProgram, LoadTarget, client_command, myloader_command, option_file
from applier.model.errors import FatalSinkError
from applier.model.events import TableName

FAILED_REMEDY: Final = "Correct the cause, then load again with --overwrite"
MOST_TEXT: Final = 400
DEADLOCK: Final = "Deadlock found"


@dataclass(frozen=True, slots=True)
class DumpLoad:
    """One load. ``note`` is told each step, for people."""

    directory: Path
    inventory: Inventory
    program: LoaderProgram
    target: LoadTarget
    threads: int
    note: Callable[[str], None]

    def run(self) -> None:
        """Load everything; FatalSinkError with the program's own words if it fails."""
        with option_file(self.target, self.program) as options:
            if not self.program.is_client:
                self._by_myloader(options)
                return
            views = {file.table for file in self.inventory.of(FileKind.VIEW)}
            for kind in (FileKind.TABLE, FileKind.SEQUENCE, FileKind.ROWS, FileKind.WHOLE, FileKind.VIEW):
                # The file of a view's table is a placeholder for programs that load views in any order.
                files = [file for file in self.inventory.of(kind) if kind is not FileKind.TABLE or file.table not in views]
                if files:
                    self.note(f"{self.program.name}: {len(files)} files of {kind.name.lower()}")
                    self._all(files, options, self.threads if kind in {FileKind.TABLE, FileKind.ROWS} else 1)

    def _by_myloader(self, options: Path) -> None:
        self.note(f"{self.program.name}: {len(self.inventory.files)} files")
        try:
            _run(myloader_command(self.program, self.target, options, self.directory, self.threads), None, self.directory)
        except FatalSinkError as error:
            # It loads several files of one table at once, and does not repeat what a deadlock has rolled back.
            if DEADLOCK not in error.message or self.threads == 1:
                raise
            self.note(f"{self.program.name}: a deadlock; again from the beginning, with one thread")
            again = myloader_command(self.program, self.target, options, self.directory, 1)
            _run([*again, "--overwrite-tables"], None, self.directory)

    def _all(self, files: Iterable[DumpFile], options: Path, threads: int) -> None:
        """Load tables beside one another, the files of one table in turn: two inserts into one table may meet in a deadlock."""
        of_table: dict[TableName, list[DumpFile]] = {}
        for file in files:
            of_table.setdefault(file.table, []).append(file)
        has_failed = Event()
        with ThreadPoolExecutor(threads) as pool:
            futures = [pool.submit(self._in_turn, group, options, has_failed) for group in of_table.values()]
            done, rest = wait(futures, return_when=FIRST_EXCEPTION)
            for future in rest:
                future.cancel()
        for future in done:
            future.result()

    def _in_turn(self, files: Iterable[DumpFile], options: Path, has_failed: Event) -> None:
        for file in files:
            if has_failed.is_set():
                return
            try:
                self._one(file, options)
            except FatalSinkError:
                has_failed.set()
                raise

    def _one(self, file: DumpFile, options: Path) -> None:
        _run(
            client_command(self.program, self.target, options, file.table.schema, is_strict=file.kind is FileKind.ROWS),
            file.path,
            file.path,
            shows_text=file.kind is not FileKind.ROWS,
        )


def _run(command: list[str], content: Path | None, what: Path, *, shows_text: bool = True) -> None:
    if content is not None and content.suffix not in PACKED:
        with content.open("rb") as source:
            done = subprocess.run(command, stdin=source, capture_output=True, check=False)  # noqa: S603 - found on the path
            code, errors = done.returncode, done.stdout + done.stderr
    else:
        code, errors = _piped(command, content)
    # myloader 0.10 ends with 0 whatever has happened, and says so.
    text = errors.decode("utf-8", "replace")
    if code or ("** (myloader" in text and ("CRITICAL" in text or "Error" in text)):
        raise FatalSinkError(f"the loader failed: {_words(text, shows_text=shows_text)}", remedy=FAILED_REMEDY, file=what, code=code)


def _piped(command: list[str], content: Path | None) -> tuple[int, bytes]:
    stdin = subprocess.DEVNULL if content is None else subprocess.PIPE
    with TemporaryFile() as output, subprocess.Popen(command, stdin=stdin, stdout=output, stderr=output) as process:  # noqa: S603 - as above
        if content is not None and process.stdin is not None:
            # A pipe that is broken: the program has ended, and says why.
            with suppress(BrokenPipeError), open_bytes(content) as source, process.stdin:
                shutil.copyfileobj(source, process.stdin)
        code = process.wait()
        output.seek(0)
        return code, output.read()


def _words(text: str, *, shows_text: bool) -> str:
    """Return the first error. Errors of rows quote values: of those the code and the line alone."""
    line = next((line for line in text.splitlines() if "ERROR" in line or "CRITICAL" in line), text.strip().partition("\n")[0])
    return (line if shows_text else line.partition(": ")[0])[:MOST_TEXT]
