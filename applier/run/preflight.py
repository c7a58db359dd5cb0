"""The checks of a run before it opens anything: the ones that take a second (``applier.check``), all at the same time.

An error ends the run before Spark starts. A server that does not answer is not an error here: a run retries that, and a catch-up
reports it.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from applier.check.everything import examine_quickly
from applier.config import Config
from applier.model.errors import ApplierError, ConfigError, FatalSinkError, NeedsOperator
from applier.model.finding import CheckFinding, Severity
from applier.replica.recovery import is_transient
from applier.run.assembly import as_submitted
from applier.run.ending import store_error
from applier.sources.factory import kit_of

WITHIN_S: Final = 1.0
_KINDS: Final[Mapping[str, type[ApplierError]]] = {"sink": FatalSinkError, "primary": NeedsOperator}
"""What a server lacks is not an error of the configuration."""


def refuse_wrong_setup(config: Config, *, within_s: float = WITHIN_S, command: str) -> None:
    """Raise the error of the first finding that stops a run; its fact ``also`` names the others. It is stored as the end of ``command``."""
    errors = stopping(examine_quickly(as_submitted(config), within_s=within_s))
    if not errors:
        return
    first, *others = errors
    error = error_of(first)
    error.timeline = kit_of(config.source_settings()).timeline()
    if others:
        error.facts["also"] = "; ".join(f"{finding.check}: {finding.detail}" for finding in others)
    store_error(command, config.sink_settings(), error)
    raise error


def stopping(findings: Iterable[CheckFinding]) -> list[CheckFinding]:
    """Return the findings that stop a run: errors that a retry cannot help."""
    errors = [finding for finding in findings if finding.level is Severity.ERROR and finding.is_examined]
    return [finding for finding in errors if finding.error is None or not is_transient(finding.error)]


def error_of(finding: CheckFinding) -> ApplierError:
    """Return the error that a run would raise for a finding; else one made of the finding."""
    if finding.error is not None:
        return finding.error
    kind = _KINDS.get(finding.check.partition(":")[0], ConfigError)
    return kind(f"{finding.check}: {finding.detail}", remedy=finding.remedy)
