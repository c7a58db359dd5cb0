"""The kit of a vault."""

from contextlib import AbstractContextManager
from pathlib import Path

from sqlalchemy import URL, Connection

from applier.database.session import BadAddress, parse_address
from applier.model.errors import FatalSinkError, Remedy
from applier.sinks.kit import SinkKit
from applier.sinks.settings import SinkSettings
from tests.vault.loader import VaultLoader
from tests.vault.reader import VaultReader
from tests.vault.session import Vault
from tests.vault.sink import VaultSink
from tests.vault.words import bookkeeping_of

FORM = Remedy("vault.write-url", "Write vault:///replica.vault")


class VaultKit(SinkKit):
    local = "a vault"

    def read_url(self, text: str) -> URL:
        url, options = parse_address(text, FORM)
        if url.host or options or not url.database:
            raise BadAddress("names no vault", FORM)
        return url

    def open_sink(self, settings: SinkSettings) -> VaultSink:
        return VaultSink(settings)

    def open_glance(self, settings: SinkSettings, *, changes: bool) -> AbstractContextManager[Connection]:
        del changes
        return Vault.of(settings).transaction()

    def open_reader(self, settings: SinkSettings, *, is_upstream: bool, statement_timeout_s: int) -> VaultReader:
        del is_upstream, statement_timeout_s
        return VaultReader(settings)

    def loader(self, settings: SinkSettings) -> VaultLoader:
        return VaultLoader(settings)

    def bookkeeping(self, settings: SinkSettings):
        return bookkeeping_of(settings)

    def is_there(self, settings: SinkSettings) -> bool:
        path = Path(Vault.of(settings).path)
        if not path.parent.is_dir():
            raise FatalSinkError("the vault has no place", remedy=Remedy("vault.make-directory", "Make its directory"), path=str(path))
        return path.exists()


KIT = VaultKit()
