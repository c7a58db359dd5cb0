"""Somebody who does what a message says, literally, and knows nothing else: the commands in this process, without a JVM.

The commands of a remedy are those between backticks. They are executed as they stand, in the directory of ``applier.toml``.
"""

import json
import re
import shlex
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from applier.cli.main import run
from applier.demo.simulator.kafka_log import produce_log
from applier.demo.simulator.producer.options import LogRecord
from tests.rig.local_runner import LocalRunner

COMMAND = re.compile(r"`applier ([^`]+)`")
SETTING = re.compile(r"(?:\[(?P<table>[a-z_.]+)\] )?(?P<key>[a-z_]+(?:\.[a-z_]+)*) = (?P<value>\"[^\"]*\"|\[[^\]]*\]|[0-9.]+)")


@dataclass(frozen=True, slots=True)
class Said:
    """What a command has said, and its exit code."""

    code: int
    stdout: str
    stderr: str

    @property
    def remedy(self) -> str:
        """The last remedy."""
        _, _, remedy = self.stderr.rpartition("  remedy: ")
        return " ".join(remedy.split())

    @property
    def commands(self) -> list[str]:
        """The commands of the remedy."""
        return COMMAND.findall(self.remedy)

    def shell(self, program: str) -> list[str]:
        """Return the remedy's commands of another program."""
        return [command for command in re.findall(r"`([^`]+)`", self.remedy) if command.split()[0] == program]

    @property
    def settings(self) -> dict[str, Any]:
        """The settings of the remedy, by their names in the configuration."""
        found = {}
        for match in SETTING.finditer(self.remedy):
            name = f"{match['table']}.{match['key']}" if match["table"] else match["key"]
            found[name] = json.loads(match["value"])
        return found


@dataclass
class Newcomer:
    """Works in one directory. ``met`` are the remedies that it was given."""

    directory: Path
    servers: str
    patch: pytest.MonkeyPatch
    capture: pytest.CaptureFixture[str]
    met: list[str] = field(default_factory=list)
    settings: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.patch.chdir(self.directory)
        # Everything is the program's own, except that the runner needs no JVM.
        self.patch.setattr(
            "applier.run.assembly._start_spark", lambda _config, source, *_: LocalRunner(lambda: source.reader, source.decoder)
        )

    def configure(self, **settings: Any) -> None:
        """Write ``applier.toml``: a SQLite file, the mock cluster, and ``settings`` (``sink__url``)."""
        usual = {"name": "walk", "source.bootstrap_servers": self.servers, "source.topics": ["feed"], "sink.url": "sqlite:///replica.db"}
        self.settings |= usual | {name.replace("__", "."): value for name, value in settings.items()}
        self._write()

    def change(self, settings: Mapping[str, Any]) -> None:
        """Write settings into ``applier.toml``; one that is None is removed."""
        assert settings, "the remedy names no setting"
        self.settings = {name: value for name, value in (self.settings | settings).items() if value is not None}
        self._write()

    def _write(self) -> None:
        lines = sorted(self.settings.items(), key=lambda item: ("." in item[0], item[0]))
        tables: dict[str, list[str]] = {}
        for name, value in lines:
            table, _, key = name.rpartition(".")
            tables.setdefault(table, []).append(f"{key if key.isidentifier() else json.dumps(key)} = {_toml(value)}")
        text = "\n".join(line for table, keys in tables.items() for line in ([f"[{table}]"] if table else []) + keys)
        (self.directory / "applier.toml").write_text(text + "\n", encoding="utf-8")

    def applier(self, command: str) -> Said:
        """Run a command as a shell would."""
        self.capture.readouterr()
        code = run(shlex.split(command))
        out, err = self.capture.readouterr()
        said = Said(code, out, err)
        if "error: " in err:
            # All of it: several errors of the configuration have each their remedy in its line.
            self.met.append(" ".join(err.split()))
        return said

    def fails(self, command: str, code: int, *words: str) -> Said:
        """Run a command that fails with ``words`` in its message, with a remedy and without a traceback."""
        said = self.applier(command)
        assert said.code == code, (said.code, said.stderr, said.stdout)
        for word in ("error: ", "  remedy: ", *words):
            assert word in said.stderr, (word, said.stderr)
        assert "Traceback" not in said.stderr
        return said

    def succeeds(self, command: str) -> Said:
        """Run a command that succeeds."""
        said = self.applier(command)
        assert said.code == 0, (command, said.stderr)
        return said

    def follow(self, said: Said, *, only: str = "") -> None:
        """Execute the commands of a remedy, or those that begin with ``only``."""
        chosen = [command for command in said.commands if command.startswith(only)]
        assert chosen, said.remedy
        for command in chosen:
            assert "…" not in command, command
            self.succeeds(command)

    def finds(self, check: str, *, level: str = "") -> list[Said]:
        """Run ``applier check``; return what it says of ``check`` with a remedy, at least once, at ``level`` if one is given."""
        found = [line for line in self._examined() if line["check"] == check and line["level"] != "ok"]
        assert found, check
        assert not level or {line["level"] for line in found} == {level}, found
        self.met += [line["remedy"] for line in found]
        return [Said(2, "", f"  remedy: {line['remedy']}") for line in found]

    def finds_nothing(self, check: str, *, beside: str = "") -> None:
        """Run ``applier check``: all is well with ``check``, which it has examined. ``beside``: the next check of one that says no "ok"."""
        lines = self._examined()
        assert {line["level"] for line in lines if line["check"] == check} <= {"ok"}, lines
        assert (beside or check) in {line["check"] for line in lines}, lines

    def _examined(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.applier("check --wait 0 --json").stdout.splitlines()]

    def produce(self, records: Iterable[LogRecord]) -> None:
        """Let upstream write records."""
        produce_log(tuple(records), self.servers)

    def sql(self, *statements: str) -> None:
        """Change the sink's file by hand."""
        with closing(sqlite3.connect(self.directory / "replica.db")) as connection:
            for statement in statements:
                connection.execute(statement)
            connection.commit()

    def rows(self, table: str = "shop.orders") -> list[tuple[Any, ...]]:
        """Read a table of the sink's file."""
        with closing(sqlite3.connect(self.directory / "replica.db")) as connection:
            return sorted(connection.execute(f'SELECT * FROM "{table}"').fetchall())


def _toml(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{json.dumps(key)} = {_toml(some)}" for key, some in value.items()) + " }"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return "[" + ", ".join(map(_toml, value)) + "]"
    return json.dumps(value)
