"""The register of remedies (``register.toml``): which test follows each, or why none can."""

import tomllib
from pathlib import Path
from typing import NamedTuple

REGISTER = Path(__file__).with_name("register.toml")
WALK, SHOWN, NOT_WALKED = "walk", "shown", "not_walked"
KINDS = (WALK, SHOWN, NOT_WALKED)


class Entry(NamedTuple):
    """What the register says of the remedy ``id``. ``text`` names a test, or gives the reason why there is none."""

    id: str
    kind: str
    text: str


def read_register() -> list[Entry]:
    """Read the register; a ValueError names what is wrong in it."""
    found = tomllib.loads(REGISTER.read_text(encoding="utf-8"))
    return [_entry(f"{area}.{name}", said) for area, names in found.items() for name, said in names.items()]


def _entry(identifier: str, said: dict[str, str]) -> Entry:
    if len(said) != 1 or not set(said) <= set(KINDS) or not all(said.values()):
        message = f"{identifier}: write exactly one of {', '.join(KINDS)}"
        raise ValueError(message)
    ((kind, text),) = said.items()
    return Entry(identifier, kind, text)
