"""``applier docs``: the pages of the documentation, which every installation carries."""

import re
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import Annotated, Final, NamedTuple

import typer
from rich.console import Console
from rich.markdown import Markdown

from applier.cli.output import print_line
from applier.database.carried_files import names, read_text

DIRECTORY: Final = "docs"
SUFFIX: Final = ".md"
EXAMPLES: Final = "docs/examples"
BESIDE: Final = {"readme": "README.md", "changelog": "CHANGELOG.md"}
"""Pages outside of ``docs/``."""
FENCE: Final = "```"
HEADING: Final = re.compile(r"(#{1,6}) +(.+?) *#* *$")
NEAREST: Final = 3


class Heading(NamedTuple):
    """A heading of a page: ``line`` is its index, ``level`` the number of its ``#``."""

    line: int
    level: int
    title: str


def docs(
    page: Annotated[str | None, typer.Argument(metavar="PAGE", help="Name of a page. Default: list all pages.", show_default=False)] = None,
    *,
    section: Annotated[str | None, typer.Option(metavar="TITLE", help="Print only the section with this heading.")] = None,
    list_pages: Annotated[bool, typer.Option("--list", help="List the pages; with PAGE, the sections of the page.")] = False,
) -> None:
    """Print a page of the documentation.

    On a terminal the page is rendered. Elsewhere it is Markdown.
    """
    pages = page_files()
    if page is None:
        if section is not None:
            raise typer.BadParameter("needs PAGE", param_hint="--section")
        for name, file in pages.items():
            print_line(f"{name:<18}{_title(read_text(file))}")
        return
    file = pages[_chosen(page.casefold().removeprefix("docs/").removesuffix(SUFFIX), pages, "PAGE", "page")]
    text = read_text(file)
    if not file.endswith(SUFFIX):
        print_line(text.rstrip())
        return
    if list_pages:
        for found in sections_of(text):
            print_line(f"{'  ' * (found.level - 1)}{found.title}")
        return
    _print_markdown(text if section is None else section_text(text, section))


def page_files() -> Mapping[str, str]:
    """Return name of a page -> its carried file. Programs that pages show are pages too, under the names of their files."""
    pages = {name.removesuffix(SUFFIX): f"{DIRECTORY}/{name}" for name in names(DIRECTORY, SUFFIX)}
    return BESIDE | pages | {name: f"{EXAMPLES}/{name}" for name in names(EXAMPLES, ".py")}


def section_text(text: str, title: str) -> str:
    """Return a section of a page with its subsections. ``title``: the heading, or its anchor as in a link; BadParameter if unknown."""
    found = list(sections_of(text))
    by_anchor = {anchor_of(section.title): section for section in found}
    chosen = by_anchor[_chosen(anchor_of(title), by_anchor, "--section", "section")]
    lines = text.splitlines()
    end = next((section.line for section in found if section.line > chosen.line and section.level <= chosen.level), len(lines))
    return "\n".join(lines[chosen.line : end]).rstrip()


def sections_of(text: str) -> Iterator[Heading]:
    """Yield the headings of a page. Lines in a block of code do not count."""
    is_code = False
    for number, line in enumerate(text.splitlines()):
        if line.lstrip().startswith(FENCE):
            is_code = not is_code
        elif not is_code and (heading := HEADING.match(line)):
            yield Heading(number, len(heading[1]), heading[2])


def anchor_of(title: str) -> str:
    """Return what a link to this heading has after ``#``."""
    return re.sub(r"[^\w-]", "", title.strip().lstrip("#").casefold().replace(" ", "-"))


def _title(text: str) -> str:
    """Return the heading of a page, or the first line of a program's docstring."""
    return re.sub(r'^(# |r?""")', "", text.partition("\n")[0])


def _chosen(name: str, known: Mapping[str, object], parameter: str, noun: str) -> str:
    """Return ``name`` if it is known. BadParameter with the nearest known names otherwise."""
    if name in known:
        return name
    near = [one for one in known if name and name in one][:NEAREST] or get_close_matches(name, known, NEAREST)
    hint = f"nearest: {', '.join(near)}" if near else f"known: {', '.join(known)}"
    raise typer.BadParameter(f"no {noun} {name!r}; {hint}", param_hint=parameter)


def _print_markdown(text: str) -> None:
    console = Console()
    if console.is_terminal:
        console.print(Markdown(text))
    else:
        print_line(text.rstrip())
