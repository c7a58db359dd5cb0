"""Many of these tests start a JVM."""

import pytest

from tests.rig.class_archive import use_class_archive


@pytest.fixture(scope="session", autouse=True)
def class_archive() -> None:
    use_class_archive()
