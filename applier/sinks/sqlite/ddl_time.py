"""When a DDL ran upstream, and in which zones its times are: for what it writes into existing rows."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from applier.ddl.remedy import BY_HAND
from applier.model.errors import NeedsOperator
from applier.model.events import DdlEvent

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class DdlTime:
    """``zone`` is that of times on the wire, ``session_zone`` that of the literals in the DDL ('': the same).

    ``keeps_fraction``: TiDB drops the fraction of CURRENT_TIMESTAMP for existing rows, MySQL and MariaDB keep it.
    """

    moment: datetime
    zone: str
    session_zone: str = ""
    keeps_fraction: bool = False

    @classmethod
    def of(cls, ddl: DdlEvent, zone: str) -> "DdlTime":
        """Read what a DDL says about its time."""
        session = dict(ddl.session)
        if exact := str(session.get("timestamp", "")):
            seconds, _, fraction = exact.partition(".")
            moment = _EPOCH + timedelta(seconds=int(seconds), microseconds=int(fraction.ljust(6, "0") or 0))
        else:
            moment = _EPOCH + timedelta(milliseconds=ddl.time_ms or 0)
        return cls(moment=moment, zone=zone, session_zone=str(session.get("time_zone", "")), keeps_fraction=bool(session))

    def now(self, scale: int, *, is_timestamp: bool) -> str:
        """Return CURRENT_TIMESTAMP of so many digits, as the wire writes it: of a DATETIME the time that upstream's session saw."""
        moment = self.moment.astimezone(_zone(self.zone if is_timestamp else self.session_zone or self.zone))
        fraction = f"{moment.microsecond if self.keeps_fraction else 0:06d}"[:scale]
        return f"{moment:%Y-%m-%d %H:%M:%S}" + (f".{fraction}" if scale else "")

    def in_wire_zone(self, text: str) -> str:
        """Return a literal of a TIMESTAMP, which is in the session's zone, as the wire writes it."""
        if not self.session_zone or text.startswith("0000"):
            return text
        whole, dot, fraction = text.partition(".")
        moment = datetime.strptime(whole, "%Y-%m-%d %H:%M:%S").replace(tzinfo=_zone(self.session_zone))
        return f"{moment.astimezone(_zone(self.zone)):%Y-%m-%d %H:%M:%S}{dot}{fraction}"


def _zone(name: str) -> tzinfo:
    """Return the zone of an offset (+05:30) or a name. NeedsOperator."""
    if name[:1] in {"+", "-"}:
        hours, _, minutes = name[1:].partition(":")
        offset = timedelta(hours=int(hours), minutes=int(minutes or 0))
        return timezone(-offset if name[0] == "-" else offset)
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError) as error:
        message = "the time zone of the DDL's session is not known here"
        raise NeedsOperator(message, remedy=BY_HAND, time_zone=name) from error
