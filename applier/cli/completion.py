"""``applier --install-completion SHELL`` and ``--show-completion SHELL``: the Tab key completes commands and options.

The shell is named, not guessed: in a container, or below ``sudo``, the library's guess fails.
"""

import os
from enum import StrEnum
from typing import Annotated, TypeAlias

import typer

PROGRAM = "applier"
VARIABLE = "_APPLIER_COMPLETE"
"""What the shell sets when it asks for the words that fit."""


class Shell(StrEnum):
    """The shells whose Tab key can be taught."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


def answer_shells() -> None:
    """Let the library answer a shell that asks for completions now; costs nothing at any other time."""
    if VARIABLE in os.environ:
        from typer.completion import completion_init  # type: ignore[attr-defined] # noqa: PLC0415 - not at every start

        completion_init()


def _install(shell: Shell | None) -> None:
    if shell is None:
        return
    from typer.completion import install  # type: ignore[attr-defined] # noqa: PLC0415 - as above

    _, path = install(shell=shell.value, prog_name=PROGRAM, complete_var=VARIABLE)
    typer.echo(f"completion for {shell} is installed in {path}. Open a new shell to use it")
    raise typer.Exit


def _show(shell: Shell | None) -> None:
    if shell is None:
        return
    from typer.completion import get_completion_script  # type: ignore[attr-defined] # noqa: PLC0415 - as above

    typer.echo(get_completion_script(prog_name=PROGRAM, complete_var=VARIABLE, shell=shell.value))
    raise typer.Exit


InstallCompletion: TypeAlias = Annotated[
    Shell | None,
    typer.Option("--install-completion", callback=_install, is_eager=True, help="Let the Tab key complete commands and options, and exit."),
]
ShowCompletion: TypeAlias = Annotated[
    Shell | None, typer.Option("--show-completion", callback=_show, is_eager=True, help="Print the script for the shell, and exit.")
]
