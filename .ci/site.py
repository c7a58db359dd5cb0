"""Hooks of mkdocs: the site's first page is the README, and links to files beside ``docs/`` lead to copies in the site."""

import re
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[1]
CARRIED = ("sql/*.sql", "LICENSE", "applier.example.toml", "docker/**/*.y*ml", "docker/**/*.json")
"""Files that documents may link to. Others are an error of the strict build."""


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Leave pages out of the navigation that are not written yet."""
    config.nav = [_present(section) for section in config.nav or ()]
    return config


def _present(section: dict[str, list[dict[str, str]]]) -> dict[str, list[dict[str, str]]]:
    made = {"index.md", "CHANGELOG.md"}
    return {
        title: [page for page in pages if all(name in made or (ROOT / "docs" / name).exists() for name in page.values())]
        for title, pages in section.items()
    }


def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    """Add the README, the changelog, and the carried files."""
    for source, page in (("README.md", "index.md"), ("CHANGELOG.md", "CHANGELOG.md")):
        files.append(File.generated(config, page, content=_from_docs((ROOT / source).read_text(encoding="utf-8"))))
    for pattern in CARRIED:
        for path in sorted(ROOT.glob(pattern)):
            files.append(File.generated(config, str(path.relative_to(ROOT)), abs_src_path=str(path)))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Write links to files beside ``docs/`` as links to the copies."""
    return re.sub(r"\]\(\.\./(?=[\w.])", "](", markdown).replace("](README.md", "](index.md")


def _from_docs(text: str) -> str:
    return re.sub(r"(?<=\]\()docs/", "", text)
