"""A newcomer in an empty directory. What the register says of a test must be what the newcomer has met in it."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.remedies.finder import FILLED_IN, remedies
from tests.remedies.register import WALK, read_register
from tests.rig.newcomer import Newcomer


@pytest.fixture
def newcomer(
    tmp_path: Path,
    mock_kafka: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    request: pytest.FixtureRequest,
) -> Iterator[Newcomer]:
    """Yield somebody who follows remedies; then see that the register's remedies of this test were met."""
    monkeypatch.setenv("COLUMNS", "200")
    found = Newcomer(tmp_path, mock_kafka, monkeypatch, capsys)
    yield found
    name = request.node.nodeid
    walked = {entry.id for entry in read_register() if entry.kind == WALK and entry.text == name}
    missed = [remedy.id for remedy in remedies() if remedy.id in walked and not _is_met(remedy.text, found.met)]
    assert missed == [], f"the register says that {name} walks them; met: {found.met}"


def _is_met(text: str, met: list[str]) -> bool:
    # An option's value is filled in from the facts of the error.
    pattern = re.escape(text).replace(re.escape(FILLED_IN), ".*").replace("…", ".+")
    return any(re.search(pattern, said) for said in met)
