"""Where a new replica begins: ``source.start`` as ``FILE:POS``, ``gtid:SET``, ``now`` or ``dump:PATH``."""

from typing import Final

from applier.model.errors import ConfigError
from applier.model.remedy import Remedy
from applier.sources.binlog.dump import DumpPlace, place_of_dump
from applier.sources.binlog.gtid_set import GtidSet, MariadbGtidSet
from applier.sources.binlog.place import LogPlace, PlaceFinder
from applier.sources.binlog.position import parse_place, split_file_name
from applier.sources.binlog.server import Server

GTIDS: Final = "gtid:"
_FORMS: Final = Remedy("binlog.write-source-start", 'Write source.start = "FILE:POS", "gtid:SET", "now" or "dump:PATH"')
_SAY: Final = Remedy(
    "binlog.load-dump-or-set-start",
    "Load a dump with `applier load`. Or set source.start to the place of the dump that was loaded: dump:PATH reads it from the dump. "
    '"now" begins behind everything that the server has logged so far',
)


def start_place(start: str, server: Server, finder: PlaceFinder) -> LogPlace:
    """Return the place. ConfigError: the text cannot be read. NeedsOperator: the server does not hold what follows it."""
    kind, _, rest = start.partition(":")
    match kind:
        case "":
            raise ConfigError("it is not said where the replica begins", remedy=_SAY, key="source.start")
        case "now":
            end = finder.end()
            return finder.at(end.base_name, end.number, end.position)
        case "gtid":
            return finder.behind(_gtid_set(server, rest, start))
        case "dump":
            return _of_dump(place_of_dump(rest), server, finder, start)
        case _:
            return _at(start, finder)


def _of_dump(dump: DumpPlace, server: Server, finder: PlaceFinder, start: str) -> LogPlace:
    if not dump.gtid_set:
        return _at(dump.position, finder)
    executed = _gtid_set(server, dump.gtid_set, start)
    # FILE:POS is exact, but of the server that was dumped. Its log shows whether this is that server: what lies before is the dump's set.
    written = parse_place(dump.position)
    place = None if written is None else finder.proven(*written, executed)
    return place or finder.behind(executed)


def _gtid_set(server: Server, text: str, start: str) -> GtidSet:
    try:
        found = server.gtid_set(text)
    except ValueError as error:
        raise _no_set(start, str(error)) from error
    if isinstance(found, MariadbGtidSet) and found.ambiguous:
        raise _no_set(start, f"it has GTIDs of several servers of domain {found.ambiguous}")
    return found


def _no_set(start: str, cause: str) -> ConfigError:
    remedy = Remedy(
        "binlog.write-gtid-set", "Write it as the server does: SELECT @@GLOBAL.gtid_executed (MySQL), SELECT @@gtid_binlog_pos (MariaDB)"
    )
    return ConfigError(f"{start!r} is no set of GTIDs of this server", remedy=remedy, key="source.start", cause=cause)


def _at(text: str, finder: PlaceFinder) -> LogPlace:
    name, _, position = text.rpartition(":")
    try:
        base_name, number = split_file_name(name)
        at = int(position)
    except ValueError as error:
        raise ConfigError(f"{text!r} is no place in a binlog", remedy=_FORMS, key="source.start", cause=str(error)) from error
    return finder.at(base_name, number, at)
