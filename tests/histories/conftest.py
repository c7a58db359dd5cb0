"""What the histories share."""

from collections.abc import Iterator

import pytest
import stamina

from applier.coordinator import Coordinator
from applier.coordinator.step import ApplyRows


@pytest.fixture
def without_waiting() -> Iterator[None]:
    """Let retries follow one another at once; there may be a hundred."""
    stamina.set_testing(True, attempts=100)
    yield
    stamina.set_testing(False)


@pytest.fixture
def row_steps(monkeypatch: pytest.MonkeyPatch) -> list[ApplyRows]:
    """The steps of rows ahead of W that were written and confirmed: without them a history shows nothing of row consistency."""
    steps: list[ApplyRows] = []
    confirm = Coordinator.rows_written

    def noted(coordinator: Coordinator, step: ApplyRows) -> None:
        steps.append(step)
        confirm(coordinator, step)

    monkeypatch.setattr(Coordinator, "rows_written", noted)
    return steps
