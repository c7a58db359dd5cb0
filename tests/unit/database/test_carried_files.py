"""The files that the applier carries: found in a checkout, in an installed package, inside a zip."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from applier.database import carried_files

ROOT = Path(__file__).parents[3]


def test_a_checkout_has_them_at_its_root() -> None:
    assert carried_files.read_text("sql/queries.sql").startswith("-- Every statement")
    with carried_files.path("migrations") as directory:
        assert (directory / "env.py").is_file()


def test_a_missing_file_is_an_error() -> None:
    with pytest.raises(FileNotFoundError):
        carried_files.read_text("sql/nothing.sql")


@pytest.mark.parametrize("is_zipped", [False, True], ids=["installed", "zip"])
def test_a_package_carries_them_beside_its_code(tmp_path: Path, *, is_zipped: bool) -> None:
    package = tmp_path / "site" / "applier"
    for module in ("__init__.py", "database/__init__.py", "database/carried_files.py"):
        (package / module).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / "applier" / module, package / module)
    for name in ("sql", "migrations"):
        shutil.copytree(ROOT / name, package / "_data" / name, ignore=shutil.ignore_patterns("__pycache__"))
    place = shutil.make_archive(str(tmp_path / "applier"), "zip", package.parent) if is_zipped else str(package.parent)
    script = (
        "from applier.database import carried_files\n"
        "assert 'progress_lock' in carried_files.read_text('sql/queries.sql')\n"
        "with carried_files.path('migrations') as d: assert (d / 'versions' / '0001_bookkeeping.py').is_file()\n"
        f"assert carried_files.__file__.startswith({place!r})\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], env={"PYTHONPATH": place}, cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
