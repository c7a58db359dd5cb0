"""How files are given to a loading program: a script stands for the program."""

import os

import pytest

from applier.dump.inventory import DumpFile, FileKind, Inventory
from applier.dump.loader import LoaderProgram, LoadTarget
from applier.dump.loading import DumpLoad
from applier.model.errors import FatalSinkError
from applier.model.events import TableName
from applier.sinks.settings import SinkSettings

RECORDS_ITS_INPUT = """#!/bin/sh
read name
echo "begin $name" >> "$LOADED"
sleep 0.1
echo "end $name" >> "$LOADED"
[ "$name" != bad ]
"""
MEETS_A_DEADLOCK = """#!/bin/sh
echo "$@" >> "$LOADED"
case "$*" in
  *--overwrite-tables*) exit 0 ;;
esac
echo "** (myloader:1): CRITICAL **: Error restoring shop.a from file: Deadlock found when trying to get lock" >&2
exit 1
"""


@pytest.fixture
def load(tmp_path, monkeypatch):
    """Load files with a script; return a line for each thing that it did, and the error."""
    record = tmp_path / "loaded"
    monkeypatch.setenv("LOADED", str(record))

    def with_script(script, name, files, threads=4):
        program = tmp_path / name
        program.write_text(script)
        os.chmod(program, 0o700)  # noqa: PTH101 - as a shell would
        target = LoadTarget(SinkSettings(url="mysql+pymysql://u@127.0.0.1:1/"))
        dump = DumpLoad(tmp_path, Inventory(tuple(files)), LoaderProgram(name, str(program)), target, threads, lambda _text: None)
        error = None
        try:
            dump.run()
        except FatalSinkError as raised:
            error = raised
        return record.read_text().splitlines(), error

    return with_script


def rows_of(tmp_path, table, *names):
    for name in names:
        path = tmp_path / f"shop.{table}.{name}.sql"
        path.write_text(f"{name}\n")
        yield DumpFile(path, FileKind.ROWS, TableName("shop", table))


def test_files_of_one_table_are_loaded_in_turn_and_tables_beside_one_another(load, tmp_path):
    lines, error = load(RECORDS_ITS_INPUT, "mariadb", [*rows_of(tmp_path, "a", "a1", "a2", "a3"), *rows_of(tmp_path, "b", "b1", "b2")])
    assert error is None
    of_a = [line for line in lines if " a" in line]
    assert of_a == [f"{what} a{number}" for number in (1, 2, 3) for what in ("begin", "end")]
    assert lines.index("begin b1") < lines.index("end a3")


def test_after_a_failure_no_other_file_is_begun(load, tmp_path):
    lines, error = load(RECORDS_ITS_INPUT, "mariadb", [*rows_of(tmp_path, "a", "bad", "never")], threads=1)
    assert error is not None
    assert lines == ["begin bad", "end bad"]


def test_a_deadlock_of_myloader_is_repeated_with_one_thread(load, tmp_path):
    lines, error = load(MEETS_A_DEADLOCK, "myloader", rows_of(tmp_path, "a", "a1"))
    assert error is None
    assert [("--threads 4" in line, "--threads 1" in line, "--overwrite-tables" in line) for line in lines] == [
        (True, False, False),
        (False, True, True),
    ]
