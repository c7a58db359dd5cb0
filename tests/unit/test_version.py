"""The version stands in one place, is a version, and the changelog is one."""

import re
from importlib.metadata import version
from itertools import pairwise
from pathlib import Path

from packaging.version import Version

import applier

ROOT = Path(applier.__file__).parent.parent
SECTION = re.compile(r"^## \[(.+?)\](?: - (\d{4}-\d{2}-\d{2}))?$", re.MULTILINE)


def test_the_version_is_a_release_without_a_local_part() -> None:
    assert str(Version(applier.__version__)) == applier.__version__
    assert Version(applier.__version__).local is None


def test_the_installed_package_has_the_version_of_the_source() -> None:
    assert version("cdc-applier") == applier.__version__


def test_the_changelog_begins_with_what_is_unreleased_and_its_versions_fall() -> None:
    sections = SECTION.findall((ROOT / "CHANGELOG.md").read_text(encoding="utf-8"))
    assert sections[0] == ("Unreleased", "")
    released = [(Version(name), date) for name, date in sections[1:]]
    assert all(date for _, date in released)
    assert all(newer > older for (newer, _), (older, _) in pairwise(released))
    assert all(name <= Version(applier.__version__) for name, _ in released)


def test_the_package_says_that_it_is_typed() -> None:
    assert (Path(applier.__file__).parent / "py.typed").exists()
