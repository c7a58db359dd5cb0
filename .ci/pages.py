"""Write the generated pages of ``docs/``: the configuration's reference, and the tables of metrics and log events.

The keys, their types and defaults are those of the settings' model; their meaning is that of the docstrings beside them and of
applier.example.toml. ``make docs-pages`` runs this; tests/unit/test_generated_pages.py says when a page is old.
"""

import ast
import inspect
import logging
import re
import sys
import types
import typing
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import Any, Final, TypeAlias

from pydantic import BaseModel, SecretStr
from pydantic.fields import FieldInfo

from applier.config.http import Listen
from applier.config.kafka_source import KafkaSourceConfig
from applier.config.load import variable_of
from applier.config.model import Config
from applier.config.section import ReadableFile, SecretFile, Section
from applier.config.selection import SelectedSource
from applier.config.value import parse_size
from applier.telemetry.log_event import LogEvent
from applier.telemetry.metric import COUNTERS, DURATION, DURATION_LABELS, DURATION_MEANING, GAUGES

ROOT: Final = Path(__file__).parents[1]
DOCS: Final = ROOT / "docs"
EXAMPLE: Final = ROOT / "applier.example.toml"
FILES: Final = (getattr(SecretFile, "__metadata__", ()), getattr(ReadableFile, "__metadata__", ()))

TABLE: Final = "| key | takes | default | meaning |\n|---|---|---|---|"
HEAD: Final = """\
# Configuration

`applier.toml` has a table for each subject below. Generated from the settings' model: `make docs-pages`.

- **The environment sets every key** and overrides the file: `APPLIER_SOURCE__BOOTSTRAP_SERVERS`, `APPLIER_NAME`. Below `source.kafka`
  and `spark.conf` the rest of the name is the property: `APPLIER_SOURCE__KAFKA__SASL_PASSWORD` is `sasl.password`. Lists are written as
  JSON, or with commas.
- **Unknown keys are errors**, which suggest the nearest name. All errors are listed at once.
- **Secrets** belong into the environment or into files: [Secrets](security.md#security).
- **Sizes** are `"512MiB"`, `"2GiB"`; **seconds** are numbers; a **TSO** is a whole number.
- `applier init` writes a file with comments. [`applier.example.toml`](../applier.example.toml) shows every key.
"""


def configuration() -> str:
    """Return docs/configuration.md."""
    meanings = _example_comments()
    parts = [HEAD]
    for path, model, is_list in _sections(Config, ()):
        rows = [_row(path, model, name, field, meanings) for name, field in _own_first(model) if not _models_of(field)]
        if not rows:
            continue
        title = "Top level" if not path else f"[[{'.'.join(path)}]]" if is_list else f"[{'.'.join(path)}]"
        title += _kind(model)
        parts.append(
            f"\n## {title}\n\n{_about(model)}\n\n| key | takes | default | meaning |\n|---|---|---|---|\n" + "\n".join(rows) + "\n"
        )
    return "".join(parts)


Sections: TypeAlias = Iterator[tuple[tuple[str, ...], type[BaseModel], bool]]


def _sections(model: type[BaseModel], path: tuple[str, ...], *, is_list: bool = False) -> Sections:
    yield path, model, is_list
    for name, field in model.model_fields.items():
        for inner in _models_of(field):
            if path == ("source",) and name in SelectedSource.model_fields and model is not KafkaSourceConfig:
                continue  # shown once
            yield from _sections(inner, (*path, field.alias or name), is_list=typing.get_origin(field.annotation) is tuple)


def _models_of(field: FieldInfo) -> list[type[BaseModel]]:
    parts = (field.annotation, *(getattr(part, "__origin__", part) for part in typing.get_args(field.annotation)))
    return [part for part in parts if inspect.isclass(part) and issubclass(part, BaseModel)]


def _kind(model: type[BaseModel]) -> str:
    """Return the kind of source of which these are the keys, as a heading's end."""
    kind = model.model_fields.get("kind")
    return f', kind = "{typing.get_args(kind.annotation)[0]}"' if kind is not None else ""


def _own_first(model: type[BaseModel]) -> list[tuple[str, FieldInfo]]:
    """Return the fields: those of the class before those that it shares."""
    shared = SelectedSource.model_fields if model is not SelectedSource else ()
    return sorted(model.model_fields.items(), key=lambda item: item[0] in shared)


def _about(model: type[BaseModel]) -> str:
    return _plain(inspect.cleandoc(model.__doc__ or "").partition("\n")[0])


def _row(path: tuple[str, ...], model: type[BaseModel], name: str, field: FieldInfo, meanings: dict[str, str]) -> str:
    key = field.alias or name
    meaning = _docstrings(model).get(name) or meanings.get(".".join((*path, key)))
    if meaning is None:
        raise SystemExit(f"{'.'.join((*path, key))}: no docstring in {model.__name__}, and no comment in applier.example.toml")
    variable = "" if any(part in {"route", "event_filter"} for part in path) else f"<br>`{variable_of((*path, key))}`"
    cells = (f"`{key}`{variable}", _takes(field.annotation, field.metadata), _default(field), meaning)
    return "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"


def _takes(kind: Any, metadata: list[Any]) -> str:  # noqa: PLR0911 - a line per kind
    """Return in words what a key takes."""
    if any(getattr(check, "func", None) is parse_size for check in metadata):
        return "size"
    if any(check in metadata for checks in FILES for check in checks):
        return "path of a file"
    if typing.get_origin(kind) is typing.Annotated:
        return _takes(kind.__origin__, list(kind.__metadata__))
    if typing.get_origin(kind) in {types.UnionType, typing.Union}:
        return " or ".join(dict.fromkeys(_takes(part, metadata) for part in typing.get_args(kind) if part is not type(None)))
    if typing.get_origin(kind) is typing.Literal:
        return ", ".join(f'`"{choice}"`' for choice in typing.get_args(kind))
    if typing.get_origin(kind) is tuple:
        return f"list of {_takes(typing.get_args(kind)[0], [])}"
    if typing.get_origin(kind) is dict:
        return "table"
    if inspect.isclass(kind) and issubclass(kind, StrEnum):
        return ", ".join(f'`"{choice}"`' for choice in kind)
    return {bool: "`true`, `false`", int: "whole number", float: "seconds", SecretStr: "text"}.get(kind, "text")


def _default(field: FieldInfo) -> str:  # noqa: PLR0911 - a line per kind
    if field.is_required():
        return "**required**"
    value = field.get_default(call_default_factory=True)
    if value is None or value in ((), {}, ""):
        return ""
    if any(getattr(check, "func", None) is parse_size for check in field.metadata):
        return f'`"{value // 1024**3}GiB"`' if value % 1024**3 == 0 else f'`"{value // 1024**2}MiB"`'
    if isinstance(value, Listen):
        return f'`"{value.host}:{value.port}"`'
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if isinstance(value, str | tuple):
        # In single quotes TOML reads a backslash as it is.
        return f'`"{value}"`' if isinstance(value, str) else "`[" + ", ".join(f"'{one}'" for one in value) + "]`"
    return f"`{value:g}`" if isinstance(value, float) else f"`{value}`"


def _docstrings(model: type[BaseModel]) -> dict[str, str]:
    """Return the docstrings that stand below fields, those of a shared section too."""
    body = ast.parse(inspect.getsource(model)).body[0]
    found = {
        name: text
        for base in model.__bases__
        if issubclass(base, Section) and base is not Section
        for name, text in _docstrings(base).items()
    }
    for field, below in zip(body.body, body.body[1:], strict=False):
        if isinstance(field, ast.AnnAssign) and isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant):
            found[ast.unparse(field.target)] = _plain(str(below.value.value))
    return found


def _example_comments() -> dict[str, str]:
    """Return the comments beside the keys of the example."""
    found: dict[str, str] = {}
    section = key = ""
    for line in EXAMPLE.read_text(encoding="utf-8").splitlines():
        if heading := re.match(r"(?:# )?\[+([a-z_.]+)\]+", line):
            section, key = heading[1], ""
        elif (entry := re.match(r"(?:# )?([a-z_]+) = .*?(?:\s{2,}# (.*))?$", line)) and entry[1]:
            key = f"{section}.{entry[1]}".lstrip(".")
            if entry[2]:
                found[key] = entry[2]
        elif (more := re.match(r"\s{10,}# (.*)", line)) and key in found:
            found[key] += " " + more[1]
    return {name: _linked(text) for name, text in found.items()}


def _linked(text: str) -> str:
    def link(match: re.Match[str]) -> str:
        page, title = match[1], match[2]
        anchor = "#" + re.sub(r"[^\w-]", "", title.lower().replace(" ", "-")) if title else ""
        return f"[{title or page}]({page}.md{anchor})"

    return re.sub(
        r'docs/(\w+)\.md(?:, "([^"]+)")?', link, re.sub(r"(\^?\w*\*)", r"`\1`", text) if "*" in text and "`" not in text else text
    )


def _plain(text: str) -> str:
    return " ".join(text.replace("``", "`").split())


def log_events() -> str:
    """Return docs/log_events.md with its table made from the code."""
    rows = "\n".join(f"| `{event.value}` | {logging.getLevelName(event.level).lower()} | {event.meaning} |" for event in LogEvent)
    return _with_table(DOCS / "log_events.md", "| event | level | meaning |\n|---|---|---|", rows)


def metrics() -> str:
    """Return docs/metrics.md with its table made from the code."""
    described = [(metric.name, "gauge", metric.labels, metric.meaning) for metric in GAUGES]
    described += [(f"{metric.name}_total", "counter", metric.labels, metric.meaning) for metric in COUNTERS]
    described.append((DURATION, "histogram", DURATION_LABELS, DURATION_MEANING))
    rows = "\n".join(f"| `{name}` | {kind} | {', '.join(labels)} | {meaning} |" for name, kind, labels, meaning in described)
    return _with_table(DOCS / "metrics.md", "| name | kind | labels | meaning |\n|---|---|---|---|", rows)


def _with_table(document: Path, head: str, rows: str) -> str:
    text = document.read_text(encoding="utf-8")
    before, found, after = text.partition(head + "\n")
    if not found:
        raise SystemExit(f"{document.name} has no table {head!r}")
    rest = after[after.index("\n\n") :] if "\n\n" in after else "\n"
    return before + head + "\n" + rows + rest


PAGES: Final = {"configuration.md": configuration, "log_events.md": log_events, "metrics.md": metrics}

if __name__ == "__main__":
    for name, page in PAGES.items():
        (DOCS / name).write_text(page(), encoding="utf-8")
        sys.stdout.write(f"docs/{name}\n")
