"""The configuration file that a command reads if none is named. Imports nothing heavy: each error message asks for it."""

from pathlib import Path
from typing import Final

DEFAULT_CONFIG: Final = Path("applier.toml")
