"""Loops over seeds of our own simulator: some run every day, the rest in ``make soak``."""

from collections.abc import Sequence

import pytest
from _pytest.mark import ParameterSet

SOAK = pytest.mark.soak(reason="more seeds of the same")


def seeds(numbers: Sequence[int], *, daily: int) -> list[int | ParameterSet]:
    """Return parameters for a test: the first ``daily`` numbers run every day."""
    return [*numbers[:daily], *(pytest.param(number, marks=SOAK) for number in numbers[daily:])]
