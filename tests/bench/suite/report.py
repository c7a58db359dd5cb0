"""Figures as a table for people and as JSON for programs: medians of all runs of one case, each beside the floor of the same run."""

import json
import math
import os
import platform
import statistics
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

Figures = dict[str, Any]


def median_of(runs: Sequence[Figures]) -> Figures:
    """Return the median of each figure; what is no number is taken from the last run."""
    found: Figures = {}
    for name, value in runs[-1].items():
        values = [run[name] for run in runs if name in run]
        if isinstance(value, Mapping):
            found[name] = median_of(values)
        elif isinstance(value, bool) or not isinstance(value, int | float):
            found[name] = value
        else:
            known = [one for one in values if one is not None and not math.isnan(one)]
            found[name] = statistics.median(known) if known else math.nan
    return found


class Report:
    """Collects results; each is shown as soon as it is there, and written to ``path``."""

    def __init__(self, path: Path | None, facts: Mapping[str, Any]) -> None:
        self._path = path
        self._content: dict[str, Any] = {
            "made_at": datetime.now(UTC).isoformat(timespec="seconds"),
            "machine": _machine(),
            **facts,
            "results": [],
        }

    @property
    def results(self) -> list[dict[str, Any]]:
        """What was added so far."""
        return self._content["results"]

    def add(self, case: Mapping[str, Any], runs: Sequence[Figures]) -> dict[str, Any]:
        """Add the runs of one case; return the result."""
        result = {**case, "median": median_of(runs), "runs": list(runs)}
        self.results.append(result)
        if self._path is not None:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._path.write_text(json.dumps(_without_nan(self._content), indent=1) + "\n", encoding="utf-8")
        return result


def _machine() -> dict[str, Any]:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return {"cores": os.cpu_count(), "memory_gib": round(memory, 1), "python": platform.python_version(), "kernel": platform.release()}


def _without_nan(value: Any) -> Any:
    """JSON has no NaN: what is not known is null."""
    match value:
        case dict():
            return {name: _without_nan(one) for name, one in value.items()}
        case list() | tuple():
            return [_without_nan(one) for one in value]
        case float() if math.isnan(value):
            return None
        case _:
            return value


Column = tuple[str, Callable[[dict[str, Any]], str]]


def figure(name: str, form: str = ".1f", scale: float = 1.0) -> Callable[[dict[str, Any]], str]:
    """Return the function that shows one median of a result; ``name`` may name a nested one (``latency_s.p90``)."""

    def text(result: dict[str, Any]) -> str:
        value: Any = result["median"]
        for part in name.split("."):
            value = value.get(part) if isinstance(value, Mapping) else None
        return "-" if value is None or (isinstance(value, float) and math.isnan(value)) else format(value * scale, form)

    return text


BACKLOG: tuple[Column, ...] = (
    ("workload", lambda result: result["workload"]),
    ("version", lambda result: result["version"]),
    ("bulk", lambda result: result["bulk_load"] or "default"),
    ("executors", lambda result: str(result["executors"] or "-")),
    ("row writers", lambda result: str(result["writers"] or "-")),
    ("rows", lambda result: f"{result['rows']:,}"),
    ("runs", lambda result: str(len(result["runs"]))),
    ("rows/s", figure("rows_per_s", ",.0f")),
    ("of floor", figure("of_floor", ".2f")),
    ("of floor, 2", figure("of_floor_2", ".2f")),
    ("first row s", figure("first_row_s")),
    ("CPU µs/row", figure("all_us")),
    ("Python", figure("python_us")),
    ("driver", figure("driver_us")),
    ("listen", figure("listen_us")),
    ("prepare", figure("prepare_us")),
    ("write", figure("write_us")),
    ("other workers", figure("workers_other_us")),
    ("JIT", figure("jvm_jit_us")),
    ("GC", figure("jvm_gc_us")),
    ("tasks", figure("jvm_tasks_us")),
    ("JVM other", figure("jvm_other_us")),
    ("database", figure("database_us")),
    ("Kafka", figure("kafka_us")),
    ("peak MiB", figure("peak_mib.all", ",.0f")),
)
FLOOR: tuple[Column, ...] = (
    ("floor of", lambda result: result["workload"]),
    ("rows", lambda result: f"{result['rows']:,}"),
    ("runs", lambda result: str(len(result["runs"]))),
    ("final rows", figure("final_rows", ",.0f")),
    ("connections", lambda result: str(result["connections"])),
    ("rows/s", figure("rows_per_s", ",.0f")),
    ("database µs/row", figure("database_us")),
)
LIVE: tuple[Column, ...] = (
    ("version", lambda result: result["version"]),
    ("rows/s", lambda result: f"{result['rows_per_s']:,}"),
    ("partitions", lambda result: str(result["partitions"])),
    ("runs", lambda result: str(len(result["runs"]))),
    ("fed rows/s", figure("rows_per_s", ",.0f")),
    ("median s", figure("latency_s.median", ".2f")),
    ("p90", figure("latency_s.p90", ".2f")),
    ("p99", figure("latency_s.p99", ".2f")),
    ("max", figure("latency_s.max", ".2f")),
    ("keeps up", lambda result: "yes" if result["median"]["keeps_up"] else "NO"),
    ("behind s", figure("behind_s")),
    ("cores", figure("cores.all", ".2f")),
    ("database", figure("database_cores", ".2f")),
    ("Kafka", figure("kafka_cores", ".2f")),
    ("idle cores", figure("idle_cores.all", ".3f")),
    ("start s", figure("start_s")),
    ("peak MiB", figure("peak_mib.all", ",.0f")),
)


def table(columns: Sequence[Column], results: Iterable[dict[str, Any]]) -> str:
    """Return a Markdown table; columns that no result knows are left out."""
    rows = [[text(result) for _, text in columns] for result in results]
    kept = [place for place in range(len(columns)) if any(row[place] != "-" for row in rows)]
    cells = [[columns[place][0] for place in kept], *([row[place] for place in kept] for row in rows)]
    widths = [max(len(row[place]) for row in cells) for place in range(len(kept))]
    lines = ["| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |" for row in cells]
    return "\n".join([lines[0], "|" + "|".join("-" * (width + 2) for width in widths) + "|", *lines[1:]])


def tables(results: Sequence[dict[str, Any]]) -> str:
    """Return the tables of all kinds of results."""
    kinds = (("floor", FLOOR), ("backlog", BACKLOG), ("live", LIVE))
    found = ((columns, [result for result in results if result["kind"] == kind]) for kind, columns in kinds)
    return "\n\n".join(table(columns, chosen) for columns, chosen in found if chosen)


def main() -> None:
    """Print the files that the command line names as tables."""
    for name in sys.argv[1:]:
        content = json.loads(Path(name).read_text(encoding="utf-8"))
        facts = {name: value for name, value in content.items() if name != "results"}
        print(json.dumps(facts), tables(content["results"]), sep="\n\n", end="\n\n")


if __name__ == "__main__":
    main()
