"""What a failure of upstream means to the applier: wait, stop with the remedy, or the wrong address."""

from typing import Any, Final

from applier.model.errors import ApplierError, ConfigError, NeedsOperator, SourceError
from applier.model.failure import FailureKind
from applier.model.remedy import SKIP_RECORD, Remedy
from applier.mysql.errors import DENIED, NoSession, code_of, may_pass, shown_text

BELOW_GC: Final = 8055
UNKNOWN_VARIABLE: Final = 1193
_NO_TABLE: Final = frozenset({1049, 1146})

GC_REMEDY: Final = Remedy(
    "upstream.load-removed-row",
    "Upstream has removed the row's version. Load the row as it is now from upstream into the sink, and skip the record: "
    f"`{SKIP_RECORD}`. Or create the replica again from a dump (`applier docs start_over`). "
    "Set tidb_gc_life_time longer than the applier may lag. Or use claim-check messages",
)
_ADDRESS: Final = Remedy("upstream.use-cluster-of-changefeed", "Set source.upstream to the TiDB cluster that the changefeed reads")


def explained(error: Exception, doing: str, **facts: Any) -> ApplierError:
    """Return the error of the applier for a failure of upstream's server, without row values."""
    cause: BaseException = error
    if isinstance(error, NoSession):
        doing, cause, facts = error.doing, error.__cause__ or error, {**facts, **error.facts}
    code = code_of(cause)
    facts = {**facts, **({} if code is None else {"code": code})}
    if code == BELOW_GC:
        return NeedsOperator("upstream no longer has the rows of this time", remedy=GC_REMEDY, **facts)
    if code == UNKNOWN_VARIABLE:
        return ConfigError("source.upstream is not a TiDB server", remedy=_ADDRESS, key="source.upstream", **facts)
    if code in _NO_TABLE:
        return NeedsOperator("upstream has no such table at this time", remedy=_ADDRESS, **facts)
    if code in DENIED:
        remedy = Remedy(
            "upstream.check-user-and-grant-select",
            "Check user and password of source.upstream, and grant the user SELECT on the replicated tables",
        )
        return SourceError("upstream refuses access", remedy=remedy, kind=FailureKind.UPSTREAM, **facts)
    # The session itself is refused: its variables are not what they were set to.
    if isinstance(cause, NoSession):
        return SourceError(f"upstream: {doing}", remedy=cause.remedy, kind=FailureKind.UPSTREAM, **facts)
    words = shown_text(cause)
    message = f"upstream failed while {doing}" + (f": {words}" if words else "")
    remedy = Remedy("upstream.check-host-port-tls", "Check source.upstream: host, port and TLS, and whether the server runs")
    return SourceError(message, remedy=remedy, kind=FailureKind.UNREACHABLE if may_pass(cause) else FailureKind.UPSTREAM, **facts)


def is_passing(error: Exception) -> bool:
    """Whether a retry may succeed."""
    return isinstance(error, SourceError) and error.kind is FailureKind.UNREACHABLE
