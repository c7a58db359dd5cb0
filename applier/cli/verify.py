"""``applier verify``: compare the sink with upstream, and write the statements that repair it."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Final

import typer
from sqlalchemy import make_url

from applier.cli.option import AsJson, ConfigPath, read_config
from applier.cli.output import print_json, print_line, stderr_console
from applier.cli.position import source_kit
from applier.cli.remedy import DEFAULT_CONFIG
from applier.cli.verify_view import as_lines, as_object, watcher_for
from applier.config import Config
from applier.config.choice import Consistency
from applier.database.address import BadAddress
from applier.model.errors import ConfigError, NeedsOperator
from applier.model.events import TableName
from applier.model.remedy import Remedy
from applier.mysql.address import read_server_url
from applier.mysql.tls import Tls, TlsMode
from applier.selection import PatternError, TableFilter
from applier.sinks.settings import SinkSettings
from applier.verify.comparison import Patience
from applier.verify.task import Task, perform
from applier.verify.verification import ComparedTables, Options

PASSWORD: Final = "APPLIER_UPSTREAM_PASSWORD"  # noqa: S105 - the name of a variable
LOG_WAIT_S: Final = 2.0
URL_REMEDY: Final = Remedy(
    "cli.write-upstream-url", "Write --upstream mysql+pymysql://user@host:4000/, and give the password as APPLIER_UPSTREAM_PASSWORD"
)
UPSTREAM_HELP: Final = (
    f"TiDB, MySQL or MariaDB: mysql+pymysql://user@host:4000/; its password in {PASSWORD}. Default: source.upstream, or the primary."
)


def verify(  # noqa: PLR0913 - one parameter per option of the command line
    config: ConfigPath = DEFAULT_CONFIG,
    *,
    upstream: Annotated[str | None, typer.Option(metavar="URL", help=UPSTREAM_HELP)] = None,
    password_file: Annotated[
        Path | None, typer.Option("--upstream-password-file", metavar="FILE", help="File that holds upstream's password.")
    ] = None,
    tls_ca: Annotated[
        str | None, typer.Option("--upstream-tls-ca", metavar="FILE", help="CA of upstream's certificate. The host's name is verified.")
    ] = None,
    tables: Annotated[
        list[str] | None, typer.Option(metavar="RULE", help="Compare only these: 'shop.*', '!shop.log_*'. Repeatable.")
    ] = None,
    fix_sql: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the statements that repair the sink. They hold rows.")] = None,
    rows_in_flight: Annotated[bool, typer.Option("--rows-in-flight", help="Wait for rows that the replica has not applied yet.")] = False,
    jobs: Annotated[int, typer.Option(metavar="N", min=1, max=64, help="How many ranges of rows to compare at once.")] = 4,
    chunk_rows: Annotated[int, typer.Option(metavar="N", min=1, help="Rows in one range.")] = 50_000,
    max_rows_per_second: Annotated[int, typer.Option(metavar="N", min=0, help="Limit on the load of both databases. 0: no limit.")] = 0,
    statement_timeout: Annotated[int, typer.Option(metavar="SECONDS", min=1, max=86_400, help="How long a query may run.")] = 600,
    state: Annotated[Path | None, typer.Option(metavar="FILE", help="Continue an interrupted verification. Holds keys of rows.")] = None,
    as_json: AsJson = False,
) -> int:
    """Compare the sink with upstream. Exit code 6: they differ."""
    settings = read_config(config)
    source, shown = _configured(settings) if upstream is None else _given(upstream, password_file, tls_ca)
    task = Task(
        upstream=source,
        sink=settings.sink_settings(),
        tables=compared_tables(settings, tables or ()),
        options=Options(
            jobs=jobs,
            chunk_rows=chunk_rows,
            rows_per_s=max_rows_per_second,
            state=state,
            identity=f"{shown} {settings.sink.address} {settings.name}",
            is_row_consistent=settings.sink.consistency is Consistency.ROW,
        ),
        timeline=source_kit(settings).timeline(),
        statement_timeout_s=statement_timeout,
        rows_in_flight=_patience(settings) if rows_in_flight else None,
        fix_sql=fix_sql,
    )
    with watcher_for(stderr_console(), silent=as_json) as watcher:
        report = perform(task, watcher)
    if as_json:
        print_json(as_object(report))
    else:
        for line in as_lines(report, task):
            print_line(line)
    return 0 if report.is_equal else NeedsOperator.exit_code


def compared_tables(settings: Config, rules: Sequence[str]) -> ComparedTables:
    """Return which tables are compared: those that the replica has, as far as ``--tables`` names them."""
    selection = settings.source.selection()
    try:
        wanted = TableFilter.parse(rules)
    except PatternError as error:
        raise ConfigError(f"--tables {error}", remedy=error.remedy) from None

    def name_of(table: TableName) -> TableName | None:
        return selection.name(table) if selection.has(table) else None

    def is_wanted(table: TableName) -> bool:
        # Where an event filter leaves out changes of rows, the sink differs from upstream on purpose.
        return wanted.has(table) and not selection.ignored_rows(table)

    def excluded(table: TableName) -> TableName | None:
        return None if selection.has(table) else selection.name(table)

    return ComparedTables(name_of, is_wanted, excluded, renames=bool(selection.routes))


def _patience(settings: Config) -> Patience:
    # The checkpoint of a binlog is a place, and never passes a time: what is on its way is looked for again after a moment.
    return Patience(wait_s=LOG_WAIT_S) if settings.source.has_whole_transactions else Patience()


def _configured(settings: Config) -> tuple[SinkSettings, str]:
    """Return how the upstream of the configuration is reached, and its address without the password."""
    found = settings.source.upstream_settings()
    if found is None:
        raise ConfigError(
            "nothing says where upstream is", remedy=Remedy("cli.write-upstream-or-set-source", f"{URL_REMEDY}, or set source.upstream")
        )
    return SinkSettings(url=found.url, tls=found.tls), make_url(found.url).render_as_string(hide_password=True)


def _given(text: str, password_file: Path | None, tls_ca: str | None) -> tuple[SinkSettings, str]:
    """Return how upstream is reached, and its address without the password."""
    try:
        url = read_server_url(text)
    except BadAddress as bad:
        raise ConfigError(f"--upstream {bad.problem}", remedy=URL_REMEDY) from None
    password = os.environ.pop(PASSWORD, None)
    if password_file is not None:
        password = _content(password_file)
    if password is not None:
        url = url.set(password=password)
    tls = Tls(mode=TlsMode.VERIFY_IDENTITY, ca=tls_ca) if tls_ca is not None else Tls()
    return SinkSettings(url=url.render_as_string(hide_password=False), tls=tls), url.render_as_string(hide_password=True)


def _content(path: Path) -> str:
    """Read the password; no message names the path, which somebody may have taken for the password's place."""
    try:
        return path.read_text(encoding="utf-8").rstrip("\r\n")
    except (OSError, ValueError):
        remedy = Remedy("cli.check-readable-file", "Check the path, and that this user can read the file")
        raise ConfigError("the file of --upstream-password-file cannot be read", remedy=remedy) from None
