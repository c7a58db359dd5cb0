"""docs/runbook.md has a section for each exit code and each alert rule."""

import re
from pathlib import Path

from applier.model.errors import ApplierError

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "runbook.md").read_text(encoding="utf-8")


def test_every_alert_rule_has_its_section():
    rules = re.findall(r"- alert: (\w+)", (ROOT / "docker" / "prometheus" / "alerts.yml").read_text(encoding="utf-8"))
    assert rules
    assert set(rules) == set(re.findall(r"^### (Applier\w+)$", TEXT, re.MULTILINE))


def test_every_exit_code_of_an_error_has_its_line_and_its_section():
    codes = {str(code) for code in exit_codes(ApplierError)} - {"0"}
    assert codes <= set(re.findall(r"^\| (\d+) \| .* \| (?:yes|no)", TEXT, re.MULTILINE))
    assert codes <= set(re.findall(r"^### (\d+): ", TEXT, re.MULTILINE))


def exit_codes(kind):
    yield kind.exit_code
    for below in kind.__subclasses__():
        yield from exit_codes(below)
