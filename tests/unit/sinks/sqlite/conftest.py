"""A new file for every test."""

import pytest

from tests.rig.sqlite_file import SqliteFile


@pytest.fixture
def file(tmp_path):
    opened = SqliteFile(tmp_path / "replica.db")
    yield opened
    opened.close()
