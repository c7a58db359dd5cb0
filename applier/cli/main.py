"""The command ``applier``: one module per command, one exit code per kind of error (DESIGN.md 12).

An expected error is printed as one sentence with its position and its remedy. Only a defect, or ``--debug``, prints a traceback.

``--install-completion SHELL`` and ``--show-completion SHELL`` name the shell: in a container, or below ``sudo``, the library's guess fails.
"""

import logging
import os
import sys
import traceback
from collections.abc import Sequence
from enum import StrEnum
from typing import Annotated, Final, TypeAlias

import typer
from rich.console import Console
from rich.text import Text
from typer.exceptions import TyperException

from applier import __version__
from applier.cli.command_group import ALL, COMMANDS, CommandGroup
from applier.cli.interrupt import INTERRUPTED, end_as
from applier.cli.output import fact, remedy_line, stderr_console
from applier.model.errors import ApplierError
from applier.model.position import DIGITS
from applier.telemetry.log import LOGGER_NAME, UNASKED, configure_logging, extra_of, is_json, spelled
from applier.telemetry.log_event import LogEvent

PROGRAM = "applier"
VARIABLE = "_APPLIER_COMPLETE"
"""What the shell sets when it asks for the words that fit."""


class Shell(StrEnum):
    """The shells with completion."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


def answer_shells() -> None:
    """Have the library answer a shell that asks for completions now; costs nothing at any other time."""
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


DEBUG_VARIABLE: Final = "APPLIER_DEBUG"
UNEXPECTED: Final = 1
USAGE: Final = 2
DEFECT: Final = "unexpected error: this is a defect of applier. Please report it with its traceback"
INTERRUPTED_COMMAND: Final = {
    "demo": "the demo did not finish. Run applier demo again",
    "catchup": "the sink holds whole transactions up to its checkpoint. Run applier catchup again to continue",
    "verify": "the comparison did not finish. Nothing was changed",
    "inspect": "nothing was changed",
    "status": "nothing was changed",
    "check": "nothing was changed",
    "load": "the dump may be loaded in part. The same command with --overwrite loads it again",
}
"""Command -> what its end by Ctrl-C means. Where nothing is said here, the command did not finish."""

app = typer.Typer(
    name="applier",
    cls=CommandGroup,
    help=(
        "Keep a database (MySQL, MariaDB or SQLite) equal to a TiDB cluster, or to a MySQL or MariaDB server. The changes come from Kafka, "
        "where TiCDC writes them in its Open Protocol, or from the server's binlog; applier applies them: transaction by transaction, each "
        "exactly once."
    ),
    # Plain text, because help and errors go to logs too. The library's own tracebacks may show variables, and so secrets.
    epilog=ALL,
    add_completion=False,  # the options are in `completion`: the library guesses the shell, and fails in a container
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def _show_version(wanted: bool) -> None:  # noqa: FBT001 - typer calls it with the option's value
    if wanted:
        typer.echo(f"applier {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def _every_command(
    context: typer.Context,
    *,
    debug: Annotated[bool, typer.Option("--debug", help=f"Show tracebacks and debug logs. Same as {DEBUG_VARIABLE}=1.")] = False,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Log each checkpoint, DDL and retry.")] = False,
    _version: Annotated[
        bool, typer.Option("--version", "-V", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
    _install: InstallCompletion = None,
    _show: ShowCompletion = None,
) -> None:
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())
        # Help, but not 0: a script that lost its command must not look successful.
        raise typer.Exit(USAGE)
    if debug:
        os.environ[DEBUG_VARIABLE] = "1"
    # Before the configuration is read, because its errors are logged too. read_config sets the format later.
    configure_logging(logging.DEBUG if _is_debugging() else logging.INFO if verbose else UNASKED)


def main() -> None:
    """Run the program and exit with its code. Programs start at ``applier.__main__``, which is imported sooner."""
    code = run(sys.argv[1:])
    # Nothing is left to interrupt: the command has said its result, and its code must not become another while the interpreter ends.
    end_as(code)
    sys.exit(code)


def run(arguments: Sequence[str], commands: typer.Typer = app) -> int:
    """Run one of ``commands`` and return its exit code. Errors are printed on standard error."""
    answer_shells()
    try:
        # Not standalone: the library would print errors in its own way and choose its own exit codes.
        code = _code(commands(args=list(arguments), prog_name="applier", standalone_mode=False))
    except ApplierError as error:
        _report(error, arguments)
        return error.exit_code
    except TyperException as error:
        stderr_console().print(_usage(error), soft_wrap=True)
        return USAGE
    except (KeyboardInterrupt, typer.Abort):
        code = INTERRUPTED
    except Exception as error:  # noqa: BLE001 - nobody above can report it: a defect ends with a traceback and exit code 1
        _report_defect(error)
        return UNEXPECTED
    # The library turns Ctrl-C into this code. A daemon handles its signals itself (replica/shutdown.py).
    if code == INTERRUPTED:
        _report_interrupt(arguments)
    return code


def _code(result: object) -> int:
    """Return the exit code of a command's result; a command returns None for 0."""
    return result if isinstance(result, int) else 0


def _is_debugging() -> bool:
    return os.environ.get(DEBUG_VARIABLE, "") not in {"", "0"}


def _report(error: ApplierError, arguments: Sequence[str]) -> None:
    """Print what failed, where, and what to do; with ``--debug`` the traceback too."""
    # Here, where the positions are known as operators write them: the commands of the remedy take them, and the numbers too.
    timeline = error.timeline or DIGITS
    shown = spelled(error.facts, timeline)
    remedy = error.remedy_with(shown)
    if is_json():
        facts = {"error": type(error).__name__, "error_message": error.message, "exit_code": error.exit_code, "remedy": remedy}
        extra = extra_of(error.facts, timeline) | facts
        logging.getLogger(LOGGER_NAME).error(LogEvent.COMMAND_FAILED, extra=extra, exc_info=error if _is_debugging() else None)
        return
    console = stderr_console()
    if _is_debugging():
        traceback.print_exception(error)
    _line(console, "error: ", error.message, "bold red")
    for name, value in shown.items():
        if value is not None and str(value):
            _line(console, f"  {name}: ", fact(name, value, timeline), "dim")
    if remedy:
        _line(console, "  remedy: ", remedy_line(remedy, arguments), "bold green")


def _report_interrupt(arguments: Sequence[str]) -> None:
    """Say what Ctrl-C has ended, and what that means."""
    name = next((argument for argument in arguments if argument in COMMANDS), "the command")
    sentence = INTERRUPTED_COMMAND.get(name, f"{name} did not finish")
    if is_json():
        logging.getLogger(LOGGER_NAME).warning(LogEvent.COMMAND_INTERRUPTED, extra={"reason": sentence, "exit_code": INTERRUPTED})
        return
    stderr_console().print(Text(f"interrupted: {sentence}", style="yellow"), soft_wrap=True)


def _report_defect(error: Exception) -> None:
    """Print an unexpected error with its traceback."""
    if is_json():
        facts = {"error": type(error).__name__, "error_message": DEFECT, "exit_code": UNEXPECTED}
        logging.getLogger(LOGGER_NAME).error(LogEvent.UNEXPECTED_ERROR, extra=facts, exc_info=error)
        return
    traceback.print_exception(error)
    stderr_console().print(Text(DEFECT, style="red"), soft_wrap=True)


def _line(console: Console, label: str, text: str, style: str) -> None:
    line = Text(label, style=style)
    # Lone surrogates: names from Kafka that are not UTF-8. An error about them must not fail itself (UnicodeEncodeError).
    line.append(text.encode("utf-8", "backslashreplace").decode(), style="default not bold not dim")
    console.print(line, soft_wrap=True)


def _usage(error: TyperException) -> Text:
    context = getattr(error, "ctx", None)
    hint = f"\ntry: {context.command_path} --help" if context is not None else ""
    # pydantic checks choices for the library, and its own prefix does not help.
    return Text(f"error: {error.format_message().replace('Value error, ', '')}{hint}")
