"""When a DDL ran upstream, and in which zones its times are: for what it writes into existing rows."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from applier.ddl.parser import BY_HAND
from applier.model.errors import NeedsOperator
from applier.model.events import DdlEvent
from applier.sinks.sqlite.stored_value import Inexact

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_SECONDS: Final = "%Y-%m-%d %H:%M:%S"
_ZERO: Final = "0000"
_LAST: Final = 2**31
"""TIMESTAMP ends before this second (manual, "The DATE, DATETIME, and TIMESTAMP Types")."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DdlTime:
    """``zone`` is that of times on the wire, ``session_zone`` that of upstream's session ('': not needed by this DDL).

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
        return cls(moment=moment, zone=zone, session_zone=str(session.get("time_zone", "")), keeps_fraction=ddl.is_of_log)

    def now(self, scale: int, *, is_timestamp: bool) -> str:
        """Return CURRENT_TIMESTAMP of so many digits, as the wire writes it: of a DATETIME the time that upstream's session saw."""
        moment = self.moment.astimezone(_zone(self.zone if is_timestamp else self.session_zone or self.zone))
        fraction = f"{moment.microsecond if self.keeps_fraction else 0:06d}"[:scale]
        return f"{moment:%Y-%m-%d %H:%M:%S}" + (f".{fraction}" if scale else "")

    def in_wire_zone(self, text: str) -> str:
        """Return a time of the session's zone as the wire writes a TIMESTAMP. Inexact: it is no time there, two times, or no TIMESTAMP."""
        if not self.session_zone or text.startswith(_ZERO):
            return text
        moment, fraction = _moment(text, _zone(self.session_zone))
        if not 0 < moment.timestamp() < _LAST:
            raise Inexact("out of range for timestamp")
        return f"{moment.astimezone(_zone(self.zone)):{_SECONDS}}{fraction}"

    def in_session_zone(self, text: str) -> str:
        """Return a TIMESTAMP of the wire as upstream's session sees it. Inexact: an hour of the wire's zone that comes twice."""
        if not self.session_zone or text.startswith(_ZERO):
            return text
        moment, fraction = _moment(text, _zone(self.zone))
        return f"{moment.astimezone(_zone(self.session_zone)):{_SECONDS}}{fraction}"


def _moment(text: str, zone: tzinfo) -> tuple[datetime, str]:
    """Return the point in time of a text without its fraction, and the fraction."""
    whole, dot, fraction = text.partition(".")
    try:
        local = datetime.strptime(whole, _SECONDS).replace(tzinfo=zone)
    except ValueError:
        raise Inexact("no date of the calendar") from None
    # Where the clock is moved, a time comes twice, or never: then the two readings differ.
    if local.utcoffset() != local.replace(fold=1).utcoffset():
        raise Inexact("the time comes twice, or never, in its zone")
    return local.astimezone(UTC), dot + fraction


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
