"""What a check has found: one line for people, one object for programs."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from applier.model.errors import NO_REMEDY, ApplierError, Remedy


class Severity(StrEnum):
    """How much a finding matters."""

    OK = "ok"
    WARNING = "warning"
    """The replica can run; something may go wrong later, or could not be examined."""
    ERROR = "error"
    """The replica cannot run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckFinding:
    """One result. ``check`` names what was examined; ``error`` is what a run would raise, if it would raise something."""

    check: str
    level: Severity
    detail: str
    remedy: Remedy = NO_REMEDY
    error: ApplierError | None = field(default=None, compare=False, repr=False)
    is_examined: bool = True
    """False: nothing is known. ``applier check`` fails; a run begins, and finds out."""

    def as_object(self) -> dict[str, Any]:
        """Return the finding for programs."""
        return {"check": self.check, "level": str(self.level), "detail": self.detail, "remedy": self.remedy}


def ok(check: str, detail: str) -> CheckFinding:
    """Return a finding that all is well."""
    return CheckFinding(check=check, level=Severity.OK, detail=detail)


def warning(check: str, detail: str, remedy: Remedy) -> CheckFinding:
    """Return a finding that does not stop a run."""
    return CheckFinding(check=check, level=Severity.WARNING, detail=detail, remedy=remedy)


def problem(check: str, detail: str, remedy: Remedy) -> CheckFinding:
    """Return a finding that stops a run."""
    return CheckFinding(check=check, level=Severity.ERROR, detail=detail, remedy=remedy)


def not_examined(check: str, reason: str, remedy: Remedy) -> CheckFinding:
    """Return a finding that nothing is known: to call that a success, or a warning, would be wrong."""
    return CheckFinding(check=check, level=Severity.ERROR, detail=f"not examined: {reason}", remedy=remedy, is_examined=False)


def of_error(check: str, error: ApplierError, *, level: Severity = Severity.ERROR) -> CheckFinding:
    """Return the finding of an error that a run would raise."""
    facts = ", ".join(f"{name}={value}" for name, value in error.facts.items() if value not in {None, ""} and name != "kind")
    detail = f"{error.message} ({facts})" if facts else error.message
    return CheckFinding(check=check, level=level, detail=detail, remedy=error.remedy, error=error)
