"""What the histories share."""

from collections.abc import Iterator

import pytest
import stamina


@pytest.fixture
def without_waiting() -> Iterator[None]:
    """Let retries follow one another at once; there may be a hundred."""
    stamina.set_testing(True, attempts=100)
    yield
    stamina.set_testing(False)
