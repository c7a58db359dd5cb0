"""``applier check``: examine whether a replica can run, a line per check. Changes nothing."""

import logging
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from shlex import quote
from typing import Annotated, Final

import typer

from applier.check.everything import examine_everything
from applier.cli.option import AsJson, ConfigPath, read_config
from applier.cli.output import DEFAULT_CONFIG, print_json, print_line, remedy_for
from applier.config import Config
from applier.model.finding import CheckFinding, Severity
from applier.run.assembly import as_submitted
from applier.sources.kafka.settings import LOGGER as KAFKA_LOGGER
from applier.telemetry.wording import count

FAILED: Final = 2
WAIT_S: Final = 10.0
COLOURS: Final = {Severity.OK: "green", Severity.WARNING: "yellow", Severity.ERROR: "red"}


def check(
    config: ConfigPath = DEFAULT_CONFIG,
    *,
    wait: Annotated[float, typer.Option("--wait", metavar="S", min=0, max=600, help="Wait so long for resolved events.")] = WAIT_S,
    as_json: AsJson = False,
) -> None:
    """Check whether a replica can run, before it runs. Exit code 2: at least one error."""
    raise typer.Exit(show(read_config(config), wait_s=wait, as_json=as_json, path=config))


def show(settings: Config, *, wait_s: float, as_json: bool = False, path: Path = DEFAULT_CONFIG) -> int:
    """Examine everything, print what is found, and return the exit code."""
    findings = []
    with _kafka_is_quiet():
        for finding in examine_everything(as_submitted(settings), wait_s=wait_s):
            findings.append(finding)
            if as_json:
                print_json(finding.as_object())
            else:
                _print(finding, path)
    if not as_json:
        print_line(summary(findings, path))
    return FAILED if any(finding.level is Severity.ERROR for finding in findings) else 0


@contextmanager
def _kafka_is_quiet() -> Iterator[None]:
    """Keep Kafka's client from logging again and again what a finding says once."""
    level = KAFKA_LOGGER.level
    KAFKA_LOGGER.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        KAFKA_LOGGER.setLevel(level)


def summary(findings: Iterable[CheckFinding], path: Path) -> str:
    """Return the last line for people."""
    levels = [finding.level for finding in findings]
    errors, warnings = levels.count(Severity.ERROR), levels.count(Severity.WARNING)
    if errors:
        return f"{count(errors, 'error')}, {count(warnings, 'warning')}: correct the errors, then run this command again"
    hint = f"start the replica with: applier run --config {quote(str(path))}"
    return f"{count(levels.count(Severity.OK), 'check')} passed, {count(warnings, 'warning')}: {hint}"


def _print(finding: CheckFinding, path: Path) -> None:
    # click omits the colours where the output is no terminal.
    level = typer.style(f"{finding.level:<8}", fg=COLOURS[finding.level])
    typer.echo(f"{level} {finding.check}: {finding.detail}".encode("utf-8", "backslashreplace").decode())
    if finding.remedy:
        remedy = remedy_for(finding.remedy, path)
        print_line(f"         remedy: {remedy}{'' if remedy.endswith('.') else '.'}")
