"""Each of these tests starts a JVM, and many start several."""

import pytest

from tests.rig.class_archive import use_class_archive


@pytest.fixture(scope="session", autouse=True)
def class_archive() -> None:
    use_class_archive()
