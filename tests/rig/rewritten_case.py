"""Statements and what the sink runs of them, from a file of tests/data: blocks of two lines, the second behind ``=>``."""

from pathlib import Path

DATA = Path(__file__).parents[1] / "data"


def rewritten_cases(name: str) -> list[tuple[str, str]]:
    blocks = (DATA / name).read_text().strip().split("\n\n")
    return [(query, wanted.removeprefix("=> ")) for query, wanted in (block.split("\n") for block in blocks)]
