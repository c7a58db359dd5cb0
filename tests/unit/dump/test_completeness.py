"""A file of a dump that was cut is refused: a loader would leave out its last rows without a word."""

import gzip

import pytest
import zstandard

from applier.dump.completeness import check_complete
from applier.dump.inventory import inventory_of
from applier.model.errors import ConfigError
from applier.model.events import TableName
from applier.sources.changefeed import moment_of
from applier.sources.dump_text import open_text
from tests.rig.dump_directory import HEADER, TS, dumpling

ROWS = "shop.orders.000000001.sql"


@pytest.mark.parametrize("packed", [False, True])
def test_a_whole_dump_is_complete(tmp_path, packed):
    check_complete(inventory_of(dumpling(tmp_path, packed=packed)), 2)


@pytest.mark.parametrize(
    "text", ["", "\n", "INSERT INTO `orders` VALUES\n(2,'x',NULL)", "INSERT INTO `orders` VALUES\n(2,'x',NULL),\n(3,'a;b"]
)
def test_a_file_that_ends_inside_of_a_statement_is_cut(tmp_path, text):
    (dumpling(tmp_path) / ROWS).write_text(text)
    with pytest.raises(ConfigError, match="files of the dump are cut") as caught:
        check_complete(inventory_of(tmp_path), 2)
    assert caught.value.facts["files"] == ROWS


def test_a_compressed_file_that_ends_early_is_cut(tmp_path):
    path = dumpling(tmp_path, packed=True) / f"{ROWS}.gz"
    path.write_bytes(gzip.compress(b"INSERT INTO `orders` VALUES (2,'x',NULL);\n")[:-9])
    with pytest.raises(ConfigError, match="files of the dump are cut"):
        check_complete(inventory_of(tmp_path), 2)


@pytest.mark.parametrize("cut", [1, 20, 9999])
def test_a_file_of_zstd_that_ends_early_is_cut(tmp_path, cut):
    whole = zstandard.compress(b"INSERT INTO `orders` VALUES (2,'x',NULL);\n" * 9999)
    (dumpling(tmp_path) / ROWS).unlink()
    (tmp_path / f"{ROWS}.zst").write_bytes(whole * 2)
    check_complete(inventory_of(tmp_path), 2)
    with open_text(tmp_path / f"{ROWS}.zst") as content:
        assert len(content.readlines()) == 2 * 9999
    (tmp_path / f"{ROWS}.zst").write_bytes(whole[:-cut])
    with pytest.raises(ConfigError, match="files of the dump are cut"):
        check_complete(inventory_of(tmp_path), 2)


def test_a_file_of_mysqldump_says_that_it_is_complete_and_which_tables_it_makes(tmp_path):
    text = HEADER.format(ts=TS) + "USE `shop`;\nCREATE TABLE `or``ders` (\n  id INT);\nINSERT INTO `a` VALUES ('x\\nCREATE TABLE b');\n"
    (tmp_path / "all.sql").write_text(text)
    with pytest.raises(ConfigError, match="files of the dump are cut"):
        check_complete(inventory_of(tmp_path), 1)
    (tmp_path / "all.sql").write_text(text + "-- Dump completed on 2026-11-22\n")
    check_complete(inventory_of(tmp_path), 1)
    assert inventory_of(tmp_path).tables == [TableName("shop", "or`ders")]


def test_a_damaged_file_is_named_without_a_traceback(tmp_path):
    (tmp_path / "all.sql.gz").write_bytes(b"no gzip")
    for read in (moment_of, inventory_of):
        with pytest.raises(ConfigError, match="a file of the dump cannot be read") as caught:
            read(tmp_path)
        assert caught.value.facts["file"] == tmp_path / "all.sql.gz"
