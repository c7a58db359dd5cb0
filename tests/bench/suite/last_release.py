"""The ratios of this run beside those of the last release. They are shown, and nothing fails: a shared machine is noisy."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

KEPT = Path(__file__).parents[1] / "last_release.json"
MEANINGS = {
    "A_of_floor": "A, 200,000 rows: rate in terms of the floor of one connection",
    "A_cpu_us": "A, 200,000 rows: CPU of the process tree, µs a row",
    "E_median_s": "E, 1,000 rows/s on 4 partitions: resolved event to visible, median, s",
    "E_cores": "E, 1,000 rows/s on 4 partitions: cores in use",
}


def ratios(results: Iterable[dict[str, Any]]) -> dict[str, float]:
    """Return what is compared."""
    found: dict[str, float] = {}
    for result in results:
        median = result["median"]
        match result["kind"]:
            case "backlog":
                found |= {"A_of_floor": round(median["of_floor"], 3), "A_cpu_us": round(median["all_us"], 1)}
            case "live":
                found |= {"E_median_s": round(median["latency_s"]["median"], 3), "E_cores": round(median["cores"]["all"], 2)}
    return found


def compared(results: Iterable[dict[str, Any]]) -> str:
    """Return a table of this run and the last release."""
    kept = json.loads(KEPT.read_text(encoding="utf-8"))
    release, then = kept["release"], kept["ratios"]
    lines = [f"| figure | this run | {release} |", "|---|---|---|"]
    lines += [f"| {MEANINGS[name]} | {value} | {then.get(name, '-')} |" for name, value in ratios(results).items()]
    return "\n".join(lines)


def keep(release: str, results: Iterable[dict[str, Any]]) -> None:
    """Keep the ratios as those of ``release``."""
    KEPT.write_text(json.dumps({"release": release, "ratios": ratios(results)}, indent=2) + "\n", encoding="utf-8")
