"""A version of the applier that is measured: this one, or another checkout beside it."""

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[3]


@dataclass(frozen=True, slots=True)
class Checkout:
    """``directory`` holds the package ``applier``. Its own environment is used if it has one, else this interpreter."""

    name: str
    directory: Path

    @property
    def python(self) -> str:
        """The interpreter."""
        own = self.directory / ".venv" / "bin" / "python"
        return str(own) if own.exists() else sys.executable

    @property
    def environment(self) -> dict[str, str]:
        """The variables of a run. The path is for Python workers too, which do not start where the program does."""
        return os.environ | {"PYTHONPATH": str(self.directory)}

    def command(self, *arguments: str | Path) -> list[str]:
        """Return a command line of the program."""
        return [self.python, "-m", "applier", *map(str, arguments)]

    @property
    def has_bulk_load(self) -> bool:
        """Whether the configuration knows sink.bulk_load: versions before it always render statements."""
        return "bulk_load" in (self.directory / "applier" / "config" / "sink.py").read_text(encoding="utf-8")

    @property
    def commit(self) -> str:
        """The commit that is checked out, as far as git knows."""
        found = subprocess.run(
            ["git", "-C", str(self.directory), "describe", "--always", "--dirty"], capture_output=True, text=True, check=False
        )
        return found.stdout.strip() if found.returncode == 0 else ""


def this_checkout() -> Checkout:
    """Return the checkout that this file belongs to."""
    return Checkout("this", ROOT)


def other_checkout(directory: str) -> Checkout:
    """Return the one in ``directory``."""
    path = Path(directory).resolve()
    if not (path / "applier" / "__main__.py").exists():
        raise SystemExit(f"{path} is no checkout of the applier: it has no applier/__main__.py")
    return Checkout("against", path)
