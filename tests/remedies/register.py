"""The register of remedies (``register.toml``): which test follows each, or why none can."""

import tomllib
from pathlib import Path
from typing import NamedTuple

from tests.remedies.finder import Remedy

REGISTER = Path(__file__).with_name("register.toml")
WALK, SHOWN, NOT_WALKED = "walk", "shown", "not_walked"
KINDS = (WALK, SHOWN, NOT_WALKED)


class Entry(NamedTuple):
    """What the register says of a remedy. ``text`` names a test, or gives the reason why there is none."""

    remedy: Remedy
    kind: str
    text: str


def read_register() -> list[Entry]:
    """Read the register; a ValueError names what is wrong in it."""
    found = tomllib.loads(REGISTER.read_text(encoding="utf-8"))
    return [_entry(Remedy(module, text), said) for module, texts in found.items() for text, said in texts.items()]


def _entry(remedy: Remedy, said: dict[str, str]) -> Entry:
    if len(said) != 1 or not set(said) <= set(KINDS) or not all(said.values()):
        message = f"{remedy.module}: {remedy.text!r}: write exactly one of {', '.join(KINDS)}"
        raise ValueError(message)
    ((kind, text),) = said.items()
    return Entry(remedy, kind, text)


def line_of(remedy: Remedy) -> str:
    """Return the line to add to the register for a new remedy."""
    text = remedy.text.replace("\\", "\\\\").replace('"', '\\"')
    return f'["{remedy.module}"]  "{text}" = {{ walk = "tests/remedies/…::test_…" }}'
