"""What a scan asks the server: its log from a place on, and how far it goes. Used by the scan's thread."""

from applier.model.errors import SourceError
from applier.sources.binlog.event_stream import EventStream
from applier.sources.binlog.place import LogPlace
from applier.sources.binlog.position import BinlogPosition
from applier.sources.binlog.server import Server
from applier.sources.binlog.settings import BinlogSettings


class ScanSession:
    """Implements ``LogSession`` for the log of one place."""

    def __init__(self, settings: BinlogSettings, place: LogPlace) -> None:
        self._settings, self._place = settings, place
        self._server = Server(settings)

    def open_feed(self, at: int) -> EventStream:
        """Begin to read at a place. SourceError "other_server": another one answers, as after a failover behind one address."""
        self._server.close()
        place, server = self._place, self._server.identity()
        if server != place.server:
            raise SourceError(
                "another server answers", kind="other_server", followed=place.server, server=server, address=self._server.address
            )
        return EventStream(self._settings, place.base_name, at, bodies=False)

    def end(self) -> int:
        """Return where the server writes now."""
        end = self._server.end()
        if end is None or end.base_name != self._place.base_name:
            raise SourceError("the server writes another binlog", kind="other_server", address=self._server.address)
        return BinlogPosition(self._place.generation, end.number, end.position).number

    def close(self) -> None:
        """Close the connection."""
        self._server.close()
