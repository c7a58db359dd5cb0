"""Hooks of mkdocs: the site's first page is the README, and links to files beside ``docs/`` lead to copies in the site."""

import re
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from typer.testing import CliRunner

from applier.cli.command_group import COMMANDS
from applier.cli.main import app

ROOT = Path(__file__).parents[1]
CARRIED = ("sql/*.sql", "LICENSE", "applier.example.toml", "docker/**/*.y*ml", "docker/**/*.json")
"""Files that documents may link to. Others are an error of the strict build."""


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Leave pages out of the navigation that are not written yet."""
    config.nav = [_present(section) for section in config.nav or ()]
    return config


def _present(section: dict[str, list[dict[str, str]]]) -> dict[str, list[dict[str, str]]]:
    made = {"index.md", "CHANGELOG.md", "commands.md"}
    return {
        title: [page for page in pages if all(name in made or (ROOT / "docs" / name).exists() for name in page.values())]
        for title, pages in section.items()
    }


def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    """Add the README, the changelog, and the carried files."""
    for source, page in (("README.md", "index.md"), ("CHANGELOG.md", "CHANGELOG.md")):
        files.append(File.generated(config, page, content=_from_docs((ROOT / source).read_text(encoding="utf-8"))))
    files.append(File.generated(config, "commands.md", content=_commands()))
    for pattern in CARRIED:
        for path in sorted(ROOT.glob(pattern)):
            files.append(File.generated(config, str(path.relative_to(ROOT)), abs_src_path=str(path)))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Write links to files beside ``docs/`` as links to the copies."""
    return re.sub(r"\]\(\.\./(?=[\w.])", "](", markdown).replace("](README.md", "](index.md")


def _commands() -> str:
    """Return the help of every command, as the program prints it."""
    ask = CliRunner(env={"COLUMNS": "100"})
    parts = ["# Commands", "", "What `applier COMMAND --help` prints. [The runbook](runbook.md#exit-codes) has the exit codes."]
    waiting = [[], *([name] for name in COMMANDS)]
    while waiting:
        words = waiting.pop(0)
        text = ask.invoke(app, [*words, "--help"], prog_name="applier").output
        parts += ["", f"{'###' if len(words) > 1 else '##'} applier {' '.join(words)}".rstrip(), "", "```text", text.strip(), "```"]
        below = text.partition("\nCommands:\n")[2] if words else ""
        waiting[:0] = [[*words, name] for name in re.findall(r"^  ([a-z-]+)  ", below, re.MULTILINE)]
    return "\n".join([*parts, ""])


def _from_docs(text: str) -> str:
    return re.sub(r"(?<=\]\()docs/", "", text)
