"""``applier load`` into SQLite, of dumps that the dumpers make of real servers: what is loaded equals upstream, value by value."""

import sqlite3
import subprocess
from contextlib import closing
from dataclasses import dataclass

import pytest
from sqlalchemy import make_url

from applier.cli.main import run as run_command
from applier.sources.binlog.settings import BinlogSettings
from tests.integration.test_verify_types import EVERY_CASE, SCHEMA, fill
from tests.rig.binlog_replica import BinlogReplica
from tests.rig.database import PASSWORD, USER, Kind
from tests.rig.primary import Primary
from tests.rig.server import ContainerServer, unavailable
from tests.rig.verifying import of_schemas, verify, wrong

pytestmark = pytest.mark.timeout(120)


@dataclass(frozen=True, slots=True)
class Upstream(Primary):
    """``begun``: the place before the schema."""

    begun: str


@pytest.fixture
def upstream(primary):
    """A primary with an empty schema."""
    primary.clear()
    begun = primary.place()
    primary.run(f"CREATE DATABASE {SCHEMA} DEFAULT CHARACTER SET utf8mb4")
    return Upstream(primary.database, primary.number, begun)


@pytest.fixture
def load(tmp_path, primary, capsys):
    """Run the command; return its exit code, and what it has printed."""
    path = tmp_path / "applier.toml"
    source = f'[source]\nkind = "binlog"\nurl = "{primary.url}"\n'
    path.write_text(f'name = "loaded"\n{source}[sink]\nurl = "sqlite:///{tmp_path}/replica.db"\n')

    def command(directory, *options):
        code = run_command(["load", str(directory), "--config", str(path), *options])
        shown = capsys.readouterr()
        return code, shown.out + shown.err

    return command


def who(primary):
    url = make_url(primary.url)
    return ["--host=127.0.0.1", f"--port={url.port}", f"--user={USER}", f"--password={PASSWORD}"]


def dumped(primary, directory, *options):
    """Dump the schema with the server's own program."""
    directory.mkdir()
    words = ["--single-transaction", *options, "--databases", SCHEMA]
    if primary.kind is Kind.MARIADB:
        text = subprocess.run(
            ["mariadb-dump", *who(primary), "--master-data=2", *words], check=True, capture_output=True, timeout=60
        ).stdout
    elif isinstance(server := primary.database.server, ContainerServer):
        text = server.output("mysqldump", *who(primary), "--source-data=2", "--set-gtid-purged=COMMENTED", *words)
    else:
        unavailable("mysqldump is in the container of the server")
    (directory / "dump.sql").write_bytes(text)
    return directory


def mydumped(primary, directory, *options):
    subprocess.run(["mydumper", *who(primary), "--database", SCHEMA, "--outputdir", str(directory), *options], check=True, timeout=60)
    return directory


PLAIN_CASES = {f"t{at}": case for at, case in enumerate(EVERY_CASE) if all(len(str(value)) < 100_000 for value in case.values)}
FLOATS = {name for name, case in PLAIN_CASES.items() if case.sql_type == "float"}
TEXTS = {
    "latin": "VARCHAR(40) CHARACTER SET latin1", "gbk": "VARCHAR(40) CHARACTER SET gbk", "wide": "TEXT CHARACTER SET utf16",
    "cyrillic": "CHAR(9) CHARACTER SET koi8r",
}  # fmt: skip
WORDS = {"latin": "naïve € ''q''\\\\", "gbk": "中文\\\\", "wide": "日本😀", "cyrillic": "Привет"}
OWN_TYPES = {
    "u": ("UUID", ["'123e4567-e89b-12d3-a456-426655440000'", "'018f3c5e-7b2a-7c11-8a3b-0123456789ab'"]),
    "i": ("INET6", ["'2001:db8::ff00:42:8329'", "'::ffff:192.0.2.1'"]),
    "j": ("INET4", ["'192.0.2.1'", "'0.0.0.0'"]),
}


def stored(path):
    """Return all that a file stores of the schema: table -> rows of (storage class, value)."""
    with closing(sqlite3.connect(path)) as connection:
        connection.text_factory = bytes
        names = [name.decode() for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND name LIKE '%.%'")]
        return {name: [_classes(connection, name, rowid) for (rowid,) in _rowids(connection, name)] for name in names}


def _rowids(connection, name):
    return connection.execute(f'SELECT id FROM "{name}" ORDER BY id').fetchall()


def _classes(connection, name, key):
    columns = [row[1].decode() for row in connection.execute(f'PRAGMA table_xinfo("{name}")')]
    listed = ", ".join(f'typeof("{column}"), "{column}"' for column in columns)
    return connection.execute(f'SELECT {listed} FROM "{name}" WHERE id = ?', (key,)).fetchone()


def differing(one, other):
    return {name.partition(".")[2] for name in one.keys() | other.keys() if one.get(name) != other.get(name)}


def test_a_loaded_dump_is_stored_as_the_rows_of_the_log_are(load, upstream, tmp_path):
    fill(upstream.url, PLAIN_CASES)
    for name, sql_type in TEXTS.items():
        upstream.run(
            f"CREATE TABLE {SCHEMA}.{name} (id INT PRIMARY KEY, v {sql_type}, g INT AS (id + 1), s INT AS (id + 2) STORED)",
            f"INSERT INTO {SCHEMA}.{name} (id, v) VALUES (1, '{WORDS[name]}'), (2, ''), (3, NULL)",
        )
    for name, (sql_type, values) in OWN_TYPES.items() if upstream.kind is Kind.MARIADB else ():
        upstream.run(f"CREATE TABLE {SCHEMA}.{name} (id INT PRIMARY KEY, v {sql_type})")
        upstream.run(*(f"INSERT INTO {SCHEMA}.{name} VALUES ({at}, {value})" for at, value in enumerate(values)))
    upstream.run(f"CREATE VIEW {SCHEMA}.seen AS SELECT id FROM {SCHEMA}.latin")
    followed = f"sqlite:///{tmp_path}/followed.db"
    BinlogReplica(followed, BinlogSettings(url=upstream.url, start=upstream.begun)).catch_up()
    wanted = stored(tmp_path / "followed.db")
    assert len(wanted) > len(PLAIN_CASES)
    made = [dumped(upstream, tmp_path / "texts"), dumped(upstream, tmp_path / "digits", "--hex-blob", "--skip-extended-insert")]
    if upstream.kind is Kind.MARIADB:
        made.append(mydumped(upstream, tmp_path / "files", "--compress", "--rows", "7"))
    for directory in made:
        code, shown = load(directory, "--overwrite", *(["--accept-missing-files"] if directory.name == "files" else []))
        assert code == 0, shown
        # The dumpers write six digits of a FLOAT, and say nothing.
        assert differing(wanted, stored(tmp_path / "replica.db")) <= FLOATS
        assert f"{SCHEMA}.t11.v" in shown
    # The rest of a FLOAT comes from upstream.
    sink = f"sqlite:///{tmp_path}/replica.db"
    found = wrong(verify(upstream.url, sink, of_schemas(SCHEMA), fix_sql=tmp_path / "fix.sql"))
    assert set(found) <= {f"{SCHEMA}.{name}" for name in FLOATS}
    with closing(sqlite3.connect(tmp_path / "replica.db")) as connection:
        connection.executescript((tmp_path / "fix.sql").read_bytes().decode())
    assert wrong(verify(upstream.url, sink, of_schemas(SCHEMA))) == {}
