"""Names as files: both servers keep the names of the replica's tables as the applier converts them."""

from collections.abc import Iterator

import pytest

from applier.sinks.mysql.ddl.snapshot import file_name
from applier.sinks.mysql.dialect import quote_identifier
from tests.integration.mysql_replica import read, run

SCHEMA = "applier-test file$names"
# No name holds NUL, a surrogate, or a character beyond the first plane.
CHARS = [chr(code) for code in range(1, 0x10000) if not 0xD800 <= code <= 0xDFFF]
LETTERS = [char for char in CHARS if len(file_name(char)) == len("@0G")]
DEVICES = ("con", "Aux", "NUL", "prn", "com1", "LPT9", "com0", "lpt10", "conx")
ODD = (
    "t\N{LATIN SMALL LETTER A WITH DIAERESIS}-b",
    "a$b",
    "a/b",
    "x#p#p0",
    "x@002d",
    "sp ace",
    "back`tick",
    "\u65e5\u672c",
    ".",
    "per%cent",
)
LONGEST = 64


@pytest.fixture
def url(mysql_url: str) -> Iterator[str]:
    run(mysql_url, f"DROP SCHEMA IF EXISTS {quote_identifier(SCHEMA)}", f"CREATE SCHEMA {quote_identifier(SCHEMA)}")
    yield mysql_url
    run(mysql_url, f"DROP SCHEMA {quote_identifier(SCHEMA)}")


def kept_names(url: str) -> set[str]:
    """Read the names of the schema's tables as the server keeps them."""
    is_mysql = not read(url, "SELECT VERSION()")[0][0].casefold().count("mariadb")
    source = "INNODB_TABLES" if is_mysql else "INNODB_SYS_TABLES"
    prefix = file_name(SCHEMA) + "/"
    names = [name for (name,) in read(url, f"SELECT NAME FROM information_schema.{source}")]
    return {name.removeprefix(prefix) for name in names if name.startswith(prefix)}


def test_every_letter_with_a_short_form_and_every_device_is_kept_as_the_applier_converts_it(url: str) -> None:
    assert len(LETTERS) > 1500
    names = ["".join(LETTERS[at : at + LONGEST]) for at in range(0, len(LETTERS), LONGEST)]
    names += [*DEVICES, *ODD]
    run(url, *(f"CREATE TABLE {quote_identifier(SCHEMA)}.{quote_identifier(name)} (id INT PRIMARY KEY)" for name in names))
    assert kept_names(url) == set(map(file_name, names))


@pytest.mark.on_one_server("mariadb", reason="MySQL lets no statement use the character set")
def test_every_character_is_converted_as_mariadb_converts_it(mysql_url: str) -> None:
    for at in range(0, len(CHARS), 1000):
        part = CHARS[at : at + 1000]
        columns = ",".join(f"CAST(CONVERT(CONVERT(x'{char.encode().hex()}' USING utf8mb4) USING filename) AS BINARY)" for char in part)
        (converted,) = read(mysql_url, f"SELECT {columns}")
        assert [name.decode() for name in converted] == [file_name(char) for char in part]
