"""``[source]`` with ``kind = "binlog"``: the binlog of a MySQL or MariaDB server."""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, ClassVar, Final, Literal

from pydantic import AfterValidator, BeforeValidator

from applier.config.selection import SelectedSource, online_ddl_of
from applier.config.server import ServerSection
from applier.config.value import refuse, split_text
from applier.model.errors import Remedy
from applier.selection import COPIES, LEFTOVERS, OnlineDdlMode, TableSelection
from applier.sources.binlog.position import STREAM
from applier.sources.binlog.settings import COPY, BinlogSettings
from applier.upstream.settings import UpstreamSettings

SERVER_IDS: Final = "430000000-430000063"
"""Above the ids that people give to servers. 64 of them: as many connections that read at once."""
IDS_FORM: Final = Remedy("config.write-server-id-range", f'Write the first and the last of unused ids: "{SERVER_IDS}"')
START_FORM: Final = Remedy(
    "config.write-binlog-start",
    'Write "copy", "mariadb-bin.000042:4" (a file and a position), "gtid:…" (the transactions that the sink holds), '
    '"now", or "dump:/backup/dump.sql"',
)
MAX_SERVER_ID: Final = 2**32 - 1
MIN_SERVER_IDS, MAX_SERVER_IDS = 2, 1024
"""One connection looks ahead, another one reads. Each new connection tries the ids until it finds a free one."""
_IDS: Final = re.compile(r"(\d{1,10})\s*-\s*(\d{1,10})", re.ASCII)
_FILE_POSITION: Final = re.compile(r"[^/:\s]+\.\d{6,}:\d+", re.ASCII)
_GTIDS: Final = re.compile(r"gtid:(?:|[0-9A-Za-z:,_\s-]*\d)", re.ASCII)


def _server_ids(text: str) -> str:
    """Accept the first and the last of a range of server ids."""
    ids = _IDS.fullmatch(text.strip())
    if ids is None:
        raise refuse(f"is not a range of server ids: {text!r}", IDS_FORM)
    first, last = int(ids[1]), int(ids[2])
    if not 1 <= first <= last <= MAX_SERVER_ID:
        raise refuse(f"must go from a smaller id to a greater one, from 1 to {MAX_SERVER_ID}", IDS_FORM)
    if last - first + 1 > MAX_SERVER_IDS:
        raise refuse(f"holds more than {MAX_SERVER_IDS} ids", IDS_FORM)
    if last - first + 1 < MIN_SERVER_IDS:
        raise refuse("holds one id, but each connection that reads needs its own", IDS_FORM)
    return f"{first}-{last}"


def _start(text: str) -> str:
    """Accept the forms of a beginning; whether it exists, the server says."""
    named_dump = text.startswith("dump:") and text != "dump:"
    if text in {"", "now", COPY} or named_dump or _GTIDS.fullmatch(text) or _FILE_POSITION.fullmatch(text):
        return text
    raise refuse(f"is not a position in a binlog: {text!r}", START_FORM)


class BinlogSourceConfig(ServerSection, SelectedSource):
    """The server whose binlog is read, as a replica reads it."""

    time_zone: ClassVar[str] = "UTC"
    ddl_time_zone: ClassVar[str] = ""
    """Rows events hold TIMESTAMPs as seconds since 1970."""
    new_collations: ClassVar[bool] = True
    dispatcher: ClassVar[None] = None
    has_whole_transactions: ClassVar[bool] = True
    """Its one stream holds each transaction whole: ``consistency = "row"`` has no use, and no row comes without those before it."""
    topics: ClassVar[tuple[str, ...]] = (STREAM.topic,)
    """The one stream, by the name that messages give it."""
    start_ts: ClassVar[int] = 0
    """``start`` names the beginning: only the server knows its position."""
    instead: ClassVar[Mapping[str, str]] = {
        "start_ts": "Set start to the position where a new replica begins",
        "bootstrap_servers": "Set url to the primary",
        "time_zone": "A binlog's TIMESTAMPs are UTC",
        "ddl_time_zone": "A binlog names the zone of each statement",
        "new_collations": "Keys are compared by the collations that the binlog names",
        "upstream": "Each row of a binlog is whole, so nothing is looked up",
        "claim_check": "Each row of a binlog is whole, so there is no such storage",
        "partitions": "A binlog is one stream",
        "dispatcher": "A binlog is one stream",
    }

    kind: Literal["binlog"]
    """The binlog of a MySQL or MariaDB server."""
    server_ids: Annotated[str, AfterValidator(_server_ids)] = SERVER_IDS
    """Server ids of the connections that read, first and last. No other replica of the primary may have one of them."""
    start: Annotated[str, BeforeValidator(str), AfterValidator(_start)] = ""
    """Where a new replica begins: ``FILE:POS``, ``gtid:SET``, ``now`` or ``dump:PATH``. Not needed after `applier load`.

    ``copy``: it copies upstream first."""
    online_ddl: OnlineDdlMode = OnlineDdlMode.FILTERED
    """Tables that gh-ost and pt-online-schema-change make: whether their cut-over becomes an ALTER TABLE."""
    shadow_table_rules: Annotated[tuple[str, ...], BeforeValidator(split_text)] = COPIES
    """Regular expressions for the copies that these tools alter and fill. Their one group is the name of the changed table."""
    trash_table_rules: Annotated[tuple[str, ...], BeforeValidator(split_text)] = LEFTOVERS
    """Regular expressions for the other tables that they make: changelogs, checkpoints, and the table of before."""

    def selection(self) -> TableSelection:
        """Return what the replica has of upstream, and under which names."""
        rules = online_ddl_of(self.online_ddl, self.shadow_table_rules, self.trash_table_rules)
        return replace(super().selection(), online=rules)

    def users(self) -> dict[str, str]:
        """Return the user of the primary."""
        return {"binlog": self.user}

    def upstream_settings(self) -> UpstreamSettings:
        """Return the primary: the sink is compared with it."""
        return UpstreamSettings(url=self.full_url(), tls=self.tls)

    def settings(self, name: str) -> BinlogSettings:
        """Return the settings for the replica ``name``. Their ``repr`` hides the password."""
        first, _, last = self.server_ids.partition("-")
        return BinlogSettings(
            url=self.full_url(),
            tls=self.tls,
            server_ids=(int(first), int(last)),
            start=self.start,
            name=name,
        )
