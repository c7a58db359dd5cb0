"""``applier docs`` prints the pages that an installation carries, whole or by section."""

from pathlib import Path

import pytest
from rich.console import Console

from applier.cli import docs as module
from applier.cli.docs import section_text
from applier.cli.main import run

DOCS = Path(__file__).parents[3] / "docs"
PAGE = """\
# Title

## One
text
```sh
# not a heading
```
### Inner
more
## Two: `b`
end
"""


def printed(capsys, *arguments):
    assert run(["docs", *arguments]) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("arguments", [(), ("--list",)])
def test_every_page_is_listed_with_its_title(capsys, arguments):
    lines = printed(capsys, *arguments).splitlines()
    listed = dict(line.split(maxsplit=1) for line in lines)
    assert {path.stem for path in DOCS.glob("*.md")} | {"readme", "changelog", "land_changelog.py"} == set(listed)
    assert listed["runbook"] == "Runbook"
    assert listed["land_changelog.py"].endswith(".")


@pytest.mark.parametrize("name", ["quarantine", "Quarantine", "quarantine.md", "docs/quarantine.md"])
def test_a_page_is_printed_as_markdown_to_a_file(capsys, name):
    assert printed(capsys, name) == (DOCS / "quarantine.md").read_text(encoding="utf-8")


def test_a_page_is_rendered_on_a_terminal(capsys, monkeypatch):
    monkeypatch.setattr(module, "Console", lambda: Console(force_terminal=True, width=60))
    out = printed(capsys, "quarantine", "--section", "Skipping an event")
    assert "\x1b[" in out
    assert "## " not in out


def test_a_program_of_the_examples_is_printed_as_it_stands(capsys):
    assert printed(capsys, "land_changelog.py") == (DOCS / "examples" / "land_changelog.py").read_text(encoding="utf-8")


def test_a_section_ends_before_the_next_one_of_its_level():
    assert section_text(PAGE, "one") == "## One\ntext\n```sh\n# not a heading\n```\n### Inner\nmore"
    assert section_text(PAGE, "Inner") == "### Inner\nmore"
    assert section_text(PAGE, "#two-b") == section_text(PAGE, "Two: `b`") == "## Two: `b`\nend"


def test_the_sections_of_a_page_are_listed(capsys):
    assert "  Skipping an event" in printed(capsys, "quarantine", "--list").splitlines()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("runbok",), "nearest: runbook"),
        (("ddl",), "nearest: ddl_clauses, ddl_types, ddls"),
        (("zzz",), "known: readme, changelog"),
        (("runbook", "--section", "exit cods"), "nearest: exit-codes"),
        (("--section", "x"), "needs PAGE"),
    ],
)
def test_an_unknown_name_is_a_usage_error_that_names_the_nearest(capsys, arguments, words):
    assert run(["docs", *arguments]) == 2
    assert words in capsys.readouterr().err
