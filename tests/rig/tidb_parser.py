"""TiDB's own parser as an oracle: a small program in Go (``tests/oracle``), built once under ``build/``. Skips where Go is not there."""

import json
import os
import shutil
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

import pytest

SOURCES: Final = Path(__file__).parents[1] / "oracle"
BUILD: Final = Path(__file__).parents[2] / "build" / "tidb_parser"
MODULE: Final = "github.com/pingcap/tidb/pkg/parser"
# The toolchain that is there, whatever the module asks for: nothing else is downloaded but the modules of go.sum.
ENVIRONMENT: Final = {"GOTOOLCHAIN": "local", "GOFLAGS": "-mod=mod"}


@dataclass(frozen=True, slots=True)
class TidbParser:
    """The program, and the directory of the parser's module."""

    program: Path
    module: Path

    def cases(self) -> list[str]:
        """Return the strings in the parser's own tests, each once."""
        return list(dict.fromkeys(_lines([str(self.program), "cases", str(self.module)])))

    def read(self, statements: Iterable[str]) -> list[dict[str, Any]]:
        """Return what the parser says of each statement: see ``reading`` in ``main.go``."""
        return _lines([str(self.program), "read"], "\n".join(map(json.dumps, statements)))


def tidb_parser() -> TidbParser:
    """Return the oracle; skips the test without Go, or without the module."""
    if shutil.which("go") is None:
        pytest.skip("TiDB's parser is the oracle here, and Go is not installed")
    name = sha256(b"".join((SOURCES / source).read_bytes() for source in ("main.go", "go.mod", "go.sum"))).hexdigest()[:16]
    program = BUILD / name
    if not program.exists():
        BUILD.mkdir(parents=True, exist_ok=True)
        # Under another name first: two test processes may build it.
        made = BUILD / f"{name}.{os.getpid()}"
        _go("build", "-o", str(made), ".")
        made.rename(program)
    return TidbParser(program, Path(_go("list", "-m", "-f", "{{.Dir}}", MODULE).strip()))


def _go(*arguments: str) -> str:
    done = subprocess.run(["go", *arguments], cwd=SOURCES, env=os.environ | ENVIRONMENT, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"TiDB's parser is the oracle here, and cannot be built: {done.stderr[-300:]}")
    return done.stdout


def _lines(command: list[str], text: str = "") -> list[Any]:
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]
