"""A dump that lacks a file of rows is refused: by the numbers in the names, and by what the metadata counts."""

from pathlib import Path

import pytest

from applier.dump.inventory import inventory_of
from applier.dump.numbering import check_files, missing_files, rows_by_metadata
from applier.model.errors import ConfigError
from applier.model.events import TableName
from tests.rig.dump_directory import MYDUMPER, TS, dumpling

ORDERS = TableName("shop", "orders")


def missing(*names):
    return missing_files([Path(f"shop.{name}") for name in names])


@pytest.mark.parametrize("suffix", ["", ".gz", ".zst"])
def test_a_gap_in_the_numbers_is_a_missing_file(suffix):
    assert missing(f"t.000000000.sql{suffix}", f"t.000000002.sql{suffix}") == ["shop.t.000000001.sql"]
    assert missing(f"t.000000001.sql{suffix}") == ["shop.t.000000000.sql"]
    assert missing(f"t.000000000.sql{suffix}", f"t.000000001.sql{suffix}") == []


def test_a_number_of_chunk_and_file_is_two_numbers():
    assert missing("t.0000000000000.sql", "t.0000000000001.sql", "t.0000000010000.sql") == []
    assert missing("t.0000000000001.sql", "t.0000000020000.sql") == ["shop.t.0000000000000.sql", "shop.t.0000000010000.sql"]


def test_files_of_mydumper_have_no_number_one_or_two():
    assert missing("t.sql") == []
    assert missing("2024.sql") == []  # a table
    assert missing("t.00000.sql", "t.00001.sql") == []
    assert missing("t.00000.sql", "t.00000.00001.sql", "t.00001.00000.sql") == []
    assert missing("t.00000.sql", "t.00000.00002.sql", "t.00002.sql") == ["shop.t.00000.00001.sql", "shop.t.00001.sql"]


@pytest.mark.parametrize("packed", [False, True])
def test_a_dump_without_one_of_its_files_is_refused_unless_the_operator_knows_better(tmp_path, packed):
    dumpling(tmp_path, packed=packed)
    assert check_files(tmp_path, inventory_of(tmp_path), accept_missing=False) == {}
    next(tmp_path.glob("shop.orders.000000000*")).unlink()
    with pytest.raises(ConfigError, match="their numbers have gaps") as caught:
        check_files(tmp_path, inventory_of(tmp_path), accept_missing=False)
    assert (caught.value.facts["missing"], caught.value.facts["count"]) == ("shop.orders.000000000.sql", 1)
    check_files(tmp_path, inventory_of(tmp_path), accept_missing=True)


def counted(directory, *sections):
    (directory / "metadata").write_text(MYDUMPER.format(ts=TS) + "".join(sections))
    return directory


def section(table, rows):
    return f"\n[`shop`.`{table}`]\nreal_table_name={table}\nrows = {rows}\ndata_checksum = 77\n"


def test_the_metadata_of_mydumper_counts_the_rows_of_each_table(tmp_path):
    counted(dumpling(tmp_path), section("empty", 0), section("orders", 3))
    assert rows_by_metadata(tmp_path) == {TableName("shop", "empty"): 0, ORDERS: 3}
    assert check_files(tmp_path, inventory_of(tmp_path), accept_missing=False) == {TableName("shop", "empty"): 0, ORDERS: 3}


def test_where_rows_are_counted_a_chunk_without_rows_is_no_gap(tmp_path):
    (counted(dumpling(tmp_path), section("orders", 1)) / "shop.orders.000000000.sql").unlink()
    assert check_files(tmp_path, inventory_of(tmp_path), accept_missing=False) == {ORDERS: 1}


def test_a_table_with_counted_rows_and_no_file_of_rows_has_lost_them(tmp_path):
    counted(dumpling(tmp_path), section("empty", 7))
    for accept in (False, True):
        with pytest.raises(ConfigError, match="has no rows of tables") as caught:
            check_files(tmp_path, inventory_of(tmp_path), accept_missing=accept)
        assert caught.value.facts["missing"] == "shop.empty"


def test_a_file_that_is_there_plain_and_compressed_would_be_loaded_twice(tmp_path):
    (dumpling(tmp_path) / "shop.orders.000000000.sql.gz").touch()
    with pytest.raises(ConfigError, match="both plain and compressed"):
        inventory_of(tmp_path)
