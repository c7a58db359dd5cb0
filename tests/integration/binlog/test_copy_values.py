"""Values of copied rows that a server's loads, its own numbering or its limits could alter, with bulk loads and without them."""

from contextlib import closing

import pytest

from applier.cli.main import run as run_command
from tests.rig.mysql_oracle import connect
from tests.rig.upstream import clear_sink
from tests.rig.verifying import of_schemas, verify, wrong

pytestmark = pytest.mark.timeout(240)

SCHEMA = "copy_values"
TABLES = {
    "only_texts": ("k VARCHAR(9) PRIMARY KEY", "(''), ('a'), ('\\\\N'), ('NULL')"),
    "numbers": (
        "id INT PRIMARY KEY, a FLOAT, b DOUBLE, c FLOAT(7, 2), d DECIMAL(20, 5)",
        "(1, -0e0, -0e0, 1.1, -0.00001), (2, 3.4028234e38, 1.7976931348623157e308, 99999.99, 1), (3, 1e-45, 0.1, NULL, NULL)",
    ),
    "large": (
        "id INT PRIMARY KEY, b LONGBLOB, t LONGTEXT, l LONGTEXT CHARACTER SET latin1",
        "(1, REPEAT(x'1b1e1f004e', 400000), NULL, NULL), (2, NULL, REPEAT('日本', 300000), ''), (3, '', '', REPEAT('é', 1500000))",
    ),
    "zeros": (
        "id INT PRIMARY KEY AUTO_INCREMENT, d DATE, t TIMESTAMP NULL, w DATETIME, e ENUM('x','y'), s SET('p','q'), y YEAR",
        "(0, '2020-02-31', '2024-10-27 00:30:00', '0000-00-00', 1, 3, 0), (7, '0000-00-00', NULL, '2020-02-31 01:02:03', 'y', '', 1901)",
    ),
    "names": ("`i``d` INT PRIMARY KEY, `sélect` INT, g INT AS (`i``d` + 1)", "(1, 8, DEFAULT)"),
    "parts": ("id INT PRIMARY KEY, v INT", "(1, 1), (2, 2), (3, 3)"),
    "parent": ("id INT PRIMARY KEY", "(1)"),
    "child": ("id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES parent (id)", "(1, 1), (2, NULL)"),
}
EXACT = (
    "SELECT id, CONCAT(d), CONCAT(t), CONCAT(w), e + 0, s + 0, y FROM {0}.zeros ORDER BY id",
    "SELECT id, SHA2(b, 256), SHA2(t, 256), SHA2(HEX(l), 256) FROM {0}.large ORDER BY id",
)


@pytest.fixture
def upstream(primary):
    """A primary with the tables."""
    primary.clear()
    primary.run(
        f"CREATE DATABASE {SCHEMA} DEFAULT CHARACTER SET utf8mb4",
        f"USE {SCHEMA}",
        *(f"CREATE TABLE {name} ({columns})" for name, (columns, _) in TABLES.items()),
        "ALTER TABLE parts PARTITION BY HASH (id) PARTITIONS 3",
        *(f"INSERT INTO {name} VALUES {values}" for name, (_, values) in TABLES.items()),
    )
    return primary


@pytest.mark.parametrize("loads", ["ON", "OFF"])
def test_values_are_copied_exactly(upstream, databases, tmp_path, capsys, loads):
    sink = databases.plain(upstream.kind).url
    clear_sink(sink)
    path = tmp_path / "applier.toml"
    source = f'[source]\nkind = "binlog"\nurl = "{upstream.url}"\ntables = ["{SCHEMA}.*"]\n'
    path.write_text(f'name = "valued"\n{source}[sink]\nurl = "{sink}"\n[spark]\nmaster = "local[2]"\n')
    with closing(connect(sink)) as server, server.cursor() as cursor:
        cursor.execute("SELECT @@GLOBAL.local_infile")
        ((before,),) = cursor.fetchall()
        cursor.execute(f"SET GLOBAL local_infile = {loads}")
        try:
            code = run_command(["copy", "--config", str(path)])
        finally:
            cursor.execute(f"SET GLOBAL local_infile = {before}")
        assert code == 0, capsys.readouterr()
        assert wrong(verify(upstream.url, sink, of_schemas(SCHEMA))) == {}
        # What two servers of one kind must not only find equal, but show alike.
        for query in EXACT:
            cursor.execute(query.format(SCHEMA))
            assert cursor.fetchall() == tuple(upstream.ask(query.format(SCHEMA)))
